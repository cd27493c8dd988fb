/* SPDX-License-Identifier: MIT */
#pragma once

/* Calls of verbs to berthd, and its errors as exit statuses and sentences. Most verbs use client_call();
 * `berth run` has a connection on an event loop. */

#include <jansson.h>
#include <stdbool.h>

#include "base/client/client.h"

#define CLIENT_QUIET_TIME (5 * USEC_PER_SEC) /* after which a silent berthd is probed (berth(1)) */

enum exit_status { /* berth(1), EXIT STATUS */
    EXIT_USAGE = 64,
    EXIT_UNKNOWN_NAME = 65,
    EXIT_AWAY = 69,
    EXIT_INTERNAL = 70,
    EXIT_NO_PERMIT = 75,
    EXIT_LEASE_LOST = 76,
    EXIT_NOT_ALLOWED = 77,
    EXIT_CONFIG = 78,
    EXIT_TIMEOUT = 124,
    EXIT_FAILED = 125, /* after the grant */
    EXIT_CANNOT_EXECUTE = 126,
    EXIT_NO_COMMAND = 127,
    EXIT_SIGNAL = 128, /* + its number */
};

/* --- for most verbs --- */

/* Connects, calls, and waits for the only reply. params: stolen; NULL: none. Stores an object (owned; ret
 * may be NULL) and returns 0, or returns an exit status whose reason was printed. */
int client_call(const char *method /* "io.berth.Runs" */, json_t *params, json_t **ret);

/* Sets other times, for tests. */
void client_set_patience(usec_t quiet_usec, usec_t answer_usec);

/* As client_call(), but prints nothing. Returns 0 with a reply, which may be an error, or a negative
 * errno. */
int client_ask(const char *method, json_t *params, struct client_reply *ret);

/* Returns the exit status of a reply's error; 0 without one. */
int client_exit_status(const struct client_reply *reply);
/* Prints a reply's error on standard error, with known names and the nearest of them. Returns its exit
 * status. */
int client_explain(const struct client_reply *reply);
/* Prints the meaning of a negative errno of the functions below. Returns EXIT_AWAY, EXIT_NOT_ALLOWED or
 * EXIT_INTERNAL. */
int client_explain_errno(int error);

/* --- a connection (base/client/client.h) --- */

/* As client_connect(), but retries for a while if the listen queue is full. */
int client_connect_patiently(struct client **ret);
/* Waits for the next reply as long as berthd is alive; not on an event loop. -ECONNRESET: berthd closed the
 * connection; -ETIMEDOUT: berthd hangs; -EBADMSG: not Varlink; another negative errno. */
int client_receive(struct client *c, struct client_reply *ret);
/* As client_receive(), but returns -ETIME at the boottime `until`. */
int client_receive_before(struct client *c, struct client_reply *ret, usec_t until);
/* Returns whether another attempt, or a restart of berthd, may help. error: that of a function above; 0: the
 * reply has the error. */
bool client_is_transient(int error, const struct client_reply *reply);
