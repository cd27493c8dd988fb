/* SPDX-License-Identifier: MIT */
/* `berth run`: a command in the caller's own context, once its permits are held. */
#include "cli/run/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/standard-fds.h"
#include "cli/run/run-adhoc.h"
#include "cli/verbs.h"

const char verb_run_help[] =
    "berth run -p POOL[:N] [OPTION...] [--] COMMAND [ARG...]\n"
    "\n"
    "Waits for the permits, runs the command while it holds them, and exits as the\n"
    "command did.\n"
    "\n"
    "  -p POOL[:N]             N permits (1 to 1000; default 1) of POOL; may be\n"
    "                          repeated: all pools are granted together\n"
    "  -n                      do not wait: exit with 75 unless the permits are free\n"
    "  --wait DURATION         wait at most that long, then exit with 75\n"
    "  --timeout DURATION      stop the command after that time, exit with 124\n"
    "  --head-start DURATION   queue as if it had already waited that long\n"
    "  --name LABEL            shown to others (default: the command's name)\n"
    "  --on-lease-lost ACTION  stop (default) or continue\n"
    "  --stop-timeout DURATION from the stop signal to the kill of all its processes\n"
    "  -E CODE                 exit with CODE instead of 75\n"
    "  -v                      print what it waits for, also without a terminal\n"
    "\n"
    "Exit status: the command's, 128+N if signal N ended it; 64 wrong usage,\n"
    "65 no such pool, 69 berthd not reachable, 75 no permits, 76 lease lost,\n"
    "77 not allowed, 78 config error, 124 timeout, 125 berth failed after the grant,\n"
    "126 command not executable, 127 command not found.\n";

void adhoc_exit(struct adhoc *a, int status) {
    if (a->phase == ADHOC_PHASE_DONE)
        return;
    a->phase = ADHOC_PHASE_DONE;
    (void) sd_event_exit(a->event, status);
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
    /* The connection is closed first: it carried the report, which must arrive before the end of the hold.
     */
    a->grant.hold_fd = close_fd(a->grant.hold_fd);
    a->event = sd_event_unref(a->event);
}

static int adhoc_init(struct adhoc *a) {
    int r = standard_fds_fill(); /* the command still finds them closed */

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

int verb_run(int argc, char **argv) {
    char error[RUN_OPTIONS_ERROR_SIZE];
    _cleanup_(adhoc_done) struct adhoc a = {
        .connection.wait_deadline = USEC_INFINITY,
        .grant = {.hold_fd = -1, .deadline = USEC_INFINITY, .stop_timeout_usec = USEC_INFINITY}};
    int r = run_options_parse(argc, argv, &a.options, error);

    if (r == RUN_OPTIONS_HELP) {
        fputs(verb_run_help, stdout);
        return 0;
    }
    if (r != 0)
        return options_wrong_usage(argv[0], "%s", error);
    r = adhoc_init(&a);
    if (r < 0) {
        fprintf(stderr, "berth: cannot begin: %s\n", strerror(-r));
        return EXIT_INTERNAL;
    }
    r = run_connection_start(&a);
    if (r != 0)
        return r;
    r = sd_event_loop(a.event);
    if (r >= 0)
        return r;
    fprintf(stderr, "berth: broken: %s\n", strerror(-r));
    return a.phase == ADHOC_PHASE_CLAIMING ? EXIT_INTERNAL : EXIT_FAILED;
}
