/* SPDX-License-Identifier: MIT */
#pragma once

/* berthd's control socket from the client's side: Varlink, which is JSON objects that end in NUL, over a
 * stream socket. Most verbs use client_call(); `berth run` uses the functions below it on an event loop. The
 * methods are described in daemon/api/io.berth.varlink. */

#include <jansson.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define CLIENT_SOCKET_DEFAULT "/run/berth/control.sock"
#define CLIENT_QUIET_TIME (5 * USEC_PER_SEC)   /* without a reply: then berthd is probed (berth(1)) */
#define CLIENT_ANSWER_TIME (10 * USEC_PER_SEC) /* for a probe, for connect, or for the rest of a reply */
#define CLIENT_MESSAGE_MAX (64 * 1024 * 1024) /* bytes of one reply; berthd sends at most a quarter of that */

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

/* The path of --socket (borrowed), and the path in use: that, else BERTH_SOCKET if not empty, else the
 * default. */
void client_set_socket(const char *path);
const char *client_socket(void);

/* --- for most verbs --- */

/* Connects, calls, and waits for the only reply. params: stolen; NULL: none. Stores an object (owned; ret
 * may be NULL) and returns 0, or returns an exit status whose reason was printed. */
int client_call(const char *method /* "io.berth.Runs" */, json_t *params, json_t **ret);

/* For tests: other times than those above. */
void client_set_patience(usec_t quiet_usec, usec_t answer_usec);

/* --- one answer, or one of several --- */

struct client_reply {
    const char *error; /* "io.berth.NoSuchPool"; NULL: success */
    json_t *params;    /* an object, borrowed from the document */
    bool continues;    /* more replies to this call follow */
    int fd;            /* passed along, or -1 */
    json_t *document;
};
#define CLIENT_REPLY_INIT ((struct client_reply) {.fd = -1})
void client_reply_done(struct client_reply *reply); /* may be called again */

/* As client_call(), but prints nothing and returns a negative errno. 0: the reply may be an error. */
int client_ask(const char *method, json_t *params, struct client_reply *ret);
#define _cleanup_client_reply_ _cleanup_(client_reply_done)

/* Returns the exit status of a reply's error; 0 without one. */
int client_exit_status(const struct client_reply *reply);
/* Prints a reply's error on standard error, with known names and the nearest of them. Returns its exit
 * status. */
int client_explain(const struct client_reply *reply);
/* Prints the meaning of a negative errno of the functions below. EXIT_AWAY, EXIT_NOT_ALLOWED or
 * EXIT_INTERNAL. */
int client_explain_errno(int error);

/* --- a connection --- */

struct client;

enum client_flags {
    CLIENT_MORE = 1,   /* several replies may follow */
    CLIENT_ONEWAY = 2, /* no reply follows */
};

/* Connects to client_socket() without blocking. Negative errno; -EAGAIN: the listen queue is full. */
int client_connect(struct client **ret);
/* Retries for a while if the listen queue is full. */
int client_connect_patiently(struct client **ret);
/* Closes the connection. May be called in a handler of the same client. */
struct client *client_free(struct client *c);
DEFINE_CLEANUP(struct client, client_free)

/* Sends a call. params: stolen, also on failure. Blocks until it is sent; on an event loop the rest is sent
 * later. Negative errno. */
int client_send(struct client *c, const char *method, json_t *params, enum client_flags flags);
/* Waits for the next reply as long as berthd is alive; not on an event loop. -ECONNRESET: berthd closed the
 * connection; -ETIMEDOUT: berthd hangs; -EBADMSG: not Varlink; another negative errno. */
int client_receive(struct client *c, struct client_reply *ret);
/* Waits at most until then (boottime): -ETIMEDOUT. A partial reply is kept: client_has_begun(). */
int client_receive_until(struct client *c, struct client_reply *ret, usec_t until);
bool client_has_begun(const struct client *c);
/* As client_receive(), but until then at most (boottime): -ETIME. */
int client_receive_before(struct client *c, struct client_reply *ret, usec_t until);
/* Waiting for a reply ends with -EPIPE when nobody reads this pipe any more. fd: borrowed. */
void client_end_with(struct client *c, int fd);
/* Whether trying again, or a berthd that is restarted, may help. error: of a function above, 0: the reply
 * has the error. */
bool client_is_transient(int error, const struct client_reply *reply);

struct client_handler {
    /* May take parts of the reply (steal_fd(&reply->fd)); the rest is freed afterwards. */
    void (*on_reply)(struct client *c, struct client_reply *reply, void *userdata);
    /* Called once, last: the connection is unusable. error: as of client_receive(). */
    void (*on_gone)(struct client *c, int error, void *userdata);
    void *userdata;
};
/* Delivers replies by the loop from now on, with this priority. Negative errno. */
int client_attach(struct client *c, sd_event *event, int64_t priority, const struct client_handler *handler);
