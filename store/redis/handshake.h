/* SPDX-License-Identifier: MIT */
#pragma once

/* The handshake: berthd checks Redis's role and eviction policy, loads missing scripts, and probes its own
 * rights before hello. */

#include <stdbool.h>

#include "base/clock.h"

struct store_redis;
struct redisReply;

struct handshake {
    bool info_due, scripts_due, probe_due; /* replies that are awaited */
    bool is_subscribed;
    unsigned loads;       /* SCRIPT LOADs under way */
    usec_t info_sent;     /* boottime of the last INFO */
    bool snapshot_logged; /* the failure of the last snapshot */
};

/* For a new attempt to connect. */
void handshake_reset(struct store_redis *store);
/* The command connection is up: sends INFO and SCRIPT EXISTS; fails the link if there is no memory. */
void handshake_start(struct store_redis *store);
/* Redis lost the scripts: only these are loaded again. */
void handshake_reset_scripts(struct store_redis *store);
/* The subscription was acknowledged. */
void handshake_note_subscribed(struct store_redis *store);
/* Sends INFO once a lease. To be called after each answered heartbeat. */
void handshake_recheck(struct store_redis *store);
