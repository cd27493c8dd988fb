/* SPDX-License-Identifier: MIT */
#pragma once

/* berthd's control socket from the client's side: Varlink, that is JSON objects that end in NUL, over a stream socket. A verb asks
 * with client_call() and has everything, or an exit status whose reason stands on standard error already; `berth run` uses the parts
 * below it, on an event loop. What the methods take and answer: daemon/api/io.berth.varlink. */

#include <jansson.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define CLIENT_SOCKET_DEFAULT "/run/berth/control.sock"
#define CLIENT_QUIET_TIME (5 * USEC_PER_SEC)   /* without an answer: then berthd is asked whether it is alive (berth(1)) */
#define CLIENT_ANSWER_TIME (10 * USEC_PER_SEC) /* for it to say so, to take a caller, or to finish an answer that it has begun */
#define CLIENT_MESSAGE_MAX (64 * 1024 * 1024) /* bytes of one reply; berthd itself stops at a quarter of that */

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

/* What the command line's --socket says (not copied), and the path in force: that, else BERTH_SOCKET if not empty, else the
 * default. */
void client_set_socket(const char *path);
const char *client_socket(void);

/* --- for most verbs --- */

/* Connects, calls, and waits for the one answer. params: stolen; NULL: none. 0 and *ret (owned; an object; may be NULL if nobody
 * wants it), or an exit status whose reason was printed. */
int client_call(const char *method /* "io.berth.Runs" */, json_t *params, json_t **ret);

/* For tests: other times than those above. */
void client_set_patience(usec_t quiet_usec, usec_t answer_usec);

/* --- one answer, or one of several --- */

struct client_reply {
    const char *error; /* "io.berth.NoSuchPool", or NULL: a good answer */
    json_t *params;    /* an object, borrowed from the document */
    bool continues;    /* more answers to this call will follow */
    int fd;            /* passed along with it, or -1 */
    json_t *document;
};
#define CLIENT_REPLY_INIT ((struct client_reply) {.fd = -1})
void client_reply_done(struct client_reply *reply); /* frees and closes what is in it; may be called again */
#define _cleanup_client_reply_ _cleanup_(client_reply_done)

/* The exit status that a reply's error stands for; 0 without one. */
int client_exit_status(const struct client_reply *reply);
/* The same, and says on standard error what is wrong, known names and the nearest of them included. */
int client_explain(const struct client_reply *reply);
/* What a negative errno of the functions below means for the user: printed; EXIT_AWAY, EXIT_NOT_ALLOWED or EXIT_INTERNAL. */
int client_explain_errno(int error);

/* --- a connection --- */

struct client;

enum client_flags {
    CLIENT_MORE = 1,   /* several answers may come */
    CLIENT_ONEWAY = 2, /* none will */
};

/* Connects to client_socket(), without blocking. Negative errno; -EAGAIN: too many callers at this moment. */
int client_connect(struct client **ret);
/* The same, and waits a while where there are too many. */
int client_connect_patiently(struct client **ret);
/* Closes the connection. May be called in a handler of the same client. */
struct client *client_free(struct client *c);
DEFINE_CLEANUP(struct client, client_free)

/* Sends a call. params: stolen, also on failure. Waits until it is sent, or, on an event loop, sends the rest later. Negative errno. */
int client_send(struct client *c, const char *method, json_t *params, enum client_flags flags);
/* Waits for the next answer, without end while berthd is alive; not for a client on an event loop. Negative errno: -ECONNRESET when
 * berthd has closed the connection, -ETIMEDOUT when it hangs, -EBADMSG for what is no Varlink. */
int client_receive(struct client *c, struct client_reply *ret);
/* The same, at most until then (boottime): -ETIMEDOUT. What has come of an answer by then is kept: client_has_begun(). */
int client_receive_until(struct client *c, struct client_reply *ret, usec_t until);
bool client_has_begun(const struct client *c);

struct client_handler {
    /* The reply's parts may be taken (steal_fd(&reply->fd)); the rest is freed afterwards. */
    void (*on_reply)(struct client *c, struct client_reply *reply, void *userdata);
    /* The connection is of no use any more (error: negative errno as of client_receive()). Once, last call. */
    void (*on_gone)(struct client *c, int error, void *userdata);
    void *userdata;
};
/* From now on answers come by the loop, with a priority of sd-event. Negative errno. */
int client_attach(struct client *c, sd_event *event, int64_t priority, const struct client_handler *handler);
