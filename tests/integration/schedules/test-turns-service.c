/* SPDX-License-Identifier: MIT */

/* `restart` with `on = "any"`: one service runs on one of the hosts. Its host dies BERTH_TEST_OWNERS times
 * (2). */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/host/sharing.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define OWNERS 2
#define LEASE_TEXT "3s"
#define LEASE (3 * USEC_PER_SEC)
#define BOUND (LEASE * 4 / 3 + 2 * USEC_PER_SEC) /* until another host runs the service */
#define BUSY (20 * USEC_PER_SEC)                 /* additional time for a busy machine */

static void up(void) {
    char config[1024];

    cluster.lease = LEASE_TEXT;
    cluster.heartbeat = "500ms";
    snprintf(config, sizeof(config),
             "job \"s\" { %s zone = \"UTC\" on = \"any\" restart = \"always\" retry-delay = \"100ms\" "
             "retry-delay-max = \"200ms\" }\n",
             witness_command("--id s --for 3600000"));
    sharing_up(config);
}

/* Returns when the n-th run of the service started, as the witness recorded. */
static usec_t await_run(size_t n) {
    usec_t until = clock_boottime() + BOUND + BUSY, started = 0;

    while (started == 0 && clock_boottime() < until) {
        _cleanup_(witness_done) struct witness w = {};

        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
        witness_read(&w, cluster.witness);
        if (w.n >= n)
            started = w.runs[n - 1].start;
    }
    TEST_FATAL(started > 0, "no host runs the service");
    return started;
}

/* The other hosts show that they wait for the pool of the job. On a busy machine they have no Redis for a moment. */
static void await_standing_by(const struct host *owner) {
    for (size_t i = 0; i < SHARING_HOSTS; i++) {
        usec_t until = clock_boottime() + HOST_PATIENCE;
        bool is_away = true;

        while (sharing_hosts[i] != owner && is_away) {
            json_t *runs = berth_json(sharing_hosts[i], "runs");
            const char *why = json_string_value(berth_at(runs, "runs.0.blocked_by"));

            is_away = why && strstr(why, "redis away") && clock_boottime() < until;
            if (!is_away) {
                AT_STRING(runs, "runs.0.name", "s");
                AT_STRING(runs, "runs.0.state", "waiting");
                TEST_STRING(why, "pool full: @s");
            }
            json_decref(runs);
        }
    }
}

/* S24: there are never two services, and another host starts one in time. */
static void owner_dies(void) {
    unsigned n = (unsigned) test_count("BERTH_TEST_OWNERS", OWNERS);
    _cleanup_(witness_done) struct witness w = {};
    usec_t longest = 0;

    up();
    (void) await_run(1);
    for (unsigned i = 0; i < n; i++) {
        struct host *owner = sharing_await("started", "job=s");
        usec_t killed, started;

        host_await_pool(owner, "@s", "waiting", SHARING_HOSTS - 1);
        await_standing_by(owner);
        for (size_t k = 0; k < SHARING_HOSTS; k++)
            host_mark(sharing_hosts[k]);
        killed = clock_boottime();
        host_kill(owner);
        started = await_run(i + 2);
        longest = started - killed > longest ? started - killed : longest;
        host_start(owner);
        host_await_redis(owner);
    }
    printf("%u hosts died: after %llu ms at most another one ran the service\n", n,
           (unsigned long long) (longest / USEC_PER_MSEC));
    witness_read(&w, cluster.witness);
    TEST_INT(w.n, n + 1);
    TEST_INT(witness_max(&w, "@s"), 1);
}

/* The service ends on a drained host, and another host starts it. */
static void owner_is_drained(void) {
    struct host *owner;

    up();
    (void) await_run(1);
    owner = sharing_await("started", "job=s");
    host_await_pool(owner, "@s", "waiting", SHARING_HOSTS - 1);
    TEST_INT(berth(owner, "drain"), 0);
    for (size_t k = 0; k < SHARING_HOSTS; k++)
        host_mark(sharing_hosts[k]);
    TEST_INT(berth(owner, "stop s"), 0);
    (void) await_run(2);
    CU_ASSERT(sharing_await("started", "job=s") != owner);
}

static CU_TestInfo tests[] = {
    {"owner-dies", owner_dies},
    {"owner-drained", owner_is_drained},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "turns-service", .pSetUpFunc = cluster_up, .pTearDownFunc = cluster_down,
             .pTests = tests});
