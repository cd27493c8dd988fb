/* SPDX-License-Identifier: MIT */
#pragma once

/* Finds the address of the master in the answers of several sentinels to SENTINEL MASTER. A majority of the sentinels
 * in the config must answer, and the answers with the highest configuration epoch count. An answer below the highest
 * epoch known so far never counts, so sentinels of a cut-off minority cannot lead a host back to an old master. If all
 * sentinels are below that epoch, they were replaced, and the next poll forgets it. No input or output. */

#include "base/clock.h"
#include "base/name.h"
#include "store/redis/client/moved.h"
#include "store/redis/client/reply.h"
#include "store/redis/client/socket.h"

#define SENTINEL_WHERE_SIZE (MOVED_HOST_SIZE + 8)

enum sentinel_verdict {
    SENTINEL_VERDICT_OPEN,  /* answers that can change the outcome are missing */
    SENTINEL_VERDICT_FOUND, /* at `best` */
    SENTINEL_VERDICT_NONE,  /* `error` and `reasons` say why */
};

struct sentinel_poll {
    char master[NAME_MAX_LENGTH + 1]; /* name */
    size_t n;         /* sentinels that are asked */
    size_t n_known;   /* of them: know the master */
    size_t n_unknown; /* do not know it */
    size_t n_failed;  /* gave no answer that counts */
    size_t n_old;     /* of those: gave an epoch below known_epoch */
    uint64_t known_epoch;    /* the highest configuration epoch of any poll */
    uint64_t epoch;          /* the highest one of this poll */
    struct moved best;       /* the address at that epoch */
    struct moved other;      /* another address at the same epoch; port 0: none */
    bool is_up;              /* a sentinel at that epoch sees `best` up, and no failover under way */
    bool is_late;            /* a majority answered a while ago, so the others are not awaited */
    usec_t down_after;       /* the longest of this poll; 0: unknown */
    enum redis_error error;
    char reasons[SOCKET_REASON_SIZE]; /* of the sentinels that failed, then of the verdict */
};

/* Begins a poll of n sentinels. Keeps the highest epoch if the master's name is the same as before. */
void sentinel_poll_begin(struct sentinel_poll *poll, const char *master, size_t n);
/* Takes the reply of a sentinel. who: its address, for people. */
void sentinel_poll_take(struct sentinel_poll *poll, const char *who, const struct redisReply *reply);
/* Notes that a sentinel cannot be asked. An error for administrators takes precedence over a temporary one. */
void sentinel_poll_fail(struct sentinel_poll *poll, const char *who, enum redis_error error, const char *text);
/* Must be called once after each answer until it is not OPEN; sets `error` and `reasons`. */
enum sentinel_verdict sentinel_poll_decide(struct sentinel_poll *poll);
/* Returns whether a majority knows the master, so that the others can only add a newer failover. */
bool sentinel_poll_has_majority(const struct sentinel_poll *poll);
