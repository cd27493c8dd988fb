/* SPDX-License-Identifier: MIT */
#pragma once

/* Runs of `berth run`: the request, the run around it, the hold, and the end of the command. The client
 * starts and stops the command itself. berthd keeps the lease and the hold, and returns the permits when the
 * hold is released. */

#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/journal/journal.h"
#include "daemon/runs/run-table.h"
#include "daemon/state/state.h"

/* --- requests (request.c) --- */

struct adhoc_request {
    const struct demands *pools; /* at least one */
    const char *name;            /* label */
    bool nowait;
    usec_t wait_usec;                          /* USEC_INFINITY: no limit */
    usec_t head_start_usec, stop_timeout_usec; /* stop_timeout USEC_INFINITY: the default */
    enum on_lease_lost on_lease_lost;
    uid_t uid;
    const char *nested; /* BERTH_RUN of the caller's environment, or NULL */
    pid_t pid;          /* of the client */
    const char *time_namespace; /* of the client, see base/clock.h; NULL: not known */
};

/* Named answers. */
enum {
    ADHOC_E_UNKNOWN = 1, /* no such pool: the text names it; or no such run */
    ADHOC_E_INVALID,     /* the text names the error in the request */
    ADHOC_E_QUOTA,       /* the text names the quota of the user */
};

#define ADHOC_TEXT_SIZE 256

/* Checks whether the settings allow the request. Returns 0, UNKNOWN or INVALID. */
int adhoc_check_pools(const struct adhoc_request *request, const struct settings *settings,
                      char text[static ADHOC_TEXT_SIZE]);
/* Returns the run around the client, if it holds its permits and the client's process is inside; else NULL.
 * guard_pid: of the run of a job. */
struct run *adhoc_find_outer(struct run_table *runs, const struct adhoc_request *request,
                             pid_t (*guard_pid)(const struct run *run));
/* Returns whether the run around the client holds all requested permits. */
bool adhoc_is_covered(const struct run *outer, const struct adhoc_request *request);
/* Checks whether a run may begin inside of outer (NULL: none), by that client's clock, and for that user. Returns 0, INVALID or
 * QUOTA. */
int adhoc_check_admission(struct run_table *runs, const struct adhoc_request *request,
                          const struct run *outer, const struct settings *settings,
                          char text[static ADHOC_TEXT_SIZE]);
/* Adds a pending run to the table. Returns 0 or a negative errno. */
int adhoc_add_run(struct run_table *runs, const struct adhoc_request *request,
                  const struct settings *settings, struct run_time now, struct run **ret);

/* --- holds (adhoc.c) --- */

struct adhoc;

struct adhoc_handler {
    usec_t (*get_deadline)(const struct run *run, void *userdata); /* USEC_INFINITY: none; 0: not known */
    void (*on_started)(struct run *run, pid_t pid, usec_t started /* boottime */, void *userdata);
    void (*on_stuck)(struct run *run, const char *what, void *userdata); /* a process outlives its kill */
    /* The lease was lost before the command began. Returns whether the run was requeued. */
    bool (*on_not_begun)(struct run *run, void *userdata);
    void (*on_client_gone)(struct run *run, void *userdata); /* of a waiting run */
    /* No process has its hold. The end was logged. */
    void (*on_ended)(struct run *run, enum run_result result, void *userdata);
    /* A hold was found at start. Takes ownership of the run, also on failure. */
    int (*on_recovered)(struct run *run, void *userdata);
    void (*on_unrecoverable)(const char *what, int error, void *userdata);
    void *userdata;
};

struct adhoc_options {
    usec_t lease_usec, margin_usec; /* margin: between a deadline and the end of the lease */
};

/* runs, state and journal belong to the caller and must outlive it. */
int adhoc_new(struct adhoc **ret, sd_event *event, struct journal *journal, struct run_table *runs,
              const struct state *state, const struct adhoc_options *options,
              const struct adhoc_handler *handler);
struct adhoc *adhoc_free(struct adhoc *adhoc);
DEFINE_CLEANUP(struct adhoc, adhoc_free)
/* Recovers the holds of an earlier berthd. Returns 0 or a negative errno, logged. */
int adhoc_recover(struct adhoc *adhoc, const struct settings *settings);
/* Sets the time (boottime) until which the clients of recovered runs may reconnect. */
void adhoc_set_clients_due(struct adhoc *adhoc, usec_t boottime);

/* Makes the hold of a granted run, which becomes STARTING. */
void adhoc_start(struct adhoc *adhoc, struct run *run);
/* Stops a run. Without a client, its unused hold is released; else the client stops the command. */
void adhoc_stop(struct run *run);
/* Returns the pid of the command, which may have ended; 0: not known, for example because it has another pid here than in its
 * container. */
pid_t adhoc_get_pid(const struct run *run);
/* Removes the hold. */
void adhoc_release_hold(struct run *run);
/* Leaves the hold to the next berthd. */
void adhoc_detach(struct run *run);
/* Arms the end of a recovered run that waits, in case that its client does not reconnect. */
void adhoc_await_client(struct adhoc *adhoc, struct run *run);

/* Returns whether the client of a recovered run has not reconnected, and still may. */
bool adhoc_is_client_due(const struct run *run);
/* Takes back the client of a recovered or orphaned run. Returns 0, or UNKNOWN: the run is over, or not of this
 * client. */
int adhoc_attach(struct adhoc *adhoc, struct run *run, uid_t uid, pid_t pid);
/* Handles that the client has gone: a waiting run is withdrawn, a granted one lasts as long as its hold. */
void adhoc_client_gone(struct adhoc *adhoc, struct run *run);
/* Returns the write end of the FIFO of a granted run, which the caller sends and closes; -1: it was
 * taken. */
int adhoc_take_hold_fd(struct run *run);

struct adhoc_report {       /* what the client reports about the end of its command */
    enum run_result result; /* NONE: by code and signal */
    int code, signal;       /* -1: not this one */
    usec_t at, deadline;    /* boottime: the end of its last process, and its deadline; 0: not reported */
    pid_t pid;              /* of the command */
    usec_t started;         /* boottime; 0: it never ran, or not reported */
};
/* Impossible times are replaced: a start before the request, an end before the start, times in the future.
 * started: boottime; 0: not reported. */
void adhoc_client_started(struct adhoc *adhoc, struct run *run, pid_t pid, usec_t started);
void adhoc_client_stuck(struct adhoc *adhoc, struct run *run, const char *what); /* printable */
/* berth-runner has killed the processes of a run that is stopping, because its client did not. */
void adhoc_reaped(struct run *run);
void adhoc_client_ended(struct adhoc *adhoc, struct run *run, const struct adhoc_report *report);
