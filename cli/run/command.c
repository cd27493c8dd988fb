/* SPDX-License-Identifier: MIT */
/* The command of `berth run`: started in the caller's context, awaited with all its descendants, stopped
 * when necessary. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/duration.h"
#include "cli/run/run-adhoc.h"

#define STOP_TIMEOUT (5 * USEC_PER_SEC) /* if berthd sent none (nested) */
#define HOLD_FD_MIN 20 /* above the descriptors of a script's `exec 3>file`, which would close the hold */

/* Returns whether execvp() could find the command. */
static bool command_exists(const char *command) {
    const char *folder = getenv("PATH");
    char path[PATH_MAX];

    if (strchr(command, '/'))
        return access(command, F_OK) == 0;
    for (size_t n; folder; folder = folder[n] ? folder + n + 1 : NULL) {
        n = strcspn(folder, ":");
        (void) snprintf(path, sizeof(path), "%.*s%s%s", (int) n, folder, n > 0 ? "/" : "", command);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* Prints why the command never ran. Returns the exit status. */
static int not_started_status(struct adhoc *a, const struct supervise_result *result) {
    const char *command = a->options.command[0];

    if (strcmp(result->stage, "exec") != 0) {
        run_say(a, "berth: cannot start %s: %s: %s\n", command, result->stage, strerror(result->exec_errno));
        return EXIT_FAILED;
    }
    if (result->exec_errno == ENOENT) {
        run_say(a, "berth: %s: %s\n", command,
                command_exists(command) ? "its interpreter or loader does not exist (does the #! line end in CR?)" : "command not found");
        return EXIT_NO_COMMAND;
    }
    run_say(a, "berth: cannot execute %s: %s\n", command, strerror(result->exec_errno));
    return EXIT_CANNOT_EXECUTE;
}

static void command_begin(struct adhoc *a);

/* Returns the exit status, and stores the result for berthd (NULL: the command ended by itself). */
static int ended_status(struct adhoc *a, const struct supervise_result *result, const char **ret_text) {
    int own = result->code == CLD_EXITED ? result->status : EXIT_SIGNAL + result->status;
    char limit[DURATION_TEXT_SIZE];

    switch (result->reason) {
    case SUPERVISE_REASON_NONE:
        *ret_text = NULL;
        if (result->code != CLD_EXITED)
            adhoc_end_by(a, result->status);
        return own;
    case SUPERVISE_REASON_STOPPED:
    case SUPERVISE_REASON_REVOKED:
    case SUPERVISE_REASON_SHUTDOWN:
        run_say(a, "berth: the command was stopped%s\n",
                result->reason == SUPERVISE_REASON_REVOKED    ? ": its permits were revoked"
                : result->reason == SUPERVISE_REASON_SHUTDOWN ? ": berthd is stopping on this host"
                                                              : "");
        *ret_text = "stopped";
        return own;
    case SUPERVISE_REASON_TIMEOUT:
        run_say(a, "berth: stopped after its timeout of %s\n", duration_format(a->options.timeout_usec, limit));
        *ret_text = "timeout";
        return EXIT_TIMEOUT;
    case SUPERVISE_REASON_LEASE_LOST:
        run_say(a, "berth: the lease was lost; the command was stopped\n");
        *ret_text = "lease-lost";
        return EXIT_LEASE_LOST;
    }
    return EXIT_INTERNAL;
}

static void command_on_started(struct supervise *s, pid_t pid, void *userdata) {
    struct adhoc *a = userdata;

    a->command.pid = pid;
    a->command.started = supervise_started(s);
    if (!a->grant.facts.is_nested)
        run_connection_report_started(a);
}

static void command_on_stopping(_unused_ struct supervise *s, enum supervise_reason reason, void *userdata) {
    struct adhoc *a = userdata;

    if (a->options.verbose)
        run_say(a, "berth: stopping the command (%s)\n", supervise_reason_name(reason));
}

static void command_on_stuck(_unused_ struct supervise *s, const char *what, void *userdata) {
    struct adhoc *a = userdata;

    run_say(a, "berth: the command was killed and does not end: %s; its permits stay taken until it ends\n",
            what);
    if (!a->grant.facts.is_nested)
        run_connection_report_stuck(a, what);
}

/* Returns whether this process group has the terminal. */
static bool is_foreground(void) {
    _cleanup_close_ int tty = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

    return tty >= 0 && tcgetpgrp(tty) == getpgrp();
}

/* Called when the command stopped itself, as many programs do on Ctrl-Z. The shell waits for this
 * process, so this process stops, too. It does not follow a SIGSTOP from elsewhere, because nobody would
 * continue it. */
static void command_on_suspended(_unused_ struct supervise *s, _unused_ void *userdata) {
    if (is_foreground())
        run_signals_suspend();
}

static void command_on_left(_unused_ struct supervise *s, void *userdata) {
    run_waiting_on_left(userdata);
}

static void command_on_done(struct supervise *s, const struct supervise_result *result, void *userdata) {
    struct adhoc *a = userdata;
    const char *text = "not-started";
    int status;

    if (result->exec_errno == ETIME) { /* the deadline was too near when the child was about to exec */
        a->command.supervise = supervise_free(s);
        if (a->grant.is_lost)
            run_connection_give_back(a);
        else
            command_begin(a);
        return;
    }
    if (result->exec_errno != 0) {
        report_end(a, not_started_status(a, result), NULL, text);
        return;
    }
    status = ended_status(a, result, &text);
    report_end(a, status, result, text);
}

static void move_hold(struct adhoc *a) {
    int fd = a->grant.hold_fd >= 0 && a->grant.hold_fd < HOLD_FD_MIN ? fcntl(a->grant.hold_fd, F_DUPFD_CLOEXEC, HOLD_FD_MIN) : -1;

    if (fd < 0)
        return; /* a low limit on descriptors: the hold keeps its number */
    close_fd(a->grant.hold_fd);
    a->grant.hold_fd = fd;
}

/* Called in the child. The hold comes through the gate with any number. */
static int pass_hold(struct adhoc *a) {
    move_hold(a);
    return a->grant.hold_fd >= 0 && fcntl(a->grant.hold_fd, F_SETFD, 0) < 0 ? errno : 0;
}

/* Swaps a variable, named by the begin of its text, with the one at this index of environ. */
static void put_at(size_t place, const char *assignment) {
    for (char **e = environ; *e; e++)
        if (strncmp(*e, assignment, strlen(assignment)) == 0) {
            char *other = environ[place];

            environ[place] = *e;
            *e = other;
            return;
        }
}

static int put_environment(const struct adhoc *a) {
    const struct run_facts *facts = &a->grant.facts;
    char token[24], hold[16];
    int r;

    if (facts->is_nested)
        return 0;
    snprintf(token, sizeof(token), "%" PRIu64, facts->token);
    snprintf(hold, sizeof(hold), "%d", a->grant.hold_fd);
    r = setenv("BERTH_JOB", a->options.name, 1);
    r |= setenv("BERTH_RUN", facts->run, 1);
    r |= setenv("BERTH_HOLD", hold, 1);
    r |= setenv("BERTH_POOLS", facts->pools, 1);
    r |= setenv("BERTH_TOKEN", token, 1);
    r |= setenv("BERTH_HOST", facts->host, 1);
    r |= setenv("BERTH_NAMESPACE", facts->namespace, 1);
    if (r != 0)
        return ENOMEM;
    /* berth-runner looks for these two in the begin of an environment alone (process-environ.c). */
    put_at(0, "BERTH_RUN=");
    put_at(1, "BERTH_TOKEN=");
    return 0;
}

/* A child at a closed gate writes now what it will write after the grant. Only a first write copies a page. */
static void touch_memory(struct adhoc *a) {
    if (a->command.gate.child < 0)
        return;
    a->grant.facts = (struct run_facts) {0};
    (void) put_environment(a);
}

/* Runs between fork and exec: restores the caller's context and passes on the hold. */
static int command_child(void *userdata, const char **ret_stage) {
    struct adhoc *a = userdata;
    int r;

    *ret_stage = "parent";
    /* Not of getppid(), which is another process if the parent was killed. */
    r = supervise_child_die_with_parent(a->command.own_pid);
    if (r != 0)
        return r;
    *ret_stage = "signals";
    r = run_signals_restore(a);
    if (r != 0)
        return r;
    *ret_stage = "gate";
    touch_memory(a);
    r = gate_wait(&a->command.gate);
    if (r != 0)
        return r;
    *ret_stage = "hold";
    r = pass_hold(a);
    if (r != 0)
        return r;
    *ret_stage = "environment";
    r = put_environment(a);
    if (r != 0)
        return r;
    *ret_stage = "deadline";
    r = supervise_child_check_deadline(a->command.term);
    if (r != 0)
        return r;
    *ret_stage = "exec";
    execvp(a->options.command[0], a->options.command);
    return errno;
}

static usec_t command_stop_timeout(const struct adhoc *a) {
    if (a->grant.stop_timeout_usec != USEC_INFINITY)
        return a->grant.stop_timeout_usec;
    return a->options.stop_timeout_usec != USEC_INFINITY ? a->options.stop_timeout_usec : STOP_TIMEOUT;
}

/* Makes the supervise object of the next child. */
static int command_new(struct adhoc *a, struct supervise **ret) {
    const struct supervise_handler handler = {.on_started = command_on_started,
                                              .on_stopping = command_on_stopping,
                                              .on_suspended = command_on_suspended,
                                              .on_left = command_on_left,
                                              .on_stuck = command_on_stuck,
                                              .on_done = command_on_done,
                                              .userdata = a};
    struct supervise_options options = {.stop_signal = SIGTERM,
                                        .stop_timeout = command_stop_timeout(a),
                                        .timeout = a->options.timeout_usec,
                                        .deadline = a->grant.deadline};
    int r = supervise_new(ret, a->event, &options, &handler);

    if (r < 0)
        return r;
    a->command.own_pid = getpid();
    a->command.term = supervise_get_term(*ret);
    a->command.gate = GATE_OPEN(.facts = &a->grant.facts, .size = sizeof(a->grant.facts), .fd = &a->grant.hold_fd);
    return 0;
}

static void command_on_prepare(void *userdata) {
    struct adhoc *a = userdata;
    _cleanup_(supervise_freep) struct supervise *s = NULL;

    /* After a failure the start forks again, and reports the error if it persists. */
    if (a->phase == ADHOC_PHASE_CLAIMING && !a->command.prepared && command_new(a, &s) == 0 &&
        supervise_prepare(s, command_child, a, &a->command.gate) == 0)
        a->command.prepared = steal_pointer(&s);
}

void run_command_prepare(struct adhoc *a) {
    if (!a->command.prepared)
        defer_set(&a->command.prepare);
}

void run_command_withdraw(struct adhoc *a) {
    defer_off(&a->command.prepare);
    a->command.prepared = supervise_free(a->command.prepared);
}

static int command_start(struct adhoc *a) {
    int r = 0;

    move_hold(a);
    memcpy(a->grant.facts.run, a->run, sizeof(a->run));
    a->command.supervise = steal_pointer(&a->command.prepared);
    if (!a->command.supervise)
        r = command_new(a, &a->command.supervise);
    if (r < 0)
        return r;
    supervise_set_stop_timeout(a->command.supervise, command_stop_timeout(a));
    supervise_set_deadline(a->command.supervise, a->grant.deadline);
    return supervise_start(a->command.supervise, command_child, a);
}

static void command_on_start(void *userdata) {
    struct adhoc *a = userdata;
    int r;

    if (!deadline_leaves_time(a->grant.deadline, command_stop_timeout(a), clock_boottime()))
        return; /* each answered heartbeat moves the deadline, or berthd sends a stop (R12) */
    r = command_start(a);
    if (r < 0) {
        run_say(a, "berth: cannot start %s: %s\n", a->options.command[0], strerror(-r));
        report_end(a, EXIT_FAILED, NULL, "not-started");
    }
}

int run_command_init(struct adhoc *a) {
    int r = defer_init(&a->command.start, a->event, SD_EVENT_PRIORITY_NORMAL, command_on_start, a);

    /* Deferred until all messages were read: if a grant is among them, the start forks without this. */
    return r < 0 ? r : defer_init(&a->command.prepare, a->event, SD_EVENT_PRIORITY_NORMAL, command_on_prepare, a);
}

/* Starts the command after all messages of berthd were read: after a freeze they may have a later
 * deadline. */
static void command_begin(struct adhoc *a) {
    defer_set(&a->command.start);
}

void run_command_start(struct adhoc *a) {
    a->phase = ADHOC_PHASE_RUNNING;
    timer_off(&a->connection.wait_limit);
    run_waiting_stop(a);
    command_begin(a);
}

void run_command_set_deadline(struct adhoc *a, usec_t deadline) {
    if (a->options.on_lease_lost == ON_LEASE_LOST_CONTINUE)
        return;
    a->grant.deadline = deadline;
    if (a->command.supervise)
        supervise_set_deadline(a->command.supervise, deadline);
    else if (a->phase == ADHOC_PHASE_RUNNING)
        command_begin(a);
}

void run_command_stop(struct adhoc *a, enum supervise_reason reason) {
    if (a->command.supervise) {
        a->grant.is_lost = reason == SUPERVISE_REASON_LEASE_LOST;
        supervise_stop(a->command.supervise, reason);
        return;
    }
    if (reason == SUPERVISE_REASON_LEASE_LOST) {
        defer_off(&a->command.start);
        run_connection_give_back(a);
        return;
    }
    /* Granted, but stopped before the start. */
    defer_off(&a->command.start);
    run_say(a, "berth: %s before the command was started\n", supervise_reason_name(reason));
    report_end(a, EXIT_SIGNAL + SIGTERM, NULL, "not-started");
}
