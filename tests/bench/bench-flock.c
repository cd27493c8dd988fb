/* SPDX-License-Identifier: MIT */

/* As quick as flock? Six workers run one short command after the other under one lock: by flock, by `berth run` and by `berth start`, in
 * short rounds that alternate. What counts is the time from the last instant of one command to the first of the next. */

#include "tests/bench/benches.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/bench/daemon.h"
#include "tests/bench/span.h"

#define WORKERS 6
#define COMMAND_USEC "3000"
#define ROUND 72           /* commands of a round */
#define ROUNDS 24
#define ROUNDS_BUSY 6
#define GAPS (ROUND - 2 * WORKERS)
#define POINTS 200

struct contestant {
    const char *name, *curve;
    const char *argv[WORKERS][12];
    double goals[2];       /* of p50 and p99, in units of flock's; 0: none */
    double gaps[ROUNDS * GAPS];
    size_t n;
};

struct race {
    struct fleet fleet;
    struct spans *spans;
    char span[300], lock[80];
};

static void race_up(struct race *race) {
    int fd;

    fleet_up(&race->fleet, 2);
    (void) build_path("tests/bench/tools/span", race->span);
    snprintf(race->lock, sizeof(race->lock), "%s/lock", race->fleet.folder);
    fd = open(race->fleet.spans, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct spans)) < 0)
        rig_fail("cannot make %s", race->fleet.spans);
    race->spans = mmap(NULL, sizeof(struct spans), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close_fd(fd);
    if (race->spans == MAP_FAILED)
        rig_fail("cannot map %s", race->fleet.spans);
}

static void race_down(struct race *race) {
    (void) munmap(race->spans, sizeof(struct spans));
    fleet_down(&race->fleet);
}

static pid_t fork_child(void (*run)(void *userdata), void *userdata) {
    pid_t parent = getpid(), pid = fork();

    if (pid == 0) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            run(userdata);
        _exit(0);
    }
    return pid;
}

struct worker {
    const char *const *argv;
    struct spans *spans;
};

static void work(void *userdata) {
    const struct worker *w = userdata;

    while (atomic_fetch_add(&w->spans->asked, 1) < ROUND)
        if (command_time(w->argv) < 0)
            _exit(1);
}

static int by_begin(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

    return (x > y) - (x < y);
}

/* Between the first and the last commands, all workers but one wait. */
static void take_gaps(struct contestant *c, struct spans *spans) {
    if (spans->n != ROUND)
        rig_fail("%s: %u of %d commands ran", c->name, spans->n, ROUND);
    qsort(spans->of, ROUND, sizeof(spans->of[0]), by_begin);
    for (size_t i = 1; i < ROUND; i++)
        if (spans->of[i].began < spans->of[i - 1].ended)
            rig_fail("%s: two commands ran at once", c->name);
    for (size_t i = WORKERS; i < ROUND - WORKERS; i++)
        c->gaps[c->n++] = (double) (spans->of[i].began - spans->of[i - 1].ended) / 1000;
}

static void run_round(struct race *race, struct contestant *c) {
    struct worker workers[WORKERS];
    pid_t pids[WORKERS];

    memset(race->spans, 0, sizeof(*race->spans));
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker) {c->argv[i], race->spans};
        pids[i] = fork_child(work, &workers[i]);
    }
    for (size_t i = 0; i < WORKERS; i++)
        if (command_wait(pids[i]) != 0)
            rig_fail("%s: a command failed", c->name);
    take_gaps(c, race->spans);
}

static void add_quantile(struct report *r, struct contestant *c, struct contestant *flock, const char *when, int q, double goal) {
    char name[160];

    snprintf(name, sizeof(name), "%s: from a command's end to the next one's first instant%s, p%d", c->name, when, q);
    report_add(r, &(struct figure) {name, quantile(c->gaps, c->n, q / 100.0), "µs", "flock", quantile(flock->gaps, flock->n, q / 100.0),
                                    goal > 0 ? GOAL_RATIO_AT_MOST : GOAL_NONE, goal});
}

static void add_curve(struct report *r, struct contestant *c, const char *suffix) {
    char curve[64];

    snprintf(curve, sizeof(curve), "%s%s", c->curve, suffix);
    for (int i = 0; i <= POINTS; i++)
        report_point(r, curve, quantile(c->gaps, c->n, (double) i / POINTS), (double) i / POINTS);
}

static void run_rounds(struct report *r, struct race *race, struct contestant *c, size_t n, size_t rounds, bool is_busy) {
    const char *when = is_busy ? ", busy machine" : "";

    for (size_t k = 0; k < n; k++)
        c[k].n = 0;
    for (size_t i = 0; i < rounds; i++)
        for (size_t k = 0; k < n; k++)
            run_round(race, &c[k]);
    for (size_t k = 0; k < n; k++) {
        add_quantile(r, &c[k], &c[0], when, 50, is_busy ? 0 : c[k].goals[0]);
        add_quantile(r, &c[k], &c[0], when, 90, 0);
        add_quantile(r, &c[k], &c[0], when, 99, is_busy ? 0 : c[k].goals[1]);
        add_curve(r, &c[k], is_busy ? "-busy" : "");
    }
}

static void spin(_unused_ void *userdata) {
    for (;;)
        __asm__ volatile("");
}

/* One process more than processors wants one all the time. */
static size_t spinners_start(pid_t *pids, size_t size) {
    long n = sysconf(_SC_NPROCESSORS_ONLN) + 1;
    size_t i = 0;

    for (; i < size && (long) i < n; i++)
        pids[i] = fork_child(spin, NULL);
    return i;
}

static void spinners_end(const pid_t *pids, size_t n) {
    for (size_t i = 0; i < n; i++)
        (void) kill(pids[i], SIGKILL);
    for (size_t i = 0; i < n; i++)
        (void) command_wait(pids[i]);
}

static void fill(const struct race *race, struct contestant *c) {
    for (size_t w = 0; w < WORKERS; w++) {
        const char *own = race->fleet.daemons[0].socket, *socket = race->fleet.daemons[w % 2].socket;
        const char *const argv[][12] = {
            {"flock", race->lock, race->span, race->fleet.spans, COMMAND_USEC},
            {"berth", "--socket", socket, "run", "-p", "one", "--", race->span, race->fleet.spans, COMMAND_USEC},
            {"berth", "--socket", own, "run", "-p", "own", "--", race->span, race->fleet.spans, COMMAND_USEC},
            {"berth", "--socket", socket, "start", "span", "--wait"},
        };

        for (size_t k = 0; k < ELEMENTSOF(argv); k++)
            memcpy(c[k].argv[w], argv[k], sizeof(argv[k]));
    }
}

static struct contestant contestants[] = {
    {.name = "flock", .curve = "turns-flock"},
    {.name = "berth run over two hosts", .curve = "turns-cluster", .goals = {1, 1.5}},
    {.name = "berth run, host pool", .curve = "turns-host", .goals = {1, 1.5}},
    {.name = "jobs over two hosts", .curve = "turns-jobs", .goals = {1.2}},
};

static void run_race(struct report *r, size_t rounds, bool is_busy) {
    struct race race;

    race_up(&race);
    fill(&race, contestants);
    run_rounds(r, &race, contestants, ELEMENTSOF(contestants), rounds, is_busy);
    race_down(&race);
}

void bench_flock(struct report *r) {
    report_section(r, "beside flock");
    run_race(r, ROUNDS, false);
}

void bench_flock_busy(struct report *r) {
    pid_t spinners[64];
    size_t n;

    report_section(r, "beside flock, on a busy machine");
    n = spinners_start(spinners, ELEMENTSOF(spinners));
    run_race(r, ROUNDS_BUSY, true);
    spinners_end(spinners, n);
}
