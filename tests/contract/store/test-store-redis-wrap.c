/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc */

/* There is no memory for one call to Redis: the call is repeated later, and no claim waits for ever. */

#include <stdlib.h>

#include "tests/harness/redis/redis-bed.h"
#include "tests/harness/wrap.h"

WRAP(FAULT_MEMORY, NULL, void *, malloc, (size_t size), (size))
WRAP(FAULT_ZEROED_MEMORY, NULL, void *, calloc, (size_t n, size_t size), (n, size))
WRAP(FAULT_MEMORY, NULL, void *, realloc, (void *old, size_t size), (old, size))

/* Fails each allocation of the call under way. */
#define WITHOUT_MEMORY(statement) WITHOUT(FAULT_MEMORY, 1, statement)
#define WITHOUT(kind, from, statement)             \
    do {                                           \
        fault_begin((kind), (from), 1000);         \
        statement;                                 \
        CU_ASSERT(fault_end());                    \
    } while (0)

/* Runs turns of the event loop until the fault was met: requests are sent at the end of a turn. */
static void turn_until_met(struct bed *b) {
    usec_t end = usec_add(clock_boottime(), BED_DEADLINE_USEC);

    while (!fault_is_met() && bed_turn(b, end))
        ;
}

static void test_claim(void) {
    struct probe *first, *second;
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    first = bed_probe(&b, 0, "db:1");
    WITHOUT(FAULT_ZEROED_MEMORY, 2, probe_ask(first)); /* the store has the claim, but no memory to request it */
    BED_UNTIL(&b, first->n_granted > 0);
    WITHOUT(FAULT_ZEROED_MEMORY, 1, probe_release(first));
    BED_UNTIL(&b, first->n_released > 0);
    first = bed_probe(&b, 0, "db:1");
    second = bed_probe(&b, 0, "db:1");
    probe_ask(first);
    probe_ask(second);
    WITHOUT_MEMORY(turn_until_met(&b));
    BED_UNTIL(&b, first->n_granted > 0 && second->n_granted > 0);
    probe_release(first);
    probe_release(second);
    WITHOUT_MEMORY(turn_until_met(&b));
    BED_UNTIL(&b, first->n_released > 0 && second->n_released > 0);
    bed_done(&b);
}

static void on_reply(int r, void *userdata) {
    *(int *) userdata = r;
}

static void on_inspected(int r, struct snapshot *snapshot, void *userdata) {
    *(int *) userdata = r;
    snapshot_free(snapshot);
}

#define NO_REPLY 1000

static void test_admin(void) {
    const struct store_override o = {.pool = "db", .limit = 2, .for_usec = USEC_INFINITY};
    int done = NO_REPLY, seen = NO_REPLY;
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    WITHOUT_MEMORY(TEST_INT(store_override(b.stores[0], &o, on_reply, &done), 0));
    BED_UNTIL(&b, done != NO_REPLY);
    TEST_INT(done, 0);
    TEST_INT(store_inspect(b.stores[0], NULL, on_inspected, &seen), 0);
    WITHOUT_MEMORY(turn_until_met(&b));
    BED_UNTIL(&b, seen != NO_REPLY);
    TEST_INT(seen, 0);
    bed_done(&b);
}

/* The limits of a reload. */
static void test_declare(void) {
    struct store_pool pools[2] = {redis_bed_pools[0], redis_bed_pools[1]};
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    pools[0].limit = 7;
    WITHOUT_MEMORY(TEST_INT(store_declare(b.stores[0], pools, ELEMENTSOF(pools), false), 0));
    BED_UNTIL(&b, bed_has_event(&b, "limit-changed: "));
    bed_done(&b);
}

static CU_TestInfo tests[] = {
    {"claim and release", test_claim},
    {"override and snapshot", test_admin},
    {"limits", test_declare},
    CU_TEST_INFO_NULL,
};

TEST_MAIN(redis_bed_main(argc, argv, suites, NULL), {.pName = "store-redis, failing", .pTests = tests})
