/* SPDX-License-Identifier: MIT */

/* Runs of jobs: berth-runner starts them, a guard each watches over them, a report ends them. A run's permits are released only on a
 * report, because only that says that none of its processes is left. */

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/failpoint.h"
#include "base/protocol.h"
#include "daemon/manager-internal.h"

static struct manager *manager_of(void *userdata) {
    return userdata;
}

/* --- towards the runner --- */

void manager_job_start(struct run *r) {
    struct manager *m = r->manager;
    char pools[DEMANDS_TEXT_SIZE];
    struct message_writer w;
    usec_t deadline = manager_run_deadline(r);

    message_begin(&w, PROTOCOL_START);
    message_put(&w, "run", r->id);
    message_put(&w, "job", r->name);
    message_put(&w, "hash", r->hash);
    message_put(&w, "claim", r->cluster_claim.id);
    message_put_u64(&w, "token", run_token(r));
    message_put_u64(&w, "ticket", r->cluster_claim.n_demands > 0 ? r->cluster_claim.ticket : r->host_claim.ticket);
    message_put(&w, "pools", run_format_pools(r, pools));
    message_put(&w, "namespace", m->settings->namespace);
    message_put(&w, "host", m->settings->host);
    message_put_u64(&w, "queued", r->queued_realtime);
    if (deadline != USEC_INFINITY)
        message_put_u64(&w, "deadline", deadline);
    FAILPOINT("start-sending");
    /* Where the runner is not there now, it is told when it is back (runner_on_gathered). */
    r->starting_sent = runner_link_start(m->runner, &w) == 0;
    FAILPOINT("start-sent");
}

void manager_job_stop(struct run *r) {
    if (r->guard)
        guard_link_stop(r->guard, r->stop_reason);
    else if (!r->starting_sent)
        manager_run_end(r, RUN_RESULT_STOPPED);
}

void manager_job_push_deadline(struct run *r) {
    usec_t deadline = manager_run_deadline(r);

    if (r->guard && deadline > 0) /* 0: no heartbeat was answered since start; the guard's own stands */
        guard_link_set_deadline(r->guard, deadline);
}

/* --- what a report says --- */

static enum run_result result_of(const struct message *report, int exit_code) {
    const char *reason = message_get(report, "reason"), *stage = message_get(report, "stage");
    enum supervise_reason why = SUPERVISE_REASON_NONE;

    if (message_get(report, "lost"))
        return RUN_RESULT_GUARD_DIED;
    if (message_get(report, "errno"))
        return stage && strcmp(stage, "deadline") == 0 ? RUN_RESULT_LEASE_LOST : RUN_RESULT_NOT_STARTED;
    if (reason)
        (void) supervise_reason_parse(reason, &why);
    switch (why) {
    case SUPERVISE_REASON_NONE:
        break;
    case SUPERVISE_REASON_TIMEOUT:
        return RUN_RESULT_TIMEOUT;
    case SUPERVISE_REASON_LEASE_LOST:
        return RUN_RESULT_LEASE_LOST;
    case SUPERVISE_REASON_STOPPED:
    case SUPERVISE_REASON_REVOKED:
    case SUPERVISE_REASON_SHUTDOWN:
        return RUN_RESULT_STOPPED;
    }
    return exit_code == 0 ? RUN_RESULT_SUCCESS : RUN_RESULT_FAILURE;
}

/* ESRCH of getpwnam() and its like is not about a process. */
static const char *explain(const char *stage, int error) {
    if (error == ESRCH && strcmp(stage, "user") == 0)
        return "there is no such user";
    if (error == ESRCH && strcmp(stage, "group") == 0)
        return "there is no such group";
    return strerror(error);
}

static void take_report(struct run *r, const struct message *report) {
    const char *stage = message_get(report, "stage"), *reason = message_get(report, "reason");
    uint64_t value, ended_boottime;

    if (message_get_u64(report, "code", &value) == 0)
        r->exit_code = (int) value;
    if (message_get_u64(report, "signal", &value) == 0)
        r->signal = (int) value;
    /* It was over before its guard could be asked. */
    if (message_get_u64(report, "started", &value) == 0 && r->started_realtime == 0)
        manager_run_started(r, 0, value);
    if (message_get_u64(report, "started-boot", &value) == 0 && message_get_u64(report, "ended-boot", &ended_boottime) == 0) {
        r->started_boottime = value;
        r->ended_boottime = ended_boottime;
    }
    if (message_get_u64(report, "ended", &value) == 0)
        r->ended_realtime = value;
    if (message_get_u64(report, "errno", &value) == 0)
        run_set_reason(r, "%s: %s", stage ? stage : "start", explain(stage ? stage : "start", (int) value));
    else if (reason && strcmp(reason, "none") != 0)
        run_set_reason(r, "%s", reason);
}

static void tell_fenced(struct run *r, const struct message *report) {
    struct manager *m = r->manager;
    usec_t margin = settings_margin(m->settings->lease_usec);
    char pools[DEMANDS_TEXT_SIZE], text[DURATION_TEXT_SIZE];
    struct event e = manager_run_event(r, EVENT_FENCED, pools);
    uint64_t before;

    if (message_get_u64(report, "gone-before", &before) == 0)
        event_emit(m->events, &e, "the last process of %s was gone %s before the end of its lease", r->name,
                   duration_format(usec_add(before, margin), text));
}

static void report_run(struct run *r, const struct message *report) {
    struct manager *m = r->manager;
    char pools[DEMANDS_TEXT_SIZE];
    enum run_result result;
    struct event e;

    FAILPOINT("report-seen");
    take_report(r, report);
    result = result_of(report, r->exit_code);
    if (result == RUN_RESULT_GUARD_DIED) {
        e = manager_run_event(r, EVENT_GUARD_DIED, pools);
        event_emit(m->events, &e, "the guard of %s died; the runner ended what was left of it", r->name);
    } else if (result == RUN_RESULT_LEASE_LOST) {
        tell_fenced(r, report);
    }
    e = manager_run_event(r, EVENT_EXITED, pools);
    e.result = run_result_name(result);
    e.has_exit_code = r->exit_code >= 0;
    e.exit_code = r->exit_code;
    e.has_signal = r->signal >= 0;
    e.signal = r->signal;
    e.has_run_time = true;
    e.run_usec = run_time_usec(r, r->started_boottime);
    event_emit(m->events, &e, "%s is over: %s", r->name, run_result_name(result));
    FAILPOINT("exited-told");
    manager_run_end(r, result);
}

/* A report of a run that this berthd does not know: its predecessor was killed before it could record it. At start its permits are
 * taken over first, so that `released` is told when Redis has them back, not before. */
static struct run *run_from_report(struct manager *m, const struct message *report) {
    struct run *r = NULL;

    if (manager_read_run(m, report, RUN_KIND_JOB, &r) < 0)
        return NULL;
    if (manager_add_run(m, r, RUN_STATE_STARTING) < 0)
        return run_free(r);
    r->granted = true;
    if (m->phase == MANAGER_PHASE_GATHERING)
        (void) manager_adopt(r); /* without memory for it the first sync gives them back: it does not name them */
    return r;
}

static void drop_guard(struct run *r) {
    r->guard = guard_link_free(r->guard);
}

/* --- what guards say --- */

static void guard_on_started(struct guard_link *g, const struct message *started, void *userdata) {
    struct run *r = userdata;
    uint64_t pid = 0, at = 0;

    (void) g;
    if (r->pid == 0 && !run_is_over(r) && message_get_u64(started, "pid", &pid) == 0 &&
        message_get_u64(started, "started", &at) == 0)
        manager_run_started(r, (pid_t) pid, at);
}

static void guard_on_state(struct guard_link *g, const struct message *state, void *userdata) {
    struct run *r = userdata;

    /* Known and starting: a `started` that came before this connection is in the state. */
    guard_on_started(g, state, r);
    manager_job_push_deadline(r);
    if (r->stop_wanted)
        guard_link_stop(g, r->stop_reason);
}

static void guard_on_stopping(struct guard_link *g, enum supervise_reason reason, void *userdata) {
    struct run *r = userdata;
    char pools[DEMANDS_TEXT_SIZE];
    struct event e;

    (void) g;
    if (r->state != RUN_STATE_RUNNING && r->state != RUN_STATE_STARTING)
        return; /* we asked for it, and said so */
    run_set_reason(r, "%s", supervise_reason_name(reason));
    e = manager_run_event(r, reason == SUPERVISE_REASON_LEASE_LOST ? EVENT_LEASE_LOST : EVENT_STOPPING, pools);
    event_emit(r->manager->events, &e, "%s is being stopped by its guard: %s", r->name, supervise_reason_name(reason));
    manager_set_state(r, RUN_STATE_STOPPING);
}

static void guard_on_report(struct guard_link *g, const struct message *report, void *userdata) {
    struct run *r = userdata;

    if (!run_is_over(r))
        report_run(r, report);
    FAILPOINT("done-sending");
    guard_link_done(g);
    drop_guard(r);
}

static void guard_on_gone(struct guard_link *g, void *userdata) {
    struct run *r = userdata;

    (void) g;
    drop_guard(r);
    (void) runner_link_kill(r->manager->runner, r->id);
}

static const struct guard_link_handler guard_handler = {
    .on_state = guard_on_state,
    .on_started = guard_on_started,
    .on_stopping = guard_on_stopping,
    .on_report = guard_on_report,
    .on_gone = guard_on_gone,
};

/* --- guards found at start, whose runs are not known yet --- */

struct found_guard { /* freed when its guard has told its state, or the runner has told its report */
    struct list entry;         /* on manager->found_guards */
    struct manager *manager;
    struct guard_link *link;
    sd_event_source *timer;
    char run[ID_TEXT_SIZE];
};

static void found_free(struct found_guard *f) {
    guard_link_free(f->link);
    sd_event_source_disable_unref(f->timer);
    list_unlink(&f->entry);
    free(f);
}

static void found_done(struct found_guard *f) {
    struct manager *m = f->manager;

    found_free(f);
    manager_gather_check(m);
}

static void found_on_state(struct guard_link *g, const struct message *state, void *userdata) {
    struct found_guard *f = userdata;
    struct manager *m = f->manager;
    struct run *r = NULL;
    int k;

    (void) g;
    if (manager_find_run(m, f->run)) { /* the runner was lost and back meanwhile, and named it twice */
        found_done(f);
        return;
    }
    k = manager_read_run(m, state, RUN_KIND_JOB, &r);
    if (k == 0 && strcmp(r->id, f->run) != 0)
        k = -EBADMSG;
    if (k == 0) {
        r->starting_sent = r->granted = true;
        k = manager_adopt(r);
    }
    if (k == 0)
        k = manager_add_run(m, r, RUN_STATE_STARTING);
    if (k == 0) {
        uint64_t pid;

        if (message_get_u64(state, "pid", &pid) == 0) {
            r->pid = (pid_t) pid;
            manager_set_state(r, RUN_STATE_RUNNING);
        }
        manager_remove_waiting(r);
        /* A second connection, with the handler of a known run; the guard tells its state, and a report that is due, again. */
        (void) manager_guard_connect(m, r->id);
    } else {
        journal_log(events_get_journal(m->events), 3, "cannot take over run %s: %s", f->run, strerror(-k));
        run_free(r);
    }
    found_done(f);
}

/* It is not known what it held until the runner has ended what is left of it and says so. */
static void found_on_gone(struct guard_link *g, void *userdata) {
    struct found_guard *f = userdata;

    (void) g;
    f->link = guard_link_free(f->link);
    (void) runner_link_kill(f->manager->runner, f->run);
}

static void found_reported(struct manager *m, const char *run) {
    list_foreach_safe(f, &m->found_guards, struct found_guard, entry)
        if (strcmp(f->run, run) == 0)
            found_done(f);
}

void manager_found_guards_free(struct manager *m) {
    list_foreach_safe(f, &m->found_guards, struct found_guard, entry)
        found_free(f);
}

/* A guard that is there and does not say what it holds: it hangs, or was stopped. Nothing can be granted on this host before it is
 * known, so it may not keep everybody waiting for ever; its report will say the rest. */
static int found_on_silent(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
    struct found_guard *f = userdata;

    journal_log(events_get_journal(f->manager->events), 4, "the guard of run %s does not answer: the runner ends it", f->run);
    (void) runner_link_kill(f->manager->runner, f->run);
    return 0;
}

static void found_on_message(_unused_ struct guard_link *g, _unused_ const struct message *m, _unused_ void *userdata) {
    /* It is said again on the second connection. */
}
static void found_on_stopping(_unused_ struct guard_link *g, _unused_ enum supervise_reason reason, _unused_ void *userdata) {
}
static void guard_on_ack(_unused_ struct guard_link *g, _unused_ usec_t deadline, _unused_ void *userdata) {
}

/* As long as the guard of a cluster run may go on without hearing from berthd, but not less than a stall of the machine. */
static usec_t silence_max(const struct manager *m) {
    usec_t least = 10 * USEC_PER_SEC;

    return m->settings->redis && m->settings->lease_usec > least ? m->settings->lease_usec : least;
}

static int connect_found(struct manager *m, const char *run) {
    struct found_guard *f = calloc(1, sizeof(*f));
    struct guard_link_handler handler = {
        .on_state = found_on_state,
        .on_started = found_on_message,
        .on_stopping = found_on_stopping,
        .on_ack = guard_on_ack,
        .on_report = found_on_message,
        .on_gone = found_on_gone,
        .userdata = f,
    };
    int k;

    if (!f)
        return -ENOMEM;
    f->manager = m;
    snprintf(f->run, sizeof(f->run), "%s", run);
    k = guard_link_new(&f->link, m->event, m->settings->runtime_directory, run, &handler);
    list_append(&m->found_guards, &f->entry);
    if (k < 0)
        return k; /* it has just gone: its report says what became of it */
    (void) sd_event_add_time(m->event, &f->timer, CLOCK_BOOTTIME, usec_add(clock_boottime(), silence_max(m)), USEC_PER_MSEC,
                             found_on_silent, f);
    return 0;
}

int manager_guard_connect(struct manager *m, const char *run) {
    struct run *r = manager_find_run(m, run);
    struct guard_link_handler handler = guard_handler;
    int k;

    if (!r)
        k = connect_found(m, run);
    else if (r->guard || run_is_over(r))
        return 0;
    else {
        handler.on_ack = guard_on_ack;
        handler.userdata = r;
        k = guard_link_new(&r->guard, m->event, m->settings->runtime_directory, run, &handler);
    }
    if (k < 0) /* no longer there: the runner says with a report what became of it */
        (void) runner_link_kill(m->runner, run);
    return k;
}

/* --- what the runner says --- */

static void runner_on_guard(const char *run, void *userdata) {
    (void) manager_guard_connect(manager_of(userdata), run);
}

static void runner_on_started(const char *run, bool existed, void *userdata) {
    struct manager *m = manager_of(userdata);

    (void) existed; /* if it is its report that exists, connecting fails, and the runner sends it */
    if (manager_find_run(m, run))
        (void) manager_guard_connect(m, run);
}

static void runner_on_refused(const char *run, const char *reason, const char *text, void *userdata) {
    struct manager *m = manager_of(userdata);
    struct run *r = manager_find_run(m, run);
    char pools[DEMANDS_TEXT_SIZE];
    struct event e;

    if (!r || run_is_over(r))
        return;
    run_set_reason(r, "%s: %s", reason, text ? text : "the runner refused it");
    e = manager_run_event(r, EVENT_EXITED, pools);
    e.result = run_result_name(RUN_RESULT_NOT_STARTED);
    event_emit(m->events, &e, "%s was not started: %s", r->name, r->reason);
    manager_run_end(r, RUN_RESULT_NOT_STARTED);
    if (strcmp(reason, "config-differs") == 0)
        manager_config_differs(m);
}

static void runner_on_report(const struct message *report, void *userdata) {
    struct manager *m = manager_of(userdata);
    char id[ID_TEXT_SIZE];
    struct run *r;

    if (message_get_id(report, "run", id) < 0)
        return;
    r = manager_find_run(m, id);
    if (!r)
        r = run_from_report(m, report);
    if (r) {
        drop_guard(r);
        if (!run_is_over(r))
            report_run(r, report);
    }
    (void) runner_link_forget(m->runner, id);
    found_reported(m, id);
    manager_gather_check(m);
}

/* The runner is (back) there and has told all guards and reports. A run that should have one and has none: its start was not
 * delivered, or its guard ended unseen. `start` is idempotent, and so is `kill`. */
static void runner_on_gathered(void *userdata) {
    struct manager *m = manager_of(userdata);

    list_foreach_safe(r, &m->runs[RUN_STATE_STARTING], struct run, link)
        if (r->kind == RUN_KIND_JOB && !r->guard)
            manager_job_start(r);
    list_foreach_safe(r, &m->runs[RUN_STATE_RUNNING], struct run, link)
        if (r->kind == RUN_KIND_JOB && !r->guard)
            (void) runner_link_kill(m->runner, r->id);
    list_foreach_safe(r, &m->runs[RUN_STATE_STOPPING], struct run, link)
        if (r->kind == RUN_KIND_JOB && !r->guard)
            (void) runner_link_kill(m->runner, r->id);
    m->runner_gathered = true;
    manager_gather_check(m);
}

static void runner_on_lost(void *userdata) {
    struct manager *m = manager_of(userdata);

    journal_log(events_get_journal(m->events), 4, "berth-runner is not there; running jobs go on, new ones wait for it");
}

const struct runner_link_handler manager_runner_handler = {
    .on_gathered = runner_on_gathered,
    .on_guard = runner_on_guard,
    .on_started = runner_on_started,
    .on_refused = runner_on_refused,
    .on_report = runner_on_report,
    .on_lost = runner_on_lost,
};
