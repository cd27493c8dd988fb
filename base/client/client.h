/* SPDX-License-Identifier: MIT */
#pragma once

/* One connection to berthd. It speaks Varlink: JSON objects, each followed by a NUL, over a stream socket.
 * daemon/api/io.berth.varlink describes the methods. */

#include <jansson.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define CLIENT_SOCKET_DEFAULT "/run/berth/control.sock"
#define CLIENT_ANSWER_TIME (10 * USEC_PER_SEC) /* limit of a probe, a connect, or the rest of a reply */
#define CLIENT_MESSAGE_MAX (64 * 1024 * 1024) /* bytes of one reply; berthd sends at most a quarter of that */

/* The path of --socket (borrowed), and the path in use: that, else BERTH_SOCKET if not empty, else the
 * default. */
void client_set_socket(const char *path);
const char *client_socket(void);

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
#define _cleanup_client_reply_ _cleanup_(client_reply_done)

/* --- a connection --- */

struct client;

enum client_flags {
    CLIENT_MORE = 1,   /* several replies may follow */
    CLIENT_ONEWAY = 2, /* no reply follows */
};

/* Connects to client_socket() without blocking; to look.sock beside control.sock if this user may not use that
 * one and no --socket is given. Negative errno; -EAGAIN: the listen queue is full. */
int client_connect(struct client **ret);
/* Closes the connection. May be called in a handler of the same client. */
struct client *client_free(struct client *c);
DEFINE_CLEANUP(struct client, client_free)

/* Sends a call. params: stolen, also on failure. Blocks until it is sent; on an event loop the rest is sent
 * later. Negative errno. */
int client_send(struct client *c, const char *method, json_t *params, enum client_flags flags);
/* Waits for a reply. -ETIMEDOUT: none came until then (boottime). A partial reply is kept. */
int client_receive_until(struct client *c, struct client_reply *ret, usec_t until);
/* Returns whether there is a partial reply. */
bool client_has_begun(const struct client *c);
/* Ends the wait for a reply with -EPIPE when this pipe has no reader any more. fd: borrowed. */
void client_end_with(struct client *c, int fd);
/* Ends the wait for a reply with -EAGAIN when the other connection has something to read. It must exist as
 * long as replies are awaited. NULL: none. */
void client_wake_with(struct client *c, const struct client *other);

struct client_handler {
    /* May take parts of the reply (steal_fd(&reply->fd)); the rest is freed afterwards. */
    void (*on_reply)(struct client *c, struct client_reply *reply, void *userdata);
    /* Called once, last: the connection is unusable. -ECONNRESET: berthd closed it; another negative errno. */
    void (*on_gone)(struct client *c, int error, void *userdata);
    void *userdata;
};
/* Delivers replies by the loop from now on, with this priority. Negative errno. */
int client_attach(struct client *c, sd_event *event, int64_t priority, const struct client_handler *handler);
