/* SPDX-License-Identifier: MIT */
#pragma once

/* Stops a process before its first instruction, by ptrace(2): the next child of a process (SIGSTOP), and
 * also that child's own next child. So a guard stands still before it looks at its deadline, or it and
 * its command do so after that. Nothing is traced once the processes are stopped; SIGCONT lets them go
 * on. */

#include <stdbool.h>
#include <sys/types.h>

#define BIRTH_TRACED_MAX 3

struct birth {
    unsigned generations;           /* 1: the child is stopped at its birth; 2: it and its child at the birth of that */
    unsigned n;                     /* generations born so far */
    pid_t traced[BIRTH_TRACED_MAX]; /* the process, its child, and the child of that; 0: not born */
};

/* Returns whether this machine permits tracing of own children. */
bool birth_is_allowed(void);
/* Watches a process. False: it cannot be traced. */
bool birth_watch(struct birth *b, pid_t parent, unsigned generations);
/* To be called often, because a traced process stops at each signal and fork until then. Does not wait.
 * Returns whether all are born and stopped. */
bool birth_turn(struct birth *b);
/* Sends SIGCONT to those that were stopped, or ends the watch if none was born. Idempotent. */
void birth_end(struct birth *b);
