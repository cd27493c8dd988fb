/* SPDX-License-Identifier: MIT */

/* What store-redis sends when nothing happens: heartbeats of hosts with and without claims, and PINGs on the
 * silent connection for pushes. The test drives the clock. */

#include <stdio.h>
#include <string.h>

#include "tests/harness/redis/redis-bed.h"

#define LEASE (30 * USEC_PER_SEC)
#define HEARTBEAT (5 * USEC_PER_SEC)
#define LEASES 10 /* length of a measurement */

static uint64_t heartbeats(void) {
    return redis_number(&redis_bed.server, "HGET berth:{test}:meta heartbeat_count");
}

static void set_up(void) {
    redis_bed.lease = LEASE;
    redis_bed.heartbeat = HEARTBEAT;
    redis_bed.timeout = HEARTBEAT / 2;
}

static void tear_down(void) {
    redis_bed.lease = REDIS_BED_LEASE;
    redis_bed.heartbeat = REDIS_BED_LEASE / 6;
    redis_bed.timeout = USEC_PER_SEC;
}

static void pass(struct bed *b, usec_t time) {
    usec_t end = clock_boottime() + time;

    while (bed_turn(b, end))
        ;
}

/* Returns the number of heartbeats in LEASES leases. */
static uint64_t watch(struct bed *b) {
    uint64_t before = heartbeats();

    pass(b, LEASES * LEASE);
    return heartbeats() - before;
}

/* A host without claims sends a heartbeat each 9/30 to 11/30 of the lease. */
static void test_idle(void) {
    struct bed b;
    uint64_t n;

    if (!redis_bed_begin(&b, 2))
        return;
    pass(&b, LEASE);
    n = watch(&b);
    CU_ASSERT(n >= 2 * (LEASES * 30 / 11 - 1) && n <= 2 * (LEASES * 30 / 9 + 1));
    TEST_INT(bed_count_events(&b, "host-expired: "), 0);
    TEST_INT(bed_count_events(&b, "session-lost: ") + bed_count_events(&b, "lease-late: "), 0);
    bed_done(&b);
}

static void test_busy(void) {
    struct bed b;
    uint64_t n;

    if (!redis_bed_begin(&b, 1))
        return;
    struct probe *held = bed_probe(&b, 0, "one");
    probe_grant(held);
    n = watch(&b);
    CU_ASSERT(n >= LEASES * 6 - 1 && n <= LEASES * 6 + 1);
    probe_release(held);
    pass(&b, LEASE);
    n = watch(&b);
    CU_ASSERT(n <= LEASES * 30 / 9 + 1);
    bed_done(&b);
}

/* A heartbeat follows the first claim at once if the last one is old. Then the host sends them at the normal interval. */
static void test_wakes(void) {
    struct bed b;
    uint64_t before;
    usec_t began;

    if (!redis_bed_begin(&b, 1))
        return;
    pass(&b, LEASE);
    before = heartbeats();
    BED_UNTIL(&b, heartbeats() > before);
    pass(&b, HEARTBEAT + USEC_PER_SEC);
    before = heartbeats();
    began = clock_boottime();
    struct probe *held = bed_probe(&b, 0, "one");
    probe_grant(held);
    BED_UNTIL(&b, heartbeats() > before);
    CU_ASSERT(clock_boottime() - began < HEARTBEAT / 10);
    BED_UNTIL(&b, heartbeats() > before + 1);
    CU_ASSERT(clock_boottime() - began < HEARTBEAT + HEARTBEAT / 10);
    probe_release(held);
    bed_done(&b);
}

/* A hello after a lost heartbeat must fit into the lease. If it does not, the host keeps the normal
 * interval. */
static void test_no_room(void) {
    struct bed b;
    uint64_t n;

    redis_bed.timeout = LEASE / 3; /* and the time to connect */
    if (!redis_bed_begin(&b, 1))
        return;
    pass(&b, LEASE);
    n = watch(&b);
    CU_ASSERT(n >= LEASES * 6 - 1);
    bed_done(&b);
}

/* A host that shares a job keeps the normal interval, because it takes over turns of dead hosts. */
static void test_shared_job(void) {
    static const struct store_pool pools[] = {{.name = "@report", .limit = 1, .queue_limit = 10}};
    struct bed b;
    uint64_t n;

    if (!redis_bed_begin(&b, 1))
        return;
    TEST_INT(store_declare(b.stores[0], pools, 1, false), 0);
    pass(&b, LEASE);
    n = watch(&b);
    CU_ASSERT(n >= LEASES * 6 - 1);
    bed_done(&b);
}

/* Returns how many PINGs came, according to the server's INFO. */
static uint64_t pings(void) {
    _cleanup_reply_ redisReply *info = redis_command(&redis_bed.server, "INFO commandstats");
    const char *at = info && info->str ? strstr(info->str, "cmdstat_ping:calls=") : NULL;
    unsigned long long n = 0;

    if (at)
        (void) sscanf(at, "cmdstat_ping:calls=%llu", &n);
    return n;
}

/* A proxy closes connections that are silent for a minute, or for 35 s. */
static void test_silence(void) {
    struct bed b;
    uint64_t begun;

    if (!redis_bed_begin(&b, 1))
        return;
    begun = pings();
    for (unsigned i = 0; i < 10; i++) {
        uint64_t before = pings();

        pass(&b, 31 * USEC_PER_SEC);
        CU_ASSERT(pings() > before);
    }
    CU_ASSERT(pings() - begun <= 12); /* and no more than two a minute */
    TEST_INT(bed_count_events(&b, "redis-lost: "), 0);
    bed_done(&b);
}

static CU_TestInfo tests[] = {
    {"a host without claims", test_idle},
    {"a host with a claim", test_busy},
    {"the first claim", test_wakes},
    {"no room for a lost heartbeat", test_no_room},
    {"a job that hosts share", test_shared_job},
    {"a silent connection", test_silence},
    CU_TEST_INFO_NULL,
};

TEST_MAIN(redis_bed_main_on_own_clock(argc, argv, suites),
          {.pName = "store-redis-idle", .pSetUpFunc = set_up, .pTearDownFunc = tear_down, .pTests = tests})
