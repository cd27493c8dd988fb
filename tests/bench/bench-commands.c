/* SPDX-License-Identifier: MIT */

/* What `berth run` adds to a whole command, beside flock, sem of GNU parallel, and etcdctl lock. */

#include "tests/bench/benches.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/daemon.h"
#include "tests/harness/port.h"

#define ROUNDS 201

struct contestant {
    const char *name;
    const char *needs;        /* environment variable that names its program; NULL: nothing */
    const char *argv[16];
    unsigned rounds;
    double goal;              /* in units of flock's time; 0: none */
    double usec, cpu_usec;    /* medians; 0: not measured */
};

/* Runs all in turns, so that all see the same machine. */
static void race(struct contestant *c, size_t n) {
    static double times[8][ROUNDS], cpu[8][ROUNDS];
    size_t done[8] = {0};

    for (size_t i = 0; i < ROUNDS; i++)
        for (size_t k = 0; k < n; k++)
            if (c[k].argv[0] && i % (ROUNDS / c[k].rounds) == 0 && done[k] < c[k].rounds) {
                double usec = command_cost(c[k].argv, &cpu[k][done[k]]);

                if (usec < 0)
                    c[k].argv[0] = NULL;
                else
                    times[k][done[k]++] = usec;
            }
    for (size_t k = 0; k < n; k++)
        if (c[k].argv[0]) {
            c[k].usec = quantile(times[k], done[k], 0.5);
            c[k].cpu_usec = quantile(cpu[k], done[k], 0.5);
        }
}

static void add(struct report *r, const struct contestant *c, const struct contestant *flock) {
    char name[120];

    if (c->usec == 0) {
        report_skip(r, c->name, c->needs ? "its program is missing or does not work here" : "it failed");
        return;
    }
    report_add(r, &(struct figure) {c->name, c->usec / 1000, "ms", flock->name, flock->usec / 1000,
                                    c->goal > 0 ? GOAL_RATIO_AT_MOST : GOAL_NONE, c->goal});
    snprintf(name, sizeof(name), "%s: its processor time", c->name);
    report_add(r, &(struct figure) {name, c->cpu_usec / 1000, "ms", flock->name, flock->cpu_usec / 1000, GOAL_NONE, 0});
}

/* etcd listens on free ports of loopback; its data are in the fleet's folder. */
static pid_t start_etcd(const char *program, const char *folder, char endpoint[static 128]) {
    char data[128], peer[128], cluster[160];
    const char *const argv[] = {program, "--data-dir", data, "--listen-client-urls", endpoint, "--advertise-client-urls", endpoint,
                                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster, "--log-level", "error", "--unsafe-no-fsync", NULL};

    snprintf(data, sizeof(data), "%s/etcd", folder);
    snprintf(endpoint, 128, "http://127.0.0.1:%u", port_reserve());
    snprintf(peer, sizeof(peer), "http://127.0.0.1:%u", port_reserve());
    snprintf(cluster, sizeof(cluster), "default=%s", peer);
    return command_start(argv);
}

static const char *program(const char *variable) {
    const char *path = getenv(variable);

    return path && *path ? path : NULL;
}

void bench_commands(struct report *r) {
    struct fleet f;
    char lock[80], endpoint[128] = "", sem_home[80];
    pid_t etcd = -1;

    report_section(r, "whole commands");
    fleet_up(&f, 1);
    snprintf(lock, sizeof(lock), "%s/lock", f.folder);
    snprintf(sem_home, sizeof(sem_home), "%s/parallel", f.folder);
    (void) setenv("PARALLEL_HOME", sem_home, 1);
    if (program("BENCH_ETCD"))
        etcd = start_etcd(program("BENCH_ETCD"), f.folder, endpoint);
    (void) setenv("ETCDCTL_API", "3", 1);

    const char *socket = f.daemons[0].socket;
    struct contestant c[] = {
        {.name = "bare fork+exec of true", .argv = {"true"}, .rounds = ROUNDS},
        {.name = "flock -- true", .argv = {"flock", lock, "true"}, .rounds = ROUNDS},
        {.name = "berth run -- true on an idle pool",
         .argv = {"berth", "--socket", socket, "run", "-p", "many", "--", "true"}, .rounds = ROUNDS, .goal = 1.4},
        {.name = "berth run -- true on an idle host pool",
         .argv = {"berth", "--socket", socket, "run", "-p", "own", "--", "true"}, .rounds = ROUNDS, .goal = 1.4},
        {.name = "berth start --wait of a job that is `true`, idle pool",
         .argv = {"berth", "--socket", socket, "start", "true", "--wait"}, .rounds = ROUNDS},
        {.name = "berth version (starts, talks to nobody)", .argv = {"berth", "version"}, .rounds = ROUNDS},
        {.name = "etcdctl lock -- true", .needs = "BENCH_ETCDCTL",
         .argv = {program("BENCH_ETCDCTL"), "--endpoints", endpoint, "lock", "bench", "true"}, .rounds = 21},
        {.name = "sem --id -- true", .needs = "BENCH_SEM",
         .argv = {program("BENCH_SEM"), "--fg", "--id", "bench", "-j1", "true"}, .rounds = 21},
    };

    race(c, ELEMENTSOF(c));
    for (size_t i = 0; i < ELEMENTSOF(c); i++)
        add(r, &c[i], &c[1]);
    if (etcd > 0) {
        (void) kill(etcd, SIGTERM);
        (void) command_wait(etcd);
    }
    fleet_down(&f);
}
