/* SPDX-License-Identifier: MIT */

/* The requests of one turn of the event loop go to Redis in few calls and in order. Each claim gets one
 * result. */

#include <stdlib.h>
#include <string.h>

#include "store/redis/store-redis.h"
#include "tests/harness/redis/redis-bed.h"

static const struct store_pool pools[] = {{.name = "big", .limit = 100, .queue_limit = 200}, {.name = "db", .limit = 4, .queue_limit = 3}};

static bool begin(struct bed *b) {
    redis_bed.lease = 600 * USEC_PER_SEC; /* no heartbeat comes between the calls, and no resend */
    redis_bed.heartbeat = 100 * USEC_PER_SEC;
    if (!bed_init(b, redis_bed_fixture(1), pools, ELEMENTSOF(pools)) || !bed_start(b))
        return false;
    bed_settle(b);
    BED_UNTIL(b, !store_redis_of(b->stores[0])->heartbeat.is_under_way);
    return true;
}

static unsigned long count_calls(void) {
    _cleanup_reply_ redisReply *reply = redis_command(&redis_bed.server, "INFO commandstats");
    const char *at = reply && reply->str ? strstr(reply->str, "cmdstat_evalsha:calls=") : NULL,
               *text = at ? strstr(reply->str, "cmdstat_eval:calls=") : NULL; /* where Redis refuses SCRIPT */

    return (at ? strtoul(at + strlen("cmdstat_evalsha:calls="), NULL, 10) : 0) +
           (text ? strtoul(text + strlen("cmdstat_eval:calls="), NULL, 10) : 0);
}

static void ask_all(struct bed *b, struct probe **probes, size_t n, const char *pool) {
    for (size_t i = 0; i < n; i++)
        probe_ask(probes[i] = bed_probe(b, 0, pool));
}

static void await_granted(struct bed *b, struct probe **probes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        BED_UNTIL(b, probes[i]->n_granted > 0);
        CU_ASSERT(i == 0 || (probes[i]->token > probes[i - 1]->token && probes[i]->ticket > probes[i - 1]->ticket));
    }
}

/* Waits until earlier requests can cause no more callbacks, then checks that none came twice. */
static void expect_heard(struct bed *b, struct probe **probes, size_t n, unsigned granted, unsigned released) {
    bed_settle(b);
    for (size_t i = 0; i < n; i++) {
        TEST_INT(probes[i]->n_granted, granted);
        TEST_INT(probes[i]->n_released, released);
        TEST_INT(probes[i]->n_refused + probes[i]->n_lost, 0);
    }
}

static void test_together(void) {
    struct probe *probes[70];
    struct bed b;

    if (!begin(&b))
        return;
    unsigned long calls = count_calls();
    ask_all(&b, probes, ELEMENTSOF(probes), "big");
    await_granted(&b, probes, ELEMENTSOF(probes));
    TEST_INT(count_calls() - calls, 3); /* of 32, 32 and 6 */
    TEST_INT(bed_used(&b, "big"), 70);
    calls = count_calls();
    for (size_t i = 0; i < ELEMENTSOF(probes); i++)
        probe_release(probes[i]);
    for (size_t i = 0; i < ELEMENTSOF(probes); i++)
        BED_UNTIL(&b, probes[i]->n_released > 0);
    TEST_INT(count_calls() - calls, 3);
    expect_heard(&b, probes, ELEMENTSOF(probes), 1, 1);
    TEST_INT(bed_used(&b, "big"), 0);
    bed_done(&b);
}

/* Claims of different kinds go in separate calls, and none overtakes another. */
static void test_order(void) {
    static const char *const wants[] = {"big", "big", "db", "big:2", "big", "big", "big,db", "big", "big"};
    struct probe *probes[ELEMENTSOF(wants)];
    struct bed b;

    if (!begin(&b))
        return;
    unsigned long calls = count_calls();
    for (size_t i = 0; i < ELEMENTSOF(wants); i++) {
        probes[i] = bed_probe(&b, 0, wants[i]);
        probes[i]->claim.nowait = i == ELEMENTSOF(wants) - 1;
        probe_ask(probes[i]);
    }
    await_granted(&b, probes, ELEMENTSOF(wants));
    TEST_INT(count_calls() - calls, 7); /* the first two share a call, and so do those between big:2 and big,db */
    calls = count_calls();
    for (size_t i = 0; i < ELEMENTSOF(wants); i++) /* all of these are alike */
        probe_release(probes[i]);
    for (size_t i = 0; i < ELEMENTSOF(wants); i++)
        BED_UNTIL(&b, probes[i]->n_released > 0);
    TEST_INT(count_calls() - calls, 1);
    expect_heard(&b, probes, ELEMENTSOF(wants), 1, 1);
    bed_done(&b);
}

/* Other calls go out after earlier requests. */
static void test_then_else(void) {
    struct probe *probes[2];
    struct bed b;

    if (!begin(&b))
        return;
    ask_all(&b, probes, 2, "big");
    TEST_INT(bed_override(&b, 0, &(struct store_override) {.pool = "big", .pause = true, .for_usec = USEC_INFINITY}), 0);
    expect_heard(&b, probes, 2, 1, 0); /* before the pause */
    TEST_INT(bed_override(&b, 0, &(struct store_override) {.pool = "big", .resume = true, .for_usec = USEC_INFINITY}), 0);
    bed_done(&b);
}

static void test_some_fit(void) {
    struct probe *probes[9];
    struct bed b;

    if (!begin(&b))
        return;
    ask_all(&b, probes, ELEMENTSOF(probes), "db");
    BED_UNTIL(&b, probes[8]->n_refused > 0);
    for (size_t i = 0; i < ELEMENTSOF(probes); i++) {
        TEST_INT(probes[i]->n_granted, i < 4);
        TEST_INT(probes[i]->n_waiting, i >= 4 && i < 7);
        TEST_INT(probes[i]->n_refused, i >= 7);
        CU_ASSERT(i == 0 || i >= 7 || probes[i]->ticket > probes[i - 1]->ticket);
    }
    TEST_INT(probes[7]->refusal, STORE_REFUSAL_QUEUE_FULL);
    TEST_STRING(probes[7]->refused_pool, "db");
    for (size_t i = 0; i < 4; i++)
        probe_release(probes[i]);
    await_granted(&b, probes + 4, 3);
    for (size_t i = 0; i < 4; i++)
        BED_UNTIL(&b, probes[i]->n_released > 0);
    expect_heard(&b, probes, 4, 1, 1);
    expect_heard(&b, probes + 4, 3, 1, 0);
    TEST_INT(bed_used(&b, "db"), 3);
    bed_done(&b);
}

/* A claim is withdrawn before the turn of the loop is over: on_granted is not called for it. */
static void test_withdrawn(void) {
    struct probe *probes[3];
    struct bed b;

    if (!begin(&b))
        return;
    ask_all(&b, probes, 3, "big");
    probe_release(probes[1]);
    await_granted(&b, probes, 1);
    BED_UNTIL(&b, probes[1]->n_released > 0 && probes[2]->n_granted > 0);
    expect_heard(&b, probes + 1, 1, 0, 1);
    TEST_INT(bed_used(&b, "big"), 2);
    bed_done(&b);
}

static struct probe *unwanted;

static void give_up(struct probe *p) {
    (void) p;
    if (unwanted->claim.state != CLAIM_STATE_RELEASING && unwanted->n_released == 0)
        store_release(unwanted->bed->stores[0], &unwanted->claim);
}

/* The listener of another claim in the same reply withdraws the claim. */
static void test_withdrawn_by_listener(void) {
    struct probe *probes[3];
    struct bed b;

    if (!begin(&b))
        return;
    ask_all(&b, probes, 3, "big");
    unwanted = probes[1];
    b.on_granted = give_up;
    BED_UNTIL(&b, probes[1]->n_released > 0 && probes[2]->n_granted > 0);
    b.on_granted = NULL;
    expect_heard(&b, probes + 1, 1, 0, 1);
    TEST_INT(bed_used(&b, "big"), 2);
    bed_done(&b);
}

static void test_full(void) {
    struct probe *probes[3];
    struct bed b;

    if (!begin(&b))
        return;
    redis_bed_command("CONFIG SET maxmemory 1");
    ask_all(&b, probes, 3, "big");
    BED_UNTIL(&b, b.stores[0]->is_full);
    TEST_INT(probes[0]->n_refused + probes[1]->n_refused + probes[2]->n_refused, 0);
    redis_bed_command("CONFIG SET maxmemory 0");
    for (unsigned i = 0; i < 3; i++) {
        BED_UNTIL(&b, probes[i]->n_granted > 0);
        TEST_INT(probes[i]->grant_number, i + 1);
    }
    bed_done(&b);
}

/* The connection breaks before the end of the turn, or before the reply. */
static void test_cut(void) {
    struct probe *held[3], *asked[3];
    struct bed b;

    for (unsigned said = 0; said < 2; said++) {
        if (!begin(&b))
            return;
        ask_all(&b, held, 3, "big");
        await_granted(&b, held, 3);
        for (size_t i = 0; i < 3; i++)
            probe_release(held[i]);
        ask_all(&b, asked, 3, "big");
        if (said)
            batch_flush(store_redis_of(b.stores[0]));
        link_fail(store_redis_of(b.stores[0]), REDIS_ERROR_RETRY, "cut by the test");
        await_granted(&b, asked, 3);
        for (size_t i = 0; i < 3; i++)
            BED_UNTIL(&b, held[i]->n_released > 0);
        expect_heard(&b, asked, 3, 1, 0);
        expect_heard(&b, held, 3, 1, 1);
        TEST_INT(bed_used(&b, "big"), 3);
        bed_done(&b);
    }
}

static CU_TestInfo tests[] = {
    {"together", test_together},
    {"order", test_order},
    {"then something else", test_then_else},
    {"some fit", test_some_fit},
    {"withdrawn", test_withdrawn},
    {"withdrawn by a listener", test_withdrawn_by_listener},
    {"full", test_full},
    {"cut", test_cut},
    CU_TEST_INFO_NULL,
};

TEST_MAIN(redis_bed_main(argc, argv, suites, NULL),
          {.pName = "store-redis, several in a call", .pTests = tests})
