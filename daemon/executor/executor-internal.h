/* SPDX-License-Identifier: MIT */
#pragma once

/* Between the files of daemon/executor/: executor.c (towards the runner), guards.c (connections to guards of
 * known runs), report.c (reports of runs), recovery-guards.c (guards found at start). */

#include <syslog.h>

#include "base/timer.h"
#include "daemon/executor/executor.h"
#include "daemon/executor/runner-link.h"

#define GUARD_RETRY_MIN (50 * USEC_PER_MSEC)
#define GUARD_RETRY_MAX USEC_PER_SEC
#define STOP_SLACK (2 * USEC_PER_SEC) /* after a stop should have ended; then the runner kills */

struct executor {
    sd_event *event;
    struct journal *journal;
    struct run_table *runs;
    struct executor_handler handler;
    struct runner_link *runner;
    bool is_runner_recovered;     /* the runner has sent all guards and reports, once since start */
    struct timer retry_timer;     /* set while a guard is to be connected to once more */
    usec_t retry_usec;            /* until the next try */
    struct list
        unidentified_guards; /* struct unidentified_guard: neither their state nor their report has come */
    char *directory, *with_runner, *config;
    char namespace[NAME_MAX_LENGTH + 1], host[NAME_MAX_LENGTH + 1];
    usec_t margin_usec, silence_usec;
};

#define executor_call(executor, callback, ...)                                                              \
    (executor)->handler.callback(__VA_ARGS__, (executor)->handler.userdata)

/* --- executor.c --- */
void executor_clear(
    struct run *run); /* of a requeued run: the runner shall confirm that nothing is left of it */
void executor_arm_kill(struct run *run);

/* --- guards.c --- */
int executor_guards_init(struct executor *executor);
void executor_guard_connect(struct executor *executor,
                            const char *run); /* of a run that is known, or not yet */
void executor_guard_drop(struct run *run);
/* Whether an error of guard_link_new() means that there is no such guard. Any other one is transient. */
bool executor_guard_is_gone(int error);
/* All guards that are wanted are tried again in a while. Needs no memory. */
void executor_guard_retry(struct executor *executor, const char *run, int error);

/* --- report.c --- */
void executor_take_report(struct run *run, const struct message *report);

/* --- recovery-guards.c --- */
void unidentified_guard_add(struct executor *executor, const char *run);
void unidentified_guards_retry(struct executor *executor); /* those that could not be connected to */
void unidentified_guards_forget(struct executor *executor, const char *run); /* its run is over */
void unidentified_guards_free(struct executor *executor);
