/* SPDX-License-Identifier: MIT */
#include "daemon/runs/run-table.h"

#include <assert.h>
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

static void run_table_on_elapsed(struct heap_timer *due, _unused_ void *userdata) {
    struct run *run = list_entry(due, struct run, timer.due);

    run->timer.on_elapsed(run);
}

int run_table_init(struct run_table *table, sd_event *event, void (*on_change)(struct run_table *table)) {
    int r;

    for (size_t i = 0; i < RUN_STATES; i++)
        list_init(&table->lists[i]);
    table->on_change = on_change;
    r = timer_heap_init(&table->timers, event, SD_EVENT_PRIORITY_NORMAL, run_table_on_elapsed, table);
    if (r < 0)
        return r;
    return timer_heap_init(&table->patient_timers, event, SD_EVENT_PRIORITY_NORMAL + 10,
                           run_table_on_elapsed, table);
}

static void keep_run(_unused_ void *run) {
}

void run_table_done(struct run_table *table) {
    if (!table->on_change)
        return;
    tdestroy(table->by_id, keep_run); /* the lists own them */
    run_table_foreach (run, table, RUN_STATE_RETRYING, RUN_STATE_DONE) {
        run_disarm(run);
        run_free(run);
    }
    timer_heap_done(&table->timers);
    timer_heap_done(&table->patient_timers);
}

/* --- the runs --- */

static int compare_ids(const void *a, const void *b) {
    const struct run *x = a, *y = b;

    return memcmp(x->id, y->id, sizeof(x->id));
}

struct run *run_table_find(struct run_table *table, const char *id) {
    struct run key, **slot;

    if (!id_is_valid(id))
        return NULL;
    memcpy(key.id, id, sizeof(key.id));
    slot = tfind(&key, &table->by_id, compare_ids);
    return slot ? *slot : NULL;
}

size_t run_table_count(const struct run_table *table, enum run_state first, enum run_state last) {
    size_t n = 0;

    for (enum run_state state = first; state <= last; state++)
        list_foreach (run, &table->lists[state], struct run, link)
            n++;
    return n;
}

bool run_table_is_empty(const struct run_table *table, enum run_state first, enum run_state last) {
    for (enum run_state state = first; state <= last; state++)
        if (!list_is_empty(&table->lists[state]))
            return false;
    return true;
}

static void forget_run(struct run_table *table, struct run *run) {
    if (run->state == RUN_STATE_DONE)
        table->n_done--;
    (void) tdelete(run, &table->by_id, compare_ids);
    run_free(run);
}

/* Keeps RUN_TABLE_DONE_MAX finished runs, those whose permits are not yet released, and the newest: its end
 * may be beginning another run just now. */
static void forget_old_runs(struct run_table *table) {
    struct list *done = &table->lists[RUN_STATE_DONE];

    list_foreach_safe (run, done, struct run, link) {
        if (table->n_done <= RUN_TABLE_DONE_MAX || run->link.next == done)
            return;
        if (run->host_claim->state == CLAIM_STATE_NONE && run->cluster_claim->state == CLAIM_STATE_NONE &&
            list_is_empty(&run->watches))
            forget_run(table, run);
    }
}

void run_table_drop(struct run_table *table, struct run *run) {
    assert(run->state == RUN_STATE_DONE && run->cluster_claim->state == CLAIM_STATE_NONE);
    forget_run(table, run);
}

static void unreserve_timer(struct run_table *table) {
    timer_heap_unreserve(&table->timers);
    timer_heap_unreserve(&table->patient_timers);
}

/* Reserves now, so that arming a time limit never lacks memory. */
static int reserve_timer(struct run_table *table) {
    if (timer_heap_reserve(&table->timers) < 0)
        return -ENOMEM;
    if (timer_heap_reserve(&table->patient_timers) == 0)
        return 0;
    timer_heap_unreserve(&table->timers);
    return -ENOMEM;
}

int run_table_add(struct run_table *table, struct run *run, enum run_state state) {
    struct run **slot;

    forget_old_runs(table); /* here no caller has a pointer to an old run */
    if (reserve_timer(table) < 0)
        return -ENOMEM;
    slot = tsearch(run, &table->by_id, compare_ids);
    if (!slot || *slot != run) {
        unreserve_timer(table);
        return slot ? -EEXIST : -ENOMEM;
    }
    run->table = table;
    run->timer.is_reserved = true;
    run_set_state(run, table->lists, state);
    return 0;
}

void run_table_replace(struct run_table *table, struct run *old, struct run *fresh) {
    struct run **slot = tfind(old, &table->by_id, compare_ids);

    assert(slot && *slot == old && old->state == RUN_STATE_PENDING && old->timer.due.heap_index == 0);
    *slot = fresh;
    fresh->table = table;
    fresh->timer.is_reserved = old->timer.is_reserved;
    list_foreach_safe (w, &old->watches, struct run_watch, link) {
        list_unlink(&w->link);
        list_append(&fresh->watches, &w->link);
    }
    list_append(&table->lists[RUN_STATE_PENDING], &fresh->link);
    run_free(old);
}

static int compare_queued(const void *a, const void *b) {
    const struct run *x = *(struct run *const *) a, *y = *(struct run *const *) b;

    return (x->queued.boottime > y->queued.boottime) - (x->queued.boottime < y->queued.boottime);
}

int run_table_sort_pending(struct run_table *table) {
    struct list *pending = &table->lists[RUN_STATE_PENDING];
    size_t n = 0;
    _cleanup_free_ struct run **runs =
        calloc(run_table_count(table, RUN_STATE_PENDING, RUN_STATE_PENDING) + 1, sizeof(struct run *));

    if (!runs)
        return -ENOMEM;
    list_foreach (run, pending, struct run, link)
        runs[n++] = run;
    qsort(runs, n, sizeof(struct run *), compare_queued);
    for (size_t i = 0; i < n; i++) {
        list_unlink(&runs[i]->link);
        list_append(pending, &runs[i]->link);
    }
    return 0;
}

/* --- one run --- */

void run_enter(struct run *run, enum run_state state) {
    struct run_table *table = run->table;

    table->n_done += state == RUN_STATE_DONE;
    if (state == RUN_STATE_WAITING)
        near_add(&table->near, run);
    run_set_state(run, table->lists, state);
    if (state != RUN_STATE_WAITING && state != RUN_STATE_STARTING)
        near_remove(&table->near, run, &table->lists[RUN_STATE_WAITING]);
    table->on_change(table);
}

void run_disarm(struct run *run) {
    timer_heap_unset(&run->timer.due);
}

void run_release_timer(struct run *run) {
    run_disarm(run);
    if (run->timer.is_reserved)
        unreserve_timer(run->table);
    run->timer.is_reserved = false;
}

static void arm(struct run *run, struct timer_heap *timers, usec_t boottime,
                void (*on_elapsed)(struct run *run)) {
    if (!run->timer.is_reserved)
        return;
    run->timer.on_elapsed = on_elapsed;
    timer_heap_set(timers, &run->timer.due, boottime);
}

void run_arm(struct run *run, usec_t boottime, void (*on_elapsed)(struct run *run)) {
    arm(run, &run->table->timers, boottime, on_elapsed);
}

void run_arm_after_io(struct run *run, usec_t boottime, void (*on_elapsed)(struct run *run)) {
    arm(run, &run->table->patient_timers, boottime, on_elapsed);
}
