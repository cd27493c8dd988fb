/* SPDX-License-Identifier: MIT */

/* Recovers at start what an earlier berthd left running or waiting, before anything new is granted or
 * started. Holds come first (berthd's own files), then guards and reports as the runner sends them, then
 * waiting runs. The stores start when all of these are known. So their first sync is complete (R11), and no
 * run starts twice. */

#include <errno.h>
#include <string.h>

#include "daemon/manager-internal.h"

/* The clients of recovered runs have one lease to reconnect (R4), within these bounds. They try every 2 s or
 * more often. */
#define CLIENT_TIME_MAX (30 * USEC_PER_SEC)
#define CLIENT_TIME_MIN (3 * USEC_PER_SEC)

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

    /* A guard knows one token of its run. A run with a guard holds its host permits as well. */
    if (r->granted && r->host_claim->n_demands > 0 && r->host_claim->token == 0)
        r->host_claim->token = r->cluster_claim->token > 0 ? r->cluster_claim->token : clock_realtime();
    k = r->host_claim->token > 0 || r->host_claim->ticket > 0 ? adopt(m->host_store, r->host_claim, r) : 0;
    if (r->cluster_claim->token > 0 && !m->cluster_store && r->terms.on_lease_lost == ON_LEASE_LOST_STOP)
        manager_log(m, LOG_WARNING,
                    "%s (run %.8s) holds permits of a Redis, and the config has no redis section: the run is stopped when its "
                    "lease ends, unless berthd restarts with that section before",
                    r->name, r->id);
    if (k == 0 && (r->cluster_claim->token > 0 || r->cluster_claim->ticket > 0))
        k = adopt(m->cluster_store, r->cluster_claim, r);
    return k;
}

/* Adds a recovered run to the table, and its held or waiting claims to the stores. Takes ownership of the
 * run, also on failure. */
static int adopt_run(struct manager *m, struct run *r, enum run_state state) {
    int k = run_table_add(&m->runs, r, state);

    if (k < 0) {
        adhoc_detach(r);
        run_free(r);
        return k;
    }
    k = scheduler_adopt(m->scheduler, r);
    /* Last: the store keeps pointers into the run, so the run table must own it. */
    return k < 0 ? k : adopt_claims(r);
}

/* Returns whether the error is transient: retrying, or restarting berthd, may help. */
static bool is_transient(int error) {
    return error != -EBADMSG && error != -ENOTSUP && error != -EEXIST && error != -ENOENT &&
           error != -EISDIR && error != -EINVAL;
}

/* Logs that a run cannot be recovered. If memory or descriptors lack at start, berthd exits with 70 and is
 * restarted, because it must not grant permits that may be held. Returns false if it goes on. */
static bool recover_failed(struct manager *m, const char *what, int error) {
    if (m->phase != MANAGER_PHASE_RECOVERING || !is_transient(error)) {
        manager_log(m, LOG_ERR, "%s: cannot recover: %s", what, strerror(-error));
        return false;
    }
    if (m->recover_error == 0) {
        manager_log(m, LOG_CRIT, "%s: cannot recover: %s; exiting, because its permits may still be held",
                    what, strerror(-error));
        (void) sd_event_exit(m->event, 70);
    }
    m->recover_error = error;
    return true;
}

/* Gives back the turn of a run that is over: an earlier berthd was killed before Redis had it. */
static int give_back(struct manager *m, struct run *r) {
    const struct job *job = scheduler_find_job(m->scheduler, r->name);
    int k;

    r->granted = true;
    k = adopt_run(m, r, RUN_STATE_STARTING);
    if (k == 0)
        manager_run_end(r, job ? job->last_result : RUN_RESULT_FAILURE);
    return k;
}

static void waiting_on_record(const struct message *record, void *userdata) {
    struct manager *m = userdata;
    const char *kind = message_get(record, "kind");
    char id[ID_TEXT_SIZE] = "?", what[ID_TEXT_SIZE + 16];
    struct run *r = NULL;
    int k;

    if (message_get_id(record, "run", id) == 0 && (r = manager_find_run(m, id))) {
        r->recorded.waiting = true;
        /* The run was granted after this record was written, and was found by its guard, report or hold. */
        if (r->state > RUN_STATE_PENDING && r->job.next_attempt == 0)
            state_remove_run(&m->state, r);
        return;
    }
    k = state_parse_run(record, kind && strcmp(kind, "adhoc") == 0 ? RUN_KIND_ADHOC : RUN_KIND_JOB,
                        m->settings, &r);
    if (k == 0) {
        r->recorded.waiting = true;
        if (r->job.next_attempt > 0) {
            k = give_back(m, r);
            if (k < 0)
                (void) recover_failed(m, id, k);
            return;
        }
        /* An earlier berthd logged the end and was killed before it removed the record. */
        if (r->kind == RUN_KIND_JOB && scheduler_is_end_logged(m->scheduler, r)) {
            state_remove_run(&m->state, r);
            run_free(r);
            return;
        }
        k = adopt_run(m, r, r->job.begin_due > 0 ? RUN_STATE_RETRYING : RUN_STATE_PENDING);
    }
    if (k < 0) {
        snprintf(what, sizeof(what), "waiting run %s", id);
        (void) recover_failed(m, what, k);
    }
}

static void waiting_on_error(const char *path, int error, void *userdata) {
    (void) recover_failed(userdata, path, error);
}

static struct run *first_pending(struct manager *m) {
    list_foreach (r, &m->runs.lists[RUN_STATE_PENDING], struct run, link)
        if (!r->job.queued_by_overlap)
            return r;
    return NULL;
}

static void begin_one(struct manager *m, struct run *r) {
    if (m->drained) { /* since recovery began */
        manager_run_withdraw(r, RUN_RESULT_STOPPED, "drained");
        return;
    }
    if (r->host_claim->state == CLAIM_STATE_NONE && r->cluster_claim->state == CLAIM_STATE_NONE) {
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

/* Begins the runs that were requested during recovery and those found waiting, in the order of their
 * queueing. Only runs that overlap queues behind another stay pending. A run may end at once, and its end
 * may begin another. */
static void begin_pending(struct manager *m) {
    struct run *r;

    while ((r = first_pending(m)))
        begin_one(m, r);
}

/* Returns how long a client may take to reconnect. About a lease (R4): then the place and permits of a
 * client that died together with berthd are free again. */
static usec_t client_time(const struct manager *m) {
    usec_t lease = m->settings->lease_usec;

    return lease > CLIENT_TIME_MAX ? CLIENT_TIME_MAX : lease < CLIENT_TIME_MIN ? CLIENT_TIME_MIN : lease;
}

static void become_ready(struct manager *m) {
    _cleanup_free_ char *limits = NULL;
    size_t n;
    struct state_run_handler handler = {
        .on_record = waiting_on_record, .on_error = waiting_on_error, .userdata = m};

    state_each_run(&m->state, &handler);
    if (m->recover_error < 0)
        return;
    m->phase = MANAGER_PHASE_READY;
    adhoc_set_clients_due(m->adhoc, usec_add(clock_boottime(), client_time(m)));
    n = run_table_count(&m->runs, RUN_STATE_PENDING, RUN_STATE_STOPPING);
    if (run_table_sort_pending(&m->runs) < 0 || store_start(m->host_store) < 0 ||
        (m->cluster_store && store_start(m->cluster_store) < 0)) {
        manager_log(m, LOG_CRIT, "out of memory at start");
        (void) sd_event_exit(m->event, 70);
        return;
    }
    begin_pending(m);
    manager_service_ready(m);
    limits = settings_format_limits(m->settings);
    event_emit(m->events, &(struct event){.type = EVENT_READY, .limits = limits},
               "berthd %s takes work; %zu runs recovered", VERSION, n);
    store_memory_emit_overrides(m->host_store);
    scheduler_start(m->scheduler, manager_now());
    manager_idle_check(m);
}

void manager_recover_progress(void *manager) {
    struct manager *m = manager;

    if (m->phase == MANAGER_PHASE_RECOVERING && m->recover_error == 0 && executor_is_recovered(m->executor))
        become_ready(m);
}

int manager_recover_adhoc_run(struct run *run, void *manager) {
    return adopt_run(manager, run, RUN_STATE_STARTING);
}

void manager_recover_hold_failed(const char *what, int error, void *manager) {
    (void) recover_failed(manager, what, error);
}

bool manager_recover_run_failed(const char *id, int error, void *manager) {
    return recover_failed(manager, id, error);
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
    /* At start its permits are adopted first, so that `released` is logged when Redis has them back. */
    k = m->phase == MANAGER_PHASE_RECOVERING ? adopt_run(m, r, RUN_STATE_STARTING) : add_ended(m, r);
    if (k < 0)
        return k;
    if (state_has_run(&m->state, r) && r->job.next_attempt == 0)
        r->started.realtime = 0; /* its start may not have been logged */
    *ret = r;
    return 0;
}

int manager_recover(struct manager *m) {
    int k;

    m->phase = MANAGER_PHASE_RECOVERING;
    manager_service_changed(m); /* recovery may take long */
    k = adhoc_recover(m->adhoc, m->settings);
    return k < 0 ? k : m->recover_error;
}
