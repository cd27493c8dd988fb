/* SPDX-License-Identifier: MIT */
#pragma once

/* The session. A file has its id, so a restarted berthd continues the session, but not after a reboot. */

#include <stdbool.h>

#include "base/clock.h"
#include "base/name.h"

struct store_redis;

struct session_place { /* which namespace a session is of */
    char namespace[NAME_MAX_LENGTH + 1]; /* its name in the config */
    uint64_t redis_hash;
};

struct session {
    char *path; /* of the file; owned; or NULL */
    char id[ID_TEXT_SIZE];
    char replaced[ID_TEXT_SIZE]; /* the session that this one replaces; "": none, or Redis has ended it */
    char boot[ID_TEXT_SIZE];
    char namespace[ID_TEXT_SIZE]; /* the id of the namespace that this host is or was in; "": none yet */
    struct session_place place;      /* where Redis confirmed it last */
    struct session_place configured; /* where it is to be now */
    uint64_t connection; /* number of the current connection */
    bool is_from_file;   /* continued from an earlier berthd, not yet confirmed by Redis */
    bool awaits_stops;   /* no hello before all lost claims have stopped */
    bool is_unwritten;   /* the last write of the file failed */
    usec_t clock_saved;  /* clock.observed_at of the value in the file */
};

struct store_redis_options;

/* path: copied; or NULL. 0 or -ENOMEM. */
int session_init(struct store_redis *store, const struct store_redis_options *options, const char *boot);
void session_done(struct store_redis *store);
/* Reads the file or makes a new id. */
void session_open(struct store_redis *store);
/* Returns whether the config names another namespace than the one that the session is of. */
bool session_is_renamed(const struct session *session);
/* Returns whether Redis must know the session: the config names another place, and runs hold permits that the session
 * protects where it is. */
bool session_must_be_known(const struct store_redis *store);
/* Gives the next connection its number. */
void session_begin_connection(struct store_redis *store);
/* Continues above this number, because the file was older than Redis's record. */
void session_skip_connections(struct store_redis *store, uint64_t connection);
/* Notes that Redis confirmed the session. */
void session_confirm(struct store_redis *store);
/* Writes the clock to the file if it has changed. */
void session_save_clock(struct store_redis *store);
/* Takes the id of the namespace ("": it has none yet), or forgets it. */
void session_note_namespace(struct store_redis *store, const char *id);
void session_forget_namespace(struct store_redis *store);
/* Forgets a session that a bye ended: leaves the id of the namespace in the file, or removes the file. */
void session_forget(struct store_redis *store);
/* Returns whether claims of an earlier berthd were lost with a session that Redis does not know. */
bool session_has_lost_claims(const struct store_redis *store);
/* Begins the new session if the last lost claim has stopped. */
void session_check_stops(struct store_redis *store);
/* Ends the session and loses its claims. A new one begins when they have stopped, or after the margin. */
void session_lose(struct store_redis *store, const char *why);
