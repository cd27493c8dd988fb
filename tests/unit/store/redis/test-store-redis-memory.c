/* SPDX-License-Identifier: MIT */

/* What the store on Redis concludes from what it remembers: dead sessions (R4), the age of the clock
 * (R10), missed pushes (R12). */

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/store-redis.h"
#include "tests/harness/test.h"

#define LEASE (30 * USEC_PER_SEC)

static void test_dead_count(void) {
    struct store_redis *store = calloc(1, sizeof(*store));
    const usec_t t = 1000 * USEC_PER_SEC;

    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    store->samples.expiry_usec = LEASE;
    TEST_INT(samples_dead_count(store, t), 0);
    store->samples.items[0] = (struct heartbeat_sample) {.count = 10, .sent = t - 5, .received = t};
    store->samples.items[1] = (struct heartbeat_sample) {.count = 20, .sent = t + 5 * USEC_PER_SEC, .received = t + 6 * USEC_PER_SEC};
    store->samples.n = 2;
    TEST_INT(samples_dead_count(store, t + LEASE - 1), 0); /* a whole lease after the reply */
    TEST_INT(samples_dead_count(store, t + LEASE), 0); /* no reply for a lease: this host may have missed a loss of data */
    store->samples.newest = (struct heartbeat_sample) {.count = 30, .sent = t + LEASE, .received = t + LEASE};
    TEST_INT(samples_dead_count(store, t + LEASE), 10);
    TEST_INT(samples_dead_count(store, t + LEASE + 6 * USEC_PER_SEC - 1), 10);
    TEST_INT(samples_dead_count(store, t + LEASE + 6 * USEC_PER_SEC), 20);
    store->samples.newest = store->samples.items[1];
    /* Alive since the newest heartbeat whose count is not higher was sent. */
    TEST_INT(samples_last_seen(store, 25, t + 7 * USEC_PER_SEC), 2 * USEC_PER_SEC);
    TEST_INT(samples_last_seen(store, 19, t + 7 * USEC_PER_SEC), 7 * USEC_PER_SEC + 5);
    TEST_INT(samples_last_seen(store, 9, t + 7 * USEC_PER_SEC), USEC_INFINITY); /* not since this host joined */
    free(store);
}

/* A heartbeat too close to the one before is not stored, but still shows which sessions are alive. */
static void test_seen_since_the_last(void) {
    struct store_redis *store = calloc(1, sizeof(*store));
    usec_t now = clock_boottime();

    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    epoch_init(store);
    store->samples.expiry_usec = LEASE;
    samples_add(store, 10, now - 3 * USEC_PER_SEC, false);
    samples_add(store, 20, now - USEC_PER_SEC, false);
    TEST_INT(store->samples.n, 1);
    TEST_INT(samples_last_seen(store, 21, now), USEC_PER_SEC);
    TEST_INT(samples_last_seen(store, 19, now), 3 * USEC_PER_SEC);
    TEST_INT(samples_last_seen(store, 9, now), USEC_INFINITY);
    epoch_observe(store, "7"); /* counts begin again */
    TEST_INT(samples_last_seen(store, 21, now), USEC_INFINITY);
    free(store);
}

/* Samples reach back over a lease however often heartbeats are answered. */
static void test_samples(void) {
    struct store_redis *store = calloc(1, sizeof(*store));

    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    store->samples.expiry_usec = LEASE;
    for (unsigned i = 0; i < 1000; i++)
        samples_add(store, i + 1, 0, false);
    TEST_INT(store->samples.n, 1);
    for (unsigned i = 0; i < 200; i++) {
        for (size_t k = 0; k < store->samples.n; k++)
            store->samples.items[k].received -= LEASE / 32;
        samples_add(store, 2000 + i, 0, false);
    }
    TEST_INT(store->samples.n, SAMPLES_MAX);
    CU_ASSERT(store->samples.items[SAMPLES_MAX - 1].received - store->samples.items[0].received >= LEASE);
    free(store);
}

static redisReply *override_of(const char *pool, unsigned version) {
    redisReader *reader = redisReaderCreate();
    char text[256], number[16];
    void *reply = NULL;

    (void) snprintf(number, sizeof(number), "%u", version);
    (void) snprintf(text, sizeof(text), "*1\r\n*7\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n$1\r\n2\r\n$1\r\n0\r\n$2\r\nid\r\n$0\r\n\r\n$0\r\n\r\n", strlen(pool), pool,
                    strlen(number), number);
    CU_ASSERT_FATAL(redisReaderFeed(reader, text, strlen(text)) == REDIS_OK);
    CU_ASSERT_FATAL(redisReaderGetReply(reader, &reply) == REDIS_OK && reply);
    redisReaderFree(reader);
    return reply;
}

/* Overrides of invented pools are bounded and do not displace those of declared pools. */
static void test_overrides(void) {
    struct declared declared = {.pool = {.name = "mine", .limit = 4}};
    struct store_redis *store = calloc(1, sizeof(*store));
    redisReply *reply;

    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    store->limits.declared = &declared;
    store->limits.n_declared = 1;
    for (unsigned i = 0; i < 5000; i++) {
        char pool[16];

        (void) snprintf(pool, sizeof(pool), "p%u", i);
        reply = override_of(pool, i + 1);
        TEST_INT(limits_apply_overrides(store, reply), 0);
        freeReplyObject(reply);
        store->limits.overrides_received = false; /* no events */
    }
    TEST_INT(store->limits.n_overrides, 1000);
    reply = override_of("mine", 9000);
    TEST_INT(limits_apply_overrides(store, reply), 0);
    freeReplyObject(reply);
    TEST_INT(store->limits.n_overrides, 1001);
    TEST_STRING(store->limits.overrides[1000].pool, "mine");
    TEST_INT(store->limits.overrides_version, 9000);
    free(store->limits.overrides);
    free(store);
}

/* A number received late is as old as the last answered heartbeat before it. A heartbeat's `latest` replaces all that was received
 * before the heartbeat was sent. */
static void test_clock(void) {
    struct store_redis *store = calloc(1, sizeof(*store));
    usec_t now = clock_boottime();
    uint64_t latest;

    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    TEST_INT(clock_latest(store, 5), 0);
    store->clock = (struct namespace_clock) {.latest = 1000, .since = 100};
    TEST_INT(clock_latest(store, 100), 1000);
    TEST_INT(clock_latest(store, 300), 1000 + 200 + 2); /* plus 1 % */

    store->samples.newest = (struct heartbeat_sample) {.count = 7, .sent = now - 100 * USEC_PER_SEC};
    store->clock = (struct namespace_clock) {0};
    clock_observe_drawn(store, 5000);
    TEST_INT(store->clock.drawn, 5000);
    TEST_INT(store->clock.latest, 5000);
    TEST_INT(store->clock.since, now - 100 * USEC_PER_SEC);
    latest = clock_latest(store, now);
    TEST_INT(latest, 5000 + 101 * USEC_PER_SEC);
    clock_observe_drawn(store, 4000); /* a lower one changes nothing */
    TEST_INT(store->clock.drawn, 5000);
    TEST_INT(clock_latest(store, now), latest);
    clock_observe_latest(store, 5001, now - USEC_PER_SEC); /* sent before the push arrived, which may be of a later number */
    TEST_INT(clock_latest(store, now), latest);
    clock_observe_latest(store, 5001, store->clock.observed_at);
    TEST_INT(store->clock.latest, 5001);
    TEST_INT(store->clock.drawn, 5000); /* 5001 may not have been drawn */
    free(store);
}

static void test_gaps(void) {
    struct store_redis *store = calloc(1, sizeof(*store));

    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    push_observe_number(store, 0, 10);
    TEST_INT(store->pushes.seq, 10);
    push_observe_number(store, 20, 30); /* 20 has not arrived */
    push_observe_number(store, 30, 40);
    TEST_INT(store->pushes.seq, 10);
    TEST_INT(store->pushes.n_gaps, 2);
    push_observe_number(store, 10, 20); /* it came on the other connection */
    TEST_INT(store->pushes.seq, 40);
    TEST_INT(store->pushes.n_gaps, 0);
    push_observe_number(store, 10, 20); /* a repeated push */
    TEST_INT(store->pushes.seq, 40);
    for (uint64_t i = 0; i < 2 * PUSH_GAPS_MAX; i++)
        push_observe_number(store, 1000 + i, 1001 + i);
    TEST_INT(store->pushes.n_gaps, PUSH_GAPS_MAX); /* bounded; a sync restores the rest */
    push_observe_number(store, store->pushes.seq, 5000);
    TEST_INT(store->pushes.n_gaps, 0);
    TEST_INT(store->pushes.seq, 5000);
    free(store);
}

static CU_TestInfo tests[] = {
    {"dead count", test_dead_count}, {"seen since the last", test_seen_since_the_last}, {"samples", test_samples}, {"overrides", test_overrides},
    {"clock", test_clock},           {"gaps", test_gaps},                             CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "store-redis", .pTests = tests});
