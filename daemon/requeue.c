/* SPDX-License-Identifier: MIT */

/* Runs that were granted permits and could not begin: the session was lost before, or the runner did not
 * start them within the lease. Their commands did not run. They return their permits and wait again in their
 * old place.
 *
 * A run has one guard at a time. So the run of a job claims again only after the runner confirmed that
 * nothing is left of the attempt. Its permits return before that, so a hung runner keeps no other run
 * waiting. */

#include "daemon/manager-internal.h"

static bool may_requeue(const struct run *r) {
    const struct manager *m = manager_of(r);

    return !run_is_over(r) && r->started.pid == 0 && r->started.realtime == 0 &&
           r->cluster_claim->n_demands > 0 && m->cluster_store &&
           r->terms.on_lease_lost == ON_LEASE_LOST_STOP && m->phase < MANAGER_PHASE_STOPPING &&
           !m->drained &&
           (r->stop_reason == SUPERVISE_REASON_NONE || r->stop_reason == SUPERVISE_REASON_LEASE_LOST) &&
           (r->kind == RUN_KIND_JOB || r->adhoc.client_pid > 0);
}

void manager_requeue_continue(struct run *r) {
    if (r->requeue == RUN_REQUEUE_NONE || r->cluster_claim->state != CLAIM_STATE_NONE || r->job.start_sent ||
        (r->kind == RUN_KIND_JOB && !executor_is_connected(manager_of(r)->executor)))
        return;
    r->requeue = RUN_REQUEUE_NONE;
    /* Not earlier: a guard that a hung runner forked could still report a command that ran under this
     * token. */
    r->cluster_claim->token = 0;
    manager_claim_cluster(r);
}

bool manager_run_requeue(struct run *r) {
    struct manager *m = manager_of(r);

    if (r->requeue != RUN_REQUEUE_NONE)
        return true;
    if (!may_requeue(r))
        return false;
    if (r->job.turn) {
        manager_turn_give_back(r);
        return true;
    }
    r->requeue = RUN_REQUEUE_RETURNING;
    r->stop_reason = SUPERVISE_REASON_NONE;
    r->job.start_due = 0;
    r->adhoc.hold_state = HOLD_STATE_NONE;
    r->adhoc.is_reaped = false;
    run_clear_reason(r);
    state_save_run(&m->state, r); /* before the record of the hold goes, so that the place is never lost */
    adhoc_release_hold(r);
    manager_arm_queue_timeout(r);
    run_enter(r, RUN_STATE_WAITING);
    if (r->cluster_claim->state != CLAIM_STATE_NONE)
        store_release(m->cluster_store, r->cluster_claim);
    return true;
}
