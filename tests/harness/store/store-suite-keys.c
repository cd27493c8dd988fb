/* SPDX-License-Identifier: MIT */

/* Tests of the store suite: patterns and their keys. */

#include <stdlib.h>
#include <string.h>

#include "tests/harness/store/store-suite-internal.h"

static const struct store_pool pools[] = {
    {.name = "db", .limit = 4, .queue_limit = 10},
    {.name = "tenant/*", .limit = 2, .queue_limit = 1100},
    {.name = "tenant/big", .limit = 3, .queue_limit = 1},
};

static bool begin(struct bed *b) {
    return bed_init(b, store_suite_fixture(), pools, ELEMENTSOF(pools)) && bed_start(b);
}

/* Each key has a limit, a queue and an order of its own. */
void store_suite_test_keys(void) {
    struct probe *waiting[20];
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "tenant/acme:2"), *other = bed_probe(&b, 1, "tenant/b:2"), *both = bed_probe(&b, 2, "tenant/c,db");
    probe_grant(holder);
    for (unsigned i = 0; i < ELEMENTSOF(waiting); i++) {
        probe_wait(waiting[i] = bed_probe(&b, i, "tenant/acme:2"));
        TEST_INT(waiting[i]->claim.position, i + 1);
    }
    probe_grant(other);
    probe_grant(both);
    TEST_INT(bed_used(&b, "tenant/acme"), 2);
    TEST_INT(bed_used(&b, "tenant/b"), 2);
    TEST_INT(bed_used(&b, "db"), 1);
    for (unsigned i = 0; i < ELEMENTSOF(waiting); i++) {
        probe_release(holder);
        BED_UNTIL(&b, waiting[i]->n_granted > 0);
        TEST_INT(waiting[i]->grant_number, i + 4);
        holder = waiting[i];
    }
    bed_done(&b);
}

/* S35: a key at its limit with a thousand waiting claims keeps no other key waiting. */
void store_suite_test_keys_crowded(void) {
    struct probe *waiting[1000];
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "tenant/acme:2"), *other = bed_probe(&b, 1, "tenant/b");
    probe_grant(holder);
    for (unsigned i = 0; i < ELEMENTSOF(waiting); i++)
        probe_ask(waiting[i] = bed_probe(&b, 0, "tenant/acme"));
    probe_grant(other);
    TEST_INT(other->n_waiting, 0);
    for (unsigned i = 0; i < ELEMENTSOF(waiting); i++)
        BED_UNTIL(&b, waiting[i]->n_waiting > 0);
    probe_release(holder);
    for (unsigned i = 0; i + 1 < ELEMENTSOF(waiting); i++) {
        BED_UNTIL(&b, waiting[i]->n_granted > 0);
        TEST_INT(waiting[i]->grant_number, i + 3);
        probe_release(waiting[i]);
    }
    bed_done(&b);
}

/* A key that is named in full has its own limit and queue-limit. */
void store_suite_test_keys_in_full(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *three = bed_probe(&b, 0, "tenant/big:3"), *waiting = bed_probe(&b, 1, "tenant/big"), *refused = bed_probe(&b, 2, "tenant/big");
    probe_grant(three);
    probe_wait(waiting);
    probe_refuse(refused, STORE_REFUSAL_QUEUE_FULL);
    TEST_STRING(refused->refused_pool, "tenant/big");
    bed_done(&b);
}

/* Overrides go first: the key's own, then the pattern's. */
void store_suite_test_keys_override(void) {
    struct bed b;

    if (!begin(&b))
        return;
    TEST_INT(bed_override(&b, 0, &(struct store_override) {.pool = "tenant/*", .limit = 1, .for_usec = USEC_INFINITY}), 0);
    TEST_INT(bed_override(&b, 0, &(struct store_override) {.pool = "tenant/acme", .limit = 3, .for_usec = USEC_INFINITY}), 0);
    TEST_INT(bed_override(&b, 0, &(struct store_override) {.pool = "tenants/acme", .limit = 3, .for_usec = USEC_INFINITY}), STORE_E_UNKNOWN);
    struct probe *acme = bed_probe(&b, 0, "tenant/acme:3"), *big = bed_probe(&b, 1, "tenant/big"), *next = bed_probe(&b, 2, "tenant/big");
    probe_grant(acme);
    probe_grant(big);
    probe_wait(next);
    TEST_INT(bed_override(&b, 0, &(struct store_override) {.pool = "tenant/*", .clear = true}), 0);
    BED_UNTIL(&b, next->n_granted > 0);
    TEST_INT(bed_override(&b, 0, &(struct store_override) {.pool = "tenant/acme", .clear = true}), 0);
    probe_end(acme);
    struct probe *three = bed_probe(&b, 0, "tenant/acme:3"), *two = bed_probe(&b, 0, "tenant/acme:2");
    probe_wait(three);
    CU_ASSERT(three->was_parked);
    probe_grant(two);
    bed_done(&b);
}

/* A pause of the pattern holds back all keys without an override of their own. */
void store_suite_test_keys_pause(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *before = bed_probe(&b, 0, "tenant/a");
    probe_grant(before);
    TEST_INT(bed_override(&b, 0, &(struct store_override) {.pool = "tenant/c", .limit = 1, .for_usec = USEC_INFINITY}), 0);
    TEST_INT(bed_override(&b, 0, &(struct store_override) {.pool = "tenant/*", .pause = true, .for_usec = USEC_INFINITY}), 0);
    struct probe *a = bed_probe(&b, 0, "tenant/a"), *c = bed_probe(&b, 1, "tenant/c"), *big = bed_probe(&b, 2, "tenant/big"),
                 *db = bed_probe(&b, 2, "db");
    probe_wait(a);
    probe_wait(big);
    probe_grant(c);
    probe_grant(db);
    probe_end(before);
    probe_still_waits(a);
    TEST_INT(bed_override(&b, 0, &(struct store_override) {.pool = "tenant/*", .resume = true}), 0);
    BED_UNTIL(&b, a->n_granted > 0 && big->n_granted > 0);
    TEST_INT(bed_override(&b, 0, &(struct store_override) {.pool = "tenant/c", .clear = true}), 0);
    bed_done(&b);
}

/* A reload gives all keys in use another limit. */
void store_suite_test_keys_declare(void) {
    const struct store_pool fewer[] = {{.name = "db", .limit = 4, .queue_limit = 10}, {.name = "tenant/*", .limit = 1, .queue_limit = 1100}};
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *a = bed_probe(&b, 0, "tenant/a"), *big = bed_probe(&b, 0, "tenant/big:3");
    probe_grant(a);
    probe_grant(big);
    for (unsigned i = 0; i < b.n_hosts; i++)
        TEST_INT(bed_declare(&b, i, fewer, ELEMENTSOF(fewer)), 0);
    struct probe *second = bed_probe(&b, 0, "tenant/a"), *next = bed_probe(&b, 0, "tenant/big");
    probe_wait(second);
    probe_wait(next);
    for (unsigned i = 0; i < b.n_hosts; i++)
        TEST_INT(bed_declare(&b, i, pools, ELEMENTSOF(pools)), 0);
    BED_UNTIL(&b, second->n_granted > 0);
    probe_end(big);
    BED_UNTIL(&b, next->n_granted > 0);
    bed_done(&b);
}

/* Two thousand keys, each used once: bed_done() finds nothing that is left of them. */
void store_suite_test_keys_vanish(void) {
    struct bed b;

    if (!begin(&b))
        return;
    for (unsigned i = 0; i < 2000; i++) {
        char demand[32];

        snprintf(demand, sizeof(demand), "tenant/k%u", i);
        struct probe *p = bed_probe(&b, i, demand);
        probe_ask(p);
        if (i % 100 == 99)
            probe_grant(bed_probe(&b, i, demand));
    }
    bed_done(&b);
}

/* A pattern counts all its keys; an idle key is nowhere. */
void store_suite_test_keys_inspect(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *a = bed_probe(&b, 0, "tenant/a:2"), *c = bed_probe(&b, 1, "tenant/c"), *gone = bed_probe(&b, 0, "tenant/gone"),
                 *waiting = bed_probe(&b, 1, "tenant/a"), *big = bed_probe(&b, 0, "tenant/big:3");
    probe_grant(a);
    probe_grant(c);
    probe_grant(gone);
    probe_grant(big);
    probe_end(gone);
    probe_wait(waiting);
    _cleanup_(snapshot_freep) struct snapshot *s = bed_inspect(&b, 0);
    const struct snapshot_pool *pattern = snapshot_find_pool(s, "tenant/*"), *key = snapshot_find_pool(s, "tenant/a"), *full = snapshot_find_pool(s, "tenant/big");
    CU_ASSERT_FATAL(pattern && key && full);
    TEST_INT(pattern->n_keys, 3);
    TEST_INT(pattern->limit, 2);
    TEST_INT(pattern->used, 6);
    TEST_INT(pattern->waiting, 1);
    TEST_INT(pattern->has_pattern, false);
    TEST_INT(key->has_pattern, true);
    TEST_INT(key->limit, 2);
    TEST_INT(key->used, 2);
    TEST_INT(key->waiting, 1);
    TEST_INT(full->has_pattern, false);
    TEST_INT(full->limit, 3);
    CU_ASSERT_PTR_NULL(snapshot_find_pool(s, "tenant/gone"));
    bed_done(&b);
}
