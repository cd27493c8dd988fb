/* SPDX-License-Identifier: MIT */
#pragma once

/* What the control server's own files share; nobody else includes it. Which file does what:
 *     control.c          the listening socket, who may call what, the calls
 *     control-client.c   one connection: framing, buffers, time limits, order of calls
 *     control-account.c  what each user has of it
 *     control-output.c   what it is to be sent
 *     control-leave.c    the end, when the listening socket goes on
 *     control-service.c  org.varlink.service */

#include "base/list.h"
#include "daemon/api/control.h"

/* After everything else that berthd does: thousands of clients at once delay one another, but no heartbeat and no guard. */
#define CONTROL_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)

struct control {
    sd_event *event;
    int listen_fd;
    char *path;                       /* to be removed in the end; NULL: the listening socket was handed in */
    /* All clients' sockets are in an epoll of their own, and so one source of the loop, which serves some of them in each turn:
     * with thousands of sources ready at once sd-event would collect all of them again for each one that it dispatches. */
    int epoll_fd;
    sd_event_source *epoll_source;
    int trusted_epoll_fd;             /* those of root and berthd's own user: they are served before all others */
    sd_event_source *trusted_source;
    sd_event_source *later_source;    /* on while `woken` is not empty */
    struct list woken;                /* struct control_client.woken: have work without anything new from their sockets */
    struct listener *listener;
    sd_event_source *drain_timer;     /* NULL: it does not leave */
    void (*on_drained)(void *userdata); /* NULL: it does not leave, or was told */
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
    void (*on_abuse)(uid_t uid, pid_t pid, void *userdata); /* NULL: nobody wants to know */
    void *abuse_userdata;
};

struct control_output { /* one message on its way out */
    struct list link;
    char *text;
    size_t size, sent;                /* size: with its NUL */
    int fd;                           /* goes with the first byte; -1: none */
};

struct control_account { /* a user: as long as there are connections, or as long as it is refused */
    struct list link;                 /* on control->accounts */
    uid_t uid;
    size_t n_clients;
    size_t bytes;                     /* of their calls and answers */
    usec_t refused_until;             /* boottime; 0: it is heard */
};

struct frame_reader { /* a client's input, split into messages */
    char *data;
    size_t size, allocated;
    size_t kept;                      /* whole calls at the front that wait for the current one; none of them is oneway */
    size_t scanned;                   /* no NUL between `kept` and here */
    usec_t since;                     /* boottime: since when a message is unfinished; 0: none is */
};

struct control_client {
    struct control *control;
    struct control_account *account;
    struct list link;                 /* on control->clients */
    int fd, epoll_fd;                 /* epoll_fd: the control's, which has fd */
    struct peer peer;
    struct list woken;                /* on control->woken, or on none */
    uint32_t events;                  /* that the epoll looks for */
    sd_event_source *timer;
    usec_t deadline;                  /* boottime: when the timer fires; USEC_INFINITY: it is off */
    struct frame_reader in;
    struct list out;                  /* struct control_output */
    size_t out_bytes;
    usec_t out_since;                 /* boottime: when the client last took something of `out` */
    struct list calls;                /* struct control_call: not answered yet */
    size_t n_calls;
    struct control_call *current;     /* the one among them whose answer is next; NULL: none */
    bool has_called;                  /* at least once, whatever became of it */
    bool eof;                         /* it says nothing more, but may still listen */
    bool hung_up;                     /* it does not listen any more: answers are discarded */
    bool closing;                     /* is dropped as soon as `out` is sent; nothing is read any more */
    bool failed;                      /* is dropped in the next turn of the loop */
};

struct control_call {
    struct list link;                 /* on client->calls */
    struct control_client *client;
    const struct control_method *method; /* NULL: of org.varlink.service, or none */
    bool more, oneway;
    bool kept;
    bool dispatching, over;           /* in its method, which has answered it: freed after that */
    void (*on_gone)(struct control_call *call, void *userdata);
    void *userdata;
};

/* --- control-client.c --- */
/* fd: taken over, also on failure. */
int control_client_new(struct control *control, int fd, const struct peer *peer, struct control_account *account);
struct control_client *control_client_free(struct control_client *c);
/* A call was answered: goes on with what waits, in the next turn of the loop. */
void control_client_wake(struct control_client *c);
/* These may free the client they are about, and no other one. */
void control_client_io(struct control_client *c, uint32_t revents);
void control_client_work(struct control_client *c);

/* --- control-account.c --- */
struct control_account *account_get(struct control *c, uid_t uid); /* found or made; NULL: no memory */
void accounts_free(struct control *c);
bool account_is_trusted(uid_t uid);          /* root and berthd's own user */
bool account_is_refused(const struct control_account *a);
/* Whether one more connection may be had; the reason, as the words of an error, or NULL. right: what its user may do. */
const char *account_connection(const struct control *c, const struct control_account *a, enum right right, char *buffer, size_t size);
/* Takes so many bytes of memory for a client, or gives them back. */
void account_take(struct control *c, struct control_account *a, size_t bytes);
void account_give(struct control *c, struct control_account *a, size_t bytes);
/* Whether so many more may be had; the reason or NULL, as above. */
const char *account_room(const struct control *c, const struct control_account *a, size_t bytes, char *buffer, size_t size);
#define ACCOUNT_TEXT_SIZE 200
/* One who does what no honest client does: nobody of that user is heard for a minute. Who is trusted is but disconnected. */
void account_refuse(struct control *c, struct control_account *a, pid_t pid);

/* --- control-output.c --- */
/* document: stolen; NULL is -ENOMEM. fd: as in control_call_notify(). */
int control_client_send(struct control_client *c, json_t *document, int fd);
void output_flush(struct control_client *c);   /* as much as the socket takes; who does not listen any more has hung up */
void output_discard(struct control_client *c);

/* --- control.c --- */
/* Runs one call of a client. method, params: borrowed. */
int control_call_run(struct control_client *client, const char *method, json_t *params, bool more, bool oneway);

/* --- control-leave.c --- */
void control_drain_check(struct control *c); /* after each turn in which clients were served */

/* --- control-service.c --- */
/* Answers a call that is in nobody's method table: org.varlink.service, or an error. */
int control_service_run(struct control_call *call, const char *method, json_t *params);
