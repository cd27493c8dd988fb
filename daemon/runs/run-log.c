/* SPDX-License-Identifier: MIT */

/* The sentences of a run's events are for people. Programs read the fields. */

#include "daemon/runs/run-log.h"

#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "daemon/runs/run-table.h"

static void add_origin(struct event *e, const struct run_origin *origin) {
    e->origin.trigger = run_trigger_name(origin->trigger);
    e->origin.due = origin->due[0] ? origin->due : NULL;
    e->origin.attempt = origin->attempt > 1 ? origin->attempt : 0;
    e->origin.first_run = origin->attempt > 1 ? origin->first_run : NULL;
    e->of.job = origin->of && origin->of->job[0] ? origin->of->job : NULL;
    e->of.run = origin->of && origin->of->run[0] ? origin->of->run : NULL;
}

struct event run_event(const struct run *r, enum event_type type, char pools[static DEMANDS_TEXT_SIZE]) {
    struct event e = {.type = type, .job = r->name, .run = r->id};

    e.pools = r->n_demands > 0 ? run_format_pools(r, pools) : NULL;
    e.token = run_token(r);
    e.ticket = run_ticket(r);
    e.head_start_usec = r->terms.head_start_usec;
    if (r->kind == RUN_KIND_JOB)
        add_origin(&e, &r->job.origin);
    if (r->kind == RUN_KIND_ADHOC) {
        e.caller.has_uid = true;
        e.caller.uid = r->adhoc.uid;
        e.caller.is_there = true;
    }
    e.reason = r->reason[0] ? r->reason : NULL;
    return e;
}

struct events *run_events(const struct run *run) {
    return run->table->events;
}

const char *run_reason_text(const char *reason) {
    static const struct {
        const char *reason, *text;
    } table[] = {
        {"stopped", "`berth stop` was called"},
        {"revoked", "its claim was revoked"},
        {"lease-lost", "this host could not renew its lease"},
        {"timeout", "it ran longer than its timeout"},
        {"replaced", "a newer trigger of its job took its place"},
        {"shutdown", "berthd is stopping on this host"},
        {"drained", "this host is drained"},
        {"queue-timeout", "it waited longer than its queue-timeout"},
        {"busy", "not all of its permits were free, and -n was given"},
    };

    for (size_t i = 0; i < ELEMENTSOF(table); i++)
        if (strcmp(reason, table[i].reason) == 0)
            return table[i].text;
    return reason;
}

#define END_SIZE 256

/* Returns the end of a run as a verb phrase, for example "failed with exit status 3". */
static const char *end_text(const struct run *r, enum run_result result, char buffer[static END_SIZE]) {
    const char *why = r->reason[0] ? run_reason_text(r->reason) : "for an unknown reason";
    const char *signal = r->end.signal >= 0 ? sigabbrev_np(r->end.signal) : NULL;

    switch (result) {
    case RUN_RESULT_SUCCESS:
        return "succeeded";
    case RUN_RESULT_FAILURE:
        if (r->end.signal >= 0)
            snprintf(buffer, END_SIZE, "was ended by signal %d%s%s", r->end.signal, signal ? ", SIG" : "",
                     signal ? signal : "");
        else
            snprintf(buffer, END_SIZE, "failed with exit status %d", r->end.exit_code);
        return buffer;
    case RUN_RESULT_TIMEOUT:
        why = run_reason_text("timeout");
        break;
    case RUN_RESULT_LEASE_LOST:
        why = run_reason_text("lease-lost");
        break;
    case RUN_RESULT_NOT_STARTED:
        snprintf(buffer, END_SIZE, "was not started: %s", why);
        return buffer;
    case RUN_RESULT_GUARD_DIED:
        return "ended in an unknown way: its guard died";
    case RUN_RESULT_HOST_LOST:
        return "ended in an unknown way: the host went down before it was over";
    case RUN_RESULT_STOPPED:
    case RUN_RESULT_QUEUE_TIMEOUT:
    case RUN_RESULT_NONE:
        break;
    }
    snprintf(buffer, END_SIZE, "was stopped: %s", why);
    return buffer;
}

void run_log_exited(const struct run *r, enum run_result result) {
    char pools[DEMANDS_TEXT_SIZE], text[END_SIZE];
    struct event e = run_event(r, EVENT_EXITED, pools);

    e.result = run_result_name(result);
    e.exit.has_code = r->end.exit_code >= 0;
    e.exit.code = r->end.exit_code;
    e.exit.has_signal = r->end.signal >= 0;
    e.exit.signal = r->end.signal;
    e.took.has_run = true;
    e.took.run_usec = run_time_usec(r, r->started.boottime);
    run_log(r, &e, "%s %s", r->name, end_text(r, result, text));
}

void run_log_stopping(const struct run *r, enum event_type type) {
    char pools[DEMANDS_TEXT_SIZE];
    struct event e = run_event(r, type, pools);

    run_log(r, &e, "%s is being stopped: %s", r->name, run_reason_text(r->reason));
}

void run_log_guard_silent(const struct run *r, const char *what) {
    char pools[DEMANDS_TEXT_SIZE];
    struct event e = run_event(r, EVENT_GUARD_SILENT, pools);

    e.reason = what;
    run_log(r, &e, "the guard of %s does not answer: %s; nothing notices the end of its command", r->name, what);
}

void run_log_stuck(const struct run *r, const char *what) {
    char pools[DEMANDS_TEXT_SIZE];
    struct event e = run_event(r, EVENT_STUCK, pools);

    e.reason = what;
    run_log(r, &e, "%s was killed and does not end: %s%s", r->name, what,
            r->n_demands > 0 ? "; its permits stay taken until it ends" : "");
}

void run_log_fenced(const struct run *run, int64_t spare_usec) {
    char pools[DEMANDS_TEXT_SIZE], text[DURATION_TEXT_SIZE];
    struct event e = run_event(run, EVENT_FENCED, pools);

    if (spare_usec == RUN_SPARE_UNKNOWN)
        run_log(run, &e, "the last process of %s was gone after its lease had ended", run->name);
    else if (spare_usec >= 0)
        run_log(run, &e, "the last process of %s was gone %s before the end of its lease", run->name,
                duration_format((usec_t) spare_usec, text));
    else
        run_log(run, &e,
                "the last process of %s was gone %s after the end of its lease: this host was suspended or "
                "frozen",
                run->name, duration_format((usec_t) -spare_usec, text));
}
