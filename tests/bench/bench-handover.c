/* SPDX-License-Identifier: MIT */

/* Hand-over: one host releases, and the command of the next host runs. Ten hosts wait for one permit. The
 * hosts are stores in this process, Redis is another process, and the command is a real one that writes when
 * it runs. */

#include "tests/bench/benches.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/bench/peer.h"
#include "tests/bench/rig.h"

#define HOSTS 11
#define SAMPLES 1000

extern char **environ;

static const struct store_pool pools[] = {{.name = "one", .limit = 1, .queue_limit = 1000000}};

static uint64_t now_nsec(void) {
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

static double usec_since(uint64_t began) {
    return (double) (now_nsec() - began) / 1000;
}

/* Spawns tests/bench/stamp, which writes its first instant into the pipe. Returns that instant in ns. */
static uint64_t run_stamp(void) {
    const char *path = getenv("BENCH_STAMP");
    char *argv[] = {(char *) (uintptr_t) path, NULL};
    posix_spawn_file_actions_t actions;
    uint64_t at = 0;
    int fds[2];
    pid_t pid;

    if (!path || pipe2(fds, O_CLOEXEC) < 0)
        rig_fail("no stamp");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
    if (posix_spawn(&pid, path, &actions, NULL, argv, environ) != 0 || read(fds[0], &at, sizeof(at)) != sizeof(at) ||
        waitpid(pid, NULL, 0) != pid)
        rig_fail("cannot spawn %s", path);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[0]);
    close(fds[1]);
    return at;
}

static uint64_t granted_at;
static struct slot *holder;

static void on_granted(struct slot *s) {
    granted_at = now_nsec();
    holder = s;
}

static void quantiles(struct report *r, const char *curve, double *values, size_t n) {
    (void) quantile(values, n, 0.5); /* sorts */
    for (size_t i = 0; i < n; i++)
        report_point(r, curve, values[i], (double) (i + 1) / (double) n);
}

/* Measures the npm package in the same situation; its waiters poll. */
static void redis_semaphore(struct report *r, struct rig *g) {
    static double took[SAMPLES];
    const char *script = getenv("BENCH_REDIS_SEMAPHORE");
    char command[600], line[64];
    size_t n = 0;
    FILE *f;

    snprintf(command, sizeof(command), "exec node %s handover %s %d", script ? script : "", g->server.socket, SAMPLES / 5);
    f = script ? popen(command, "re") : NULL;
    while (f && n < SAMPLES && fgets(line, sizeof(line), f))
        took[n++] = strtod(line, NULL);
    if (!f || pclose(f) != 0 || n == 0) {
        report_skip(r, "hand-over of the lock alone with redis-semaphore", "node or npm is missing");
        return;
    }
    quantiles(r, "handover-redis-semaphore", took, n);
    report_add(r, &(struct figure) {"hand-over of the lock alone with redis-semaphore, p50", quantile(took, n, 0.5), "µs", NULL, 0,
                                    GOAL_NONE, 0});
    report_add(r, &(struct figure) {"hand-over of the lock alone with redis-semaphore, p99", quantile(took, n, 0.99), "µs", NULL, 0,
                                    GOAL_NONE, 0});
}

struct handover {
    double lock[SAMPLES], command[SAMPLES], round_trip[SAMPLES], spawn[SAMPLES];
};

static void measure(struct handover *h, struct rig *g) {
    struct slot *slots = rig_slots(g, HOSTS, 0, "one", 1);
    redisContext *c = peer_connect(&g->server);

    holder = NULL;
    g->on_granted = on_granted;
    rig_ask_all(g, slots, HOSTS);
    for (size_t i = 0; i < SAMPLES; i++) {
        struct slot *before = holder;
        uint64_t began = now_nsec(), released = g->n_released;
        redisReply *reply;

        reply = redisCommand(c, "PING");
        freeReplyObject(reply);
        h->round_trip[i] = usec_since(began);
        began = now_nsec();
        h->spawn[i] = (double) (run_stamp() - began) / 1000;

        began = now_nsec();
        holder = NULL;
        slot_release(before);
        while (!holder)
            rig_turn(g, USEC_PER_SEC);
        h->lock[i] = (double) (granted_at - began) / 1000;
        h->command[i] = (double) (run_stamp() - began) / 1000;
        RIG_UNTIL(g, g->n_released > released);
        slot_ask(before); /* is again last in the queue */
        RIG_UNTIL(g, before->claim.state == CLAIM_STATE_WAITING);
    }
    g->on_granted = NULL;
    rig_release_all(g, slots, HOSTS);
    free(slots);
}

void bench_handover(struct report *r) {
    struct handover *h = calloc(1, sizeof(*h));
    struct rig g;
    double trip, spawn;

    report_section(r, "hand-over from host to host");
    if (!h)
        abort();
    rig_up(&g, &(struct rig_options) {.n_hosts = HOSTS, .pools = pools, .n_pools = ELEMENTSOF(pools)});
    measure(h, &g);
    redis_semaphore(r, &g);
    rig_down(&g);
    quantiles(r, "handover-lock", h->lock, SAMPLES);
    quantiles(r, "handover-command", h->command, SAMPLES);
    trip = quantile(h->round_trip, SAMPLES, 0.5);
    spawn = quantile(h->spawn, SAMPLES, 0.5);
    report_add(r, &(struct figure) {"a round trip to Redis (PING), p50", trip, "µs", NULL, 0, GOAL_NONE, 0});
    report_add(r, &(struct figure) {"fork+exec until the command runs, p50", spawn, "µs", NULL, 0, GOAL_NONE, 0});
    report_add(r, &(struct figure) {"hand-over of the lock alone, 10 hosts waiting, p50", h->lock[SAMPLES / 2], "µs", "2 round trips",
                                    2 * trip, GOAL_NONE, 0});
    report_add(r, &(struct figure) {"hand-over of the lock alone, 10 hosts waiting, p99", quantile(h->lock, SAMPLES, 0.99), "µs",
                                    "2 round trips", 2 * trip, GOAL_NONE, 0});
    report_add(r, &(struct figure) {"hand-over until the next command runs, p50", h->command[SAMPLES / 2], "µs",
                                    "2 round trips + fork+exec", 2 * trip + spawn, GOAL_RATIO_AT_MOST, 1});
    report_add(r, &(struct figure) {"hand-over until the next command runs, p99", quantile(h->command, SAMPLES, 0.99), "µs",
                                    "2 round trips + fork+exec", 2 * trip + spawn, GOAL_VALUE_AT_MOST, 5000});
    free(h);
}
