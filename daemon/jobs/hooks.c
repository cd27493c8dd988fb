/* SPDX-License-Identifier: MIT */

/* Hooks: jobs that start when a run is over, or when a job had no good end for too long. Each hook is an
 * ordinary run. It is made with its own record before the end is noted, and begun after that. So each hook
 * starts once, even if berthd is killed between the two. */

#include <stdarg.h>
#include <stdio.h>

#include "base/failpoint.h"
#include "base/job-name.h"
#include "base/memory.h"
#include "base/text.h"
#include "daemon/jobs/scheduler-internal.h"
#include "daemon/runs/run-log.h"

#define HOOKS_MAX 100 /* runs of one hook that are not over */
#define DEPTH_MAX 8
#define REASON_MAX 512

/* --- facts --- */

/* Writes the fields of `of` line by line; bytes that are not printable ASCII become '?'. */
static void put(FILE *f, const char *key, const char *format, ...) _printf_(3, 4);
static void put(FILE *f, const char *key, const char *format, ...) {
    char value[REASON_MAX + 1];
    va_list ap;

    va_start(ap, format);
    (void) vsnprintf(value, sizeof(value), format, ap);
    va_end(ap);
    for (char *c = value; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    fprintf(f, "of-%s=%s\n", key, value);
}

static void put_time(FILE *f, const char *key, usec_t realtime) {
    char text[CLOCK_TEXT_SIZE];

    if (realtime > 0)
        put(f, key, "%s", clock_format(realtime, text));
}

static void put_run(FILE *f, const struct run *run, usec_t now_boottime) {
    const char *trigger = run_trigger_name(run->job.origin.trigger), *signal = NULL;

    put(f, "run", "%s", run->id);
    put(f, "first-run", "%s", run->job.origin.first_run);
    put(f, "attempt", "%" PRIu32, run->job.origin.attempt);
    if (trigger)
        put(f, "trigger", "%s", trigger);
    if (run->job.origin.due[0])
        put(f, "due", "%s", run->job.origin.due);
    if (run->end.result != RUN_RESULT_NONE)
        put(f, "result", "%s", run_result_name(run->end.result));
    if (run->end.exit_code >= 0)
        put(f, "exit-code", "%d", run->end.exit_code);
    if (run->end.signal >= 0 && (signal = sigabbrev_np(run->end.signal)))
        put(f, "signal", "%s", signal);
    else if (run->end.signal >= 0)
        put(f, "signal", "%d", run->end.signal);
    if (run->reason[0])
        put(f, "reason", "%s", run->reason);
    put_time(f, "queued", run->queued.realtime);
    put_time(f, "started", run->started.realtime);
    put_time(f, "ended", run->end.realtime);
    put(f, "wait-ms", "%" PRIu64, run_wait_usec(run, now_boottime) / USEC_PER_MSEC);
    if (run->started.realtime > 0)
        put(f, "run-ms", "%" PRIu64, run_time_usec(run, now_boottime) / USEC_PER_MSEC);
}

/* Returns the facts as text, which the caller frees, or NULL without memory. run: NULL if there is none. */
static char *format_facts(const struct scheduler *scheduler, const struct job *job, const struct run *run,
                          const char *event, uint32_t n_bad, usec_t bad_since, struct run_time now) {
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    if (!f)
        return NULL;
    put(f, "job", "%s", job->name);
    if (job_name_instance(job->name))
        put(f, "instance", "%s", job_name_instance(job->name));
    put(f, "event", "%s", event);
    put(f, "host", "%s", scheduler->settings->host);
    if (run)
        put_run(f, run, now.boottime);
    put(f, "bad", "%" PRIu32, n_bad);
    put_time(f, "since", bad_since);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

/* --- runs --- */

struct cause { /* of hooks */
    const struct job *job;
    const struct run *run; /* NULL: none; then `id` names the cause */
    const char *id;
    const char *event;
    uint32_t n_bad;
    usec_t bad_since;
};

static void log_skipped(const struct scheduler *scheduler, const struct cause *cause, const char *hook,
                        const char *reason) {
    struct event e = {.type = EVENT_SKIPPED,
                      .job = hook,
                      .reason = reason,
                      .of.job = cause->job->name,
                      .of.run = cause->run ? cause->run->id : NULL,
                      .origin.trigger = "hook"};

    event_emit(scheduler->runs->events, &e, "%s is not started for %s (%s): %s", hook, cause->job->name,
               cause->event, reason);
}

static size_t count_hook_runs(const struct job *hook) {
    size_t n = 0;

    list_foreach (run, &hook->runs, struct run, job.of_job)
        n += run->job.origin.depth > 0;
    return n;
}

/* Returns why the hook is not started, or NULL. */
static const char *refusal(const struct scheduler *scheduler, const struct job *hook,
                           const struct cause *cause) {
    if (scheduler->is_stopped)
        return "stopping";
    if (scheduler->is_drained)
        return "drained";
    if (cause->run && cause->run->job.origin.depth >= DEPTH_MAX)
        return "hook-depth";
    return count_hook_runs(hook) >= HOOKS_MAX ? "hook-limit" : NULL;
}

static void make_hook(struct scheduler *scheduler, struct job *hook, const struct cause *cause,
                      struct run_time now) {
    struct run *run = NULL;
    char id[ID_TEXT_SIZE], which[NAME_MAX_LENGTH + 24];
    _cleanup_free_ char *facts = NULL;

    snprintf(which, sizeof(which), "%s %s", cause->event, hook->name);
    attempts_make_id("hook", cause->id, which, id);
    if (run_table_find(scheduler->runs, id))
        return;
    facts =
        format_facts(scheduler, cause->job, cause->run, cause->event, cause->n_bad, cause->bad_since, now);
    if (!facts || triggers_add_run(scheduler, hook, id, RUN_STATE_PENDING, now, &run) < 0 ||
        run_origin_set_of(&run->job.origin, facts) < 0)
        memory_exit("a hook");
    run->job.origin.trigger = RUN_TRIGGER_HOOK;
    run->job.origin.depth = cause->run ? cause->run->job.origin.depth + 1 : 1;
    state_save_run(scheduler->state, run);
    FAILPOINT("hook-noted");
}

static void make_hooks(struct scheduler *scheduler, char *const *names, const struct cause *cause,
                       struct run_time now) {
    for (size_t i = 0; names && names[i]; i++) {
        struct job *hook = scheduler_find(scheduler, names[i]);
        const char *why = hook ? refusal(scheduler, hook, cause) : "unknown";

        if (why)
            log_skipped(scheduler, cause, names[i], why);
        else
            make_hook(scheduler, hook, cause, now);
    }
}

static struct run *first_pending_hook(struct scheduler *scheduler) {
    list_foreach (run, &scheduler->runs->lists[RUN_STATE_PENDING], struct run, link)
        if (run->kind == RUN_KIND_JOB && run->job.origin.trigger == RUN_TRIGGER_HOOK &&
            !run->job.queued_by_overlap)
            return run;
    return NULL;
}

void hooks_begin(struct scheduler *scheduler) {
    struct run *run;

    while (scheduler->is_started && (run = first_pending_hook(scheduler)))
        scheduler_begin(scheduler, run);
}

/* --- well and broken --- */

static void log_health(const struct scheduler *scheduler, const struct job *job, const struct run *run,
                       enum event_type type) {
    const struct health *health = &job->attempts.health;
    struct event e = {.type = type, .job = job->name, .run = run ? run->id : NULL};

    if (type == EVENT_RECOVERED)
        event_emit(scheduler->runs->events, &e, "%s is well again", job->name);
    else if (type == EVENT_OVERDUE)
        event_emit(scheduler->runs->events, &e, "%s had no success for its max-silence", job->name);
    else if (health->n_bad > 0)
        event_emit(scheduler->runs->events, &e, "%s is broken: %" PRIu32 " bad in a row", job->name,
                   health->n_bad);
    else
        event_emit(scheduler->runs->events, &e, "%s is broken", job->name);
}

void hooks_run_over(struct scheduler *scheduler, struct job *job, const struct run *run,
                    struct run_time now) {
    const struct job_hooks *hooks = &job->settings->hooks;
    struct health before = job->attempts.health;
    unsigned events =
        health_note_end(&job->attempts.health, hooks, chain_judge(run->end.result), now.realtime);
    const struct health *facts = events & HEALTH_SUCCESS ? &before : &job->attempts.health;
    struct cause cause = {
        .job = job, .run = run, .id = run->id, .n_bad = facts->n_bad, .bad_since = facts->bad_since};

    if (events & HEALTH_BROKEN)
        log_health(scheduler, job, run, EVENT_BROKEN);
    if (events & HEALTH_RECOVERED)
        log_health(scheduler, job, run, EVENT_RECOVERED);
    cause.event = events & HEALTH_SUCCESS ? "success" : "failure";
    if (events & (HEALTH_SUCCESS | HEALTH_FAILURE))
        make_hooks(scheduler, events & HEALTH_SUCCESS ? hooks->on_success : hooks->on_failure, &cause, now);
    cause.event = events & HEALTH_RECOVERED ? "recovered" : "broken";
    if (events & HEALTH_RECOVERED)
        make_hooks(scheduler, hooks->on_recovered, &cause, now);
    if (events & (HEALTH_BROKEN | HEALTH_REMINDER))
        make_hooks(scheduler, hooks->on_broken, &cause, now);
    hooks_arm(scheduler, job, now);
}

/* --- max-silence --- */

void hooks_arm(struct scheduler *scheduler, struct job *job, struct run_time now) {
    usec_t next = USEC_INFINITY;

    if (scheduler->is_started)
        next = health_next(&job->attempts.health, &job->settings->hooks, now.realtime);
    if (next != USEC_INFINITY)
        next = usec_add(now.boottime, usec_sub(next, now.realtime));
    timer_heap_set(&scheduler->silences, &job->silence, next);
}

void hooks_note_time(struct scheduler *scheduler, struct job *job, struct run_time now) {
    unsigned events = health_note_time(&job->attempts.health, &job->settings->hooks, now.realtime);
    const struct health *health = &job->attempts.health;
    char id[CLOCK_TEXT_SIZE + NAME_MAX_LENGTH], text[CLOCK_TEXT_SIZE];
    struct cause cause = {
        .job = job, .id = id, .event = "overdue", .n_bad = health->n_bad, .bad_since = health->bad_since};

    if (events & HEALTH_OVERDUE) {
        snprintf(id, sizeof(id), "%s %s", job->name, clock_format(now.realtime, text));
        log_health(scheduler, job, NULL, EVENT_OVERDUE);
        if (events & HEALTH_BROKEN)
            log_health(scheduler, job, NULL, EVENT_BROKEN);
        make_hooks(scheduler, job->settings->hooks.on_broken, &cause, now);
        attempts_save(scheduler, job);
    }
    hooks_arm(scheduler, job, now);
    hooks_begin(scheduler);
}
