/* SPDX-License-Identifier: MIT */
#pragma once

/* A proxy between a berthd and its Redis, in a process of its own. It harms the traffic in the ordered way:
 * in both directions, in one, or on the subscriber's connection only. Connections are unix sockets. It waits
 * for a slow reader as a network does, without dropping the connection. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"

enum proxy_mode {
    PROXY_PASS,
    PROXY_CUT,          /* connections are closed, new ones refused */
    PROXY_HOLE,         /* half-open: all traffic is lost, no connection is closed, new ones hang */
    PROXY_DEAF,         /* bytes from berthd are dropped, bytes from Redis pass */
    PROXY_MUTE,         /* bytes from berthd pass, bytes from Redis are dropped */
    PROXY_HOLD,         /* all traffic waits until the next mode, then passes */
    PROXY_HOLD_REPLIES, /* replies wait until the next mode; requests and pushes pass */
    PROXY_DELAY,        /* each piece `delay` late */
    PROXY_TRUNCATE,     /* half of each reply, then the connection is closed */
    PROXY_LOSE_ANSWER,  /* a request passes, its reply is lost with the connection */
    PROXY_DOUBLE,       /* each request reaches Redis twice, the second time on another connection; one reply passes */
    PROXY_ECHO,         /* each reply is sent twice */
    PROXY_DROP_SOME,    /* every fourth reply is dropped, the connection stays */
    PROXY_DROP_NEXT,    /* the next reply is dropped, the connection stays; then PROXY_PASS */
    PROXY_GARBAGE,      /* replies are followed by nonsense */
};

struct proxy {
    char path[108];
    pid_t pid;
    struct proxy_control *control; /* shared with the process */
};

/* Listens on path (a unix socket, or ":PORT" of all addresses) and connects to target (a unix socket). 0 or
 * a negative errno. */
int proxy_start(struct proxy *p, const char *path, const char *target);
/* Sets the mode; subscriber_only: other connections are not harmed. */
void proxy_set(struct proxy *p, enum proxy_mode mode, usec_t delay, bool subscriber_only);
/* Sets the target of new connections and closes the others. */
void proxy_lead(struct proxy *p, const char *target);
/* Returns how many pieces were harmed so far. */
unsigned proxy_harmed(const struct proxy *p);
void proxy_done(struct proxy *p); /* no effect on a zeroed one */
