/* SPDX-License-Identifier: MIT */
#pragma once

/* Processes that belong to runs, found in /proc: by BERTH_RUN in the environment with which they were
 * started, or by a hold that they have open. A snapshot: a pid may belong to another process a moment later.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/name.h"

struct process {
    pid_t pid;
    char state; /* of proc(5): R S D T Z ... */
    char name[32];
    usec_t age;
    char run[ID_TEXT_SIZE];  /* BERTH_RUN; "": none, or of another host or namespace */
    char hold[ID_TEXT_SIZE]; /* the run whose hold is open; "": none */
};

struct processes {
    struct process *items;
    size_t n;
    bool is_partial; /* some were not examined: they belong to another user, or the time was up */
};

/* Collects the processes of runs, for at most a second. host, namespace: those of berthd. holds: its folder
 * of holds, or NULL. A process that ends meanwhile is left out. Returns 0 or -ENOMEM. */
int processes_find(struct processes *ret, const char *host, const char *namespace, const char *holds);
void processes_done(struct processes *all);
/* Returns whether a process has a child of this name. */
bool process_has_child(pid_t parent, const char *name);
/* Returns the state of a process; 0: it does not exist. */
char process_state(pid_t pid);
