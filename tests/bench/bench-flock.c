/* SPDX-License-Identifier: MIT */

/* Rounds of commands by flock, `berth run` and `berth start` alternate. The figure is the time from the last
 * instant of one command to the first of the next. */

#include "tests/bench/benches.h"

#include <string.h>

#include "tests/bench/race.h"

#define ROUNDS 24
#define ROUNDS_BUSY 6
#define POINTS 200

struct contestant {
    const char *name, *curve;
    double goals[2];       /* of p50 and p99, in units of flock's; 0: none */
    double gaps[ROUNDS * RACE_GAPS];
    size_t n;
};

static struct contestant contestants[RACE_KINDS] = {
    [RACE_FLOCK] = {.name = "flock", .curve = "turns-flock"},
    [RACE_FLOOR] = {.name = "floor: processes as of two hosts, with nothing in them", .curve = "turns-floor"},
    [RACE_FLOOR_HOST] = {.name = "floor: processes as of a host pool, with nothing in them", .curve = "turns-floor-host"},
    [RACE_CLUSTER] = {.name = "berth run over two hosts", .curve = "turns-cluster", .goals = {1, 1.5}},
    [RACE_HOST] = {.name = "berth run, host pool", .curve = "turns-host", .goals = {1, 1.5}},
    [RACE_JOBS] = {.name = "jobs over two hosts", .curve = "turns-jobs", .goals = {1.2}},
};

static void take_gaps(struct contestant *c, const struct spans *spans) {
    for (size_t i = RACE_FIRST; i < RACE_END; i++)
        c->gaps[c->n++] = (double) (spans->of[i].began - spans->of[i - 1].ended) / 1000;
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

static void add_results(struct report *r, bool is_busy) {
    const char *when = is_busy ? ", busy machine" : "";

    for (size_t k = 0; k < RACE_KINDS; k++) {
        struct contestant *c = &contestants[k];

        add_quantile(r, c, &contestants[RACE_FLOCK], when, 50, is_busy ? 0 : c->goals[0]);
        add_quantile(r, c, &contestants[RACE_FLOCK], when, 90, 0);
        add_quantile(r, c, &contestants[RACE_FLOCK], when, 99, is_busy ? 0 : c->goals[1]);
        add_curve(r, c, is_busy ? "-busy" : "");
    }
}

static void run_race(struct report *r, size_t rounds, bool is_busy) {
    struct race race;

    race_up(&race);
    for (size_t k = 0; k < RACE_KINDS; k++)
        contestants[k].n = 0;
    for (size_t i = 0; i < rounds; i++)
        for (size_t k = 0; k < RACE_KINDS; k++) {
            race_round(&race, k);
            take_gaps(&contestants[k], race.spans);
        }
    add_results(r, is_busy);
    race_down(&race);
}

void bench_flock(struct report *r) {
    report_section(r, "beside flock");
    run_race(r, ROUNDS, false);
}

void bench_flock_busy(struct report *r) {
    struct spinners spinners;

    report_section(r, "beside flock, on a busy machine");
    spinners_start(&spinners);
    run_race(r, ROUNDS_BUSY, true);
    spinners_end(&spinners);
}
