/* SPDX-License-Identifier: MIT */

/* Real daemons: hand-over between hosts, trigger to exec. */

#include "tests/bench/benches.h"

#include <poll.h>

#include "tests/bench/daemon.h"

#define HOSTS 10
#define RUNS 30        /* of each host, in the hand-over */
#define TRIGGERS 200

/* Reads all of the stamps: BEGAN and ENDED in ns. */
static size_t read_stamps(const struct fleet *f, double (*stamps)[2], size_t size) {
    _cleanup_fclose_ FILE *file = fopen(f->stamps, "re");
    size_t n = 0;

    while (file && n < size && fscanf(file, "%lf %lf", &stamps[n][0], &stamps[n][1]) == 2)
        n++;
    return n;
}

static void await_stamps(const struct fleet *f, double (*stamps)[2], size_t n) {
    usec_t end = clock_boottime() + 60 * USEC_PER_SEC;

    while (read_stamps(f, stamps, n) < n) {
        if (clock_boottime() > end)
            rig_fail("only %zu of %zu commands ran", read_stamps(f, stamps, n), n);
        (void) poll(NULL, 0, 1);
    }
}

static void triggers(struct report *r, const struct fleet *f) {
    const char *const start[] = {"berth", "--socket", f->daemons[0].socket, "start", "stamp", "--wait", NULL};
    const char *const run[] = {"berth", "--socket", f->daemons[0].socket, "run", "-p", "many", "--", getenv("BENCH_STAMP"), f->stamps, NULL};
    static double started[TRIGGERS], ran[TRIGGERS], stamps[1][2];

    for (size_t i = 0; i < TRIGGERS; i++)
        for (int k = 0; k < 2; k++) {
            double began = (double) clock_boottime() * 1000;

            (void) unlink(f->stamps);
            if (command_time(k == 0 ? start : run) < 0)
                rig_fail("a trigger failed");
            await_stamps(f, stamps, 1);
            (k == 0 ? started : ran)[i] = (stamps[0][0] - began) / 1000;
        }
    report_add(r, &(struct figure) {"berth start JOB: from its own fork to the command's first instant, p50",
                                    quantile(started, TRIGGERS, 0.5), "µs", NULL, 0, GOAL_NONE, 0});
    report_add(r, &(struct figure) {"berth run: from its own fork to the command's first instant, p50", quantile(ran, TRIGGERS, 0.5), "µs",
                                    NULL, 0, GOAL_NONE, 0});
}

static int by_begin(const void *a, const void *b) {
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

/* RUNS commands of each host wait for one permit; each begins when the one before it has ended on any
 * host. */
static void handover(struct report *r, const struct fleet *f) {
    static double stamps[HOSTS * RUNS][2], gaps[HOSTS * RUNS];
    pid_t pids[HOSTS * RUNS];
    size_t n = 0;
    const char *const holder[] = {"berth", "--socket", f->daemons[0].socket, "run", "-p", "one", "--", "sleep", "3", NULL};
    pid_t first = command_start(holder);

    (void) unlink(f->stamps);
    (void) poll(NULL, 0, 100);
    for (; n < HOSTS * RUNS; n++) {
        const char *const run[] = {"berth", "--socket", f->daemons[n % HOSTS].socket, "run", "-p", "one", "--", getenv("BENCH_STAMP"),
                                   f->stamps, NULL};

        pids[n] = command_start(run);
    }
    (void) command_wait(first);
    for (size_t i = 0; i < n; i++)
        if (command_wait(pids[i]) != 0)
            rig_fail("a command of the hand-over failed");
    await_stamps(f, stamps, n);
    qsort(stamps, n, sizeof(stamps[0]), by_begin);
    for (size_t i = 1; i < n; i++)
        gaps[i - 1] = (stamps[i][0] - stamps[i - 1][1]) / 1000;
    (void) quantile(gaps, n - 1, 0.5);
    for (size_t i = 0; i < n - 1; i++)
        report_point(r, "handover-daemons", gaps[i], (double) (i + 1) / (double) (n - 1));
    report_add(r, &(struct figure) {"berth run on 10 hosts: from a command's end to the next one's first instant, p50",
                                    quantile(gaps, n - 1, 0.5), "µs", NULL, 0, GOAL_NONE, 0});
    report_add(r, &(struct figure) {"berth run on 10 hosts: from a command's end to the next one's first instant, p99",
                                    quantile(gaps, n - 1, 0.99), "µs", NULL, 0, GOAL_VALUE_AT_MOST, 5000});
}

void bench_daemon(struct report *r) {
    struct fleet f;

    report_section(r, "real daemons");
    fleet_up(&f, HOSTS);
    handover(r, &f);
    fleet_down(&f);
    fleet_up(&f, 1);
    triggers(r, &f);
    fleet_down(&f);
}
