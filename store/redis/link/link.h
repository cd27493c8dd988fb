/* SPDX-License-Identifier: MIT */
#pragma once

/* The link: two connections, for commands and for pushes, which open and close together. It decides how to react to
 * errors. handshake.h checks the server before hello. */

#include "base/timer.h"
#include "store/redis/link/backoff.h"
#include "store/redis/link/link-log.h"
#include "store/redis/client/dial.h"
#include "store/status.h"
#include "store/store.h"

struct store_redis;

enum link_phase {
    PHASE_DOWN,       /* not connected; a timer tries again */
    PHASE_CONNECTING, /* until the handshake is complete */
    PHASE_HELLO,      /* hello was sent, or was refused and is repeated by a timer */
    PHASE_SYNC,       /* the sync is under way; other calls wait */
    PHASE_LIVE,
};

struct redis_link {
    struct redis_settings settings;          /* a copy */
    struct redis_connection_options options; /* of both connections */
    char client_name[NAME_MAX_LENGTH + 16];
    enum link_phase phase;
    bool is_replaced; /* new connections, of a renewal or to another node, are not live yet */
    struct redis_dial dial;
    struct redis_connection *commands, *pushes;
    struct timer retry;            /* connects again, or repeats hello */
    struct defer fail_waiting;     /* fails administrators' calls while Redis is away */
    struct backoff backoff;
    usec_t live_since;             /* boottime of the last complete sync */
    uint64_t n_errors[STATUS_ERRORS]; /* since berthd started */
    char address[STATUS_ADDRESS_SIZE]; /* of the connections, or of those before; "": never connected */
    struct link_log log;           /* written by link-log.c */
};

/* Copies the settings. 0 or a negative errno; link_done() frees in any case. */
int link_init(struct store_redis *store, const struct redis_settings *settings);
void link_done(struct store_redis *store);

/* --- up and down --- */

/* Connects a turn later. */
void link_start(struct store_redis *store);
/* Closes both connections and forgets the calls under way. */
void link_close(struct store_redis *store);
/* Reacts to an error: goes to the node that it names, or waits while the slot moves. Otherwise closes both
 * connections, logs the reason, and connects after a pause. */
void link_fail(struct store_redis *store, enum redis_error error, const char *text);
/* Takes other settings: see store_redis_use(). */
int link_use(struct store_redis *store, const struct redis_settings *settings);
/* Replaces both connections by others that are up, and takes these. Calls wait until hello and sync are
 * answered on them; Redis is not away meanwhile. */
void link_replace(struct store_redis *store, struct redis_connection *commands, struct redis_connection *pushes);
/* Returns the pause before the next attempt: 0 at first, then twice as long each time until link_reset_backoff(). */
usec_t link_next_pause(struct store_redis *store);
/* Connects, or repeats hello, after `delay`. */
void link_retry(struct store_redis *store, usec_t delay);
/* Closes both connections and opens others at once. Redis is not away meanwhile, unless it was. */
void link_restart(struct store_redis *store);
/* Repeats hello and sync on both connections after a pause. */
void link_repeat_hello_after(struct store_redis *store, usec_t pause);
/* Repeats hello and sync, or hello alone, on both connections: at once, or after a pause if that happens
 * repeatedly. */
void link_resync(struct store_redis *store);
void link_repeat_hello(struct store_redis *store);
/* Loads the scripts again after a pause. */
void link_reload_scripts(struct store_redis *store);
/* Notes that a heartbeat sent at `sent` succeeded. Lets the next failure be retried soon if the link was live for a
 * while; not before, because a Redis that sends false replies could keep berthd busy. */
void link_reset_backoff(struct store_redis *store, usec_t sent);

/* Fails the renewal, or the link, because no server was found. */
void link_on_not_found(enum redis_error error, const char *text, void *store);

/* --- progress --- */

/* Sends hello after a complete handshake. */
void link_begin_session(struct store_redis *store);
/* Sends the sync after an accepted hello. */
void link_begin_sync(struct store_redis *store);
/* Makes the link live after a complete sync, and logs redis-connected if that is news. */
void link_go_live(struct store_redis *store);

/* --- Redis is away --- */

/* Notes why Redis is away, for people, and since when. */
void link_note_away(struct store_redis *store, const char *why);
/* Sets the store's state and fails all that does not wait for Redis. */
void link_enter_away(struct store_redis *store);
/* Fails administrators' calls a turn later, if Redis is away then. */
void link_fail_waiting_later(struct store_redis *store);
