/* SPDX-License-Identifier: MIT */

/* A `berth run` inside a run, under its permits. Where the run's guard or `berth run` is above it, that takes it along when the lease
 * ends, and one answer is enough. One that was handed the hold may be anywhere: nobody but its own client can end it in time (R8), so
 * it hears of each new deadline and of a stop, as the run's own client does. */

#include <errno.h>
#include <string.h>

#include "daemon/verbs-internal.h"

struct guest {
    struct run_watch watch;
    struct manager *manager;
    struct control_call *call;
    usec_t deadline;          /* told last */
    bool stop_told;
};

static struct guest *guest_free(struct guest *g) {
    run_watch_remove(&g->watch);
    free(g);
    return NULL;
}

static int guest_tell(struct guest *g, const struct run *run) {
    bool stops = run->state == RUN_STATE_STOPPING;

    g->deadline = verbs_hold_deadline(g->manager, run);
    g->stop_told = stops;
    return control_call_notify(
        g->call, json_hold(g->manager, run, stops ? "stop" : "nested", stops ? supervise_reason_name(run->stop_reason) : NULL), -1);
}

static void guest_on_change(struct run_watch *watch, struct run *run) {
    struct guest *g = list_entry(watch, struct guest, watch);

    if (run_is_over(run)) {
        (void) control_call_answer(
            g->call, json_pack("{s:s, s:s, s:s}", "state", "over", "run", run->id, "reason", "the run around it is over"));
        guest_free(g);
    } else if (verbs_hold_deadline(g->manager, run) != g->deadline || (run->state == RUN_STATE_STOPPING) != g->stop_told) {
        (void) guest_tell(g, run); /* without memory for it the client is thrown out, and comes back */
    }
}

static void guest_on_gone(_unused_ struct control_call *call, void *userdata) {
    guest_free(userdata);
}

static int guest_begin(struct control_call *call, struct manager *m, struct run *outer) {
    struct guest *g = calloc(1, sizeof(*g));
    int k;

    if (!g)
        return -ENOMEM;
    list_init(&g->watch.link);
    g->watch.on_change = guest_on_change;
    g->manager = m;
    g->call = call;
    k = guest_tell(g, outer);
    if (k < 0) {
        guest_free(g);
        return k;
    }
    run_watch_add(outer, &g->watch);
    control_call_keep(call, guest_on_gone, g);
    return 0;
}

int verbs_nested(struct control_call *call, struct manager *m, struct run *outer) {
    if (manager_ends_with(outer, control_call_peer(call)->pid))
        return control_call_answer(call, json_hold(m, outer, "nested", NULL));
    return guest_begin(call, m, outer);
}

int verbs_nested_again(struct control_call *call, struct manager *m, const struct manager_hold *hold) {
    struct run *outer = manager_find_outer(m, hold);

    /* Also where its `berth run` is above it by now: it has been told that it must listen. */
    return outer ? guest_begin(call, m, outer) : verbs_no_such_run(call, hold->nested);
}
