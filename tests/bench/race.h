/* SPDX-License-Identifier: MIT */
#pragma once

/* Six workers that each run one command of 3 ms after the other, under a limit of one, by flock, `berth run`
 * or `berth start`. */

#include "tests/bench/daemon.h"
#include "tests/bench/span.h"

#define RACE_WORKERS 6
#define RACE_COMMANDS 72 /* of a round */
/* The first and last commands do not count: between the others, all workers but one wait. */
#define RACE_FIRST RACE_WORKERS
#define RACE_END (RACE_COMMANDS - RACE_WORKERS)
#define RACE_GAPS (RACE_END - RACE_FIRST)

enum race_kind {
    RACE_FLOCK,
    RACE_FLOOR,      /* the processes of RACE_CLUSTER with nothing in them (tests/bench/tools/floor.c) */
    RACE_FLOOR_HOST, /* of RACE_HOST */
    RACE_CLUSTER, /* berth run, of two hosts */
    RACE_HOST,    /* berth run with a pool of one host */
    RACE_JOBS,    /* berth start --wait, of two hosts */
    RACE_KINDS
};

struct race {
    struct fleet fleet;
    struct floor_host {
        char socket[80];
        pid_t pid;
    } floors[3]; /* two of RACE_FLOOR, one of RACE_FLOOR_HOST */
    struct spans *spans; /* of the last round, in order of their begin; none overlaps another */
    const char *argv[RACE_KINDS][RACE_WORKERS][12];
    char span[300], floor[300], lock[80];
};

void race_up(struct race *race);
void race_down(struct race *race);
void race_round(struct race *race, enum race_kind kind);

#define RACE_GAPS_MAX 20000
struct race_gaps {
    double usec[RACE_GAPS_MAX]; /* from the end of a command to the begin of the next */
    size_t n;
};
/* Adds the gaps of rounds for a time; those above RACE_GAPS_MAX are left out. */
void race_for(struct race *race, enum race_kind kind, usec_t time, struct race_gaps *gaps);

/* Keeps the machine busy: one spinning process more than there are processors. */
struct spinners {
    pid_t pids[64];
    size_t n;
};
void spinners_start(struct spinners *s);
void spinners_end(const struct spinners *s);
