/* SPDX-License-Identifier: MIT */
#pragma once

/* Starts one command, waits for it and all its descendants, and stops the whole tree: on request, at a time
 * limit, or early enough that the kill lands before a deadline (R8; arithmetic in base/deadline.h). For the
 * guard and `berth run`. One supervise a process: it makes the process a subreaper and reaps all its
 * children. A stop is the stop signal to every process of the tree, SIGCONT, and after stop_timeout SIGKILL
 * until the tree is empty. The tree is all descendants of this process, and the cgroup if there is one. Children that
 * this process has before supervise_new(), and their descendants, are not part of it. */

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"

struct supervise;

enum supervise_reason { /* why a tree was stopped; the first one is kept */
    SUPERVISE_REASON_NONE,
    SUPERVISE_REASON_STOPPED,
    SUPERVISE_REASON_REVOKED,
    SUPERVISE_REASON_LEASE_LOST,
    SUPERVISE_REASON_TIMEOUT,
    SUPERVISE_REASON_SHUTDOWN,
};
const char *supervise_reason_name(enum supervise_reason reason); /* "none", "stopped", ... as in base/protocol.h */
int supervise_reason_parse(const char *name, enum supervise_reason *ret); /* 0 or -EINVAL */

/* Runs in the child between fork and exec (async-signal-safe calls only if the parent has threads; ours have
 * none). Sets up the process and ends in exec. If it returns, the parent receives the errno (positive) and
 * *ret_stage (a static word such as "user", "directory", "exec"), and the child ends. */
typedef int (*supervise_child_fn)(void *userdata, const char **ret_stage);

#define SUPERVISE_STAGE_SIZE 16
#define SUPERVISE_TEXT_SIZE 256

struct supervise_result {
    int exec_errno;           /* not 0: the command never ran, and code and status are invalid. ETIME, stage "deadline": too
                                 little time was left. ECANCELED, stage "stop": it was stopped before exec */
    char stage[SUPERVISE_STAGE_SIZE]; /* where exec_errno occurred */
    char text[SUPERVISE_TEXT_SIZE]; /* that the child wrote to supervise_options.text; "": none */
    int code;                 /* si_code of waitid(2): CLD_EXITED, CLD_KILLED, CLD_DUMPED */
    int status;               /* exit code, or signal */
    enum supervise_reason reason;
    usec_t started, ended;    /* boottime; ended: of the last process of the tree */
    usec_t deadline;          /* in force at the end; USEC_INFINITY: none */
    struct rusage usage;      /* of all reaped processes */
};

struct supervise_handler {
    void (*on_started)(struct supervise *s, pid_t pid, void *userdata); /* exec succeeded */
    void (*on_stopping)(struct supervise *s, enum supervise_reason reason, void *userdata);
    void (*on_suspended)(struct supervise *s, void *userdata);   /* the command was stopped (SIGTSTP ...); may be NULL */
    void (*on_left)(struct supervise *s, void *userdata);        /* the command has ended, other processes have not; once; may be NULL */
    /* Processes are left long after their kill. Called again each hour. what: one of them, for people. May be NULL. */
    void (*on_stuck)(struct supervise *s, const char *what, void *userdata);
    /* The tree is empty (or never came to be). Once; last call. The supervise may be freed in it. */
    void (*on_done)(struct supervise *s, const struct supervise_result *result, void *userdata);
    void *userdata;
};

struct supervise_options {
    int stop_signal;
    usec_t stop_timeout;  /* µs */
    usec_t timeout;       /* from the start to a stop with REASON_TIMEOUT; USEC_INFINITY: none */
    usec_t deadline;      /* boottime; USEC_INFINITY: none */
    const char *cgroup;   /* directory of an empty cgroup v2, which supervise fills and kills, and removes when it is freed; or NULL */
    const char *text;     /* memory of the child, to which it writes why it failed; or NULL */
};

/* The handler is copied. Blocks no signal but SIGCHLD in this process. Negative errno. */
int supervise_new(struct supervise **ret, sd_event *event, const struct supervise_options *options,
                  const struct supervise_handler *handler);
/* Kills only a prepared child. To be called after on_done, or to abandon the tree. */
struct supervise *supervise_free(struct supervise *s);
DEFINE_CLEANUP(struct supervise, supervise_free)

/* Memory that parent and child share, so that the child sees a deadline that was set after the fork. */
struct supervise_term {
    _Atomic(usec_t) deadline;
    usec_t stop_timeout;
};
const struct supervise_term *supervise_get_term(const struct supervise *s); /* valid as long as the supervise */

struct gate;

/* Forks the child ahead of its start. It runs `child` up to gate_wait(), and waits there without a time limit. If it fails
 * before the gate, or dies there, supervise_start() forks another one. gate: the open gate at which `child` waits, valid
 * until start or withdrawal. Negative errno: nothing was forked. */
int supervise_prepare(struct supervise *s, supervise_child_fn child, void *userdata, struct gate *gate);
bool supervise_is_prepared(const struct supervise *s);
/* Kills a prepared child and waits for its end; does nothing without one. on_done is not called. The empty cgroup stays. */
void supervise_withdraw(struct supervise *s);
/* To be called before the start. */
void supervise_set_stop_timeout(struct supervise *s, usec_t stop_timeout);

/* Opens the gate of the prepared child, or forks one. The child runs `child` with the signal mask of this process, in which
 * SIGCHLD is blocked; `child` sets that of the command. The child checks the deadline before it calls `child`, and after
 * the gate right before exec (supervise_child_check_deadline()). With too little time exec_errno is ETIME, stage
 * "deadline"; callers avoid that by deadline_leaves_time(). Negative errno: nothing was forked, and on_done is not
 * called. */
int supervise_start(struct supervise *s, supervise_child_fn child, void *userdata);
/* For the child, after its last setuid: sets PDEATHSIG=KILL, and ends at once if the parent has ended. 0 or
 * an errno, positive. */
int supervise_child_die_with_parent(pid_t parent);
/* For the child: ETIME if there is too little time for a command to begin, else 0. */
int supervise_child_check_deadline(const struct supervise_term *term);

void supervise_set_deadline(struct supervise *s, usec_t deadline);
/* Begins to stop the tree, or calls on_done if it is empty already. A second call has no effect. */
void supervise_stop(struct supervise *s, enum supervise_reason reason);
/* Signals the command's first process only, for `berth run`. 0, -ESRCH, or another negative errno. */
int supervise_signal(struct supervise *s, int signal);
/* Lists the first n living processes of the tree. Returns how many there are, or a negative errno. */
int supervise_list(const struct supervise *s, pid_t *ret, size_t n);
/* Returns whether a process is this one or in the tree. */
bool supervise_has(const struct supervise *s, pid_t pid);
usec_t supervise_started(const struct supervise *s); /* boottime; 0 before the start */
