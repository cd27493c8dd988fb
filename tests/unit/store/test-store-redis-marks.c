/* SPDX-License-Identifier: MIT */

/* What store-redis decides by itself from what it remembers: who is dead (R4), how old the clock is (R10), what was missed (R12). */

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/store-redis.h"
#include "tests/harness/test.h"

#define LEASE (30 * USEC_PER_SEC)

static void test_dead_count(void) {
    struct store_redis *r = calloc(1, sizeof(*r));
    const usec_t t = 1000 * USEC_PER_SEC;

    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    r->expiry_usec = LEASE;
    TEST_INT(beat_dead_count(r, t), 0);
    r->marks[0] = (struct mark) {.count = 10, .sent = t - 5, .received = t};
    r->marks[1] = (struct mark) {.count = 20, .sent = t + 5 * USEC_PER_SEC, .received = t + 6 * USEC_PER_SEC};
    r->n_marks = 2;
    TEST_INT(beat_dead_count(r, t + LEASE - 1), 0); /* a whole lease, and from the receipt */
    TEST_INT(beat_dead_count(r, t + LEASE), 0); /* nothing was answered for a lease: it may not know of a loss */
    r->last = (struct mark) {.count = 30, .sent = t + LEASE, .received = t + LEASE};
    TEST_INT(beat_dead_count(r, t + LEASE), 10);
    TEST_INT(beat_dead_count(r, t + LEASE + 6 * USEC_PER_SEC - 1), 10);
    TEST_INT(beat_dead_count(r, t + LEASE + 6 * USEC_PER_SEC), 20);
    r->last = r->marks[1];
    /* Alive after the sending of the newest heartbeat whose count is not above. */
    TEST_INT(beat_seen(r, 25, t + 7 * USEC_PER_SEC), 2 * USEC_PER_SEC);
    TEST_INT(beat_seen(r, 19, t + 7 * USEC_PER_SEC), 7 * USEC_PER_SEC + 5);
    TEST_INT(beat_seen(r, 9, t + 7 * USEC_PER_SEC), USEC_INFINITY); /* not since we came: whoever could expire it came with us */
    free(r);
}

/* A heartbeat that came too soon after the one before it is no mark, and still tells who has beaten since. */
static void test_seen_since_the_last(void) {
    struct store_redis *r = calloc(1, sizeof(*r));
    usec_t now = clock_boottime();

    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    r->expiry_usec = LEASE;
    beat_add_mark(r, 10, now - 3 * USEC_PER_SEC);
    beat_add_mark(r, 20, now - USEC_PER_SEC);
    TEST_INT(r->n_marks, 1);
    TEST_INT(beat_seen(r, 21, now), USEC_PER_SEC);
    TEST_INT(beat_seen(r, 19, now), 3 * USEC_PER_SEC);
    TEST_INT(beat_seen(r, 9, now), USEC_INFINITY);
    beat_hear_epoch(r, "7"); /* counts begin anew */
    TEST_INT(beat_seen(r, 21, now), USEC_INFINITY);
    free(r);
}

/* Marks reach back over a lease however often heartbeats are answered. */
static void test_marks(void) {
    struct store_redis *r = calloc(1, sizeof(*r));

    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    r->expiry_usec = LEASE;
    for (unsigned i = 0; i < 1000; i++)
        beat_add_mark(r, i + 1, 0);
    TEST_INT(r->n_marks, 1);
    for (unsigned i = 0; i < 200; i++) {
        for (size_t k = 0; k < r->n_marks; k++)
            r->marks[k].received -= LEASE / 32;
        beat_add_mark(r, 2000 + i, 0);
    }
    TEST_INT(r->n_marks, MARKS_MAX);
    CU_ASSERT(r->marks[MARKS_MAX - 1].received - r->marks[0].received >= LEASE);
    free(r);
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

/* Whoever makes pools up cannot make this host remember without end, nor forget what it needs. */
static void test_overrides(void) {
    struct declared declared = {.pool = {.name = "mine", .limit = 4}};
    struct store_redis *r = calloc(1, sizeof(*r));
    redisReply *reply;

    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    r->declared = &declared;
    r->n_declared = 1;
    for (unsigned i = 0; i < 5000; i++) {
        char pool[16];

        (void) snprintf(pool, sizeof(pool), "p%u", i);
        reply = override_of(pool, i + 1);
        TEST_INT(beat_hear_overrides(r, reply), 0);
        freeReplyObject(reply);
        r->overrides_heard = false; /* no events */
    }
    TEST_INT(r->n_overrides, 1000);
    reply = override_of("mine", 9000);
    TEST_INT(beat_hear_overrides(r, reply), 0);
    freeReplyObject(reply);
    TEST_INT(r->n_overrides, 1001);
    TEST_STRING(r->overrides[1000].pool, "mine");
    TEST_INT(r->overrides_version, 9000);
    free(r->overrides);
    free(r);
}

/* A number that is heard late is as old as the last answered heartbeat before it; what Redis itself says at a heartbeat replaces all that
 * was heard before that was sent. */
static void test_clock(void) {
    struct store_redis *r = calloc(1, sizeof(*r));
    usec_t now = clock_boottime();
    uint64_t latest;

    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    TEST_INT(clock_latest(r, 5), 0);
    r->clock = (struct clock_memory) {.latest = 1000, .since = 100};
    TEST_INT(clock_latest(r, 100), 1000);
    TEST_INT(clock_latest(r, 300), 1000 + 200 + 2); /* plus 1 % */

    r->last = (struct mark) {.count = 7, .sent = now - 100 * USEC_PER_SEC};
    r->clock = (struct clock_memory) {0};
    clock_hear_drawn(r, 5000);
    TEST_INT(r->clock.drawn, 5000);
    TEST_INT(r->clock.latest, 5000);
    TEST_INT(r->clock.since, now - 100 * USEC_PER_SEC);
    latest = clock_latest(r, now);
    TEST_INT(latest, 5000 + 101 * USEC_PER_SEC);
    clock_hear_drawn(r, 4000); /* a lower one changes nothing */
    TEST_INT(r->clock.drawn, 5000);
    TEST_INT(clock_latest(r, now), latest);
    clock_hear_latest(r, 5001, now - USEC_PER_SEC); /* asked before the push was heard: that may be of a later number */
    TEST_INT(clock_latest(r, now), latest);
    clock_hear_latest(r, 5001, r->clock.heard);
    TEST_INT(r->clock.latest, 5001);
    TEST_INT(r->clock.drawn, 5000); /* nobody may have drawn it */
    free(r);
}

static void test_chain(void) {
    struct store_redis *r = calloc(1, sizeof(*r));

    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    push_hear_number(r, 0, 10);
    TEST_INT(r->chain, 10);
    push_hear_number(r, 20, 30); /* 20 is not known yet */
    push_hear_number(r, 30, 40);
    TEST_INT(r->chain, 10);
    TEST_INT(r->n_early, 2);
    push_hear_number(r, 10, 20); /* it was on the other connection */
    TEST_INT(r->chain, 40);
    TEST_INT(r->n_early, 0);
    push_hear_number(r, 10, 20); /* told twice */
    TEST_INT(r->chain, 40);
    for (uint64_t i = 0; i < 2 * CHAIN_MAX; i++)
        push_hear_number(r, 1000 + i, 1001 + i);
    TEST_INT(r->n_early, CHAIN_MAX); /* bounded; a sync will tell the rest */
    push_hear_number(r, r->chain, 5000);
    TEST_INT(r->n_early, 0);
    TEST_INT(r->chain, 5000);
    free(r);
}

static CU_TestInfo tests[] = {
    {"dead count", test_dead_count}, {"seen since the last", test_seen_since_the_last}, {"marks", test_marks}, {"overrides", test_overrides},
    {"clock", test_clock},           {"chain", test_chain},                             CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "store-redis", .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
