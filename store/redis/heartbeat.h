/* SPDX-License-Identifier: MIT */
#pragma once

/* Heartbeats: keep the session alive, extend the deadline (R8), expire dead sessions (R4), end grace (R10),
 * and detect missed pushes (R11, R12). A host without claims is idle: it sends one each third of the lease. */

#include <stdbool.h>

#include "base/histogram.h"
#include "base/timer.h"
#include "store/status.h"

#define HEARTBEAT_ROUND_TRIPS 20

struct store_redis;

struct heartbeat {
    struct timer timer, deadline_timer;
    bool is_under_way;
    bool repeat;      /* another one was requested meanwhile */
    bool is_answered; /* at least one since the link is live */
    bool resend_due;  /* everything pending is sent again after the next heartbeat */
    bool late_logged;
    bool is_slow;     /* the timer has the pause of an idle host */
    usec_t sent;           /* boottime of the last one */
    uint64_t drawn_before; /* the clock's last number when it was sent */
    unsigned n_sent;       /* every sixteenth asks for the clock's latest number */
    usec_t round_trips[HEARTBEAT_ROUND_TRIPS]; /* of the last ones on this connection, in any order */
    unsigned n_round_trips; /* all on this connection */
    struct histogram all_round_trips; /* since berthd started */
    usec_t answered_sent; /* boottime when the last answered one was sent; 0: none */
    usec_t due;            /* boottime for which the timer is set */
    struct redis_standstill standstill;
    unsigned n_extra;      /* calls since the last regular heartbeat that replies and pushes caused */
};

int heartbeat_init(struct store_redis *store);
void heartbeat_done(struct store_redis *store);
/* Sends the first one and starts the timer, because the link is live. */
void heartbeat_start(struct store_redis *store);
/* Forgets the one under way. */
void heartbeat_reset(struct store_redis *store);
/* Sends one now, or as soon as the one under way is answered. */
void heartbeat_send(struct store_redis *store);
/* Ends the long pause of an idle host, because it has a claim. Sends one now if the last is an interval old. */
void heartbeat_wake(struct store_redis *store);
/* Sends one if heartbeat_take_extra() allows it. */
void heartbeat_send_extra(struct store_redis *store);
/* Returns whether a reply or push may cause another call. The number between two regular heartbeats is
 * bounded, so that a Redis that sends false replies cannot keep berthd busy. */
bool heartbeat_take_extra(struct store_redis *store);
/* Forgets the round trips and the extra calls of the connection before. */
void heartbeat_begin_connection(struct store_redis *store);
/* Returns the median of the last round trips; 0: none was measured yet. */
usec_t heartbeat_round_trip(const struct store_redis *store);
/* Returns whether calls may be sent: the link is live and a heartbeat was answered. */
bool heartbeat_is_ready(const struct store_redis *store);
/* Resends everything that is pending after the next heartbeat. */
void heartbeat_request_resend(struct store_redis *store);
/* Drops the deadline, because the session is lost. */
void heartbeat_drop_deadline(struct store_redis *store);
/* Returns whether the lease is over. */
bool heartbeat_is_past_deadline(const struct store_redis *store);
