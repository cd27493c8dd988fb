/* SPDX-License-Identifier: MIT */
#include "daemon/coming.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/jobs/scheduler-internal.h"

/* A heap of the next begins of jobs and of runs that are retrying. */
struct cursors {
    struct coming *items; /* [0] is the earliest */
    size_t n;
};

static void sift_down(struct cursors *cursors, size_t i) {
    for (;;) {
        size_t first = i, left = 2 * i + 1;
        struct coming item = cursors->items[i];

        for (size_t child = left; child < cursors->n && child <= left + 1; child++)
            if (cursors->items[child].begin_realtime < cursors->items[first].begin_realtime)
                first = child;
        if (first == i)
            return;
        cursors->items[i] = cursors->items[first];
        cursors->items[first] = item;
        i = first;
    }
}

/* Finds the due time with the first begin after this one. Returns false if there is none. */
static bool find_due(struct coming *item, usec_t begin) {
    const struct job *job = item->job;
    usec_t after = usec_sub(begin, job->schedule.splay_usec);

    if (!schedule_next(&job->settings->triggers.schedule, shared_zone_get(job->schedule.zone),
                       (int64_t) (after / USEC_PER_SEC), &item->due))
        return false;
    item->zone = shared_zone_get(job->schedule.zone);
    item->splay_usec = job->schedule.splay_usec;
    item->begin_realtime = usec_add((usec_t) item->due.at * USEC_PER_SEC, job->schedule.splay_usec);
    return true;
}

/* Moves to the next begin of the same job. Returns false if there is none. In a list of all jobs, one with
 * `every` is listed once: if it begins each few seconds, it leaves no room for the others. */
static bool advance(struct coming *item, bool is_of_all) {
    if (item->zone)
        return find_due(item, item->begin_realtime);
    if (is_of_all)
        return false;
    switch (item->trigger) {
    case RUN_TRIGGER_EVERY:
        item->begin_realtime = usec_add(item->begin_realtime, item->job->settings->triggers.every_usec);
        return true;
    default:
        return false;
    }
}

/* The timer counts CLOCK_BOOTTIME, so a clock that is set does not move it. A shared job's timer may be an earlier question. */
usec_t coming_by_every(const struct job *job, usec_t now) {
    usec_t next = job_next(job, job->settings->triggers.every_usec, now), begin;

    if (job->due.heap_index == 0 || turns_is_shared(job))
        return next;
    begin = usec_add(now, usec_sub(job->due.at, clock_boottime()));
    return usec_sub(next, begin) < USEC_PER_SEC && usec_sub(begin, next) < USEC_PER_SEC ? next : begin;
}

static void add_trigger(struct cursors *cursors, const struct job *job, usec_t from, usec_t now) {
    usec_t every = job->settings->triggers.every_usec;
    struct coming item = {.job = job, .settings = job->settings, .trigger = due_trigger(job)};

    if (!schedule_is_empty(&job->settings->triggers.schedule)) {
        usec_t mark = (usec_t) job->schedule.mark * USEC_PER_SEC;
        usec_t decided = usec_add(mark, job->schedule.splay_usec);

        if (shared_zone_get(job->schedule.zone) && find_due(&item, from > 0        ? from
                                                                   : decided > now ? decided
                                                                                   : now))
            cursors->items[cursors->n++] = item;
    } else if (every != USEC_INFINITY) {
        item.trigger = RUN_TRIGGER_EVERY;
        item.begin_realtime = coming_by_every(job, now);
        if (item.begin_realtime <= from)
            item.begin_realtime += ((from - item.begin_realtime) / every + 1) * every;
        cursors->items[cursors->n++] = item;
    }
}

static void add_attempts(struct cursors *cursors, const struct job *job, usec_t from) {
    list_foreach (run, &job->runs, struct run, job.of_job)
        if (run->state == RUN_STATE_RETRYING && run->job.begin_realtime > from)
            cursors->items[cursors->n++] = (struct coming){
                .job = job,
                .settings = job->settings,
                .trigger = run->job.origin.trigger,
                .begin_realtime = run->job.begin_realtime,
                .attempt = run->job.origin.attempt,
            };
}

/* Adds attempts that any host may make: further ones, and the first one if a host gave it back or was
 * lost. */
static void add_open_turns(struct cursors *cursors, const struct job *job, usec_t from) {
    list_foreach (entry, &job->schedule.entries, struct due_entry, link)
        if (entry->is_open && entry->attempt > 0 && entry->not_before > from)
            cursors->items[cursors->n++] = (struct coming){
                .job = job,
                .settings = job->settings,
                .trigger = entry->attempt > 1 ? RUN_TRIGGER_RETRY : due_trigger(job),
                .begin_realtime = entry->not_before,
                .attempt = entry->attempt,
                .open_due = entry->due,
            };
}

static size_t count_cursors(const struct job *job) {
    size_t n = 1;

    list_foreach (run, &job->runs, struct run, job.of_job)
        n += run->state == RUN_STATE_RETRYING;
    list_foreach (entry, &job->schedule.entries, struct due_entry, link)
        n += entry->is_open;
    return n;
}

static int make_cursors(const struct scheduler *scheduler, const struct job *only, usec_t from, usec_t now,
                        struct cursors *ret) {
    size_t n = 0;

    for (size_t i = 0; i < scheduler->n_jobs; i++)
        n += !only || only == scheduler->jobs[i] ? count_cursors(scheduler->jobs[i]) : 0;
    ret->items = calloc(n + 1, sizeof(*ret->items));
    if (!ret->items)
        return -ENOMEM;
    for (size_t i = 0; i < scheduler->n_jobs; i++)
        if (!only || only == scheduler->jobs[i]) {
            add_trigger(ret, scheduler->jobs[i], from, now);
            add_attempts(ret, scheduler->jobs[i], from);
            add_open_turns(ret, scheduler->jobs[i], from);
        }
    for (size_t i = ret->n / 2 + 1; i-- > 0;)
        if (i < ret->n)
            sift_down(ret, i);
    return 0;
}

int coming_list(const struct scheduler *scheduler, const struct job *job, usec_t from, usec_t now,
                size_t count, struct coming **ret, size_t *ret_n) {
    struct coming *list = calloc(count + 1, sizeof(*list));
    struct cursors cursors = {};
    size_t n = 0;

    if (!list || make_cursors(scheduler, job, from, now, &cursors) < 0) {
        free(list);
        return -ENOMEM;
    }
    while (n < count && cursors.n > 0) {
        list[n++] = cursors.items[0];
        if (!advance(&cursors.items[0], !job))
            cursors.items[0] = cursors.items[--cursors.n];
        sift_down(&cursors, 0);
    }
    free(cursors.items);
    *ret = list;
    *ret_n = n;
    return 0;
}
