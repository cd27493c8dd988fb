/* SPDX-License-Identifier: MIT */

/* A proxy loses one reply and keeps the connection, so each later reply takes the place of the previous one.
 * The serial number in the next reply shows this to the host, which connects again. */

#include <stdio.h>
#include <string.h>

#include "tests/harness/redis/redis-bed.h"

static struct proxy proxy;

static bool begin(struct bed *b) {
    proxy_set(&proxy, PROXY_PASS, 0, false);
    if (!redis_bed_begin(b, 1))
        return false;
    bed_settle(b); /* no call is under way */
    return true;
}

/* Drops the reply to what the host sends next. */
static void drop_reply(struct bed *b, void (*send)(struct probe *p), struct probe *p) {
    unsigned harmed = proxy_harmed(&proxy);

    proxy_set(&proxy, PROXY_DROP_NEXT, 0, false);
    send(p);
    while (proxy_harmed(&proxy) == harmed) /* the host receives nothing, so no event ends a turn */
        (void) bed_turn(b, clock_boottime() + 5 * USEC_PER_MSEC);
}

/* Returns whether Redis has the claim as held with the token that its probe knows. */
static bool is_held(const struct probe *p) {
    _cleanup_reply_ redisReply *reply = redis_command(&redis_bed.server, "HGET berth:{test}:claims %s", p->claim.id);
    char expected[40];

    (void) snprintf(expected, sizeof(expected), "H %" PRIu64 " ", p->token);
    return reply && reply->type == REDIS_REPLY_STRING && strncmp(reply->str, expected, strlen(expected)) == 0;
}

/* The reply to the second claim must not grant the first one: its permits are of another pool. */
static void test_claims(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *first = bed_probe(&b, 0, "one:1"), *second = bed_probe(&b, 0, "db:1");
    drop_reply(&b, probe_ask, first);
    probe_ask(second);
    BED_UNTIL(&b, first->n_granted > 0 && second->n_granted > 0);
    CU_ASSERT(first->token != second->token && is_held(first) && is_held(second));
    TEST_INT(bed_count_events(&b, "redis-lost: "), 1);
    CU_ASSERT(bed_says(&b, "a reply was lost, and the next one came in its place"));
    bed_done(&b);
}

static void test_releases(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *first = bed_probe(&b, 0, "one:1"), *second = bed_probe(&b, 0, "db:1");
    probe_grant(first);
    probe_grant(second);
    drop_reply(&b, probe_release, first);
    probe_release(second);
    BED_UNTIL(&b, first->n_released > 0 && second->n_released > 0);
    TEST_INT(bed_count_events(&b, "redis-lost: "), 1);
    TEST_INT(bed_used(&b, "one") + bed_used(&b, "db"), 0);
    bed_done(&b);
}

/* Nothing else is sent: a heartbeat's reply comes in place of the claim's. */
static void test_heartbeat(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *only = bed_probe(&b, 0, "db:1");
    drop_reply(&b, probe_ask, only);
    BED_UNTIL(&b, only->n_granted > 0);
    CU_ASSERT(is_held(only));
    TEST_INT(bed_count_events(&b, "redis-lost: "), 1);
    bed_done(&b);
}

static CU_TestInfo tests[] = {
    {"a claim's reply is lost", test_claims},
    {"a release's reply is lost", test_releases},
    {"a heartbeat follows", test_heartbeat},
    CU_TEST_INFO_NULL,
};

static int prepare(void) {
    return redis_bed_start_proxy(&proxy);
}

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "store-redis-serial", .pTests = tests}, CU_SUITE_INFO_NULL};
    int r = redis_bed_main(argc, argv, suites, prepare);

    proxy_done(&proxy);
    return r;
}
