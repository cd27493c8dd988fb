/* SPDX-License-Identifier: MIT */

/* Moves of claims: chooses the store and logs the event. The host of the run logs a move when it receives
 * it. The host that an operator called logs who called. If both are the same host, only the second is
 * logged. */

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "daemon/manager-internal.h"

struct move_call { /* a call that a store has not answered */
    struct list link; /* on manager->moves */
    struct manager *manager;
    struct store *store;
    struct store_move *move;
    uint64_t moved; /* claim.moved of a run of this host, before the call */
    struct manager_asker asker;
    char on_behalf[80], reason[256];
    store_reply_fn fn;
    void *userdata;
};

static struct claim *claim_in(struct run *run, const struct store *s) {
    return s == manager_of(run)->host_store ? run->host_claim : run->cluster_claim;
}

/* Host permits come first, so a run that waits for them has no claim in the cluster yet. */
static struct store *store_for(struct manager *m, const char *id) {
    const struct run *run = manager_find_run(m, id);
    bool is_here = run && run->host_claim->state != CLAIM_STATE_NONE && run->cluster_claim->state == CLAIM_STATE_NONE;

    return is_here ? m->host_store : m->cluster_store;
}

/* Logs the move as the host of the run. */
static void log_received(struct run *run, const struct claim *c) {
    char pools[DEMANDS_TEXT_SIZE], text[DURATION_TEXT_SIZE];
    struct event e = run_event(run, EVENT_MOVED, pools);

    e.pools = demands_format_refs(c->demands, c->n_demands, pools);
    e.token = 0;
    e.ticket = c->ticket;
    e.clock = c->moved;
    e.head_start_usec = claim_head_start(c);
    e.caller.has_uid = false; /* it is the uid of its `berth run` */
    e.reason = NULL;
    run_log(run, &e, "%s was moved: its head start is %s now", run->name, duration_format(claim_head_start(c), text));
}

/* Logs the move as the host that was called. */
static void log_called(const struct move_call *call) {
    const struct store_move *move = call->move;
    char text[DURATION_TEXT_SIZE];
    struct event e = {.type = EVENT_MOVED, .job = move->name, .run = move->claim, .pools = move->pools, .ticket = move->ticket,
                      .host = move->host, .clock = move->number, .head_start_usec = move->head_start_usec, .reason = call->asker.reason,
                      .caller = {.has_uid = true, .uid = call->asker.uid, .on_behalf = call->asker.on_behalf}};

    for (size_t i = 0; i < move->n_places; i++) {
        if (move->places[i].place > e.position)
            e.position = move->places[i].place;
        if (move->places[i].passed > e.missed.count)
            e.missed.count = move->places[i].passed;
    }
    event_emit(call->manager->events, &e, "user %u moved %s on %s: its head start is %s now", (unsigned) call->asker.uid, move->name,
               move->host, duration_format(move->head_start_usec, text));
}

static bool is_called_here(struct manager *m, const struct run *run) {
    list_foreach(call, &m->moves, struct move_call, link)
        if (strcmp(call->move->claim, run->id) == 0)
            return true;
    return false;
}

void manager_run_moved(struct claim *c, void *userdata) {
    struct manager *m = userdata;
    struct run *run = c->owner;

    if (run->state == RUN_STATE_WAITING)
        state_save_run(&m->state, run);
    if (!is_called_here(m, run))
        log_received(run, c);
    run_changed(run);
}

static void call_on_reply(int r, void *userdata) {
    struct move_call *call = userdata;
    struct manager *m = call->manager;
    struct run *run = manager_find_run(m, call->move->claim);
    store_reply_fn fn = call->fn;
    void *fn_userdata = call->userdata;

    list_unlink(&call->link);
    if (r == 0 && call->move->number > 0)
        log_called(call);
    else if (r != 0 && run && claim_in(run, call->store)->moved > call->moved) /* only the reply was lost */
        log_received(run, claim_in(run, call->store));
    if (run && run->state == RUN_STATE_WAITING)
        state_save_run(&m->state, run);
    free(call);
    fn(r, fn_userdata);
}

static const char *keep(const char *text, char *buffer, size_t size) {
    (void) snprintf(buffer, size, "%s", text ? text : "");
    return text ? buffer : NULL;
}

int manager_move(struct manager *m, struct store_move *move, const struct manager_asker *asker, store_reply_fn fn, void *userdata) {
    struct run *run = manager_find_run(m, move->claim);
    struct store *s = store_for(m, move->claim);
    struct move_call *call;
    int k;

    if (manager_is_recovering(m))
        return MANAGER_E_RECOVERING;
    if (!s)
        return MANAGER_E_UNKNOWN;
    call = calloc(1, sizeof(*call));
    if (!call)
        return -ENOMEM;
    *call = (struct move_call) {.manager = m, .store = s, .move = move, .fn = fn, .userdata = userdata};
    call->asker = (struct manager_asker) {.uid = asker->uid,
                                          .on_behalf = keep(asker->on_behalf, call->on_behalf, sizeof(call->on_behalf)),
                                          .reason = keep(asker->reason, call->reason, sizeof(call->reason))};
    call->moved = run ? claim_in(run, s)->moved : 0;
    list_append(&m->moves, &call->link);
    k = store_move(s, move, call_on_reply, call);
    if (k < 0) {
        list_unlink(&call->link);
        free(call);
    }
    return k;
}
