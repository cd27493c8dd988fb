/* SPDX-License-Identifier: MIT */
#pragma once

/* Real berthds, each in a folder of its own below /tmp, on one private redis-server; runs and times
 * commands. */

#include <sys/types.h>

#include "tests/bench/rig.h"

struct bench_daemon {
    char name[16];
    char folder[64], socket[96], config[96];
    pid_t pid;
};

struct fleet {
    char folder[40];
    char stamps[64];          /* file that the job `stamp` and commands write lines to */
    char spans[64];           /* file that the job `span` maps (tests/bench/span.h); not made yet */
    struct redis_server redis;
    struct bench_daemon *daemons;
    size_t n;
};

/* Pools: many (no bound in practice), one (limit 1), own and spare (limit 1, of each host), none (limit 0). Jobs: stamp, sleeper, true (many), span (one,
 * 3 ms), waiter (none). */
void fleet_up(struct fleet *f, size_t n);
void fleet_down(struct fleet *f);

/* Runs a function in a child, which is killed when this process ends; if it returns, the child exits with 0. */
pid_t command_fork(void (*run)(void *userdata), void *userdata);
/* Returns the processor time that a process has had, in seconds. */
double process_cpu(pid_t pid);
/* Starts a command with /dev/null as its standard descriptors; a leading "berth" means this build's. */
pid_t command_start(const char *const *argv);
/* Returns the exit status; 128+N for a signal. */
int command_wait(pid_t pid);
/* Runs a command. Returns its duration in µs; < 0: it failed. */
double command_time(const char *const *argv);
/* Returns instead the processor time of the command and its children, in µs. */
double command_cost(const char *const *argv, double *ret_cpu_usec);
const char *build_path(const char *name, char buffer[static 300]);
