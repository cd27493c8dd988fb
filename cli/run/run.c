/* SPDX-License-Identifier: MIT */
/* `berth run`: a command in the caller's own context, once its permits are held. */
#include "cli/run/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/standard-fds.h"
#include "cli/run/run-adhoc.h"

void adhoc_exit(struct adhoc *a, int status) {
    if (a->phase == ADHOC_PHASE_DONE)
        return;
    a->phase = ADHOC_PHASE_DONE;
    (void) sd_event_exit(a->event, status);
}

void adhoc_end_by(struct adhoc *a, int signal) {
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP)
        a->end_signal = signal;
}

/* A bash script whose command exits after a Ctrl-C, even with 130, goes on with its next command. A unit whose process exits with 143
 * after a stop has failed. Both look whether a signal ended the process. Returns where the signal ends nobody (PID 1). */
static void end_by(int signal) {
    sigset_t mask;

    if (raise(signal) == 0 && sigemptyset(&mask) == 0 && sigaddset(&mask, signal) == 0)
        (void) sigprocmask(SIG_UNBLOCK, &mask, NULL);
}

static void adhoc_done(struct adhoc *a) {
    run_connection_stop(a);
    timer_done(&a->connection.retry);
    timer_done(&a->connection.first_reply);
    timer_done(&a->connection.wait_limit);
    timer_done(&a->waiting.timer);
    timer_done(&a->report.limit);
    defer_done(&a->command.start);
    defer_done(&a->command.prepare);
    a->command.prepared = supervise_free(a->command.prepared);
    json_decref(a->report.params);
    a->command.supervise = supervise_free(a->command.supervise);
    /* Last, because the report on the connection must arrive before the end of the hold. */
    a->grant.hold_fd = close_fd(a->grant.hold_fd);
    a->event = sd_event_unref(a->event);
    a->signals_fds[0] = close_fd(a->signals_fds[0]);
    a->signals_fds[1] = close_fd(a->signals_fds[1]);
    run_say_rest(a);
}

static int adhoc_init(struct adhoc *a) {
    int r = standard_fds_fill(); /* until the exec of the command */

    if (r < 0)
        return r;
    r = sd_event_new(&a->event);
    if (r >= 0)
        r = run_connection_init(a);
    if (r >= 0)
        r = run_waiting_init(a);
    if (r >= 0)
        r = report_end_init(a);
    if (r >= 0)
        r = run_command_init(a);
    return r < 0 ? r : run_signals_init(a);
}

static int run(const struct run_options *options, int *ret_signal) {
    _cleanup_(adhoc_done) struct adhoc a = {
        .options = *options,
        .signals_fds = {-1, -1},
        .connection.wait_deadline = USEC_INFINITY,
        .grant = {.hold_fd = -1, .deadline = USEC_INFINITY, .stop_timeout_usec = USEC_INFINITY}};
    int r = adhoc_init(&a);

    if (r < 0) {
        fprintf(stderr, "berth: cannot begin: %s\n", strerror(-r));
        return EXIT_INTERNAL;
    }
    r = run_connection_start(&a);
    if (r != 0)
        return r;
    r = sd_event_loop(a.event);
    *ret_signal = a.end_signal;
    if (r >= 0)
        return r;
    fprintf(stderr, "berth: the event loop failed: %s\n", strerror(-r));
    return a.phase == ADHOC_PHASE_CLAIMING ? EXIT_INTERNAL : EXIT_FAILED;
}

int run_adhoc(const struct run_options *options) {
    int signal = 0, status = run(options, &signal);

    if (signal != 0)
        end_by(signal);
    return status;
}
