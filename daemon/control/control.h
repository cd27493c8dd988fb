/* SPDX-License-Identifier: MIT */
#pragma once

/* The control socket: a Varlink server (NUL-terminated JSON objects over SOCK_STREAM). It handles sockets,
 * framing, peers and rights; the methods are in verbs*.c. Each client has bounded buffers and a time limit
 * for an unfinished message, and cannot delay other clients. */

#include <jansson.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/socket.h"
#include "daemon/rights.h"

#define CONTROL_MESSAGE_MAX (256 * 1024)  /* bytes of one message from a client */
#define CONTROL_OUTPUT_MAX (16 * 1024 * 1024) /* bytes waiting for a client; a client that reads slower is disconnected */
#define CONTROL_CALLS_MAX 32 /* unanswered calls of one connection; more stay in its input */
#define CONTROL_MESSAGE_TIME (10 * USEC_PER_SEC) /* for the rest of a message that has begun */

struct control;
struct control_call; /* one method call until its last reply; calls of one connection are answered in order */

/* Answers the call, or keeps it and answers later. params: borrowed, an object. After a negative errno the
 * server answers io.berth.Internal. */
typedef int (*control_method_fn)(struct control_call *call, json_t *params, void *userdata);

struct control_method {
    const char *name;      /* "io.berth.Runs" */
    control_method_fn fn;
    enum right right;      /* else io.berth.NotAllowed. Oneway calls with RIGHT_LOOK are not run */
    const char *verb;      /* of `berth`: begins the text of a refusal */
    bool changes;          /* takes the parameter on_behalf and is recorded (verbs-change.c) */
};

struct control_service {
    const struct control_method *methods; /* end with a NULL name */
    const char *description;              /* text of the Varlink interface */
    const struct settings *(*get_settings)(void *userdata); /* those in force, on which rights depend */
};

/* service: borrowed. Listens on path (mode 0660, of run-group if it exists and berthd may set it), or on
 * listen_fd if that is >= 0. Returns 0 or a negative errno; -EINVAL: a method has no right. */
int control_new(struct control **ret, sd_event *event, const char *path, int listen_fd, const struct control_service *service,
                void *userdata);
/* Listens on a second socket, where every client may only look, also root. path: mode 0660, of berthd's own
 * group. listen_fd: as in control_new(), stolen. Called once, before the loop runs. */
int control_add_look(struct control *c, const char *path, int listen_fd);
struct control *control_free(struct control *c); /* on_gone is called for each pending call */
DEFINE_CLEANUP(struct control, control_free)

/* on_abuse: called when a client passes a descriptor, which no method takes. Its user is refused for a
 * minute. */
void control_watch_abuse(struct control *c, void (*on_abuse)(uid_t uid, pid_t pid, void *userdata), void *userdata);

/* Graceful shutdown when the listening socket outlives this process (socket activation). Stops accepting.
 * Calls on_drained once, from the loop, when all accepted clients have called and been answered, or after
 * `within`. Returns 0; CONTROL_E_OURS: nothing was done, because the socket ends with this server;
 * -EALREADY: it drains already. */
enum { CONTROL_E_OURS = 1 };
int control_drain(struct control *c, usec_t within, void (*on_drained)(void *userdata), void *userdata);

/* For tests, before the loop runs: other bounds than those above. */
struct control_limits {
    size_t message_bytes, output_bytes, clients;
    usec_t message_usec;
    size_t calls; /* unanswered, of one connection */
};
void control_set_limits(struct control *c, const struct control_limits *limits);

/* All steal params and return 0 or -ENOMEM. Only on_gone reports a client that is gone or too slow, never from
 * inside these. After done, answer or error the call is gone. notify sends {"continues": true}, if the client
 * sent "more". fd, if >= 0, is duplicated and passed with SCM_RIGHTS. NULL params are -ENOMEM: the client is
 * dropped, because it would take an empty reply for the whole answer; of an error they are {}. */
int control_call_answer(struct control_call *call, json_t *params);
/* Answers without parameters. */
int control_call_done(struct control_call *call);
int control_call_notify(struct control_call *call, json_t *params, int fd);
/* A reply whose parameters its method writes as text, because thousands of claims as a document would take six times the
 * memory. Any number of calls may send the same one. */
struct control_text;
/* Stores where the members are to be written, as "\"pools\":[]". continues: for control_call_notify_text(). NULL: no
 * memory. */
struct control_text *control_text_new(bool continues, FILE **ret_members);
/* Ends the text, and closes the stream. -ENOMEM, also if a write has failed. */
int control_text_finish(struct control_text *t);
/* A client that has not received all of it keeps the rest. Returns NULL. */
struct control_text *control_text_free(struct control_text *t);
DEFINE_CLEANUP(struct control_text, control_text_free)
/* text: finished, borrowed. NULL is -ENOMEM, as above. */
int control_call_answer_text(struct control_call *call, struct control_text *text);
int control_call_notify_text(struct control_call *call, struct control_text *text);
int control_call_error(struct control_call *call, const char *name /* "io.berth.NoSuchPool" */, json_t *params);
/* Answers io.berth.NotAllowed with "VERB: " and the text: the caller lacks this right. */
int control_call_refuse(struct control_call *call, enum right right, const char *format, ...) _printf_(3, 4);
/* Stores the caller, for rights_*(), to be freed with caller_done(). Without memory it has no supplementary
 * groups. */
void control_call_get_caller(const struct control_call *call, struct caller *ret);
/* Returns the method of the call; not for those of org.varlink.service. */
const struct control_method *control_call_method(const struct control_call *call);
bool control_call_wants_more(const struct control_call *call);
const struct peer *control_call_peer(const struct control_call *call);
/* Returns how many clients are connected. */
size_t control_call_count_clients(const struct control_call *call);
/* Keeps a call to answer it later. on_gone is called if the client leaves before the last reply. The call is
 * gone when on_gone returns. */
void control_call_keep(struct control_call *call, void (*on_gone)(struct control_call *call, void *userdata), void *userdata);
/* Calls on_room, with the userdata of control_call_keep(), each time the client has read all waiting output.
 * on_room may send, and must not end the call. */
void control_call_await_room(struct control_call *call, void (*on_room)(void *userdata));
/* Returns how many bytes wait for the client. */
size_t control_call_count_waiting(const struct control_call *call);
