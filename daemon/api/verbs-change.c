/* SPDX-License-Identifier: MIT */

/* Logs who requested a change. The change itself may be logged by another host (revoke), by all hosts
 * (limit), or by none if the call fails. */

#include <stdio.h>
#include <string.h>

#include "daemon/api/verbs-internal.h"

const char *verbs_on_behalf(const json_t *params) {
    return json_string_value(json_object_get(params, "on_behalf"));
}

void verbs_record(struct control_call *call, struct manager *m, const json_t *params, const struct change *change) {
    const struct control_method *method = control_call_method(call);
    const char *name = strrchr(method->name, '.') + 1, *person = verbs_on_behalf(params);
    const char *target = change->pool ? change->pool : change->run ? change->run : change->job;
    unsigned uid = (unsigned) control_call_peer(call)->uid;
    const struct event event = {
        .type = EVENT_OPERATED,
        .job = change->job,
        .pools = change->pool,
        .other.run = change->run,
        .reason = change->reason,
        .caller = {.has_uid = true, .uid = uid, .on_behalf = person, .method = name},
    };

    event_emit(manager_events(m), &event, "user %u%s%s%s requested %s%s%s", uid,
               person ? " (on behalf of " : "", person ? person : "", person ? ")" : "", name,
               target ? " of " : "", target ? target : "");
}
