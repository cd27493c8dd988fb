/* SPDX-License-Identifier: MIT */
#pragma once

/* The handshake: berthd checks whether Redis is usable, loads missing scripts, and probes its own rights
 * before hello. */

#include <stdbool.h>

#include "base/clock.h"
#include "store/redis/client/script.h"
#include "store/redis/client/server-info.h"
#include "store/redis/link/server-clock.h"

struct store_redis;
struct redis_command;

struct handshake {
    bool info_due, scripts_due, probe_due; /* awaited replies */
    bool is_subscribed;
    bool is_by_text; /* Redis refuses SCRIPT: the first call of a script on a connection has its text */
    uint32_t sent;   /* a bit for each script whose text was sent */
    unsigned loads;  /* SCRIPT LOADs under way */
    usec_t info_sent;           /* boottime of the last INFO */
    struct server_info server; /* from the last INFO */
    struct server_clock clock; /* from each INFO of this connection */
    usec_t silent_until[SERVER_WARNINGS]; /* boottime before which a warning is not logged again */
};

/* Begins again, for a new attempt to connect. */
void handshake_reset(struct store_redis *store);
/* The command connection is up: sends INFO and SCRIPT EXISTS; fails the link if there is no memory. */
void handshake_start(struct store_redis *store);
/* After a pause: asks again for what is still due. */
void handshake_continue(struct store_redis *store);
/* Loads the scripts again, which Redis lost. */
void handshake_reset_scripts(struct store_redis *store);
/* Notes that the subscription was acknowledged. */
void handshake_note_subscribed(struct store_redis *store);
/* Sends INFO once a lease. To be called after each answered heartbeat. */
void handshake_recheck(struct store_redis *store);
/* Adds the first two words of a script's call: EVALSHA and its SHA-1, or EVAL and its text. */
void handshake_add_script(struct store_redis *store, struct redis_command *command, enum redis_script script);
