/* SPDX-License-Identifier: MIT */
#pragma once

/* Pushes to this session (R12). Each number given to the session names the one before, so a missed push
 * leaves a gap. */

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

#define PUSH_GAPS_MAX 256

struct store_redis;
struct redisReply;

struct push_gap { /* a push that names a predecessor not received yet */
    uint64_t before, number;
};

struct push_log {
    uint64_t highest; /* number given to this session in this epoch */
    uint64_t seq;     /* up to this number no push is missing */
    struct push_gap gaps[PUSH_GAPS_MAX];
    size_t n_gaps;
    bool gaps_at_heartbeat; /* there were gaps when the heartbeat under way was sent */
    uint64_t missing;       /* token named by a heartbeat that no push has announced yet; 0: none */
    bool malformed_logged;  /* on this connection */
};

/* Takes a number given to this session, and the one before it. */
void push_observe_number(struct store_redis *store, uint64_t before, uint64_t number);
/* Takes the last number before a sync, up to which no push is missing. */
void push_skip_to(struct store_redis *store, uint64_t number);
void push_on_message(const struct redisReply *reply, void *userdata);
/* Notes that a heartbeat is about to be sent. */
void push_note_heartbeat(struct store_redis *store);
/* Returns whether pushes are missing. last_number: the last number given to this session, by the heartbeat's
 * reply. */
bool push_check_gaps(struct store_redis *store, uint64_t last_number);
/* Forgets gaps: a sync follows. */
void push_reset_gaps(struct store_redis *store);
/* Forget what belonged to the connection, the epoch or the session before. */
void push_reset_connection(struct store_redis *store);
void push_reset_epoch(struct store_redis *store);
void push_reset_session(struct store_redis *store);
