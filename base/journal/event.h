/* SPDX-License-Identifier: MIT */
#pragma once

/* The vocabulary of the audit record (REFERENCE: Events): each event has a name, a message id and fields. Made here, written by
 * base/journal. */

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/journal/journal.h"

enum event_type {
    EVENT_QUEUED, EVENT_GRANTED, EVENT_REFUSED, EVENT_WITHDRAWN, EVENT_STARTED, EVENT_EXITED, EVENT_RELEASED, EVENT_STOPPING,
    EVENT_LEASE_LATE, EVENT_LEASE_LOST, EVENT_FENCED, EVENT_RECLAIMED, EVENT_OVERCOMMITTED, EVENT_GUARD_DIED,
    EVENT_REDIS_CONNECTED, EVENT_REDIS_LOST, EVENT_GRACE_BEGUN, EVENT_GRACE_ENDED, EVENT_SESSION_LOST, EVENT_LEASE_DIFFERS,
    EVENT_HOST_EXPIRED, EVENT_HOST_NAME_TAKEN, EVENT_LIMITS_DIFFER, EVENT_LIMIT_CHANGED, EVENT_PARKED, EVENT_REVOKED,
    EVENT_CONFIG_LOADED, EVENT_CONFIG_REFUSED, EVENT_DRAINED, EVENT_UNDRAINED, EVENT_READY, EVENT_STOPPING_DAEMON,
    EVENT_TYPES
};

struct event { /* fields that are NULL or 0 are left out, but for those with has_... */
    enum event_type type;
    const char *job, *run, *pools, *result, *reason;
    const char *limits;            /* "db:4,local:2/host": as this host declares them, or as they are now; "db:-": an override ended; "db:4/declared": the lowest that hosts
                                    * declare, in force where there is no override */
    const char *host;              /* NULL: this host */
    uint64_t token, ticket;
    uint64_t clock;                /* the namespace's (R7): the last number that was drawn before it took effect */
    bool has_wait, has_run_time, has_exit_code, has_signal, has_uid;
    usec_t wait_usec, run_usec;
    usec_t head_start_usec;
    bool has_caller;               /* of `berth run`, which is told the same: no warning is needed */
    bool continues;                /* on-lease-lost = "continue" */
    uint32_t position;
    int exit_code, signal;
    unsigned uid;
};

struct events;

/* host and namespace are copied. The journal must outlive it. */
int events_new(struct events **ret, struct journal *journal, const char *host, const char *namespace);
struct events *events_free(struct events *e);
DEFINE_CLEANUP(struct events, events_free)
struct journal *events_get_journal(struct events *e);

/* Writes one event with the next BERTH_SEQ. The message is a sentence for people, without the event's name. */
void event_emit(struct events *e, const struct event *event, const char *format, ...) _printf_(3, 4);

/* Of syslog(3). An operator who looks at warnings alone sees each job that did not succeed, and why. */
int event_priority(const struct event *event);
const char *event_name(enum event_type type);
const char *event_message_id(enum event_type type); /* 32 hex digits; never changes once released */
