/* SPDX-License-Identifier: MIT */

/* What the stores report about the claims of this host's runs. */

#include "daemon/manager-internal.h"

static void run_on_waiting(struct claim *c, _unused_ void *userdata) {
    struct run *r = c->owner;
    char pools[DEMANDS_TEXT_SIZE];
    bool parked = c->state == CLAIM_STATE_PARKED;
    struct event e;

    if (r->state != RUN_STATE_WAITING)
        return;
    if (r->job.turn)
        scheduler_turn_taken(manager_of(r)->scheduler, r, manager_now());
    e = run_event(r, parked ? EVENT_PARKED : EVENT_QUEUED, pools);
    e.position = c->position;
    e.ticket = c->ticket;
    if (r->job.due_realtime > 0 && !parked) {
        e.origin.has_late = true;
        e.origin.late_usec = usec_sub(r->queued.realtime, r->job.due_realtime);
    }
    state_save_run(&manager_of(r)->state, r); /* before the event: a run that is known survives a restart */
    if (parked)
        run_log(r, &e, "%s needs more than a limit in force; it is parked until that limit rises", r->name);
    else if (!r->recorded.queued)
        run_log(r, &e, "%s waits for its permits", r->name);
    r->recorded.queued = true;
    run_changed(r);
    executor_prepare(manager_of(r)->executor);
}

/* on-lease-lost = "continue": after a lost lease the run holds its permits again with a new token, even
 * beyond the limit. */
static void run_renewed(struct run *r) {
    char pools[DEMANDS_TEXT_SIZE];
    struct event e = run_event(r, EVENT_GRANTED, pools);

    if (run_is_over(r))
        return;
    e.lead_usec = r->cluster_claim->lead_usec;
    e.continues = true;
    run_log(r, &e, "%s went on without its permits, and holds them again", r->name);
}

static void run_on_granted(struct claim *c, _unused_ void *userdata) {
    struct run *r = c->owner;

    if (r->state != RUN_STATE_WAITING)
        return run_renewed(r);
    if (c == r->host_claim)
        manager_claim_cluster(r);
    else if (manager_turn_is_ours(r))
        manager_run_taken(r);
}

static void run_on_refused(struct claim *c, enum store_refusal refusal, const char *pool,
                           _unused_ void *userdata) {
    struct run *r = c->owner;
    char why[MANAGER_WHY_SIZE];

    if (r->state != RUN_STATE_WAITING)
        return;
    if (refusal == STORE_REFUSAL_NO_MEMORY)
        manager_run_refuse(r, manager_full_text(manager_of(r), why, sizeof(why)), NULL);
    else
        manager_run_refuse(r, store_refusal_name(refusal), pool);
}

/* Returns after which part of the margin berth-runner kills a run. The processes of hundreds of `berth run` take
 * a few hundred ms, and berth-runner kills no `berth run`. With a guard it also kills the report. */
static usec_t kill_delay(const struct run *r, usec_t margin) {
    return r->kind == RUN_KIND_ADHOC ? margin / 5 : margin / 2;
}

static void run_on_lost(struct claim *c, enum store_loss loss, void *userdata) {
    struct manager *m = userdata;
    struct run *r = c->owner;
    char pools[DEMANDS_TEXT_SIZE];
    struct event e;

    if (run_is_over(r))
        return;
    switch (loss) {
    case STORE_LOSS_REVOKED:
        e = run_event(r, EVENT_REVOKED, pools);
        e.clock = c->state != CLAIM_STATE_HELD ? c->released : 0;
        run_log(r, &e, "the claim of %s was revoked", r->name);
        manager_stop_run(r, "revoked");
        break;
    case STORE_LOSS_SESSION:
        e = run_event(r, EVENT_LEASE_LOST, pools);
        run_log(r, &e, "the lease of %s is lost: its command must be gone by now", r->name);
        if (r->kind == RUN_KIND_JOB && !r->job.start_sent && manager_run_requeue(r))
            break;
        manager_stop_run(r, "lease-lost");
        /* The guard or `berth run` has killed the run by now, and its report is on the way. If it hangs or was killed, the
         * runner kills the run within the margin (R8), before the lease ends. */
        if (!run_is_over(r))
            executor_kill_after(m->executor, r, kill_delay(r, settings_margin(m->settings->lease_usec)));
        break;
    }
}

static void log_released(struct run *r) {
    char pools[DEMANDS_TEXT_SIZE];
    struct event e = run_event(r, EVENT_RELEASED, pools);
    usec_t held = usec_sub(clock_boottime(), r->started.granted_boottime);

    if (r->started.granted_boottime > 0) {
        counters_hold(&manager_of(r)->counters, r, held);
        manager_times_add(r, held); /* if it has a result: the host's store may call this before the run is done */
    }
    r->started.granted_boottime = 0;
    r->granted = false;
    e.reason = NULL;
    e.result =
        r->requeue != RUN_REQUEUE_NONE || r->job.is_given_back ? run_result_name(RUN_RESULT_NOT_STARTED) : NULL; /* it is not over */
    e.clock = r->cluster_claim->released;
    for (size_t i = 0; i < r->n_claims; i++)
        r->claims[i].released = 0;
    run_log(r, &e,
            r->requeue != RUN_REQUEUE_NONE ? "%s was not begun: its permits are free, and it waits again"
                                           : "the permits of %s are free",
            r->name);
}

void manager_run_released(struct run *r) {
    if (r->requeue != RUN_REQUEUE_NONE && !run_is_over(r)) {
        log_released(r);
        manager_requeue_continue(r);
        return;
    }
    if (r->host_claim->state != CLAIM_STATE_NONE || r->cluster_claim->state != CLAIM_STATE_NONE)
        return;
    state_remove_run(&manager_of(r)->state, r);
    /* A grant may come after the run was withdrawn. */
    if (r->granted || (r->cluster_claim->released > 0 && r->cluster_claim->token > 0))
        log_released(r);
    manager_idle_check(manager_of(r));
}

static void run_on_released(struct claim *c, _unused_ void *userdata) {
    manager_run_released(c->owner);
}

const struct store_listener manager_listener = {
    .on_waiting = run_on_waiting,
    .on_granted = run_on_granted,
    .on_refused = run_on_refused,
    .on_lost = run_on_lost,
    .on_released = run_on_released,
    .on_turn_refused = manager_turn_refused,
    .on_committed = manager_turn_committed,
    .on_turn_open = manager_turn_open,
    .on_turn_superseded = manager_turn_superseded,
    .on_moved = manager_run_moved,
};
