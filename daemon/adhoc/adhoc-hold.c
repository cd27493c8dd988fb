/* SPDX-License-Identifier: MIT */

/* What a granted `berth run` holds: the client starts and stops the command itself; berthd keeps the lease, hears how the command ended,
 * and lets go of the permits when the hold is over. */

#include <string.h>

#include "base/duration.h"
#include "base/failpoint.h"
#include "base/protocol.h"
#include "daemon/manager-internal.h"

/* --- the end --- */

/* The hold is over and nothing more is waited for. */
static void judge(struct run *r) {
    bool started = r->started.pid > 0 || r->started.realtime > 0 || r->adhoc.awaits_client;
    char pools[DEMANDS_TEXT_SIZE];
    struct event e;

    if (r->adhoc.end_reported) {
        manager_run_end(r, r->end.result);
        return;
    }
    run_set_reason(r, "%s", r->adhoc.awaits_client ? "it ended while berthd was away: how, the caller of `berth run` alone knows"
                            : started  ? "`berth run` could not say how its command ended; all that had its hold are gone"
                                       : "its client has gone");
    e = run_event(r, EVENT_EXITED, pools);
    e.result = run_result_name(started ? RUN_RESULT_GUARD_DIED : RUN_RESULT_NOT_STARTED);
    run_log(r, &e, "%s is over: %s", r->name, r->reason);
    manager_run_end(r, started ? RUN_RESULT_GUARD_DIED : RUN_RESULT_NOT_STARTED);
}

static void hold_on_over(_unused_ struct hold *h, void *userdata) {
    struct run *r = userdata;

    if (run_is_over(r))
        return;
    FAILPOINT("hold-over");
    r->adhoc.hold_state = HOLD_STATE_RELEASED;
    if (!r->adhoc.awaits_client || r->adhoc.end_reported || clock_boottime() >= manager_of(r)->words_due)
        judge(r);
}

static int manager_on_words_due(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
    struct manager *m = userdata;

    run_table_foreach(r, &m->runs, RUN_STATE_STARTING, RUN_STATE_STOPPING)
            if (r->adhoc.hold_state == HOLD_STATE_RELEASED)
                judge(r);
    return 0;
}

int manager_hold_await_words(struct manager *m) {
    m->words_due = usec_add(clock_boottime(), MANAGER_WORDS_TIME);
    return sd_event_add_time(m->event, &m->words_timer, CLOCK_BOOTTIME, m->words_due, USEC_PER_MSEC, manager_on_words_due, m);
}

bool manager_hold_is_lost(struct run *r) {
    if (r->adhoc.hold_state != HOLD_STATE_RELEASED)
        return false;
    r->adhoc.awaits_client = false;
    run_set_reason(r, "its client did not get the hold");
    judge(r);
    return true;
}

/* --- holding --- */

static void put_hold(struct message_writer *w, const struct run *r) {
    usec_t deadline = manager_run_deadline(r);

    message_begin(w, "hold");
    state_put_run(w, r);
    if (deadline != USEC_INFINITY)
        message_put_u64(w, "deadline", deadline);
    if (r->started.pid > 0)
        message_put_u64(w, "pid", (uint64_t) r->started.pid); /* for people; the hold keeps the process's identity itself */
    if (!r->adhoc.end_reported)
        return;
    message_put(w, "result", run_result_name(r->end.result));
    if (r->end.exit_code >= 0)
        message_put_u64(w, "code", (uint64_t) r->end.exit_code);
    if (r->end.signal >= 0)
        message_put_u64(w, "signal", (uint64_t) r->end.signal);
    message_put_u64(w, "ended", r->end.realtime);
    message_put_u64(w, "ended-boot", r->end.boottime);
}

/* It was told already: `exited` is in the journal, and is not to be there twice. */
static void read_end(struct run *r, const struct message *record) {
    const char *result = message_get(record, "result");
    uint64_t value;

    if (!result)
        return;
    r->end.result = run_result_parse(result);
    r->adhoc.end_reported = r->end.result != RUN_RESULT_NONE;
    if (message_get_u64(record, "code", &value) == 0)
        r->end.exit_code = (int) value;
    if (message_get_u64(record, "signal", &value) == 0)
        r->end.signal = (int) value;
    (void) message_get_u64(record, "ended", &r->end.realtime);
    (void) message_get_u64(record, "ended-boot", &r->end.boottime);
}

void manager_hold_write(struct run *r) {
    struct message_writer w;
    int k;

    put_hold(&w, r);
    k = r->adhoc.hold ? hold_write_record(r->adhoc.hold, &w) : 0;
    if (k < 0)
        manager_log(manager_of(r), LOG_WARNING, "the record of hold %s cannot be written: %s", r->id,
                    strerror(-k));
}

static void run_on_client_overdue(struct run *r) {
    if (r->adhoc.client_pid == 0)
        manager_client_gone(r);
}

void manager_hold_start(struct run *r) {
    struct manager *m = manager_of(r);
    struct hold_handler handler = {.on_over = hold_on_over, .userdata = r, .removals = m->removals};
    char path[STATE_PATH_SIZE], pools[DEMANDS_TEXT_SIZE];
    struct message_writer w;
    struct event e;
    int k;

    put_hold(&w, r);
    k = hold_new(&r->adhoc.hold, m->event, state_holds_path(&m->state, path), r->id, &w, &handler, &r->adhoc.hold_fd);
    if (k < 0) {
        r->adhoc.hold_state = HOLD_STATE_FAILED;
        run_set_reason(r, "%s/%s: %s", path, r->id, strerror(-k));
        e = run_event(r, EVENT_EXITED, pools);
        e.result = run_result_name(RUN_RESULT_NOT_STARTED);
        event_emit(m->events, &e, "%s cannot be given its hold: %s", r->name, r->reason);
        manager_run_end(r, RUN_RESULT_NOT_STARTED);
        return;
    }
    FAILPOINT("hold-made");
    state_remove_run(&manager_of(r)->state, r); /* the hold's record has it now */
    if (r->adhoc.client_pid == 0)
        run_arm(r, m->clients_due, run_on_client_overdue);
    run_enter(r, RUN_STATE_STARTING);
}

void manager_hold_done(struct run *r) {
    r->adhoc.hold_fd = close_fd(r->adhoc.hold_fd);
    r->adhoc.hold = hold_free(r->adhoc.hold);
}

int manager_take_hold_fd(struct run *r) {
    return steal_fd(&r->adhoc.hold_fd);
}

/* A berthd that was away, or hung, hears of a start when it is over. */
static void believe_start(struct run *r, pid_t pid, usec_t told) {
    usec_t now = clock_boottime(), at = told >= r->queued.boottime && told <= now ? told : now;

    manager_run_started(r, pid, usec_sub(clock_realtime(), usec_sub(now, at)));
}

void manager_client_started(struct run *r, pid_t pid, usec_t started) {
    int k;

    if (r->state < RUN_STATE_STARTING || run_is_over(r) || r->started.pid > 0 || !r->adhoc.hold)
        return;
    k = hold_watch_command(r->adhoc.hold, r->adhoc.client_pid, pid);
    if (k < 0 && k != -ESRCH)
        manager_log(manager_of(r), LOG_WARNING, "run %s: process %d cannot be watched: %s", r->id, (int) pid,
                    strerror(-k));
    believe_start(r, pid, started);
    FAILPOINT("hold-started-seen");
    manager_hold_write(r);
}

/* By when its processes had to be gone (the margin not counted), as the client knows: what was pushed since then it did not have. */
static usec_t believed_deadline(const struct run *r, usec_t told) {
    const struct settings *settings = manager_of(r)->settings;
    usec_t latest = usec_sub(usec_add(clock_boottime(), settings->lease_usec), settings_margin(settings->lease_usec));

    return told > 0 && told <= latest ? told : manager_run_deadline(r);
}

static usec_t believed_end(const struct run *r, usec_t told) {
    usec_t now = clock_boottime(), begin = r->started.boottime > 0 ? r->started.boottime : r->queued.boottime;

    return told > 0 && told <= now && told >= begin ? told : now;
}

static void log_fenced(const struct run *r, usec_t deadline) {
    usec_t lease_end = usec_add(deadline, settings_margin(manager_of(r)->settings->lease_usec));

    if (deadline != USEC_INFINITY)
        run_log_fenced(r, deadline == 0 /* of an earlier berthd */ ? RUN_SPARE_UNKNOWN : (int64_t) (lease_end - r->end.boottime));
}

void manager_client_ended(struct run *r, const struct manager_ended *ended) {
    if (run_is_over(r) || r->adhoc.end_reported || r->state < RUN_STATE_STARTING)
        return;
    if (ended->result == RUN_RESULT_NOT_STARTED && r->stop_reason == SUPERVISE_REASON_LEASE_LOST && manager_run_wait_again(r))
        return;
    FAILPOINT("hold-ended-seen");
    if (ended->pid > 0 && r->started.pid == 0 && r->started.realtime == 0)
        believe_start(r, ended->pid, ended->started);
    r->adhoc.end_reported = true;
    r->end.exit_code = ended->code;
    r->end.signal = ended->signal;
    r->end.boottime = believed_end(r, ended->at);
    r->end.realtime = usec_sub(clock_realtime(), usec_sub(clock_boottime(), r->end.boottime));
    r->end.result = ended->result != RUN_RESULT_NONE ? ended->result : ended->code == 0 ? RUN_RESULT_SUCCESS : RUN_RESULT_FAILURE;
    if (r->end.result == RUN_RESULT_LEASE_LOST)
        log_fenced(r, believed_deadline(r, ended->deadline));
    run_log_exited(r, r->end.result);
    FAILPOINT("hold-ended-told");
    manager_hold_write(r); /* something of it may have the hold still, when we are gone */
    r->adhoc.hold_fd = close_fd(r->adhoc.hold_fd);
    r->adhoc.client_pid = 0; /* it has no more to say */
    run_changed(r);
    if (r->adhoc.hold_state == HOLD_STATE_RELEASED)
        judge(r);
}

/* A hold found at start. */
void manager_hold_found(const char *run, const struct message *record, void *userdata) {
    struct manager *m = userdata;
    struct hold_handler handler = {.on_over = hold_on_over, .removals = m->removals};
    char path[STATE_PATH_SIZE], what[ID_TEXT_SIZE + 8];
    struct run *r = NULL;
    uint64_t pid = 0;
    int k;

    k = state_parse_run(record, RUN_KIND_ADHOC, m->settings, &r);
    if (k == 0 && strcmp(r->id, run) != 0)
        k = -EBADMSG;
    if (k == 0) {
        if (message_get_u64(record, "pid", &pid) == 0)
            r->started.pid = (pid_t) pid;
        read_end(r, record);
        r->granted = r->adhoc.awaits_client = true;
        handler.userdata = r;
        k = hold_open(&r->adhoc.hold, m->event, state_holds_path(&m->state, path), run, record, &handler);
    }
    if (k < 0)
        run_free(r);
    else
        k = manager_take_up(m, r, RUN_STATE_STARTING);
    if (k < 0) {
        snprintf(what, sizeof(what), "hold %s", run);
        (void) manager_recover_failed(m, what, k);
        return;
    }
    if (r->started.realtime > 0)
        run_enter(r, RUN_STATE_RUNNING);
}
