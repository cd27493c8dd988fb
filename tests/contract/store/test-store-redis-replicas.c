/* SPDX-License-Identifier: MIT */

/* A master refuses writes because it has too few replicas, as each one does for a while after a failover. A host asks
 * it often, and rarely with new connections. The test drives the clock. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "store/redis/store-redis.h"
#include "tests/harness/redis/redis-bed.h"

#define ROUNDS 6
#define HEARTBEAT (5 * USEC_PER_SEC)
#define SOON (950 * USEC_PER_MSEC) /* half as long again as the pause after some seconds */

static uint64_t stat_of(const char *field) {
    _cleanup_reply_ redisReply *info = redis_command(&redis_bed.server, "INFO stats");
    const char *at = info && info->str ? strstr(info->str, field) : NULL;
    unsigned long long n = 0;

    if (at)
        (void) sscanf(at + strlen(field), ":%llu", &n);
    return n;
}

static void pass(struct bed *b, usec_t time) {
    usec_t end = clock_boottime() + time;

    while (bed_turn(b, end))
        ;
}

/* Returns how long the host needed after the replica was there. */
static usec_t lack_replicas(struct bed *b, usec_t time) {
    unsigned lost = bed_count_events(b, "redis-lost: ");
    usec_t began;

    pass(b, 2 * HEARTBEAT); /* a heartbeat resets the pauses */
    redis_bed_command("CONFIG SET min-replicas-to-write 1");
    BED_UNTIL(b, bed_count_events(b, "redis-lost: ") > lost);
    pass(b, time);
    CU_ASSERT(strstr(b->stores[0]->away_why, "NOREPLICAS") != NULL);
    redis_bed_command("CONFIG SET min-replicas-to-write 0");
    began = clock_boottime();
    BED_UNTIL(b, bed_all_ready(b));
    return clock_boottime() - began;
}

static void test_soon(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    struct probe *held = bed_probe(&b, 0, "one");
    probe_grant(held);
    for (unsigned i = 0; i < ROUNDS; i++) {
        usec_t took = lack_replicas(&b, 6 * USEC_PER_SEC);

        CU_ASSERT(took <= SOON);
        if (took > SOON)
            printf("round %u: %.0f ms\n", i, (double) took / USEC_PER_MSEC);
    }
    TEST_INT(held->n_lost, 0);
    TEST_INT(bed_count_events(&b, "redis-lost: "), ROUNDS);
    TEST_INT(bed_count_events(&b, "redis-connected: "), ROUNDS + 1);
    probe_end(held);
    bed_done(&b);
}

/* Each attempt makes two connections, and lasts for two seconds and a pause. In it Redis refuses some five calls. Pauses
 * are drawn: most hosts make seven or eight attempts, and hardly any five. */
static void test_cheap(void) {
    uint64_t connections, refused;
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    struct probe *held = bed_probe(&b, 0, "one");
    probe_grant(held);
    connections = stat_of("total_connections_received");
    refused = stat_of("total_error_replies");
    (void) lack_replicas(&b, 20 * USEC_PER_SEC);
    connections = stat_of("total_connections_received") - connections;
    refused = stat_of("total_error_replies") - refused;
    printf("in 20 s %llu connections, %llu refused calls\n", (unsigned long long) connections, (unsigned long long) refused);
    CU_ASSERT(connections >= 2 * 5 && connections <= 2 * 20 / 2);
    CU_ASSERT(refused >= 20 && refused <= 100);
    probe_end(held);
    bed_done(&b);
}

static void on_stopped(int r, void *userdata) {
    *(int *) userdata = r;
}

/* A host stops meanwhile. Its session does not end, so its file stays, and the next berthd continues it. */
static void test_stopped(void) {
    _cleanup_free_ char *file = NULL;
    char path[sizeof(redis_bed.server.directory) + 16];
    struct bed b;
    size_t size;
    int r = 1;

    (void) snprintf(path, sizeof(path), "%s/session", redis_bed.server.directory);
    redis_bed.session_path[0] = path;
    if (!redis_bed_begin(&b, 1))
        return;
    redis_bed_command("CONFIG SET min-replicas-to-write 1");
    store_stop(b.stores[0], on_stopped, &r);
    BED_UNTIL(&b, r <= 0);
    TEST_INT(r, -ENOTCONN);
    CU_ASSERT(bed_says(&b, "Redis does not know that this host stops, so its session lasts until the lease is over: Redis refuses writes"));
    CU_ASSERT(file_read(path, 4096, &file, &size) == 0 && strstr(file, "connection="));
    redis_bed_command("CONFIG SET min-replicas-to-write 0");
    bed_die(&b, 0);
    bed_come_back(&b, 0);
    CU_ASSERT(bed_start(&b));
    TEST_INT(bed_count_events(&b, "session-lost: "), 0);
    bed_done(&b);
    redis_bed.session_path[0] = NULL;
    (void) unlink(path);
}

static CU_TestInfo tests[] = {
    {"soon", test_soon},
    {"cheap", test_cheap},
    {"a host that stops", test_stopped},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "store-redis-replicas", .pTests = tests}, CU_SUITE_INFO_NULL};

    redis_bed.lease = 120 * USEC_PER_SEC; /* outlasts all rounds without a heartbeat */
    redis_bed.heartbeat = HEARTBEAT;
    redis_bed.timeout = HEARTBEAT / 2;
    return redis_bed_main_on_own_clock(argc, argv, suites);
}
