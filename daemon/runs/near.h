/* SPDX-License-Identifier: MIT */
#pragma once

/* Which waiting runs get ready ahead of their grant: run->is_near. Their client forks the command's child, which
 * waits at a gate (base/process/gate.h). berthd cannot know the order of a cluster queue, but it knows that of
 * its own runs: a run is near if few of this host's wait for its first pool before it. The bounds are those of the
 * memory and processes that may wait ready. A run that is near stays so until it waits no longer; then the run that has
 * waited longest for the same pool is near. Nothing depends on it but time. */

#include "daemon/runs/run.h"

#define NEAR_POOL_MAX 4  /* runs of a kind in a pool */
#define NEAR_HOST_MAX 32 /* runs of a kind */

struct near { /* in the run table */
    struct run *runs[2 * NEAR_HOST_MAX];
    size_t n;
};

/* The run is about to wait: decides whether it is near. */
void near_add(struct near *near, struct run *run);
/* The run waits no longer. Calls the watches of the run that is near in its place. waiting: all that wait, the oldest
 * first. */
void near_remove(struct near *near, struct run *run, struct list *waiting);
