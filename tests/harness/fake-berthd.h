/* SPDX-License-Identifier: MIT */
#pragma once

/* A berthd that a test plays by hand: it listens, hears what `berth run` says, and answers what the test wants, when it wants. The
 * `berth run` is a forked child of the test. Everything waits at most FAKE_PATIENCE and fails the test then. */

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"

#define FAKE_PATIENCE (30 * USEC_PER_SEC)
#define FAKE_RUN "0123456789abcdef0123456789abcdef"
#define FAKE_WAITING \
    "{'parameters': {'state': 'waiting', 'run': '" FAKE_RUN "', 'position': {'db': 3, 'net': 1}, 'blocked_by': 'pool full: db'}, 'continues': true}"

struct fake {
    char directory[64], socket[96], errors[96]; /* errors: a file, the child's standard error */
    int listener, connection;
    char *input;
    size_t input_size;

    pid_t pid;        /* of `berth run`; 0: none */
    int pidfd;
    int keys;         /* write end of its standard input, which nobody writes: `read` there waits until a signal comes */
    int output;       /* read end of its standard output */
    char text[16384]; /* what was read there so far */
    int hold;         /* read end of the hold that was granted */
    pid_t command;    /* as told by Started */
};

void fake_init(struct fake *f); /* listens */
void fake_done(struct fake *f); /* kills what is left, removes the directory */
void fake_stop(struct fake *f); /* closes the connection and stops listening */
void fake_listen(struct fake *f);

/* Starts `berth run` with these words, e.g. "-p db -n -- sh -c", and one last argument that may hold spaces, or NULL. */
void fake_run(struct fake *f, const char *words, const char *last);
/* In the child, before `berth run`: set by a test that needs more. */
extern void (*fake_in_child)(struct fake *f);

void fake_accept(struct fake *f);
void fake_hang_up(struct fake *f);
/* The next call of this method; its parameters, to be decref'd. */
json_t *fake_hear(struct fake *f, const char *method);
/* No more calls, the connection is closed by the other side. */
void fake_hear_end(struct fake *f);
/* A copy with "..." for '...', to be freed. */
char *fake_quote(const char *json);
/* Sends one reply, quoted so, NUL added. */
void fake_say(struct fake *f, const char *json);
void fake_say_fd(struct fake *f, const char *json, int fd);
/* Accepts, hears Hold (parameters forgotten), grants with a new hold. deadline: boottime, or 0: none. */
void fake_grant(struct fake *f, usec_t deadline);
void fake_say_granted(struct fake *f, usec_t deadline, bool with_hold);
/* Hears Started. */
void fake_hear_started(struct fake *f);
/* Hears Ended: code, signal (-1: not there), result (NULL: null or not there); and says that the run is over. */
void fake_hear_ended(struct fake *f, int code, int signal, const char *result);

/* Whether the hold has hung up by now. */
bool fake_is_hold_over(struct fake *f);
void fake_await_hold_over(struct fake *f);
/* Until its standard output has this text. */
void fake_await_output(struct fake *f, const char *text);
/* Until `berth run` has ended: its exit status, or -N if signal N ended it. */
int fake_await_exit(struct fake *f);
bool fake_is_running(struct fake *f, usec_t patience);
/* What it said on standard error; valid until the next call. */
const char *fake_errors(struct fake *f);
/* The letter of /proc/PID/stat: R S T Z ...; 'X' if there is no such process. */
char fake_process_state(pid_t pid);
