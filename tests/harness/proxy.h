/* SPDX-License-Identifier: MIT */
#pragma once

/* Stands between a berthd and its Redis, a process of its own, and does what it is told to what goes through: both ways, one way,
 * or for the subscriber's connection alone. Connections are unix sockets. Whoever does not read is waited for, as by a network: that
 * alone loses no connection. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"

enum proxy_mode {
    PROXY_PASS,
    PROXY_CUT,          /* connections are closed, new ones refused */
    PROXY_HOLE,         /* half-open: nothing goes through either way, nothing is closed, new connections hang */
    PROXY_DEAF,         /* what berthd sends is swallowed, what Redis sends goes through */
    PROXY_MUTE,         /* what berthd sends goes through, what Redis answers is swallowed */
    PROXY_HOLD,         /* nothing goes through until another mode; then everything does, late */
    PROXY_DELAY,        /* each piece `delay` late */
    PROXY_TRUNCATE,     /* half of each answer, then the connection is closed */
    PROXY_LOSE_ANSWER,  /* a request goes through, its answer is lost with the connection */
    PROXY_DOUBLE,       /* each request reaches Redis twice, the second time on another connection; one answer comes back */
    PROXY_ECHO,         /* each answer comes twice */
    PROXY_DROP_SOME,    /* every fourth answer is swallowed, the connection stays */
    PROXY_GARBAGE,      /* answers are followed by what is no answer */
};

struct proxy {
    char path[108];
    pid_t pid;
    struct proxy_control *control; /* shared with the process */
};

/* Listens on path (a unix socket, or ":PORT" of all this network's addresses) and leads to target (a unix socket). 0 or a negative errno. */
int proxy_start(struct proxy *p, const char *path, const char *target);
/* From now on; subscriber_only: to other connections nothing happens. */
void proxy_set(struct proxy *p, enum proxy_mode mode, usec_t delay, bool subscriber_only);
/* Where new connections lead to; those that are there are closed. */
void proxy_lead(struct proxy *p, const char *target);
/* How many pieces were harmed so far. */
unsigned proxy_harmed(const struct proxy *p);
void proxy_done(struct proxy *p); /* harmless on a zeroed one */
