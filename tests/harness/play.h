/* SPDX-License-Identifier: MIT */
#pragma once

/* A manager with the real memory store in a directory of its own, and a runner and guards that are played: their symbols stand before
 * those of the archive. The test says what they say. The event loop runs until what is awaited is there.
 *
 * Jobs of pool "slot" (1 permit, scope host): "one" (overlap = "allow"), "skipped" ("skip"), "queued" ("queue"); "first" has no pool
 * and is at-start, or begun by time, if play.at_start or play.every were set before; pool "wide" has 8 permits. */

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

extern struct play {
    struct manager *manager;
    char directory[32];
    bool at_start;  /* of job "first", in the next manager that is made */
    const char *every; /* likewise; NULL: it is not begun by time */
    sd_event *event;
    struct journal *journal;
    struct runner_link runner;
    bool runner_up; /* whether the link takes messages */
    void (*on_start)(void); /* called at each `start` to the runner; may be NULL */
    unsigned n_started, n_killed, n_forgotten, n_stopped, n_done; /* messages to the runner and the guards */
    enum supervise_reason last_stop;
    struct guard_link *guards[8]; /* by number of connection; NULL: gone */
    size_t n_guards;
    int guard_error; /* of the next connections to guards; 0: they are there */
} play;

/* CUnit's set-up and tear-down. play_up(): the runner has not recovered yet. */
void play_up(void);
void play_up_recovered(void);
void play_down(void);
/* berthd was killed: another manager in the same directory, not recovered. */
void play_restart(void);
/* As play_restart(), on a loop of its own; manager_start() is left to the test. */
void play_new_manager(void);

/* What the runner says. */
void play_recovered(void);
void play_finds_guard(const char *run);
void play_started(const struct run *r);
void play_reports(const struct message *report);
/* What guards say; the newest one. */
struct guard_link *play_guard(void);
void play_guard_says(struct guard_link *g, const struct message *state);
void play_guard_goes(struct guard_link *g); /* and cannot be connected to */
void play_guard_reports(const struct run *r, const char *key, uint64_t value, const char *reason);
/* A guard's state (running) and a report ("code" 3, "signal" 15, "errno" 2, "lost" 1) of a run. */
void play_make_state(struct message *m, const struct run *r);
void play_make_report(struct message *m, const struct run *r, const char *key, uint64_t value, const char *reason);
/* For others: the fields that say which run it is, and the message that was written. */
void play_identity(struct message_writer *w, const struct run *r);
void play_parse(struct message *m, const struct message_writer *w);

/* Starts a job; and until it is running. */
struct run *play_begin(const char *job);
struct run *play_run(const char *job);

/* Lets happen what can happen now. */
void play_turn(void);
/* Turns until it is so; false after a while. */
bool play_await(bool (*is_there)(void *), void *userdata);
bool play_await_waiting(struct run *r); /* logged as queued, and recorded */
bool play_await_starting(struct run *r);
bool play_await_over(struct run *r);
bool play_await_released(struct run *r);
bool play_await_starts(unsigned n); /* so many `start` messages */

/* How many files there are in a folder of the runtime directory. */
size_t play_count_files(const char *folder);
