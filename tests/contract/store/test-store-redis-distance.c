/* SPDX-License-Identifier: MIT */

/* A Redis that is far away: a relay between Redis and the hosts delays everything. A hand-over from host to
 * host takes one round trip. Nothing is lost even if the round trip is long. BERTH_TEST_DISTANCE: how many
 * seconds to test, 3 by default. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "tests/harness/redis/redis-bed.h"

#define HANDOVERS 9

static struct proxy proxy;

static bool begin(struct bed *b, usec_t round_trip) {
    proxy_set(&proxy, PROXY_DELAY, round_trip / 2, false);
    return redis_bed_begin(b, 2);
}

/* The fastest of some hand-overs shows it: a busy machine does not delay each. */
static void test_one_round_trip(void) {
    usec_t round_trip = 100 * USEC_PER_MSEC, took;
    struct bed b;

    if (!begin(&b, round_trip))
        return;
    took = bed_hand_over(&b, HANDOVERS);
    printf("round trip %" PRIu64 " ms: hand-over %.1f ms\n", round_trip / USEC_PER_MSEC, (double) took / USEC_PER_MSEC);
    CU_ASSERT(took >= round_trip && took < round_trip * 3 / 2);
    bed_done(&b);
}

static void test_long(void) {
    uint64_t seconds = test_count("BERTH_TEST_DISTANCE", 3);
    usec_t end;
    struct bed b;

    if (!begin(&b, 300 * USEC_PER_MSEC))
        return;
    struct probe *held = bed_probe(&b, 0, "db:1");
    probe_grant(held);
    end = clock_boottime() + seconds * USEC_PER_SEC;
    while (bed_turn(&b, end))
        ;
    TEST_INT(bed_count_events(&b, "redis-lost: ") + bed_count_events(&b, "lease-late: "), 0);
    TEST_INT(held->n_lost, 0);
    bed_done(&b);
}

/* A Redis to which thousands of hosts return is slow. A host that gave up would make it slower. */
static void test_slow_start(void) {
    usec_t timeout = redis_bed.timeout;
    struct bed b;

    redis_bed.timeout = 200 * USEC_PER_MSEC;
    redis_bed.connect_timeout = 4 * USEC_PER_SEC;
    proxy_set(&proxy, PROXY_DELAY, 200 * USEC_PER_MSEC, false);
    CU_ASSERT_FATAL(redis_bed_init(&b, 1));
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, bed_has_event(&b, "redis-connected: "));
    TEST_INT(bed_count_events(&b, "redis-lost: "), 0);
    proxy_set(&proxy, PROXY_PASS, 0, false);
    redis_bed.timeout = timeout;
    redis_bed.connect_timeout = 0;
    bed_done(&b);
}

static CU_TestInfo tests[] = {{"one round trip", test_one_round_trip}, {"a long one", test_long},
                              {"a slow start", test_slow_start}, CU_TEST_INFO_NULL};

static int prepare(void) {
    return redis_bed_start_proxy(&proxy);
}

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "store-redis-distance", .pTests = tests}, CU_SUITE_INFO_NULL};
    int r;

    redis_bed.lease = 30 * USEC_PER_SEC; /* the default, and what follows from it */
    redis_bed.heartbeat = 5 * USEC_PER_SEC;
    redis_bed.timeout = 5 * USEC_PER_SEC / 2;
    r = redis_bed_main(argc, argv, suites, prepare);
    proxy_done(&proxy);
    return r;
}
