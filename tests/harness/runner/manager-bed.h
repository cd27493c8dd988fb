/* SPDX-License-Identifier: MIT */
#pragma once

/* A manager with the real memory store in a directory of its own, above fake links to the runner and guards,
 * which replace those of the archive. The test sends their messages, and the event loop runs until the
 * awaited state. Jobs of pool "slot" (1 permit, scope host): "one" (overlap = "allow"), "skipped" ("skip"),
 * "queued" ("queue"). Job "first" has no pool; manager_bed.at_start and .every, set before, are its options.
 * Pool "wide" has 8 permits. */

#include <stdbool.h>

#include "base/message.h"
#include "daemon/manager.h"
#include "daemon/executor/runner-link.h"

struct runner_link {
    struct runner_link_handler handler;
};
struct guard_link {
    struct guard_link_handler handler;
    char run[ID_TEXT_SIZE];
};

extern struct manager_bed {
    struct manager *manager;
    char directory[32];
    bool has_redis; /* that does not answer, in the next manager that is made */
    bool at_start;  /* of job "first", in the next manager that is made */
    const char *every; /* likewise; NULL: no `every` */
    sd_event *event;
    struct journal *journal;
    struct runner_link runner;
    bool runner_up; /* the link takes messages */
    void (*on_start)(void); /* called at each `start` to the runner; may be NULL */
    unsigned n_prepared, n_granted; /* `prepare` to the runner, `grant` to guards */
    int grant_error; /* of the next grants */
    unsigned n_started, n_killed, n_forgotten, n_stopped, n_done; /* messages to the runner and the guards */
    enum supervise_reason last_stop;
    struct guard_link *guards[8]; /* by number of connection; NULL: gone */
    size_t n_guards;
    int guard_error; /* result of the next connections to guards; 0: success */
    bool is_unaccepted; /* no guard has accepted its connection */
    bool is_silent; /* no guard has answered its first deadline, for long */
} manager_bed;

/* CUnit's set-up and tear-down. manager_bed_up(): the runner has not recovered yet. */
void manager_bed_up(void);
void manager_bed_up_recovered(void);
void manager_bed_down(void);
/* berthd was killed: another manager in the same directory, not recovered. */
void manager_bed_restart(void);
/* As manager_bed_restart(), on a loop of its own; manager_start() is left to the test. */
void manager_bed_new_manager(void);

/* Messages of the runner. */
void manager_bed_recovered(void);
void manager_bed_found_guard(const char *run);
void manager_bed_started(const struct run *r);
void manager_bed_prepared(const struct run *r);
void manager_bed_refused(const struct run *r, const char *reason);
void manager_bed_report(const struct message *report);
/* Returns the newest guard. */
struct guard_link *manager_bed_guard(void);
/* Send a message of a guard, or end it. The report is that of the newest guard. */
void manager_bed_guard_state(struct guard_link *g, const struct message *state);
void manager_bed_guard_gone(struct guard_link *g);
void manager_bed_guard_report(const struct run *r, const char *key, uint64_t value, const char *reason);
/* A guard's state (running) and a report ("code" 3, "signal" 15, "errno" 2, "lost" 1) of a run. */
void manager_bed_make_state(struct message *m, const struct run *r);
void manager_bed_make_report(struct message *m, const struct run *r, const char *key, uint64_t value,
                             const char *reason);
/* For messages of other kinds: writes the fields that identify the run; parses what was written. */
void manager_bed_identity(struct message_writer *w, const struct run *r);
void manager_bed_parse(struct message *m, const struct message_writer *w);

/* Start a job; the second waits until the run is running. */
struct run *manager_bed_begin(const char *job);
struct run *manager_bed_run(const char *job);

/* Handles the pending events. */
void manager_bed_turn(void);
/* Turns until is_there(). Returns false after 5 s. */
bool manager_bed_await(bool (*is_there)(void *), void *userdata);
bool manager_bed_await_waiting(struct run *r); /* logged as queued, and recorded */
bool manager_bed_await_starting(struct run *r);
bool manager_bed_await_over(struct run *r);
bool manager_bed_await_released(struct run *r);
void manager_bed_end_first(void); /* awaits the start of job "first", which begins by itself, and ends it with 0 */
bool manager_bed_await_starts(unsigned n); /* awaits so many `start` messages */

/* Returns the number of files in a folder of the runtime directory. */
size_t manager_bed_count_files(const char *folder);
/* Returns the number of runs of a job. */
size_t manager_bed_count_runs(const char *name);
