/* SPDX-License-Identifier: MIT */
#pragma once

/* The control socket: a Varlink server (NUL-terminated JSON objects over SOCK_STREAM). It knows sockets, framing, peers and who
 * may call what; what a method does is in daemon/verbs*.c. One of the places that use jansson. A client has a bounded buffer in
 * both directions, a time limit for an unfinished message, and cannot delay anybody else. */

#include <jansson.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/socket.h"
#include "daemon/rights.h"

#define CONTROL_MESSAGE_MAX (256 * 1024)  /* bytes of one message from a client */
#define CONTROL_OUTPUT_MAX (16 * 1024 * 1024) /* bytes waiting for a client; one that reads slower is disconnected */
#define CONTROL_CALLS_MAX 32 /* of one connection that are not answered; more wait where they are */
#define CONTROL_MESSAGE_TIME (10 * USEC_PER_SEC) /* for the rest of a message that has begun */

struct control;
struct control_call; /* one method call, until it was answered for the last time; calls of one connection are answered in order */

/* Answers the call, or keeps it and answers later. params: borrowed, an object. A negative errno is answered with io.berth.Internal;
 * any other result means that the call was answered or kept. */
typedef int (*control_method_fn)(struct control_call *call, json_t *params, void *userdata);

struct control_method {
    const char *name;      /* "io.berth.Runs" */
    control_method_fn fn;
    enum right right;      /* that its caller needs; others get io.berth.NotAllowed. What needs RIGHT_LOOK alone changes nothing, and is
                              not run if it is oneway */
    const char *verb;      /* of `berth`: what a refusal begins with */
};

struct control_service {
    const struct control_method *methods; /* end with a NULL name */
    const char *description;              /* the Varlink interface's text; vendor etc. are fixed here */
    const struct settings *(*get_settings)(void *userdata); /* those in force: they say who has which right */
};

/* service: stays the caller's. Listens on path (mode 0660, of run-group where that exists and berthd may give it), or takes listen_fd if
 * that is >= 0. -EINVAL: a method has no right. */
int control_new(struct control **ret, sd_event *event, const char *path, int listen_fd, const struct control_service *service,
                void *userdata);
struct control *control_free(struct control *c); /* every pending call ends; on_gone is called for each */
DEFINE_CLEANUP(struct control, control_free)

/* on_abuse: a client passed a descriptor, which none is for; its user is not heard for a minute. Told once for that. */
void control_watch_abuse(struct control *c, void (*on_abuse)(uid_t uid, pid_t pid, void *userdata), void *userdata);

/* Before the end of this server, where the listening socket was handed in and a successor will have it: accepts nobody more, and calls
 * on_drained once, from the loop, when all who were accepted have called and been answered, or after `within`. CONTROL_E_OURS: the socket
 * ends with this server, and nothing was done; negative errno, -EALREADY if it is leaving. */
enum { CONTROL_E_OURS = 1 };
int control_drain(struct control *c, usec_t within, void (*on_drained)(void *userdata), void *userdata);

/* For tests: other bounds than those above. Before the loop runs. */
struct control_limits {
    size_t message_bytes, output_bytes, clients;
    usec_t message_usec;
    size_t calls; /* of one connection that are not answered */
};
void control_set_limits(struct control *c, const struct control_limits *limits);

/* All take params (stolen; NULL: {}, but for what is said below) and return 0 or -ENOMEM; a client that is gone or too slow is told by
 * on_gone alone, never from inside these. After reply or error the call is gone. notify is {"continues": true}: only if the client said
 * "more" (control_call_wants_more). fd, if >= 0, is passed along with SCM_RIGHTS (a duplicate: the caller keeps its own). */
int control_call_reply(struct control_call *call, json_t *params);
/* The same, for params that were made for it: NULL is -ENOMEM, and the client is thrown out rather than told nothing as if that were
 * all. So it is by control_call_notify(). */
int control_call_answer(struct control_call *call, json_t *params);
int control_call_notify(struct control_call *call, json_t *params, int fd);
int control_call_error(struct control_call *call, const char *name /* "io.berth.NoSuchPool" */, json_t *params);
/* The caller lacks this right: io.berth.NotAllowed, "VERB: " and the text. */
int control_call_refuse(struct control_call *call, enum right right, const char *format, ...) _printf_(3, 4);
/* Who calls, for rights_...(); without memory for it somebody without supplementary groups. To be freed by caller_done(). */
void control_call_get_caller(const struct control_call *call, struct caller *ret);
bool control_call_wants_more(const struct control_call *call);
const struct peer *control_call_peer(const struct control_call *call);
/* For a kept call: on_gone(userdata) when the client has gone before the last answer; the call is gone when it returns. */
void control_call_keep(struct control_call *call, void (*on_gone)(struct control_call *call, void *userdata), void *userdata);
