/* SPDX-License-Identifier: MIT */

/* Runs of jobs: berth-runner starts them, a guard each watches over them, a report ends them. A run's permits are released only on a
 * report, because only that says that none of its processes is left. */

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/failpoint.h"
#include "base/protocol.h"
#include "daemon/manager-internal.h"

/* --- towards the runner --- */

/* Of a run that ends without having run. */
static void end_not_started(struct run *r) {
    char pools[DEMANDS_TEXT_SIZE];
    struct event e = manager_run_event(r, EVENT_EXITED, pools);

    e.result = run_result_name(RUN_RESULT_NOT_STARTED);
    event_emit(manager_of(r)->events, &e, "%s was not started: %s", r->name, r->reason);
    manager_run_end(r, RUN_RESULT_NOT_STARTED);
}

bool manager_job_is_unheard_of(const struct run *r) {
    return !r->job.guard && !r->job.guard_wanted && r->started.pid == 0 && r->job.start_due > 0;
}

bool manager_job_give_up(struct run *r) {
    if (r->job.guard || r->started.pid > 0 || r->job.start_due == 0 || clock_boottime() < r->job.start_due)
        return false;
    if (manager_run_wait_again(r))
        return true;
    run_set_reason(r, "berth-runner did not start it within the lease");
    end_not_started(r);
    return true;
}

static void run_on_start_overdue(struct run *r) {
    if (r->state == RUN_STATE_STARTING)
        (void) manager_job_give_up(r);
}

/* The last one that a guard of it can have. */
static void note_deadline(struct run *r, usec_t deadline) {
    bool is_there = deadline > 0 && deadline != USEC_INFINITY;

    r->job.start_due = is_there ? usec_add(deadline, settings_margin(manager_of(r)->settings->lease_usec)) : 0;
}

void manager_job_start(struct run *r) {
    struct manager *m = manager_of(r);
    char pools[DEMANDS_TEXT_SIZE];
    struct message_writer w;
    usec_t deadline = manager_run_deadline(r);

    message_begin(&w, PROTOCOL_START);
    message_put(&w, "run", r->id);
    message_put(&w, "job", r->name);
    message_put(&w, "hash", r->job.hash);
    message_put_u64(&w, "token", run_token(r));
    message_put_u64(&w, "ticket", r->cluster_claim.n_demands > 0 ? r->cluster_claim.ticket : r->host_claim.ticket);
    message_put(&w, "pools", run_format_pools(r, pools));
    message_put(&w, "namespace", m->settings->namespace);
    message_put(&w, "host", m->settings->host);
    message_put_u64(&w, "queued", r->queued.realtime);
    if (deadline != USEC_INFINITY)
        message_put_u64(&w, "deadline", deadline);
    FAILPOINT("start-sending");
    /* Where the runner is not there now, it is told when it is back (runner_on_recovered). */
    r->job.start_sent = runner_link_start(m->runner, &w) == 0;
    note_deadline(r, deadline);
    if (r->job.start_due > 0)
        run_arm_after_io(r, r->job.start_due, run_on_start_overdue);
    FAILPOINT("start-sent");
}

void manager_job_stop(struct run *r) {
    if (r->job.guard)
        guard_link_stop(r->job.guard, r->stop_reason);
    else if (!r->job.start_sent)
        manager_run_end(r, RUN_RESULT_STOPPED);
}

void manager_job_push_deadline(struct run *r) {
    usec_t deadline = manager_run_deadline(r);

    if (!r->job.guard || deadline == 0) /* 0: no heartbeat was answered since start; the guard's own stands */
        return;
    if (r->requeue != RUN_REQUEUE_NONE || r->stop_reason == SUPERVISE_REASON_LEASE_LOST) /* that is another session's */
        return;
    guard_link_set_deadline(r->job.guard, deadline);
    note_deadline(r, deadline);
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
        r->end.exit_code = (int) value;
    if (message_get_u64(report, "signal", &value) == 0)
        r->end.signal = (int) value;
    /* It was over before its guard could be asked. */
    if (message_get_u64(report, "started", &value) == 0 && r->started.realtime == 0)
        manager_run_started(r, 0, value);
    if (message_get_u64(report, "started-boot", &value) == 0 && message_get_u64(report, "ended-boot", &ended_boottime) == 0) {
        r->started.boottime = value;
        r->end.boottime = ended_boottime;
    }
    if (message_get_u64(report, "ended", &value) == 0)
        r->end.realtime = value;
    if (message_get_u64(report, "errno", &value) == 0)
        run_set_reason(r, "%s: %s", stage ? stage : "start", explain(stage ? stage : "start", (int) value));
    else if (reason && strcmp(reason, "none") != 0)
        run_set_reason(r, "%s", reason);
}

void manager_tell_fenced(struct run *r, usec_t ended, usec_t deadline) {
    struct manager *m = manager_of(r);
    usec_t lease_end = usec_add(deadline, settings_margin(m->settings->lease_usec));
    char pools[DEMANDS_TEXT_SIZE], text[DURATION_TEXT_SIZE];
    struct event e = manager_run_event(r, EVENT_FENCED, pools);

    if (deadline == USEC_INFINITY)
        return;
    if (deadline == 0) /* of an earlier berthd */
        event_emit(m->events, &e, "the last process of %s was gone after its lease had ended", r->name);
    else if (ended <= lease_end)
        event_emit(m->events, &e, "the last process of %s was gone %s before the end of its lease", r->name,
                   duration_format(usec_sub(lease_end, ended), text));
    else /* it could not be stopped before: nothing of the host ran */
        event_emit(m->events, &e, "the last process of %s was gone %s after the end of its lease: this host was suspended, or stood still",
                   r->name, duration_format(usec_sub(ended, lease_end), text));
}

static void tell_fenced(struct run *r, const struct message *report) {
    uint64_t before, after = 0;

    if (message_get_u64(report, "gone-before", &before) < 0)
        return;
    (void) message_get_u64(report, "gone-after", &after);
    manager_tell_fenced(r, usec_add(USEC_PER_SEC, after), usec_add(USEC_PER_SEC, before));
}

static void tell_end(struct run *r, const struct message *report, enum run_result result) {
    char pools[DEMANDS_TEXT_SIZE];
    struct event e;

    if (result == RUN_RESULT_GUARD_DIED) {
        e = manager_run_event(r, EVENT_GUARD_DIED, pools);
        event_emit(manager_of(r)->events, &e, "the guard of %s died; the runner ended what was left of it", r->name);
    } else if (result == RUN_RESULT_LEASE_LOST) {
        tell_fenced(r, report);
    }
    manager_tell_exited(r, result);
}

/* The guard says that it did not begin the command: too little time was left, or the lease was lost. */
static bool is_not_begun(const struct run *r, const struct message *report) {
    const char *stage = message_get(report, "stage");

    return message_get(report, "errno") && stage &&
           (strcmp(stage, "deadline") == 0 ||
            (strcmp(stage, "stop") == 0 && (r->requeue != RUN_REQUEUE_NONE || r->stop_reason == SUPERVISE_REASON_LEASE_LOST)));
}

static void report_run(struct run *r, const struct message *report) {
    enum run_result result;

    FAILPOINT("report-seen");
    if (is_not_begun(r, report) && manager_run_wait_again(r))
        return;
    r->requeue = RUN_REQUEUE_NONE;
    take_report(r, report);
    result = result_of(report, r->end.exit_code);
    if (!manager_is_end_told(r))
        tell_end(r, report, result);
    FAILPOINT("exited-told");
    manager_run_end(r, result);
}

/* A report of a run that this berthd does not know: its predecessor was killed before it could record it. At start its permits are
 * taken over first, so that `released` is told when Redis has them back, not before. 0; -ENOMEM; -EBADMSG: it does not say which run
 * it was (the runner found nothing of it). */
static int run_from_report(struct manager *m, const struct message *report, struct run **ret) {
    struct run *r = NULL;
    int k = state_parse_run(report, RUN_KIND_JOB, m->settings, &r);

    if (k < 0)
        return k;
    r->granted = true;
    if (m->phase == MANAGER_PHASE_RECOVERING) {
        k = manager_take_up(m, r, RUN_STATE_STARTING);
    } else {
        k = run_table_add(&m->runs, r, RUN_STATE_STARTING);
        if (k < 0)
            run_free(r);
    }
    if (k == 0 && state_has_run(&manager_of(r)->state, r))
        r->started.realtime = 0; /* take_report() tells */
    if (k == 0)
        *ret = r;
    return k;
}

static void drop_guard(struct run *r) {
    r->job.guard = guard_link_free(r->job.guard);
    r->job.guard_wanted = false;
}

/* --- what guards say --- */

static void guard_on_started(struct guard_link *g, const struct message *started, void *userdata) {
    struct run *r = userdata;
    uint64_t pid = 0, at = 0;

    (void) g;
    if (r->started.pid == 0 && !run_is_over(r) && message_get_u64(started, "pid", &pid) == 0 &&
        message_get_u64(started, "started", &at) == 0)
        manager_run_started(r, (pid_t) pid, at);
}

static void guard_on_state(struct guard_link *g, const struct message *state, void *userdata) {
    struct run *r = userdata;

    /* Known and starting: a `started` that came before this connection is in the state. */
    guard_on_started(g, state, r);
    if (r->stop_reason != SUPERVISE_REASON_NONE || r->requeue != RUN_REQUEUE_NONE) /* before the deadline, for which the guard may wait */
        guard_link_stop(g, r->requeue != RUN_REQUEUE_NONE ? SUPERVISE_REASON_LEASE_LOST : r->stop_reason);
    manager_job_push_deadline(r);
}

static void guard_on_stopping(struct guard_link *g, enum supervise_reason reason, void *userdata) {
    struct run *r = userdata;

    (void) g;
    if (r->state != RUN_STATE_RUNNING && r->state != RUN_STATE_STARTING)
        return; /* we asked for it, and said so */
    run_set_reason(r, "%s", supervise_reason_name(reason));
    manager_tell_stopping(r, reason == SUPERVISE_REASON_LEASE_LOST ? EVENT_LEASE_LOST : EVENT_STOPPING);
    run_enter(r, RUN_STATE_STOPPING);
    manager_arm_stop_overdue(r);
}

static void guard_on_report(struct guard_link *g, const struct message *report, void *userdata) {
    struct run *r = userdata;

    if (!run_is_over(r))
        report_run(r, report);
    FAILPOINT("done-sending");
    guard_link_done(g);
    drop_guard(r);
    manager_again_clear(r);
}

static void guard_on_gone(struct guard_link *g, void *userdata);

static const struct guard_link_handler guard_handler = {
    .on_state = guard_on_state,
    .on_started = guard_on_started,
    .on_stopping = guard_on_stopping,
    .on_report = guard_on_report,
    .on_gone = guard_on_gone,
};

/* --- connecting to guards --- */

bool manager_guard_is_gone(int error) {
    return error == -ENOENT || error == -ECONNREFUSED;
}

void manager_guard_retry(struct manager *m, const char *run, int error) {
    int enabled = SD_EVENT_OFF;

    (void) sd_event_source_get_enabled(m->guard_timer, &enabled);
    if (m->guard_again == MANAGER_GUARD_AGAIN_FIRST)
        manager_log(m, LOG_WARNING, "the guard of run %s cannot be reached, and is tried again: %s", run,
                    strerror(-error));
    if (enabled != SD_EVENT_OFF)
        return;
    /* Neither fails for a source that exists. */
    (void) sd_event_source_set_time_relative(m->guard_timer, m->guard_again);
    (void) sd_event_source_set_enabled(m->guard_timer, SD_EVENT_ONESHOT);
    m->guard_again = m->guard_again < MANAGER_GUARD_AGAIN_MAX / 2 ? 2 * m->guard_again : MANAGER_GUARD_AGAIN_MAX;
}

/* Only a guard that is not there is the runner's business, which then says with a report what became of it. What is out of
 * descriptors or memory here must end no run that is well; its guard stops it at its deadline if this lasts too long. */
static void connect_known(struct run *r) {
    struct manager *m = manager_of(r);
    struct guard_link_handler handler = guard_handler;
    int k;

    handler.userdata = r;
    k = guard_link_new(&r->job.guard, m->event, m->settings->runtime_directory, r->id, &handler);
    r->job.guard_wanted = k < 0 && !manager_guard_is_gone(k);
    if (r->job.guard_wanted)
        manager_guard_retry(m, r->id, k);
    else if (k < 0)
        (void) runner_link_kill(m->runner, r->id);
    else
        m->guard_again = MANAGER_GUARD_AGAIN_FIRST;
}

/* A guard may close a connection without being gone (it had no memory for it): whether it is, connecting tells. */
static void guard_on_gone(struct guard_link *g, void *userdata) {
    struct run *r = userdata;
    bool was_there = guard_link_pid(g) > 0; /* has told its state on it */

    drop_guard(r);
    if (was_there) {
        connect_known(r);
        return;
    }
    r->job.guard_wanted = true;
    manager_guard_retry(manager_of(r), r->id, -ECONNRESET);
}

void manager_guard_connect(struct manager *m, const char *run) {
    struct run *r = manager_find_run(m, run);

    if (!r)
        manager_found_connect(m, run);
    else if (!r->job.guard && !run_is_over(r))
        connect_known(r);
}

static int guards_on_again(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
    struct manager *m = userdata;

    run_table_foreach(r, &m->runs, RUN_STATE_STARTING, RUN_STATE_STOPPING)
            if (r->job.guard_wanted)
                connect_known(r);
    manager_found_again(m);
    return 0;
}

int manager_guards_init(struct manager *m) {
    int k;

    m->guard_again = MANAGER_GUARD_AGAIN_FIRST;
    k = sd_event_add_time(m->event, &m->guard_timer, CLOCK_BOOTTIME, USEC_INFINITY, USEC_PER_MSEC, guards_on_again, m);
    return k < 0 ? k : sd_event_source_set_enabled(m->guard_timer, SD_EVENT_OFF);
}

/* --- what the runner says --- */

static void runner_on_guard(const char *run, void *userdata) {
    manager_guard_connect(userdata, run);
}

static void runner_on_started(const char *run, bool existed, void *userdata) {
    struct manager *m = userdata;

    (void) existed; /* if it is its report that exists, connecting fails, and the runner sends it */
    if (manager_find_run(m, run))
        manager_guard_connect(m, run);
}

/* The runner hung, and nothing of the run is there. False: it is not to run any more. */
static bool start_later(struct run *r) {
    if (r->state == RUN_STATE_STARTING && manager_run_deadline(r) > clock_boottime()) {
        manager_job_start(r); /* its permits are held still */
        return true;
    }
    if (!manager_run_wait_again(r))
        return false;
    manager_again_cleared(r);
    return true;
}

static void runner_on_refused(const char *run, const char *reason, const char *text, void *userdata) {
    struct manager *m = userdata;
    struct run *r = manager_find_run(m, run);

    if (!r || run_is_over(r) || (strcmp(reason, "late") == 0 && start_later(r)))
        return;
    run_set_reason(r, "%s: %s", reason, text ? text : "the runner refused it");
    end_not_started(r);
    if (strcmp(reason, "config-differs") == 0)
        manager_config_differs(m);
}

static void runner_on_report(const struct message *report, void *userdata) {
    struct manager *m = userdata;
    char id[ID_TEXT_SIZE];
    struct run *r;
    int k = 0;

    if (message_get_id(report, "run", id) < 0)
        return;
    r = manager_find_run(m, id);
    if (!r)
        k = run_from_report(m, report, &r);
    if (k < 0 && k != -EBADMSG) { /* it is not forgotten: the runner tells it again */
        manager_recover_failed(m, id, k);
        return;
    }
    if (r) {
        drop_guard(r);
        if (!run_is_over(r) && r->requeue != RUN_REQUEUE_CLEARING)
            report_run(r, report);
    }
    (void) runner_link_forget(m->runner, id);
    if (r && r->requeue == RUN_REQUEUE_CLEARING)
        manager_again_cleared(r);
    else if (r)
        manager_again_clear(r);
    manager_found_reported(m, id);
    manager_recover_check(m);
}

/* Not one that is there and cannot be connected to at the moment. */
static bool is_without_guard(const struct run *r) {
    return r->kind == RUN_KIND_JOB && !r->job.guard && !r->job.guard_wanted;
}

/* The runner is (back) there and has told all guards and reports. A run that should have one and has none: its start was not
 * delivered, or its guard ended unseen. `start` is idempotent, and so is `kill`. */
static void runner_on_recovered(void *userdata) {
    struct manager *m = userdata;

    run_table_foreach(r, &m->runs, RUN_STATE_WAITING, RUN_STATE_WAITING)
        if (r->requeue != RUN_REQUEUE_NONE && is_without_guard(r))
            manager_requeue_recovered(r);
    run_table_foreach(r, &m->runs, RUN_STATE_STARTING, RUN_STATE_STARTING)
        if (is_without_guard(r))
            manager_job_start(r);
    run_table_foreach(r, &m->runs, RUN_STATE_RUNNING, RUN_STATE_RUNNING)
        if (is_without_guard(r))
            (void) runner_link_kill(m->runner, r->id);
    run_table_foreach(r, &m->runs, RUN_STATE_STOPPING, RUN_STATE_STOPPING)
        if (is_without_guard(r))
            (void) runner_link_kill(m->runner, r->id);
    m->runner_recovered = true;
    manager_recover_check(m);
}

static void runner_on_lost(void *userdata) {
    struct manager *m = userdata;

    manager_log(m, LOG_WARNING, "berth-runner is not there; running jobs go on, new ones wait for it");
}

const struct runner_link_handler manager_runner_handler = {
    .on_recovered = runner_on_recovered,
    .on_guard = runner_on_guard,
    .on_started = runner_on_started,
    .on_refused = runner_on_refused,
    .on_report = runner_on_report,
    .on_lost = runner_on_lost,
};
