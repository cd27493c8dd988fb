/* SPDX-License-Identifier: MIT */
#pragma once

/* Stops the next child of a process before its first instruction (ptrace(2), SIGSTOP), or that child's own
 * next child as well. So a guard stands still before it looks at its deadline, or guard and command stand
 * still after that. Nothing is traced once the processes are stopped; SIGCONT resumes them. */

#include <stdbool.h>
#include <sys/types.h>

#define BIRTH_TRACED_MAX 3

struct birth {
    unsigned generations;           /* 1: the child is stopped at its birth; 2: it and its child at the birth of that */
    unsigned n;                     /* generations born so far */
    pid_t traced[BIRTH_TRACED_MAX]; /* the process, its child, and the child of that; 0: not born */
};

/* Returns whether this machine permits tracing children. */
bool birth_is_allowed(void);
/* Watches a process. False: it cannot be traced. */
bool birth_watch(struct birth *b, pid_t parent, unsigned generations);
/* To be called often, because a traced process stops at each signal and fork until then. Does not wait.
 * Returns whether all are born and stopped. */
bool birth_turn(struct birth *b);
/* Resumes the stopped processes, or ends the watch if none was born. Idempotent. */
void birth_end(struct birth *b);
