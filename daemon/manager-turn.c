/* SPDX-License-Identifier: MIT */

/* Turns of jobs that hosts share (R18), between the scheduler, which decides when to ask for one, and the
 * cluster's store. The claim of a run asks for its turn. After the grant, the turn is committed before the
 * command starts. */

#include <errno.h>
#include <string.h>

#include "base/failpoint.h"
#include "daemon/manager-internal.h"

enum scheduler_turns manager_may_ask(void *manager) {
    const struct manager *m = manager;

    if (m->phase != MANAGER_PHASE_READY || m->drained || !m->cluster_store ||
        m->cluster_store->state != STORE_STATE_READY)
        return SCHEDULER_TURNS_WAIT;
    return executor_is_connected(m->executor) ? SCHEDULER_TURNS_ASK : SCHEDULER_TURNS_POLL;
}

/* --- due times that are missed --- */

struct passing {
    struct manager *manager;
    char pool[POOL_NAME_SIZE];
    char id[ID_TEXT_SIZE];
};

static void on_passed(int r, void *userdata) {
    struct passing *passing = userdata;
    struct manager *m = passing->manager;

    if (m->phase < MANAGER_PHASE_EXITING)
        scheduler_turns_passed(m->scheduler, passing->pool, passing->id,
                               r == 0               ? SCHEDULER_PASSED_HERE
                               : r == STORE_E_TAKEN ? SCHEDULER_PASSED_ELSEWHERE
                               : r == -EAGAIN       ? SCHEDULER_PASSED_NOT
                                                    : SCHEDULER_PASSED_UNKNOWN);
    free(passing);
}

void manager_pass(const char *pool, int64_t due, const char *id, void *manager) {
    struct manager *m = manager;
    struct passing *passing = calloc(1, sizeof(*passing));
    struct store_pass pass = {.due = due};

    if (!passing) {
        scheduler_turns_passed(m->scheduler, pool, id, SCHEDULER_PASSED_UNKNOWN);
        return;
    }
    passing->manager = m;
    (void) snprintf(passing->pool, sizeof(passing->pool), "%s", pool);
    (void) snprintf(passing->id, sizeof(passing->id), "%s", id);
    pass.pool = passing->pool;
    pass.id = passing->id;
    if (store_pass(m->cluster_store, &pass, on_passed, passing) < 0)
        on_passed(-ENOTCONN, passing);
}

void manager_turns_decided(const char *pool, int64_t due, void *manager) {
    struct manager *m = manager;

    if (m->cluster_store)
        store_remember(m->cluster_store, pool, due);
}

/* --- turns that an operator ends --- */

struct stopping {
    struct manager *manager;
    manager_stopped_fn fn;
    void *userdata;
    char job[];
};

static void on_stopped(int r, const struct store_ended_turns *ended, void *userdata) {
    struct stopping *stopping = userdata;
    struct manager *m = stopping->manager;

    if (r == 0 && m->phase < MANAGER_PHASE_EXITING)
        scheduler_turns_stopped(m->scheduler, stopping->job, ended);
    stopping->fn(r, stopping->job, ended, stopping->userdata);
    free(stopping);
}

int manager_stop_turns(struct manager *m, const char *job, manager_stopped_fn fn, void *userdata) {
    struct stopping *stopping = malloc(sizeof(*stopping) + strlen(job) + 1);
    char pool[POOL_NAME_SIZE];
    int r;

    if (!stopping)
        return -ENOMEM;
    *stopping = (struct stopping){.manager = m, .fn = fn, .userdata = userdata};
    memcpy(stopping->job, job, strlen(job) + 1);
    (void) snprintf(pool, sizeof(pool), "@%s", job);
    r = m->cluster_store ? store_end_turns(m->cluster_store, pool, on_stopped, stopping) : -ENOTCONN;
    if (r < 0)
        free(stopping);
    return r;
}

/* --- turns --- */

/* Removes a run that was only a question, so that nobody sees it. */
static void drop(struct run *r) {
    struct manager *m = manager_of(r);

    run_release_timer(r);
    state_remove_run(&m->state, r);
    run_enter(r, RUN_STATE_DONE);
    run_table_drop(&m->runs, r);
    manager_idle_check(m);
}

void manager_turn_refused(struct claim *c, const struct store_turn_answer *answer, void *userdata) {
    struct manager *m = userdata;
    struct run *r = c->owner;

    scheduler_turn_refused(m->scheduler, r, answer, manager_now());
    drop(r);
}

bool manager_turn_is_ours(struct run *r) {
    struct manager *m = manager_of(r);

    if (!r->job.turn)
        return true;
    scheduler_turn_taken(m->scheduler, r, manager_now());
    if (!r->job.turn || r->job.turn->is_committed)
        return true;
    if (!scheduler_turn_may_begin(m->scheduler, r, manager_now())) {
        manager_run_withdraw(r, RUN_RESULT_NOT_STARTED, "within");
        return false;
    }
    state_save_run(&m->state, r); /* with its ticket, so that the next berthd finds the grant and the turn */
    FAILPOINT("turn-granted");
    store_commit(m->cluster_store, r->cluster_claim);
    return false;
}

void manager_turn_committed(struct claim *c, bool is_ours, _unused_ void *userdata) {
    struct run *r = c->owner;

    if (r->state != RUN_STATE_WAITING)
        return;
    FAILPOINT("turn-committed");
    if (is_ours)
        manager_run_taken(r);
    else
        manager_run_withdraw(r, RUN_RESULT_STOPPED, "its turn was lost");
}

void manager_turn_open(_unused_ struct store *s, const struct store_open_turn *turn, void *userdata) {
    struct manager *m = userdata;

    if (m->scheduler)
        scheduler_turn_opened(m->scheduler, turn, manager_now());
}

void manager_turn_superseded(struct claim *c, const struct store_ended_turn *turn, void *userdata) {
    struct manager *m = userdata;

    scheduler_turn_superseded(m->scheduler, c->owner, turn);
}

void manager_turn_give_back(struct run *r) {
    r->job.is_given_back = true;
    if (r->state == RUN_STATE_WAITING) { /* the commit of its turn was not answered */
        manager_run_withdraw(r, RUN_RESULT_STOPPED, "its turn was lost");
        return;
    }
    run_set_reason(r, "its turn was given back");
    manager_run_end(r, RUN_RESULT_STOPPED);
}
