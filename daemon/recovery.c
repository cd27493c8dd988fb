/* SPDX-License-Identifier: MIT */

/* At start: finds again what an earlier berthd left running or waiting, before anything new is granted or started. Holds
 * first (they are files of our own), guards and reports as the runner tells them, waiting runs last; the stores start when all of
 * it is known, so that their first sync tells the whole truth (R11) and no run is ever started twice. */

#include <errno.h>
#include <string.h>

#include "base/protocol.h"
#include "daemon/manager-internal.h"

static int adopt(struct store *s, struct claim *c, const struct run *r) {
    if (c->n_demands == 0 || !s)
        return 0;
    c->head_start_usec = r->terms.head_start_usec;
    c->keep = r->terms.on_lease_lost == ON_LEASE_LOST_CONTINUE;
    c->pid = (uint32_t) r->started.pid;
    return store_adopt(s, c);
}

static int adopt_claims(struct run *r) {
    struct manager *m = manager_of(r);
    int k;

    /* A guard knows the one token of its run; that the host permits are held follows from its being there. Where there are none, there
     * is no token: events of the berthd before had none either. */
    if (r->granted && r->host_claim.n_demands > 0 && r->host_claim.token == 0)
        r->host_claim.token = r->cluster_claim.token > 0 ? r->cluster_claim.token : clock_realtime();
    k = r->host_claim.token > 0 || r->host_claim.ticket > 0 ? adopt(m->host_store, &r->host_claim, r) : 0;
    if (k == 0 && (r->cluster_claim.token > 0 || r->cluster_claim.ticket > 0))
        k = adopt(m->cluster_store, &r->cluster_claim, r);
    return k;
}

int manager_take_up(struct manager *m, struct run *r, enum run_state state) {
    int k = run_table_add(&m->runs, r, state);

    if (k < 0) {
        adhoc_detach(r);
        run_free(r);
        return k;
    }
    /* Not before: what a store has adopted it points to, so from then on the run must be somebody's. */
    return adopt_claims(r);
}

/* Whether the error is transient: retrying, or restarting berthd, may help. */
static bool is_of_the_moment(int error) {
    return error != -EBADMSG && error != -ENOTSUP && error != -EEXIST && error != -ENOENT && error != -EISDIR && error != -EINVAL;
}

bool manager_recover_failed(struct manager *m, const char *what, int error) {
    if (m->phase != MANAGER_PHASE_RECOVERING || !is_of_the_moment(error)) {
        manager_log(m, LOG_ERR, "%s cannot be taken over: %s", what, strerror(-error));
        return false;
    }
    if (m->recover_error == 0) {
        manager_log(m, LOG_CRIT, "%s cannot be taken over: %s; berthd ends, and grants nothing before it is known",
                    what, strerror(-error));
        (void) sd_event_exit(m->event, 70);
    }
    m->recover_error = error;
    return true;
}

static void waiting_found(const struct message *record, void *userdata) {
    struct manager *m = userdata;
    const char *kind = message_get(record, "kind");
    char id[ID_TEXT_SIZE] = "?", what[ID_TEXT_SIZE + 16];
    struct run *r = NULL;
    int k;

    if (message_get_id(record, "run", id) == 0 && (r = manager_find_run(m, id))) {
        r->has_waiting_record = true;
        if (r->state != RUN_STATE_PENDING) /* a guard, a report or a hold has it: it was granted after this was written */
            state_remove_run(&manager_of(r)->state, r);
        return;
    }
    k = state_parse_run(record, kind && strcmp(kind, "adhoc") == 0 ? RUN_KIND_ADHOC : RUN_KIND_JOB, m->settings, &r);
    if (k == 0) {
        r->has_waiting_record = true;
        k = manager_take_up(m, r, RUN_STATE_PENDING);
    }
    if (k < 0) {
        snprintf(what, sizeof(what), "waiting run %s", id);
        (void) manager_recover_failed(m, what, k);
    }
}

static void waiting_unreadable(const char *path, int error, void *userdata) {
    (void) manager_recover_failed(userdata, path, error);
}

static struct run *first_pending(struct manager *m) {
    list_foreach(r, &m->runs.lists[RUN_STATE_PENDING], struct run, link)
        if (!r->job.queued_by_overlap)
            return r;
    return NULL;
}

static void begin_one(struct manager *m, struct run *r) {
    if (m->drained) { /* while it was not known yet */
        manager_run_withdraw(r, RUN_RESULT_STOPPED, "drained");
        return;
    }
    if (r->host_claim.state == CLAIM_STATE_NONE && r->cluster_claim.state == CLAIM_STATE_NONE) {
        if (r->kind == RUN_KIND_JOB)
            scheduler_begin_deferred(m->scheduler, r);
        else
            manager_run_begin(r);
        return;
    }
    manager_run_resume(r);
    if (r->kind == RUN_KIND_ADHOC && r->state == RUN_STATE_WAITING && r->adhoc.client_pid == 0)
        adhoc_await_client(m->adhoc, r);
}

/* Runs that were pending because we recovered, and those found waiting, in the order of their queueing. None of them stays pending, but
 * for one that is behind another now; and what is begun may end at once, and begin another. */
static void begin_pending(struct manager *m) {
    struct run *r;

    while ((r = first_pending(m)))
        begin_one(m, r);
}

/* A dead waiter's place and permits are free again within about a lease (R4), also if berthd died with it. */
static usec_t client_time(const struct manager *m) {
    usec_t lease = m->settings->lease_usec;

    return lease > MANAGER_CLIENT_TIME ? MANAGER_CLIENT_TIME : lease < MANAGER_CLIENT_TIME_MIN ? MANAGER_CLIENT_TIME_MIN : lease;
}

static void become_ready(struct manager *m) {
    _cleanup_free_ char *limits = NULL;
    size_t n;
    struct state_run_handler handler = {.on_record = waiting_found, .on_error = waiting_unreadable, .userdata = m};

    state_each_run(&m->state, &handler);
    if (m->recover_error < 0)
        return;
    m->phase = MANAGER_PHASE_READY;
    adhoc_set_clients_due(m->adhoc, usec_add(clock_boottime(), client_time(m)));
    n = run_table_count(&m->runs, RUN_STATE_PENDING, RUN_STATE_STOPPING);
    if (run_table_sort_pending(&m->runs) < 0 || store_start(m->host_store) < 0 || (m->cluster_store && store_start(m->cluster_store) < 0)) {
        manager_log(m, LOG_CRIT, "out of memory at start");
        (void) sd_event_exit(m->event, 70);
        return;
    }
    begin_pending(m);
    manager_service_ready(m);
    limits = settings_format_limits(m->settings);
    event_emit(m->events, &(struct event) {.type = EVENT_READY, .limits = limits}, "berthd %s takes work; %zu runs found again",
               VERSION, n);
    scheduler_start(m->scheduler, manager_now());
    manager_idle_check(m);
}

void manager_recover_progress(void *manager) {
    struct manager *m = manager;

    if (m->phase == MANAGER_PHASE_RECOVERING && m->recover_error == 0 && executor_is_recovered(m->executor))
        become_ready(m);
}

int manager_recover_adhoc_run(struct run *run, void *manager) {
    return manager_take_up(manager, run, RUN_STATE_STARTING);
}

void manager_recover_hold_failed(const char *what, int error, void *manager) {
    (void) manager_recover_failed(manager, what, error);
}

bool manager_recover_run_failed(const char *id, int error, void *manager) {
    return manager_recover_failed(manager, id, error);
}

static int add_ended(struct manager *m, struct run *r) {
    int k = run_table_add(&m->runs, r, RUN_STATE_STARTING);

    if (k < 0)
        run_free(r);
    return k;
}

int manager_recover_job_run(const struct message *state, const char *id, struct run **ret, void *manager) {
    struct manager *m = manager;
    struct run *r = NULL;
    int k = state_parse_run(state, RUN_KIND_JOB, m->settings, &r);

    if (k < 0)
        return k;
    if (strcmp(r->id, id) != 0) {
        run_free(r);
        return -EBADMSG;
    }
    r->granted = true;
    /* At start its permits are taken over first, so that `released` is logged when Redis has them back, not before. */
    k = m->phase == MANAGER_PHASE_RECOVERING ? manager_take_up(m, r, RUN_STATE_STARTING) : add_ended(m, r);
    if (k < 0)
        return k;
    if (state_has_run(&m->state, r))
        r->started.realtime = 0; /* its start may not be logged */
    *ret = r;
    return 0;
}

int manager_recover(struct manager *m) {
    int k;

    m->phase = MANAGER_PHASE_RECOVERING;
    manager_service_changed(m); /* should that take long */
    k = adhoc_recover(m->adhoc, m->settings);
    return k < 0 ? k : m->recover_error;
}
