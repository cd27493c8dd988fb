/* SPDX-License-Identifier: MIT */

/* The life of a run of any kind. Host permits (and places under host-limit) are claimed first, then the
 * cluster's. The order is always the same, so no two runs can deadlock (R3). */

#include <assert.h>
#include <string.h>

#include "base/deadline.h"
#include "base/failpoint.h"
#include "daemon/manager-internal.h"

usec_t manager_run_deadline(const struct run *r) {
    const struct store *s = manager_of(r)->cluster_store;

    if (r->cluster_claim->n_demands == 0 || r->terms.on_lease_lost == ON_LEASE_LOST_CONTINUE)
        return USEC_INFINITY;
    if (!s) /* nobody renews the lease any more, so the deadline that the guard knows stays */
        return 0;
    return s->deadline;
}

/* --- waiting --- */

void manager_run_taken(struct run *r) {
    char pools[DEMANDS_TEXT_SIZE];
    struct event e;

    run_disarm(r);
    FAILPOINT("grant-seen");
    r->granted = true;
    r->started.granted_boottime = clock_boottime();
    e = run_event(r, EVENT_GRANTED, pools);
    e.lead_usec = r->cluster_claim->lead_usec;
    e.continues = r->terms.on_lease_lost == ON_LEASE_LOST_CONTINUE;
    e.took.has_wait = true;
    e.took.wait_usec = usec_sub(clock_boottime(), r->queued.boottime);
    run_log(r, &e, "%s may start", r->name);
    counters_wait(&manager_of(r)->counters, r, e.took.wait_usec);
    FAILPOINT("granted-logged");
    if (r->kind == RUN_KIND_JOB) {
        run_enter(r, RUN_STATE_STARTING);
        executor_start(manager_of(r)->executor, r);
    } else {
        adhoc_start(manager_of(r)->adhoc, r);
    }
}

static const char *find_demanded_pool(const struct run *r, const char *pool) {
    for (size_t i = 0; i < r->n_demands; i++)
        if (strcmp(r->demands[i].pool, pool) == 0)
            return r->demands[i].pool;
    return NULL;
}

void manager_run_refuse(struct run *r, const char *why, const char *pool) {
    char pools[DEMANDS_TEXT_SIZE];
    struct event e;

    if (pool) {
        r->adhoc.refusal.pool = find_demanded_pool(r, pool);
        r->adhoc.refusal.why = why;
        run_set_reason(r, "%s: %s", why, pool);
    } else {
        run_set_reason(r, "%s", why);
    }
    counters_refuse(&manager_of(r)->counters, counters_refusal_parse(why));
    e = run_event(r, EVENT_REFUSED, pools);
    run_log(r, &e, "%s gets no permit: %s", r->name, run_reason_text(r->reason));
    manager_run_end(r, RUN_RESULT_NOT_STARTED);
}

static void run_on_queue_timeout(struct run *r) {
    const struct store *s = manager_of(r)->cluster_store;
    const char *reason = r->terms.nowait ? "busy" : "queue-timeout";
    char why[MANAGER_WHY_SIZE];

    if (r->state != RUN_STATE_PENDING && r->state != RUN_STATE_WAITING)
        return;
    if (r->state == RUN_STATE_WAITING && s && s->is_full &&
        r->cluster_claim->state == CLAIM_STATE_ASKED) /* the memory of Redis is full, not a pool */
        reason = manager_full_text(manager_of(r), why, sizeof(why));
    manager_run_withdraw(r, r->terms.nowait ? RUN_RESULT_NOT_STARTED : RUN_RESULT_QUEUE_TIMEOUT, reason);
}

void manager_claim_cluster(struct run *r) {
    struct store *s = manager_of(r)->cluster_store;
    char why[MANAGER_WHY_SIZE];

    if (r->cluster_claim->n_demands == 0)
        manager_run_taken(r);
    else if (!s)
        manager_run_refuse(r, "the config no longer has this pool", r->cluster_claim->demands[0].pool);
    else if (r->terms.nowait && s->state != STORE_STATE_READY)
        manager_run_refuse(r,
                s->state == STORE_STATE_GRACE ? "grace" : manager_away_text(manager_of(r), why, sizeof(why)),
                NULL);
    else if (r->cluster_claim->state == CLAIM_STATE_NONE && store_claim(s, r->cluster_claim) < 0)
        manager_run_refuse(r, "out of memory", NULL);
}

static void fill_claim(struct run *r, struct claim *c) {
    c->head_start_usec = r->terms.head_start_usec;
    c->nowait = r->terms.nowait;
    c->keep = r->terms.on_lease_lost == ON_LEASE_LOST_CONTINUE;
    c->needs_usec = c->keep ? 0 : deadline_needed(r->terms.stop_timeout_usec);
}

void manager_arm_queue_timeout(struct run *r) {
    const struct redis_settings *redis = manager_of(r)->settings->redis;

    usec_t timeout = r->terms.nowait && redis ? redis->timeout_usec : r->terms.queue_timeout_usec;

    /* `berth run -n` must not wait for a Redis that does not reply. */
    run_arm(r, usec_add(r->queued.boottime, timeout), run_on_queue_timeout);
}

static void wait_for_permits(struct run *r) {
    for (size_t i = 0; i < r->n_claims; i++)
        fill_claim(r, &r->claims[i]);
    manager_arm_queue_timeout(r);
    run_enter(r, RUN_STATE_WAITING);
}

void manager_run_begin(struct run *r) {
    struct manager *m = manager_of(r);

    assert(r->state == RUN_STATE_PENDING);
    wait_for_permits(r);
    if (r->kind == RUN_KIND_JOB) { /* if berthd is killed from here on, the run begins once */
        state_save_run(&m->state, r);
        scheduler_note_begun(m->scheduler, r);
    }
    if (r->host_claim->n_demands == 0)
        manager_claim_cluster(r);
    else if (store_claim(m->host_store, r->host_claim) < 0)
        manager_run_refuse(r, "out of memory", NULL);
}

void manager_run_resume(struct run *r) {
    r->recorded.queued = true;
    wait_for_permits(r);
    if (r->host_claim->n_demands == 0 || r->host_claim->state == CLAIM_STATE_HELD)
        manager_claim_cluster(r);
}

/* --- running and after --- */

void manager_run_started(struct run *r, pid_t pid, usec_t started) {
    char pools[DEMANDS_TEXT_SIZE];
    struct event e;

    FAILPOINT("started-seen");
    r->started.pid = pid;
    for (size_t i = 0; i < r->n_claims; i++)
        r->claims[i].pid = (uint32_t) pid;
    run_set_started(r, started, manager_now());
    e = run_event(r, EVENT_STARTED, pools);
    e.took.has_wait = true;
    e.took.wait_usec = run_wait_usec(r, 0);
    if (pid > 0)
        run_log(r, &e, "%s runs as process %d", r->name, (int) pid);
    else
        run_log(r, &e, "%s has run", r->name);
    FAILPOINT("started-logged");
    state_remove_run(&manager_of(r)->state, r); /* last: with it, the next berthd logs the start again */
    if (r->state == RUN_STATE_STARTING)
        run_enter(r, RUN_STATE_RUNNING);
}

static void release(struct store *s, struct claim *c) {
    if (!s || c->state == CLAIM_STATE_NONE)
        return;
    if (c->turn && c->owner->job.next_attempt > 0)
        store_give_back(s, c, c->owner->job.next_attempt, c->owner->job.next_delay_usec);
    else if (c->turn && c->owner->job.is_given_back)
        store_give_back(s, c, c->owner->job.origin.attempt, 0);
    else
        store_release(s, c);
}

/* After a client's report the permits are sent back at once, because others may wait for them; such an end
 * never happens inside a call of a store. Those of a job are sent with the next turn of the loop, after its
 * record and the answer to its guard: else the next berthd would report them as held. */
static void return_permits(struct run *r) {
    struct manager *m = manager_of(r);

    adhoc_release_hold(r); /* first: with its record, the next berthd would report the permits as held */
    release(m->cluster_store, r->cluster_claim);
    release(m->host_store, r->host_claim);
    if (!r->adhoc.end_reported)
        return;
    if (m->cluster_store)
        store_send(m->cluster_store);
    if (m->host_store)
        store_send(m->host_store);
}

void manager_run_end(struct run *r, enum run_result result) {
    struct manager *m = manager_of(r);

    if (r->state == RUN_STATE_DONE)
        return;
    run_release_timer(r);
    r->requeue = RUN_REQUEUE_NONE;
    r->started.pid = 0;
    r->end.result = result;
    if (r->end.realtime == 0)
        r->end.realtime = clock_realtime();
    if (r->end.boottime == 0)
        r->end.boottime = clock_boottime();
    scheduler_run_ends(m->scheduler, r, manager_now());
    if (r->job.next_attempt == 0) /* else it stays until the turn is given back */
        state_remove_run(&m->state, r);
    return_permits(r);
    FAILPOINT("run-ended");
    counters_finish(&m->counters, r);
    run_enter(r, RUN_STATE_DONE);
    scheduler_run_over(m->scheduler, r, manager_now());
    if (r->host_claim->state == CLAIM_STATE_NONE && r->cluster_claim->state == CLAIM_STATE_NONE)
        manager_run_released(r);
}

void manager_run_withdraw(struct run *r, enum run_result result, const char *reason) {
    char pools[DEMANDS_TEXT_SIZE];
    struct event e;

    run_set_reason(r, "%s", reason);
    if (r->job.turn && (strcmp(reason, "drained") == 0 || strcmp(reason, "shutdown") == 0 || strcmp(reason, SCHEDULER_UNDEFINED) == 0))
        r->job.is_given_back = true; /* another host may have the job */
    if (r->state == RUN_STATE_RETRYING) { /* it never waited: `gave-up` is its only event */
        manager_run_end(r, result);
        return;
    }
    e = run_event(r, EVENT_WITHDRAWN, pools);
    e.result = run_result_name(result);
    e.took.has_wait = true;
    e.took.wait_usec = usec_sub(clock_boottime(), r->queued.boottime);
    if (manager_of(r)->cluster_store &&
        (r->cluster_claim->state == CLAIM_STATE_WAITING || r->cluster_claim->state == CLAIM_STATE_PARKED))
        e.clock = manager_of(r)->cluster_store->known;
    run_log(r, &e, "%s waits no longer: %s", r->name, run_reason_text(r->reason));
    manager_run_end(r, result);
}

static enum supervise_reason reason_of(const char *reason) {
    enum supervise_reason parsed;

    return supervise_reason_parse(reason, &parsed) < 0 || parsed == SUPERVISE_REASON_NONE
               ? SUPERVISE_REASON_STOPPED
               : parsed;
}

void manager_stop_run(struct run *r, const char *reason) {
    switch (r->state) {
    case RUN_STATE_RETRYING:
    case RUN_STATE_PENDING:
    case RUN_STATE_WAITING:
        r->stop_reason = reason_of(reason);
        manager_run_withdraw(r, RUN_RESULT_STOPPED, reason);
        return;
    case RUN_STATE_DONE:
    case RUN_STATE_STOPPING:
        return;
    case RUN_STATE_STARTING:
    case RUN_STATE_RUNNING:
        break;
    }
    r->stop_reason = reason_of(reason);
    run_set_reason(r, "%s", reason);
    run_log_stopping(r, EVENT_STOPPING);
    run_enter(r, RUN_STATE_STOPPING);
    if (r->kind == RUN_KIND_ADHOC)
        adhoc_stop(r);
    if (r->kind == RUN_KIND_ADHOC || executor_may_have_begun(r))
        executor_stop(manager_of(r)->executor, r);
    else { /* berth-runner was not asked to start it, and will report nothing */
        run_log_exited(r, RUN_RESULT_STOPPED);
        manager_run_end(r, RUN_RESULT_STOPPED);
    }
}
