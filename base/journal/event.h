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
    const char *job, *run, *pools, *result, *reason; /* job: of an instance also BERTH_INSTANCE */
    const char *limits;            /* BERTH_LIMITS of berth-events(7) */
    const char *host;              /* NULL: this host */
    const char *redis;             /* its address */
    struct {                       /* why a job's run began */
        const char *trigger, *due, *first_run;
        uint32_t attempt, attempts;
        bool has_late;
        usec_t late_usec;
    } origin;
    struct {                       /* the run for which a hook was started */
        const char *job, *run;
    } of;
    struct {                       /* due times at which no run began */
        const char *until;
        uint64_t count;
    } missed;
    struct {                       /* the other run of the job, or the other host, that the event is about */
        const char *run, *host;
    } other;
    usec_t delay_usec, step_usec;
    uint64_t token, ticket;
    usec_t lead_usec;              /* how far the token is ahead of Redis's TIME (R7) */
    uint64_t clock;                /* the last number that the namespace's clock (R7) drew before this took effect */
    struct {
        bool has_wait, has_run;
        usec_t wait_usec, run_usec;
    } took;
    struct {                       /* the command's */
        bool has_code, has_signal;
        int code, signal;
    } exit;
    struct {                       /* is_there: of `berth run`, whose caller sees the result, so no warning is needed */
        bool is_there, has_uid;
        unsigned uid;
        const char *on_behalf, *method; /* of a call that changes something */
    } caller;
    usec_t head_start_usec;
    bool continues;                /* on-lease-lost = "continue" */
    uint32_t position;
};

struct events;

/* Copies host and namespace. The journal must outlive the events. 0, -ENOMEM, or an error of getrandom(2). */
int events_new(struct events **ret, struct journal *journal, const char *host, const char *namespace);
struct events *events_free(struct events *e);
DEFINE_CLEANUP(struct events, events_free)
struct journal *events_get_journal(struct events *e);
struct event_ring *events_get_ring(struct events *e); /* the latest events, for readers */

/* Writes an event with the next BERTH_SEQ. The message is a sentence for people, without the event's
 * name. */
void event_emit(struct events *e, const struct event *event, const char *format, ...) _printf_(3, 4);

/* Returns the priority of syslog(3): warning for each job that did not succeed. */
int event_priority(const struct event *event);
uint64_t events_count(const struct events *e, enum event_type type); /* events of the type written so far */
const char *event_name(enum event_type type);
const char *event_message_id(enum event_type type); /* 32 hex digits */
