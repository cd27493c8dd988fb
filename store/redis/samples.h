/* SPDX-License-Identifier: MIT */
#pragma once

/* Answered heartbeats: from their counts and times this host concludes which sessions are dead (R4). */

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

#define SAMPLES_MAX 64

struct store_redis;

struct heartbeat_sample {
    uint64_t count;        /* of the heartbeat clock */
    usec_t sent, received; /* boottime */
};

struct samples {                                /* of the current epoch */
    struct heartbeat_sample items[SAMPLES_MAX]; /* oldest first */
    size_t n;
    struct heartbeat_sample newest; /* also if too close to the last item; count 0: none */
    struct heartbeat_sample own;    /* the last that Redis recorded for this session; count 0: none */
    usec_t expiry_usec; /* the lease after which sessions are dead: the longer of ours and the namespace's */
};

/* Adds an answered heartbeat or hello. is_own: Redis recorded it for this session. */
void samples_add(struct store_redis *store, uint64_t count, usec_t sent, bool is_own);
/* Forgets all of them: another epoch, or another session. */
void samples_reset(struct store_redis *store);
void samples_set_expiry(struct store_redis *store, usec_t expiry_usec);
/* Returns the count up to which sessions are dead; 0: none. */
uint64_t samples_dead_count(const struct store_redis *store, usec_t now);
/* Returns how long ago at most a session with this count was alive. */
usec_t samples_last_seen(const struct store_redis *store, uint64_t count, usec_t now);
