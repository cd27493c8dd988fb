/* SPDX-License-Identifier: MIT */
#pragma once

/* A small fake Redis that can give wrong replies. It replies as the scripts would, one claim after the
 * other, so that the store reaches every state, and changes replies on demand. */

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/redis/client/script.h"

/* Kinds of calls: the scripts, and the others. */
enum { PEER_INFO = REDIS_SCRIPTS, PEER_LOAD, PEER_SUBSCRIBE, PEER_OTHER, PEER_LIST, PEER_KINDS };

enum peer_change {
    PEER_AS_IT_IS,
    PEER_REPLACE,   /* a word by another one */
    PEER_REMOVE,    /* a word */
    PEER_INSERT,    /* a word */
    PEER_NEST,      /* a word becomes a list of itself */
    PEER_CUT,       /* all from a word on */
    PEER_WORD,      /* the whole answer is that word: gone, stale, ... */
    PEER_ERROR,     /* the whole answer is an error of that text */
    PEER_RAW,       /* the text as it is, as bytes */
    PEER_LOST,      /* no answer: the connection is closed */
    PEER_CHANGES,
};

/* Changes the reply to the next call of this kind. at: the word, modulo their number. */
void redis_peer_change(int kind, enum peer_change change, unsigned at, const char *text, size_t size);
/* The answer to a command, as bytes; the size, 0: the connection is to be closed. */
size_t redis_peer_answer(const redisReply *command, char *buffer, size_t size);
/* Publishes this on the channel of the session that subscribed last: verb granted, revoked, parked or
 * queued, for the claim of that number (modulo their number). Returns the bytes; 0: no subscriber. */
size_t redis_peer_push(unsigned verb, unsigned claim, char *buffer, size_t size);
/* INFO of this version; before 7.0 it takes no second section, and no script is known or loaded. */
void redis_peer_set_version(const char *version);
/* Another text of INFO, without spaces; borrowed. */
#define REDIS_PEER_INFO                                                                                     \
    "redis_version:7.0.0\r\nmaxmemory_policy:noeviction\r\nrole:master\r\nconnected_slaves:1\r\n"            \
    "master_replid:0123456789012345678901234567890123456789\r\n"
void redis_peer_set_info(const char *info);
/* Forgets all: a wipe, and another epoch. */
void redis_peer_wipe(void);
void redis_peer_reset(void);
