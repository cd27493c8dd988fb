/* SPDX-License-Identifier: MIT */
#pragma once

/* The events of the audit log, see events.def and berth-events(7): each has a name, a message id and
 * BERTH_* fields. */

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/journal/journal.h"

enum event_type {
#define EVENT(constant, name, priority, message_id, meaning) EVENT_##constant,
#include "base/journal/events.def"
#undef EVENT
    EVENT_TYPES
};

struct event { /* a field that is NULL or 0 is left out, unless it has a has_... */
    enum event_type type;
    const char *job, *run, *pools, *result, *reason;
    const char *limits;            /* BERTH_LIMITS of berth-events(7) */
    const char *host;              /* NULL: this host */
    const char *due, *trigger, *first_run; /* of a job's run */
    const char *of_job, *of_run;   /* of a hook: the run for which it was started */
    uint32_t attempt, attempts;
    usec_t delay_usec;
    const char *until, *other_run;
    uint64_t count;
    bool has_late;
    usec_t late_usec, step_usec;
    uint64_t token, ticket;
    uint64_t clock;                /* number that the namespace's clock (R7) had drawn last before this took effect */
    bool has_wait, has_run_time, has_exit_code, has_signal, has_uid;
    usec_t wait_usec, run_usec;
    usec_t head_start_usec;
    bool has_caller;               /* of `berth run`, whose caller sees the result: no warning is needed */
    bool continues;                /* on-lease-lost = "continue" */
    uint32_t position;
    int exit_code, signal;
    unsigned uid;
};

struct events;

/* Copies host and namespace. The journal must outlive the events. */
int events_new(struct events **ret, struct journal *journal, const char *host, const char *namespace);
struct events *events_free(struct events *e);
DEFINE_CLEANUP(struct events, events_free)
struct journal *events_get_journal(struct events *e);

/* Writes an event with the next BERTH_SEQ. The message is a sentence for people, without the event's
 * name. */
void event_emit(struct events *e, const struct event *event, const char *format, ...) _printf_(3, 4);

/* Returns the priority of syslog(3): warning for each job that did not succeed. */
int event_priority(const struct event *event);
const char *event_name(enum event_type type);
const char *event_message_id(enum event_type type); /* 32 hex digits */
