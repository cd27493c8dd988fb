/* SPDX-License-Identifier: MIT */

/* Runs that were granted their permits and could not begin: the session was lost before, or the runner did not start them within the
 * lease. Nothing of them ran. Their permits go back, and they wait again in their old place.
 *
 * A job's run asks anew only when the runner has said that nothing is left of the attempt: a run has one guard at a time. So a runner that
 * hangs keeps nobody else waiting. */

#include "daemon/manager-internal.h"

static bool may_wait_again(const struct run *r) {
    const struct manager *m = r->manager;

    return !run_is_over(r) && r->pid == 0 && r->started_realtime == 0 && r->cluster_claim.n_demands > 0 && m->cluster_store &&
           r->on_lease_lost == ON_LEASE_LOST_STOP && m->phase < MANAGER_PHASE_STOPPING && !m->drained &&
           !(r->stop_wanted && r->stop_reason != SUPERVISE_REASON_LEASE_LOST) && (r->kind == RUN_KIND_JOB || r->client_pid > 0);
}

static void go_on(struct run *r) {
    if (!r->again || r->cluster_claim.state != CLAIM_STATE_NONE || r->starting_sent ||
        (r->kind == RUN_KIND_JOB && !runner_link_is_up(r->manager->runner)))
        return;
    r->again = false;
    manager_claim_cluster(r);
}

bool manager_run_wait_again(struct run *r) {
    struct manager *m = r->manager;

    if (r->again)
        return true;
    if (!may_wait_again(r))
        return false;
    r->again = true;
    r->stop_wanted = false;
    r->stop_reason = SUPERVISE_REASON_NONE;
    r->start_due = 0;
    r->hold_over = false;
    run_clear_reason(r);
    manager_write_waiting(r); /* before the hold's record goes: a killed berthd keeps the place */
    manager_hold_done(r);
    manager_arm_queue_timeout(r);
    manager_set_state(r, RUN_STATE_WAITING);
    if (r->cluster_claim.state != CLAIM_STATE_NONE)
        store_release(m->cluster_store, &r->cluster_claim);
    return true;
}

void manager_again_released(struct run *r) {
    go_on(r);
}

void manager_again_clear(struct run *r) {
    if (!r->again)
        return;
    r->clearing = r->starting_sent = true;
    (void) runner_link_kill(r->manager->runner, r->id); /* said once more to the next one (manager_requeue_recovered) */
}

void manager_again_cleared(struct run *r) {
    r->clearing = r->starting_sent = false;
    go_on(r);
}

void manager_requeue_recovered(struct run *r) {
    if (r->clearing)
        manager_again_clear(r);
    else
        manager_again_cleared(r); /* the start was not delivered */
}
