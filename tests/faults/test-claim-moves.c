/* SPDX-License-Identifier: MIT */

/* `berth move` and `berth steal` while hosts and Redis fail. The called host is killed before each of its
 * effects. The host of the run is away or misses the push. Redis loses its data or restarts. Afterwards
 * the queue has the order that the host of the run has logged, and the audit finds no violation. */

#include <stdio.h>
#include <string.h>

#include "base/name.h"
#include "tests/harness/host/host-clock.h"
#include "tests/harness/redis/proxy.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 2 }\n"
#define EFFECTS_MAX 60
enum { HOLDER, A, C, RUNS };

static struct host *ant, *bee, *cow; /* ant is called; a and c wait on bee; the holder is on cow */
static struct child *runs[RUNS];
static char ids[RUNS][ID_TEXT_SIZE];

static void begin(size_t i, struct host *h, const char *name, const char *event) {
    runs[i] = berth_at_gate(h, "-p db:2", name, event);
    (void) snprintf(ids[i], sizeof(ids[i]), "%s", event_get(host_await(h, event, "job=%s", name), "run"));
}

static struct proxy proxy; /* between bee and Redis */

static void end_proxy(void) {
    proxy_done(&proxy);
}

static void up_with(const char *lease) {
    char path[64];

    cluster_up();
    cluster.on_stopped = end_proxy;
    cluster.lease = lease;
    ant = host_add("ant", POOLS);
    host_clock_give(ant);
    host_start(ant);
    host_open(ant);
    (void) snprintf(path, sizeof(path), "%s/proxy.sock", cluster.folder);
    CU_ASSERT_FATAL(proxy_start(&proxy, path, cluster.redis.socket) == 0);
    bee = host_add("bee", POOLS);
    bee->redis = proxy.path;
    host_set_config(bee, POOLS);
    host_start(bee);
    host_await(bee, "redis-connected", " ");
    cow = host_up("cow", POOLS);
    begin(HOLDER, cow, "holder", "started");
    begin(A, bee, "a", "queued");
    begin(C, bee, "c", "queued");
}

/* The lease is long enough to kill and start a host on a busy machine. */
static void up(void) {
    up_with("10s");
}

/* For tests that await the end of a grace period. */
static void up_short(void) {
    up_with("4s");
}

static void ends(void) {
    test_gate_open(&cluster.gate);
    for (size_t i = 0; i < RUNS; i++)
        if (runs[i])
            TEST_INT(berth_end(runs[i]), 0);
    memset(runs, 0, sizeof(runs));
}

static uint64_t token_of(size_t i) {
    return event_get_u64(host_await(bee, "granted", "run=%s", ids[i]), "token");
}

/* Returns the run at the head of the queue in Redis; RUNS: Redis is away. */
static size_t first_of_queue(struct host *h) {
    json_t *pools = berth_json(h, "pools db");
    const char *first = json_string_value(berth_at(pools, "pools.name=db.queue.0.claim"));
    size_t i = A;

    while (i < RUNS && (!first || strcmp(first, ids[i]) != 0))
        i++;
    json_decref(pools);
    return i;
}

static void await_first(struct host *h, size_t i) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    while (first_of_queue(h) != i && clock_boottime() < until)
        child_turn(clock_boottime() + 20 * USEC_PER_MSEC);
    TEST_INT(first_of_queue(h), i);
}

static void revive(struct host *h) {
    CU_ASSERT_FATAL(child_await(h->berthd, HOST_PATIENCE));
    host_mark(h);
    host_start(h);
    host_await(h, "redis-connected", " ");
}

/* The called host is killed before each effect of a move of the last run to the front. */
static void called_host_killed(void) {
    unsigned n_moved = 0, n_not = 0, effects = 1;
    size_t first = A;
    bool is_over = false;

    for (; !is_over && effects < EFFECTS_MAX; effects++) {
        size_t other = first == A ? C : A;
        struct child *move;

        host_mark(bee);
        host_clock_end_berthd(ant, effects);
        move = berth_start(ant, "move %s --first", ids[other]);
        if (berth_end(move) == 0 && host_clock_effects(ant) > 0) { /* the call had fewer effects */
            host_clock_end_berthd(ant, 0);
            is_over = true;
        } else {
            revive(ant);
        }
        if (first_of_queue(bee) == other) {
            host_await(bee, "moved", "run=%s", ids[other]);
            first = other;
            n_moved++;
        } else {
            TEST_INT(first_of_queue(bee), first);
            TEST_INT(host_count(bee, "moved", " "), 0);
            n_not++;
        }
    }
    printf("called host killed before %u effects: %u moves took place, %u did not\n", effects - 1, n_moved, n_not);
    CU_ASSERT(is_over && n_moved > 0 && n_not > 0);
    ends();
    CU_ASSERT((token_of(first) < token_of(first == A ? C : A)));
}

/* The called host is killed before each effect of `berth steal`. Between its two calls to Redis, the run
 * has its new place and the holder keeps its permits. */
static void steal_killed(void) {
    unsigned effects = 1, n_held = 0;
    bool is_over = false;

    for (; !is_over && effects < EFFECTS_MAX; effects++) {
        struct child *steal;

        host_clock_end_berthd(ant, effects);
        steal = berth_start(ant, "steal %s --for c --yes", ids[HOLDER]);
        is_over = berth_end(steal) == 0 && host_clock_effects(ant) > 0;
        if (is_over)
            host_clock_end_berthd(ant, 0);
        else
            revive(ant);
        is_over = is_over || host_count(cow, "revoked", " ") > 0; /* Redis received the call before the kill */
        n_held += !is_over;
    }
    printf("steal killed before %u effects: the holder kept its permits %u times\n", effects - 1, n_held);
    CU_ASSERT(is_over && n_held > 0);
    host_await(cow, "revoked", "job=holder");
    CU_ASSERT(berth_end(runs[HOLDER]) != 0);
    runs[HOLDER] = NULL;
    host_await(bee, "granted", "job=c");
    ends();
    CU_ASSERT(token_of(C) < token_of(A));
}

static void moves(size_t i) {
    TEST_INT(berth(ant, "move %s --first", ids[i]), 0);
}

static void await_moved(size_t i) {
    host_await(bee, "moved", "run=%s", ids[i]);
    await_first(bee, i);
}

/* bee does not receive the push of a move, and detects the gap by later pushes (R12). */
static void push_lost(void) {
    size_t first = A;

    for (int n = 0; n < 4; n++) {
        first = first == A ? C : A;
        host_mark(bee);
        proxy_set(&proxy, PROXY_MUTE, 0, true);
        moves(first);
        proxy_set(&proxy, PROXY_PASS, 0, false);
        await_moved(first);
    }
    ends();
    CU_ASSERT(token_of(first) < token_of(first == A ? C : A));
}

/* Redis loses the move, but bee has logged it. */
static void wiped_after(void) {
    moves(C);
    host_await(bee, "moved", "job=c");
    freeReplyObject(redis_command(&cluster.redis, "FLUSHALL"));
    host_await(ant, "grace-ended", " ");
    await_first(bee, C);
    ends();
    CU_ASSERT(token_of(C) < token_of(A));
}

static void redis_restarted_after(void) {
    moves(C);
    host_await(bee, "moved", "job=c");
    host_mark(ant);
    redis_server_kill(&cluster.redis);
    host_await(ant, "redis-lost", " ");
    TEST_INT(redis_server_resume(&cluster.redis), 0);
    host_await(ant, "redis-connected", " ");
    host_await(ant, "grace-ended", " ");
    await_first(bee, C);
    ends();
    CU_ASSERT(token_of(C) < token_of(A));
}

/* The host of the run is down when the run is moved. */
static void host_away(void) {
    host_kill(bee);
    moves(C);
    revive(bee);
    await_moved(C);
    ends();
    CU_ASSERT(token_of(C) < token_of(A));
}

/* The next berthd of the host knows the move only from the record of the run. */
static void recorded(void) {
    moves(C);
    host_await(bee, "moved", "job=c");
    host_kill(bee);
    freeReplyObject(redis_command(&cluster.redis, "FLUSHALL"));
    revive(bee);
    host_await(ant, "grace-ended", " ");
    await_first(bee, C);
    ends();
    CU_ASSERT(token_of(C) < token_of(A));
}

/* No host knows the move any more, so it is void. */
static void host_away_and_wiped(void) {
    host_kill(bee);
    moves(C);
    freeReplyObject(redis_command(&cluster.redis, "FLUSHALL"));
    revive(bee);
    host_await(ant, "grace-ended", " ");
    await_first(bee, A);
    ends();
    CU_ASSERT(token_of(A) < token_of(C));
}

static CU_TestInfo of_hosts[] = {
    {"called host killed", called_host_killed},
    {"called host killed in a steal", steal_killed},
    {"push lost", push_lost},
    {"host away", host_away},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo of_redis[] = {
    {"Redis wiped after a move", wiped_after},
    {"Redis restarted after a move", redis_restarted_after},
    {"host restarted, Redis wiped", recorded},
    {"host away, Redis wiped", host_away_and_wiped},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "claim-moves", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = of_hosts},
            {.pName = "claim-moves, data lost", .pSetUpFunc = up_short, .pTearDownFunc = cluster_down,
             .pTests = of_redis});
