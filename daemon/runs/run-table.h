/* SPDX-License-Identifier: MIT */
#pragma once

/* All runs that berthd knows, by id, by state, and by time limit. Owns them. */

#include <systemd/sd-event.h>

#include "base/timer-heap.h"
#include "daemon/runs/near.h"
#include "daemon/runs/run.h"

#define RUN_TABLE_DONE_MAX 1000 /* finished runs kept for `berth runs --all` */

struct run_table {
    struct list lists[RUN_STATES]; /* struct run, each on one; DONE: newest last */
    void *by_id;                   /* tsearch(3) tree of struct run */
    size_t n_done;                 /* on lists[RUN_STATE_DONE] */
    struct near near;              /* runs near the head of a queue */
    struct timer_heap timers;
    struct timer_heap patient_timers; /* elapse after pending input was handled, as after a freeze */
    struct events *events;            /* of runs (daemon/runs/run-log.h); not owned */
    void (*on_change)(struct run_table *table); /* a run changed its state */
};

int run_table_init(struct run_table *table, sd_event *event, void (*on_change)(struct run_table *table));
/* Frees all runs, which have no guard link or hold any more. Also for a table that is all zero, or after a
 * failed run_table_init(). */
void run_table_done(struct run_table *table);

/* Returns NULL if there is no such run, or if the text is no run id. */
struct run *run_table_find(struct run_table *table, const char *id);
bool run_table_is_empty(const struct run_table *table, enum run_state first, enum run_state last);
size_t run_table_count(const struct run_table *table, enum run_state first, enum run_state last);
/* Takes ownership of the run. -EEXIST, -ENOMEM: the caller still owns it. */
int run_table_add(struct run_table *table, struct run *run, enum run_state state);
/* Replaces a pending run that never began by another one of the same id, which gets its watches. Frees
 * old. */
void run_table_replace(struct run_table *table, struct run *old, struct run *fresh);
/* Frees a run that is over and has no claim, so that it is no longer shown. */
void run_table_drop(struct run_table *table, struct run *run);
/* Sorts the pending runs by the time at which they were queued. 0 or -ENOMEM. */
int run_table_sort_pending(struct run_table *table);

/* Visits each run in the states from first to last. The body may end or free the current run, and no other.
 * A run that enters a later state meanwhile is visited again. `break` ends only one state. */
#define run_table_foreach(item, table, first, last)                                                         \
    for (enum run_state item##_state = (first); item##_state <= (last); item##_state++)                     \
        list_foreach_safe (item, &(table)->lists[item##_state], struct run, link)

/* Changes the state of a run of a table. Calls the watches. */
void run_enter(struct run *run, enum run_state state);
/* Arms the time limit of a run, or moves it. Cannot fail. USEC_INFINITY: disarms. */
void run_arm(struct run *run, usec_t boottime, void (*on_elapsed)(struct run *run));
/* The same, among patient_timers. */
void run_arm_after_io(struct run *run, usec_t boottime, void (*on_elapsed)(struct run *run));
void run_disarm(struct run *run);
void run_release_timer(struct run *run); /* when the run is over: disarms and gives up the reservation */
