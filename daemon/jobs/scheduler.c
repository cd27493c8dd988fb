/* SPDX-License-Identifier: MIT */

/* Jobs of the config: what begins a run of them, and what is remembered of the last one. */

#include <string.h>

#include "daemon/manager-internal.h"

static struct job *find_job(struct manager *m, const char *name) {
    list_foreach(j, &m->jobs, struct job, link)
        if (strcmp(j->name, name) == 0)
            return j;
    return NULL;
}

static void job_free(struct job *j) {
    list_unlink(&j->link);
    sd_event_source_disable_unref(j->timer);
    free(j);
}

void manager_jobs_free(struct manager *m) {
    list_foreach_safe(j, &m->jobs, struct job, link)
        job_free(j);
}

/* But one that is queued behind them. */
static size_t count_runs(struct manager *m, const char *job, struct run **ret_oldest) {
    size_t n = 0;

    *ret_oldest = NULL;
    for (int s = RUN_STATE_DONE - 1; s >= RUN_STATE_PENDING; s--) /* those that are furthest are oldest */
        list_foreach(r, &m->runs.lists[s], struct run, link)
            if (r->kind == RUN_KIND_JOB && !r->job.queued_by_overlap && strcmp(r->name, job) == 0 && n++ == 0)
                *ret_oldest = r;
    return n;
}

/* id: NULL for a fresh one. The run is on no list yet. */
static int make_run(struct manager *m, const struct job_settings *settings, const char *id, struct run **ret) {
    struct run_spec spec = {.kind = RUN_KIND_JOB, .id = id, .name = settings->name, .pools = &settings->pools};
    struct run *r = NULL;
    int k;

    k = run_new(&r, &spec, m->settings);
    if (k < 0)
        return k;
    memcpy(r->job.hash, settings->hash, sizeof(r->job.hash));
    r->terms.on_lease_lost = settings->on_lease_lost;
    r->terms.head_start_usec = settings->head_start_usec;
    r->terms.stop_timeout_usec = settings->stop_timeout_usec;
    r->terms.queue_timeout_usec = settings->queue_timeout_usec;
    r->queued.realtime = clock_realtime();
    r->queued.boottime = clock_boottime();
    *ret = r;
    return 0;
}

static int add_run(struct manager *m, const struct job_settings *settings, const char *id, bool behind, struct run **ret) {
    struct run *r = NULL;
    int k = make_run(m, settings, id, &r);

    if (k < 0)
        return k;
    r->job.queued_by_overlap = behind;
    k = run_table_add(&m->runs, r, RUN_STATE_PENDING);
    if (k < 0) {
        run_free(r);
        return k;
    }
    *ret = r;
    return 0;
}

static int job_on_due(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata);

/* So long after the last trigger, whichever that was. */
static void arm_every(struct manager *m, struct job *j) {
    const struct job_settings *settings = settings_find_job(m->settings, j->name);
    usec_t now = clock_realtime(), next = job_next(j, settings->every_usec, now);

    j->timer = sd_event_source_disable_unref(j->timer);
    if (next == USEC_INFINITY || m->phase != MANAGER_PHASE_READY)
        return;
    if (sd_event_add_time(m->event, &j->timer, CLOCK_BOOTTIME, usec_add(clock_boottime(), usec_sub(next, now)),
                          USEC_PER_MSEC, job_on_due, j) < 0)
        manager_log(m, LOG_ERR, "out of memory: job %s is not run again by `every`", j->name);
}

static void note_trigger(struct manager *m, struct job *j) {
    j->last_trigger_realtime = clock_realtime();
    arm_every(m, j);
}

/* r begins when the job's other run is over. */
static void note_queued(struct job *j, struct run *r) {
    r->job.queued_by_overlap = j->queued = true;
    memcpy(j->queued_run, r->id, sizeof(j->queued_run));
}

static void begin_or_wait(struct manager *m, struct job *j, struct run *r) {
    if (m->phase == MANAGER_PHASE_READY) {
        manager_run_begin(r);
        return;
    }
    state_save_run(&manager_of(r)->state, r); /* who asked has its id, also where the next berthd begins it */
    state_save_job(&m->state, j);
}

void manager_job_begins(struct run *r) {
    struct job *j = find_job(manager_of(r), r->name);

    if (j)
        state_save_job(&manager_of(r)->state, j);
}

/* One trigger, whichever. *ret_run: the run that it began or queued, or the one that is not over. */
static int trigger(struct manager *m, struct job *j, struct run **ret_run) {
    const struct job_settings *settings = settings_find_job(m->settings, j->name);
    enum job_decision decision;
    struct run *run;
    size_t n = count_runs(m, j->name, &run);
    int k = MANAGER_E_SKIPPED;

    if (m->drained)
        return MANAGER_E_DRAINED;
    decision = job_decide(j, settings->overlap, n);
    if (decision != JOB_DECISION_SKIP)
        k = add_run(m, settings, NULL, decision == JOB_DECISION_QUEUE, &run);
    *ret_run = run;
    if (k == 0)
        note_trigger(m, j);
    if (k == 0 && decision == JOB_DECISION_QUEUE)
        note_queued(j, run);
    if (k == 0 && decision == JOB_DECISION_BEGIN)
        begin_or_wait(m, j, run);
    else
        state_save_job(&m->state, j);
    return k;
}

void manager_job_begin(struct run *r) {
    struct manager *m = manager_of(r);
    const struct job_settings *settings = settings_find_job(m->settings, r->name);
    struct job *j = find_job(m, r->name);
    size_t n = 0;

    if (j && j->queued && strcmp(j->queued_run, r->id) == 0) /* noted by a berthd that was killed before it removed the record */
        j->queued = false;
    run_table_foreach(other, &m->runs, RUN_STATE_WAITING, RUN_STATE_STOPPING)
            n += other->kind == RUN_KIND_JOB && strcmp(other->name, r->name) == 0;
    switch (j ? job_decide(j, settings->overlap, n) : JOB_DECISION_BEGIN) {
    case JOB_DECISION_BEGIN:
        manager_run_begin(r);
        break;
    case JOB_DECISION_QUEUE:
        note_queued(j, r);
        state_save_job(&m->state, j);
        state_remove_run(&manager_of(r)->state, r); /* now that the job's has it */
        break;
    case JOB_DECISION_SKIP:
        manager_run_withdraw(r, RUN_RESULT_STOPPED, "a run of the job is not over");
        break;
    }
}

int manager_start_job(struct manager *m, const char *job, struct run **ret) {
    struct job *j = find_job(m, job);

    if (m->phase >= MANAGER_PHASE_STOPPING)
        return MANAGER_E_STOPPING;
    if (!j)
        return MANAGER_E_UNKNOWN;
    return trigger(m, j, ret);
}

static int job_on_due(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
    struct job *j = userdata;
    struct run *run;

    if (j->manager->phase != MANAGER_PHASE_READY) /* berthd stops: what is begun now would only be waited for */
        return 0;
    note_trigger(j->manager, j); /* also of one that is skipped */
    if (trigger(j->manager, j, &run) < 0)
        manager_log(j->manager, LOG_ERR, "out of memory: job %s is skipped once", j->name);
    return 0;
}

/* The run that overlap = "queue" keeps; made if it was queued under an earlier berthd. NULL: no memory. */
static struct run *find_queued(struct manager *m, struct job *j) {
    struct run *r = manager_find_run(m, j->queued_run);

    return r || add_run(m, settings_find_job(m->settings, j->name), j->queued_run, true, &r) == 0 ? r : NULL;
}

/* What the job is by now counts, not what it was when this was queued. Without memory it is kept on, for the next end of a run or the next
 * start. */
static void begin_queued(struct manager *m, struct job *j) {
    struct run *queued = find_queued(m, j), *r = NULL;

    if (queued && !queued->job.queued_by_overlap) { /* it was begun, and berthd killed before it could note that */
        j->queued = false;
        state_save_job(&m->state, j);
        return;
    }
    if (!queued || make_run(m, settings_find_job(m->settings, j->name), j->queued_run, &r) < 0) {
        manager_log(m, LOG_ERR, "out of memory: the queued run of job %s begins later", j->name);
        return;
    }
    run_table_replace(&m->runs, queued, r);
    j->queued = false;
    note_trigger(m, j);
    manager_run_begin(r);
}

/* At start. */
static void resume_queued(struct manager *m, struct job *j) {
    struct run *r = find_queued(m, j), *other; /* made, so that it can be asked for */

    if (m->drained) {
        if (r && r->job.queued_by_overlap)
            manager_run_withdraw(r, RUN_RESULT_STOPPED, "drained");
        return;
    }
    if ((r && !r->job.queued_by_overlap) || count_runs(m, j->name, &other) == 0)
        begin_queued(m, j);
}

void manager_jobs_ready(struct manager *m) {
    struct run *run;

    list_foreach(j, &m->jobs, struct job, link) {
        /* Drained: `berth undrain` comes here again. */
        if (!m->drained && settings_find_job(m->settings, j->name)->at_start && !j->at_start_done) {
            j->at_start_done = true; /* before it is begun: once, whoever is killed */
            if (trigger(m, j, &run) < 0) {
                j->at_start_done = false;
                state_save_job(&m->state, j);
            }
        }
        if (j->queued)
            resume_queued(m, j);
        arm_every(m, j);
    }
}

void manager_job_over(struct run *r) {
    struct manager *m = manager_of(r);
    struct job *j = r->kind == RUN_KIND_JOB ? find_job(m, r->name) : NULL;
    struct run *other;

    if (!j)
        return;
    if (r->job.queued_by_overlap) /* withdrawn before its turn came */
        r->job.queued_by_overlap = j->queued = false;
    if (r->started.realtime > 0)
        j->last_started_realtime = r->started.realtime;
    j->last_ended_realtime = r->end.realtime;
    j->last_result = r->end.result;
    memcpy(j->last_run, r->id, sizeof(j->last_run));
    j->last_token = run_token(r);
    j->last_exit_code = r->end.exit_code;
    j->last_signal = r->end.signal;
    if (j->queued && m->phase == MANAGER_PHASE_READY && !m->drained && count_runs(m, j->name, &other) == 0)
        begin_queued(m, j);
    else
        state_save_job(&m->state, j);
}

bool manager_is_end_told(const struct run *r) {
    const struct job *j = find_job(manager_of(r), r->name);

    return j && strcmp(j->last_run, r->id) == 0;
}

void manager_jobs_forget_at_start(struct manager *m) {
    list_foreach(j, &m->jobs, struct job, link) {
        j->at_start_done = j->queued = false;
        state_save_job(&m->state, j);
    }
}

static int add_job(struct manager *m, const char *name) {
    struct job *j = calloc(1, sizeof(*j));
    int k;

    if (!j)
        return -ENOMEM;
    j->manager = m;
    snprintf(j->name, sizeof(j->name), "%s", name);
    j->last_exit_code = j->last_signal = -1;
    list_append(&m->jobs, &j->link);
    k = state_load_job(&m->state, j);
    if (k < 0) { /* not known, and so not begun, rather than begun once more */
        job_free(j);
        return k;
    }
    /* A job that a reload brings was not there when the service started; the berthd after this one must know that, too. */
    if (m->phase == MANAGER_PHASE_READY) {
        j->at_start_done = true;
        state_save_job(&m->state, j);
    }
    arm_every(m, j);
    return 0;
}

int manager_jobs_update(struct manager *m) {
    int r = 0;

    list_foreach_safe(j, &m->jobs, struct job, link)
        if (!settings_find_job(m->settings, j->name)) {
            struct run *queued = j->queued ? manager_find_run(m, j->queued_run) : NULL;

            if (queued && queued->job.queued_by_overlap)
                manager_run_withdraw(queued, RUN_RESULT_STOPPED, "its job is not defined any more");
            job_free(j);
        }
    for (size_t i = 0; i < m->settings->n_jobs; i++) {
        const char *name = m->settings->jobs[i].name;
        struct job *j = find_job(m, name);
        int k = 0;

        if (j)
            arm_every(m, j);
        else
            k = add_job(m, name);
        if (k < 0) {
            manager_log(m, LOG_ERR, "job %s is unknown until the next reload: what is remembered of it cannot be read: %s", name,
                        strerror(-k));
            r = k;
        }
    }
    return r;
}

void manager_get_job(struct manager *m, const struct job_settings *settings, struct manager_job *ret) {
    const struct job *j = find_job(m, settings->name);
    usec_t now = clock_realtime();

    *ret = (struct manager_job) {.settings = settings, .last_exit_code = -1, .last_signal = -1};
    ret->n_runs = count_runs(m, settings->name, &ret->run);
    if (!j)
        return;
    ret->n_runs += j->queued;
    ret->last_started_realtime = j->last_started_realtime;
    ret->last_ended_realtime = j->last_ended_realtime;
    ret->last_result = j->last_result;
    memcpy(ret->last_run, j->last_run, sizeof(ret->last_run));
    ret->last_token = j->last_token;
    ret->last_exit_code = j->last_exit_code;
    ret->last_signal = j->last_signal;
    ret->next_realtime = settings->every_usec == USEC_INFINITY || m->drained ? 0 : job_next(j, settings->every_usec, now);
}
