/* SPDX-License-Identifier: MIT */
#pragma once

/* For daemon/control/ alone.
 *     control.c          rights, calls
 *     control-listen.c   the listening sockets
 *     control-client.c   one connection: framing, buffers, time limits, order of calls
 *     control-account.c  memory and connections of each user
 *     control-output.c   outgoing messages
 *     control-text.c     the texts of messages in pieces, which several clients may share
 *     control-end.c      graceful end when the listening socket lives on
 *     control-service.c  org.varlink.service */

#include <stdio.h>

#include "base/list.h"
#include "base/timer.h"
#include "daemon/control/control.h"

/* After everything else in berthd: thousands of clients may delay one another, but not heartbeats and
 * guards. */
#define CONTROL_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)

struct control_socket { /* a listening one */
    struct control *control;
    int fd;                           /* -1: none */
    char *path;                       /* removed at the end; NULL: the service manager made the socket */
    struct listener *listener;        /* NULL: no client is accepted */
    bool looks_only;                  /* its clients may only look, also root */
};

struct control {
    sd_event *event;
    struct control_socket sockets[2]; /* control.sock, look.sock */
    /* The sockets of all clients are in one epoll, which is a single source of the loop and serves some of
     * them in each turn. With thousands of ready sources, sd-event would collect all of them again for each
     * one that it dispatches. */
    int epoll_fd;
    sd_event_source *epoll_source;
    int trusted_epoll_fd;             /* sockets of root and berthd's own user, served before all others */
    sd_event_source *trusted_source;
    struct defer work_woken;          /* set while `woken` is not empty */
    struct list woken;                /* struct control_client.woken: clients with work but no new input */
    struct timer drain_limit;
    void (*on_drained)(void *userdata); /* NULL: not draining, or already called */
    void *drained_userdata;
    const struct control_service *service;
    void *userdata;
    struct control_limits limits;
    struct list clients;              /* struct control_client */
    size_t n_clients;
    struct list accounts;             /* struct control_account */
    size_t n_accounts;
    size_t bytes;                     /* of all accounts that are not trusted */
    struct discard *discard;
    void (*on_abuse)(uid_t uid, pid_t pid, void *userdata); /* may be NULL */
    void *abuse_userdata;
};

struct control_piece { /* of a text; several clients may read it */
    unsigned n_refs;                  /* clients at this piece, the piece before it, and the text for its first one */
    struct control_piece *next;
    size_t size, room;
    char bytes[];
};

struct control_text { /* of messages */
    struct control_piece *first, *last;
    size_t size;                      /* of all pieces, with the NUL */
    bool failed;                      /* for lack of memory */
    bool continues;
    FILE *f;                          /* NULL: finished */
};

struct control_output { /* one outgoing message */
    struct list link;
    struct control_piece *piece;      /* the next one to send; those behind it may be gone */
    size_t piece_sent, sent, size;
    int fd;                           /* sent with the first byte; -1: none */
};

struct control_account { /* of a user who has connections or is refused */
    struct list link;                 /* on control->accounts */
    uid_t uid;
    size_t n_clients;
    size_t bytes;                     /* of the user's calls and replies */
    usec_t refused_until;             /* boottime; 0: not refused */
};

struct frame_reader { /* a client's input, split into messages */
    char *data;
    size_t size, allocated;
    size_t kept;                      /* bytes of whole calls at the front that wait for the current one */
    size_t scanned;                   /* no NUL between `kept` and here */
    usec_t since;                     /* boottime from which a message is unfinished; 0: none is */
};

struct control_client {
    struct control *control;
    struct control_account *account;
    struct list link;                 /* on control->clients */
    int fd, epoll_fd;                 /* epoll_fd: the one of the control that has fd */
    struct peer peer;
    bool looks_only;                  /* connected to such a socket */
    struct list woken;                /* on control->woken, or on no list */
    uint32_t events;                  /* in the epoll */
    struct timer timer;
    usec_t deadline;                  /* boottime of the timer; USEC_INFINITY: off */
    struct frame_reader in;
    struct list out;                  /* struct control_output */
    size_t out_bytes;
    usec_t out_since;                 /* boottime of the last successful write of `out` */
    struct list calls;                /* struct control_call, not answered yet */
    size_t n_calls;
    struct control_call *current;     /* the call whose reply is next; NULL: none */
    bool has_called;                  /* at least once, also without success */
    bool eof;                         /* the client sends nothing more, but may still read */
    bool hung_up;                     /* the client reads nothing more: replies are discarded */
    bool closing;                     /* freed as soon as `out` is sent; nothing more is read */
    bool failed;                      /* freed in the next turn of the loop */
};

struct control_call {
    struct list link;                 /* on client->calls */
    struct control_client *client;
    const struct control_method *method; /* NULL: of org.varlink.service, or unknown */
    bool more, oneway;
    bool kept;
    bool dispatching, over;           /* over: answered inside its method, freed after that */
    void (*on_gone)(struct control_call *call, void *userdata);
    void (*on_room)(void *userdata); /* or NULL */
    void *userdata;
};

/* --- control-client.c --- */
/* fd: stolen, also on failure. */
int control_client_new(struct control *control, int fd, const struct peer *peer, struct control_account *account, bool looks_only);
struct control_client *control_client_free(struct control_client *c);
/* Schedules the client for the next turn of the loop, because a call was answered. */
void control_client_wake(struct control_client *c);
/* These may free their client, and no other. */
void control_client_io(struct control_client *c, uint32_t revents);
void control_client_work(struct control_client *c);

/* --- control-account.c --- */
/* Finds or makes an account. Returns NULL without memory. */
struct control_account *account_get(struct control *c, uid_t uid);
void accounts_free(struct control *c);
bool account_is_trusted(uid_t uid);          /* root and berthd's own user */
bool account_is_refused(const struct control_account *a);
/* Returns why the user cannot have another connection, or NULL. right: of that user. */
const char *account_connection(const struct control *c, const struct control_account *a, enum right right, char *buffer, size_t size);
/* Charge memory to an account, and give it back. */
void account_take(struct control *c, struct control_account *a, size_t bytes);
void account_give(struct control *c, struct control_account *a, size_t bytes);
/* Returns why the account cannot have this much more, or NULL. */
const char *account_room(const struct control *c, const struct control_account *a, size_t bytes, char *buffer, size_t size);
#define ACCOUNT_TEXT_SIZE 200
/* Refuses all connections of a user for a minute, after something that no honest client does. Trusted users
 * are only disconnected. */
void account_refuse(struct control *c, struct control_account *a, pid_t pid);

/* --- control-output.c --- */
/* document: stolen; NULL is -ENOMEM. fd: as in control_call_notify(). */
int control_client_send(struct control_client *c, json_t *document, int fd);
/* text: borrowed; NULL is -ENOMEM. */
int control_client_send_text(struct control_client *c, struct control_text *text);
void output_flush(struct control_client *c); /* writes what the socket takes; if that fails, it hung up */
void output_discard(struct control_client *c);

/* --- control-text.c --- */
/* Returns a document as a message; NULL: no memory. */
struct control_text *control_text_of(const json_t *document);
struct control_piece *control_piece_ref(struct control_piece *p);
/* Frees this piece and those behind it, up to one that somebody else needs. Returns NULL. */
struct control_piece *control_piece_unref(struct control_piece *p);

/* --- control-listen.c --- */
/* path, listen_fd: as in control_new(); listen_fd is stolen, also on failure. */
int control_listen(struct control *c, struct control_socket *socket, const char *path, int listen_fd);
void control_close(struct control *c); /* closes both sockets and removes those that it made */

/* --- control.c --- */
/* Returns the right of the connected user, on control.sock. */
enum right control_right(const struct control *c, int fd);
/* Runs one call of a client. method, params: borrowed. */
int control_call_run(struct control_client *client, const char *method, json_t *params, bool more, bool oneway);

/* --- control-end.c --- */
void control_drain_check(struct control *c); /* called after each turn in which clients were served */
void control_on_drain_due(void *userdata);

/* --- control-service.c --- */
/* Answers a call of a method that is not in the table: one of org.varlink.service, or an error. */
int control_service_run(struct control_call *call, const char *method, json_t *params);
