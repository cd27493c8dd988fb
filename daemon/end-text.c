/* SPDX-License-Identifier: MIT */

/* How runs end, in sentences for the journal. Fields of the events have the words that programs look for. */

#include <string.h>

#include "daemon/manager-internal.h"

const char *manager_reason_text(const char *reason) {
    static const struct {
        const char *reason, *text;
    } table[] = {
        {"stopped", "`berth stop` was called"},
        {"revoked", "its claim was revoked"},
        {"lease-lost", "this host could not renew its lease"},
        {"timeout", "it ran longer than its timeout"},
        {"shutdown", "berth stops on this host"},
        {"drained", "this host is drained"},
        {"queue-timeout", "it waited longer than its queue-timeout"},
        {"busy", "not all of its permits were free, and it was not to wait"},
    };

    for (size_t i = 0; i < ELEMENTSOF(table); i++)
        if (strcmp(reason, table[i].reason) == 0)
            return table[i].text;
    return reason;
}

#define END_SIZE (sizeof(((struct run *) NULL)->reason) + 64)

/* "failed with exit status 3" */
static const char *end_text(const struct run *r, enum run_result result, char buffer[static END_SIZE]) {
    const char *why = r->reason[0] ? manager_reason_text(r->reason) : "nobody told why";
    const char *signal = r->end.signal >= 0 ? sigabbrev_np(r->end.signal) : NULL;

    switch (result) {
    case RUN_RESULT_SUCCESS:
        return "succeeded";
    case RUN_RESULT_FAILURE:
        if (r->end.signal >= 0)
            snprintf(buffer, END_SIZE, "was ended by signal %d%s%s", r->end.signal, signal ? ", SIG" : "", signal ? signal : "");
        else
            snprintf(buffer, END_SIZE, "failed with exit status %d", r->end.exit_code);
        return buffer;
    case RUN_RESULT_TIMEOUT:
        why = manager_reason_text("timeout");
        break;
    case RUN_RESULT_LEASE_LOST:
        why = manager_reason_text("lease-lost");
        break;
    case RUN_RESULT_NOT_STARTED:
        snprintf(buffer, END_SIZE, "was not started: %s", why);
        return buffer;
    case RUN_RESULT_GUARD_DIED:
        return "is over; how it ended is not known: its guard died";
    case RUN_RESULT_STOPPED:
    case RUN_RESULT_QUEUE_TIMEOUT:
    case RUN_RESULT_NONE:
        break;
    }
    snprintf(buffer, END_SIZE, "was stopped: %s", why);
    return buffer;
}

void manager_tell_exited(const struct run *r, enum run_result result) {
    char pools[DEMANDS_TEXT_SIZE], text[END_SIZE];
    struct event e = manager_run_event(r, EVENT_EXITED, pools);

    e.result = run_result_name(result);
    e.has_exit_code = r->end.exit_code >= 0;
    e.exit_code = r->end.exit_code;
    e.has_signal = r->end.signal >= 0;
    e.signal = r->end.signal;
    e.has_run_time = true;
    e.run_usec = run_time_usec(r, r->started.boottime);
    event_emit(manager_of(r)->events, &e, "%s %s", r->name, end_text(r, result, text));
}

void manager_tell_stopping(const struct run *r, enum event_type type) {
    char pools[DEMANDS_TEXT_SIZE];
    struct event e = manager_run_event(r, type, pools);

    event_emit(manager_of(r)->events, &e, "%s is being stopped: %s", r->name, manager_reason_text(r->reason));
}
