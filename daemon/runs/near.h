/* SPDX-License-Identifier: MIT */
#pragma once

/* Which waiting runs get ready before their grant: run->is_near. Client or guard forks the command's child,
 * which waits at a gate (base/process/gate.h). berthd does not know the order of a cluster queue, only that
 * of its own runs. So a run is near if few runs of this host wait for its first pool before it. Bounds limit
 * the memory and processes of children that wait. A near run stays near until its command has begun or it waits no longer.
 * Then the run that has waited longest for the same pool becomes near. Before, its fork would compete with the begin of
 * that command for a processor. This saves time and decides nothing. */

#include "daemon/runs/run.h"

#define NEAR_POOL_MAX 4  /* runs of a kind in a pool */
#define NEAR_HOST_MAX 32 /* runs of a kind */

struct near { /* in the run table */
    struct run *runs[2 * NEAR_HOST_MAX];
    size_t n;
};

/* Decides whether a run that is about to wait is near. */
void near_add(struct near *near, struct run *run);
/* Removes a run that has begun or waits no longer, and calls the watches of the run that becomes near. waiting: all
 * waiting runs, oldest first. */
void near_remove(struct near *near, struct run *run, struct list *waiting);
