/* SPDX-License-Identifier: MIT */
#pragma once

/* For daemon/executor/ alone: executor.c (towards the runner), guards.c (connections to guards of known
 * runs), prepared.c (guards that wait for a grant), report.c (reports of runs), recovery-guards.c (guards
 * found at start). */

#include <syslog.h>

#include "base/timer.h"
#include "daemon/executor/executor.h"
#include "daemon/executor/runner-link.h"

#define GUARD_RETRY_MIN (50 * USEC_PER_MSEC)
#define GUARD_RETRY_MAX USEC_PER_SEC
#define STOP_SLACK (2 * USEC_PER_SEC) /* after the stop timeout; then the runner kills */

struct executor {
    sd_event *event;
    struct journal *journal;
    struct run_table *runs;
    struct executor_handler handler;
    struct runner_link *runner;
    bool is_runner_recovered;     /* the runner has sent all guards and reports, once since start */
    struct list prepared;         /* struct prepared */
    struct defer prepare;         /* prepares runs that are near */
    struct timer answers_timer;   /* set while guards were asked whether they live */
    usec_t ask_again;             /* boottime from which they are asked again */
    struct timer retry_timer;     /* set while a connection to a guard must be retried */
    usec_t retry_usec;            /* until the next try */
    struct list unidentified_guards; /* struct unidentified_guard: neither state nor report has come */
    char *directory, *with_runner, *config;
    char namespace[NAME_MAX_LENGTH + 1], host[NAME_MAX_LENGTH + 1];
    usec_t margin_usec, silence_usec;
};

#define executor_call(executor, callback, ...)                                                              \
    (executor)->handler.callback(__VA_ARGS__, (executor)->handler.userdata)

/* --- executor.c --- */
/* Asks the runner to confirm that nothing is left of the attempt of a requeued run. */
void executor_clear(struct run *run);
/* Arms the kill by the runner, in case that the stop does not end in time. */
void executor_arm_kill(struct run *run);
/* Adds the fields of `start` and `prepare` that are known before the grant. */
void executor_put_run(const struct executor *executor, const struct run *run, struct message_writer *w);
/* Notes that a guard of the run may have this deadline. Arms the time from which its start can be given up. */
void executor_note_start(struct run *run, usec_t deadline);

/* --- time-limit.c --- */
/* Stops the run soon after the time limit that this `started` or `state` names, in case that its guard hangs and does
 * not. */
void executor_arm_timeout(struct run *run, const struct message *started);
/* The same for a guard that hangs before it reports the start. Nothing if the job has no time limit. */
void executor_arm_start_timeout(struct run *run);

/* --- guards.c --- */
int executor_guards_init(struct executor *executor);
void executor_guard_connect(struct executor *executor, const char *run); /* the run may be unknown yet */
void executor_guard_drop(struct run *run);
void executor_guard_take(struct run *run, struct guard_link *guard); /* a prepared one that has its grant */
void executor_guard_check(struct run *run); /* reports it if it is silent */
/* Returns whether an error of guard_link_new() means that there is no such guard. Other errors are transient. */
bool executor_guard_is_gone(int error);
/* Retries the connections to all guards that are wanted, after a while. Needs no memory. */
void executor_guard_retry(struct executor *executor, const char *run, int error);

/* --- prepared.c --- */
void executor_prepared_forget(struct executor *executor); /* prepared guards ended with their runner */
int executor_prepared_init(struct executor *executor);
/* Sends the grant to the run's prepared guard, now or when it is connected. Returns false without such a
 * guard. */
bool executor_grant_prepared(struct executor *executor, struct run *run);
void executor_prepared_is_there(struct executor *executor, const char *run); /* its guard listens */
/* The runner did not prepare the run. Returns false if the runner was not asked to. */
bool executor_prepared_refused(struct executor *executor, const char *run);

/* --- report.c --- */
void executor_take_report(struct run *run, const struct message *report);

/* --- recovery-guards.c --- */
void unidentified_guard_add(struct executor *executor, const char *run);
void unidentified_guards_retry(struct executor *executor); /* connections that failed */
void unidentified_guards_forget(struct executor *executor, const char *run); /* its run is over */
void unidentified_guards_free(struct executor *executor);
