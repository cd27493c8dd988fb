/* SPDX-License-Identifier: MIT */
#pragma once

/* A fake berthd: it listens, receives the calls of `berth run`, and replies when the test wants. `berth run`
 * is a forked child of the test. Every wait lasts at most FAKE_PATIENCE and then fails the test. */

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"

#define FAKE_PATIENCE (30 * USEC_PER_SEC)
#define FAKE_RUN "0123456789abcdef0123456789abcdef"
#define FAKE_WAITING \
    "{'parameters': {'state': 'waiting', 'run': '" FAKE_RUN "', 'position': {'db': 3, 'net': 1}, 'blocked_by': 'pool full: db'}, 'continues': true}"

/* The end of a shell's command that a trap ends. In `wait` the shell misses no signal; just before a read it
 * would. */
#define FAKE_WAITS "exec 3<&0; (read x <&3) & trap \"kill -9 $! 2>/dev/null\" EXIT; echo ready; while :; do wait; done"

struct fake {
    char directory[64], socket[96], errors[96]; /* errors: a file, the child's standard error */
    int listener, connection;
    char *input;
    size_t input_size;

    pid_t pid;        /* of `berth run`; 0: none */
    int pidfd;
    int keys;         /* write end of its standard input, which stays silent: `read` there waits for a signal */
    int output;       /* read end of its standard output */
    char text[16384]; /* output read so far */
    int hold;         /* read end of the hold that was granted */
    pid_t command;    /* from Started */
};

void fake_init(struct fake *f); /* listens */
void fake_done(struct fake *f); /* kills the child, removes the directory */
void fake_stop(struct fake *f); /* closes the connection and stops listening */
void fake_listen(struct fake *f);

/* Starts `berth run` with these words, e.g. "-p db -n -- sh -c", and a last argument that may contain
 * spaces, or NULL. */
void fake_run(struct fake *f, const char *words, const char *last);
/* Runs in the child before `berth run`; set by a test. */
extern void (*fake_in_child)(struct fake *f);

void fake_accept(struct fake *f);
void fake_hang_up(struct fake *f);
/* Accepts, and expects Hold of this known run. */
void fake_accept_again(struct fake *f, const char *run);
/* Receives the next call, which must be this method. Returns its parameters, to be decref'd. */
json_t *fake_expect(struct fake *f, const char *method);
/* Expects the end of the connection, without another call. */
void fake_expect_end(struct fake *f);
/* Returns a copy with "..." for '...', to be freed. */
char *fake_quote(const char *json);
/* Sends one reply, after fake_quote(), with its NUL. */
void fake_reply(struct fake *f, const char *json);
/* Accepts, receives Hold, grants with a new hold. deadline: boottime, or 0: none. */
void fake_grant(struct fake *f, usec_t deadline);
void fake_reply_granted(struct fake *f, usec_t deadline, bool with_hold);
/* Expects Started. */
void fake_expect_started(struct fake *f);
/* Expects Ended: code, signal (-1: missing), result (NULL: null or missing); replies that the run is over. */
void fake_expect_ended(struct fake *f, int code, int signal, const char *result);

/* Returns whether the hold is closed. */
bool fake_is_hold_over(struct fake *f);
void fake_await_hold_over(struct fake *f);
/* Waits for this text on its standard output. */
void fake_await_output(struct fake *f, const char *text);
/* Waits for the end of `berth run`. Returns its exit status, or -N if signal N ended it. */
int fake_await_exit(struct fake *f);
bool fake_is_running(struct fake *f, usec_t patience);
/* Returns its standard error; valid until the next call. */
const char *fake_errors(struct fake *f);
/* Returns the letter of /proc/PID/stat: R S T Z ...; 'X' if there is no such process. */
char fake_process_state(pid_t pid);
