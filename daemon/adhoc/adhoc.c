/* SPDX-License-Identifier: MIT */
#include "daemon/adhoc/adhoc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/failpoint.h"
#include "daemon/adhoc/adhoc-internal.h"
#include "daemon/adhoc/hold.h"
#include "daemon/runs/run-log.h"

/* How long after the start of berthd a released hold waits for the report of its client. */
#define REPORT_WINDOW USEC_PER_SEC

/* --- the end --- */

static void log_unreported_end(struct run *run, enum run_result result) {
    char pools[DEMANDS_TEXT_SIZE];
    struct event e;

    if (run->adhoc.awaits_client)
        run_set_reason(
            run,
            "it ended while berthd was down; its exit status is known only to the caller of `berth run`");
    else if (result == RUN_RESULT_GUARD_DIED)
        run_set_reason(
            run,
            "`berth run` could not report how its command ended; all processes that had its hold are gone");
    else
        run_set_reason(run, "its client has gone");
    e = run_event(run, EVENT_EXITED, pools);
    e.result = run_result_name(result);
    run_log(run, &e, "%s is over: %s", run->name, run->reason);
}

void adhoc_finish(struct adhoc *adhoc, struct run *run) {
    bool has_started = run->started.pid > 0 || run->started.realtime > 0 || run->adhoc.awaits_client;
    enum run_result result = has_started ? RUN_RESULT_GUARD_DIED : RUN_RESULT_NOT_STARTED;

    FAILPOINT("hold-over");
    if (run->adhoc.end_reported)
        result = run->end.result;
    else
        log_unreported_end(run, result);
    adhoc_call(adhoc, on_ended, run, result);
}

static void hold_on_over(_unused_ struct hold *hold, void *userdata) {
    struct run *run = userdata;
    struct adhoc *adhoc = run->adhoc.owner;

    if (run_is_over(run))
        return;
    run->adhoc.hold_state = HOLD_STATE_RELEASED;
    if (!run->adhoc.awaits_client || run->adhoc.end_reported || clock_boottime() >= adhoc->report_window_end)
        adhoc_finish(adhoc, run);
}

static void adhoc_on_report_window_end(void *userdata) {
    struct adhoc *adhoc = userdata;

    run_table_foreach (run, adhoc->runs, RUN_STATE_STARTING, RUN_STATE_STOPPING)
        if (run->adhoc.hold_state == HOLD_STATE_RELEASED)
            adhoc_finish(adhoc, run);
}

static void open_report_window(struct adhoc *adhoc) {
    adhoc->report_window_end = usec_add(clock_boottime(), REPORT_WINDOW);
    timer_set(&adhoc->report_window, adhoc->report_window_end);
}

/* --- the record of a hold --- */

static void put_end(struct message_writer *w, const struct run *run) {
    message_put(w, "result", run_result_name(run->end.result));
    if (run->end.exit_code >= 0)
        message_put_u64(w, "code", (uint64_t) run->end.exit_code);
    if (run->end.signal >= 0)
        message_put_u64(w, "signal", (uint64_t) run->end.signal);
    message_put_u64(w, "ended", run->end.realtime);
    message_put_u64(w, "ended-boot", run->end.boottime);
}

static void put_hold(struct message_writer *w, struct adhoc *adhoc, const struct run *run) {
    usec_t deadline = adhoc_call(adhoc, get_deadline, run);

    message_begin(w, "hold");
    state_put_run(w, run);
    if (deadline != USEC_INFINITY)
        message_put_u64(w, "deadline", deadline);
    if (run->started.pid > 0)
        message_put_u64(w, "pid", (uint64_t) run->started.pid); /* for people; hold.c adds the identity */
    if (run->adhoc.end_reported)
        put_end(w, run);
}

/* Reads the end that an earlier berthd logged, so that `exited` is logged once. */
static void read_end(struct run *run, const struct message *record) {
    const char *result = message_get(record, "result");
    uint64_t value;

    if (!result)
        return;
    run->end.result = run_result_parse(result);
    run->adhoc.end_reported = run->end.result != RUN_RESULT_NONE;
    if (message_get_u64(record, "code", &value) == 0)
        run->end.exit_code = (int) value;
    if (message_get_u64(record, "signal", &value) == 0)
        run->end.signal = (int) value;
    (void) message_get_u64(record, "ended", &run->end.realtime);
    (void) message_get_u64(record, "ended-boot", &run->end.boottime);
}

void adhoc_write_record(struct adhoc *adhoc, struct run *run) {
    struct message_writer w;
    int r;

    if (!run->adhoc.hold)
        return;
    put_hold(&w, adhoc, run);
    r = hold_write_record(run->adhoc.hold, &w);
    if (r < 0)
        journal_log(adhoc->journal, LOG_WARNING, "hold %s: cannot write its record: %s", run->id,
                    strerror(-r));
}

/* --- holding --- */

static void log_no_hold(struct run *run, const char *directory, int error) {
    char pools[DEMANDS_TEXT_SIZE];
    struct event e;

    run->adhoc.hold_state = HOLD_STATE_FAILED;
    run_set_reason(run, "%s/%s: %s", directory, run->id, strerror(-error));
    e = run_event(run, EVENT_EXITED, pools);
    e.result = run_result_name(RUN_RESULT_NOT_STARTED);
    run_log(run, &e, "%s was not started: cannot make its hold: %s", run->name, run->reason);
}

void adhoc_start(struct adhoc *adhoc, struct run *run) {
    struct hold_handler handler = {
        .on_over = hold_on_over, .userdata = run, .removals = adhoc->state->removals};
    char path[STATE_PATH_SIZE];
    struct message_writer w;
    int r;

    run->adhoc.owner = adhoc;
    put_hold(&w, adhoc, run);
    state_holds_path(adhoc->state, path);
    r = hold_new(&run->adhoc.hold, adhoc->event, path, run->id, &w, &handler, &run->adhoc.hold_fd);
    if (r < 0) {
        log_no_hold(run, path, r);
        adhoc_call(adhoc, on_ended, run, RUN_RESULT_NOT_STARTED);
        return;
    }
    FAILPOINT("hold-made");
    if (run->adhoc.client_pid == 0)
        adhoc_arm_client_due(adhoc, run);
    run_enter(run, RUN_STATE_STARTING);
    state_remove_run(adhoc->state, run); /* the record of the hold has replaced it */
}

void adhoc_stop(struct run *run) {
    run_disarm(run);
    if (run->adhoc.client_pid == 0) /* no client has the hold, so this releases it */
        run->adhoc.hold_fd = close_fd(run->adhoc.hold_fd);
}

pid_t adhoc_get_pid(const struct run *run) {
    return run->adhoc.hold ? hold_get_pid(run->adhoc.hold) : 0;
}

void adhoc_release_hold(struct run *run) {
    run->adhoc.hold_fd = close_fd(run->adhoc.hold_fd);
    run->adhoc.hold = hold_free(run->adhoc.hold);
}

void adhoc_detach(struct run *run) {
    run->adhoc.hold_fd = close_fd(run->adhoc.hold_fd);
    run->adhoc.hold = hold_detach(run->adhoc.hold);
}

int adhoc_take_hold_fd(struct run *run) {
    return steal_fd(&run->adhoc.hold_fd);
}

/* --- holds found at start --- */

struct recovery {
    struct adhoc *adhoc;
    const struct settings *settings;
};

static int open_hold(struct adhoc *adhoc, struct run *run, const char *id, const struct message *record) {
    struct hold_handler handler = {
        .on_over = hold_on_over, .userdata = run, .removals = adhoc->state->removals};
    char path[STATE_PATH_SIZE];
    uint64_t pid = 0;

    if (strcmp(run->id, id) != 0)
        return -EBADMSG;
    if (message_get_u64(record, "pid", &pid) == 0)
        run->started.pid = (pid_t) pid;
    read_end(run, record);
    run->granted = run->adhoc.awaits_client = true;
    run->adhoc.owner = adhoc;
    return hold_open(&run->adhoc.hold, adhoc->event, state_holds_path(adhoc->state, path), id, record,
                     &handler);
}

static void hold_on_found(const char *id, const struct message *record, void *userdata) {
    const struct recovery *recovery = userdata;
    struct adhoc *adhoc = recovery->adhoc;
    char what[ID_TEXT_SIZE + 8];
    struct run *run = NULL;
    int r;

    r = state_parse_run(record, RUN_KIND_ADHOC, recovery->settings, &run);
    if (r == 0)
        r = open_hold(adhoc, run, id, record);
    if (r < 0)
        run_free(run);
    else
        r = adhoc_call(adhoc, on_recovered, run);
    if (r < 0) {
        snprintf(what, sizeof(what), "hold %s", id);
        adhoc_call(adhoc, on_unrecoverable, what, r);
        return;
    }
    if (run->started.realtime > 0)
        run_enter(run, RUN_STATE_RUNNING);
}

int adhoc_recover(struct adhoc *adhoc, const struct settings *settings) {
    struct recovery recovery = {.adhoc = adhoc, .settings = settings};
    char path[STATE_PATH_SIZE];
    int r;

    open_report_window(adhoc);
    r = hold_recover(state_holds_path(adhoc->state, path), hold_on_found, &recovery);
    if (r < 0)
        journal_log(adhoc->journal, LOG_ERR, "%s: cannot read: %s", path, strerror(-r));
    return r;
}

/* --- new and free --- */

int adhoc_new(struct adhoc **ret, sd_event *event, struct journal *journal, struct run_table *runs,
              const struct state *state, const struct adhoc_options *options,
              const struct adhoc_handler *handler) {
    struct adhoc *adhoc = calloc(1, sizeof(*adhoc));
    int r;

    if (!adhoc)
        return -ENOMEM;
    adhoc->event = sd_event_ref(event);
    adhoc->journal = journal;
    adhoc->runs = runs;
    adhoc->state = state;
    adhoc->options = *options;
    adhoc->handler = *handler;
    r = timer_init(&adhoc->report_window, event, SD_EVENT_PRIORITY_NORMAL, adhoc_on_report_window_end, adhoc);
    *ret = r < 0 ? adhoc_free(adhoc) : adhoc;
    return r;
}

struct adhoc *adhoc_free(struct adhoc *adhoc) {
    if (!adhoc)
        return NULL;
    timer_done(&adhoc->report_window);
    sd_event_unref(adhoc->event);
    free(adhoc);
    return NULL;
}
