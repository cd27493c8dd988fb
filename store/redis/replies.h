/* SPDX-License-Identifier: MIT */
#pragma once

/* Parses the replies of the scripts into plain structs. A parser checks the whole reply and has no effect,
 * so the caller applies a reply that is valid as a whole. The position of each element stands here and in
 * replies.c alone. Lists stay in the reply: the structs are valid as long as the reply is, and the ..._at()
 * functions return one checked element, -ENOENT behind the last. */

#include <stdbool.h>

#include "base/clock.h"
#include "base/pool-name.h"
#include "store/redis/client/reply.h"

#define REPLY_NUMBER_TEXT_SIZE 24 /* of a number of the namespace's clock, as text */

/* --- parts of several replies --- */

struct override_reply { /* an override, or its end: limit "-" (R10) */
    char pool[POOL_NAME_SIZE];
    uint64_t version;
    char limit[12], until[REPLY_NUMBER_TEXT_SIZE], by[ID_TEXT_SIZE], restore[256], reason[256];
};

struct expired_reply { /* a session that the call expired */
    const char *session, *host;
    uint64_t clock;
};

struct reclaimed_reply { /* a held claim of such a session */
    const char *host, *name, *run, *pools;
    uint64_t token, clock;
};

struct undeclared_reply { /* the lowest limit of a pool after sessions ended */
    const char *pool;
    bool is_declared; /* false: no session declares the pool */
    uint64_t lowest, clock;
};

struct differing_reply { /* limits of a pool that live sessions declare */
    const char *pool;
    uint64_t lowest, highest;
    uint64_t host_scoped; /* sessions that have it with scope host, while others share it */
    char other[NAME_MAX_LENGTH + 1]; /* a host with which the job of the pool has other due times; "": none was found */
};

struct sessions_reply { /* news about other sessions; NULL: no such list */
    const struct redisReply *expired, *reclaimed, *undeclared;
};

int override_reply_at(const struct redisReply *list, size_t i, struct override_reply *ret);
int expired_reply_at(const struct redisReply *list, size_t i, struct expired_reply *ret);
int reclaimed_reply_at(const struct redisReply *list, size_t i, struct reclaimed_reply *ret);
int undeclared_reply_at(const struct redisReply *list, size_t i, struct undeclared_reply *ret);
/* A malformed element reads as limits that do not differ. */
int differing_reply_at(const struct redisReply *list, size_t i, struct differing_reply *ret);

/* --- heartbeat --- */

struct heartbeat_reply {
    bool has_news; /* the lists, and `latest` */
    uint64_t more; /* a bound was reached: the call is to be repeated */
    bool grace;
    uint64_t count;       /* of the heartbeat clock */
    uint64_t last_number; /* the last number given to this session */
    uint64_t n_claims;    /* claims that Redis has of this session */
    uint64_t drawn;       /* the last number drawn */
    uint64_t latest;      /* no number drawn so far is higher; 0: not known */
    const struct redisReply *overrides;
    struct sessions_reply sessions;
};
/* 0 or -EBADMSG; so do all parsers below. */
int heartbeat_reply_parse(const struct redisReply *reply, struct heartbeat_reply *ret);

/* --- hello --- */

enum hello_answer {
    HELLO_ACCEPTED,
    HELLO_STALE,  /* a newer connection of this session exists */
    HELLO_SCHEMA, /* the namespace was written by a newer berth */
    HELLO_NONE,   /* the key that must not exist does (R17) */
    HELLO_LEASE_DIFFERS,
    HELLO_NAME_TAKEN,
    HELLO_OTHER_NAMESPACE,
    HELLO_GONE,  /* the session belongs to another machine */
    HELLO_AGAIN, /* the call reached its bound */
    HELLO_OTHER, /* an error, or an answer that any call can get */
};
enum hello_answer hello_reply_answer(const struct redisReply *reply);

struct hello_reply { /* HELLO_ACCEPTED */
    const char *epoch;
    const char *namespace; /* its id; "": it has none yet */
    bool grace;
    bool is_known;            /* the session existed before */
    uint64_t count, latest;   /* as in a heartbeat's reply */
    uint64_t effective_after; /* the last number drawn before the declared limits took effect */
    const struct redisReply *overrides, *differing;
    struct sessions_reply sessions;
};
int hello_reply_parse(const struct redisReply *reply, struct hello_reply *ret);

struct refusal_reply { /* HELLO_LEASE_DIFFERS, HELLO_NAME_TAKEN */
    const char *epoch;
    uint64_t count, latest;
    usec_t lease_usec; /* of the namespace */
    struct sessions_reply sessions;
};
int refusal_reply_parse(const struct redisReply *reply, struct refusal_reply *ret);
/* The newest connection number that Redis has (HELLO_STALE). */
int stale_reply_parse(const struct redisReply *reply, uint64_t *ret_connection);

/* --- sync --- */

struct sync_reply {
    uint64_t more;
    uint64_t last_number, drawn;
    const struct redisReply *claims, *overcommitted;
};
int sync_reply_parse(const struct redisReply *reply, struct sync_reply *ret);

struct synced_claim_reply {
    const char *id;
    char state; /* H(eld), W(aiting), P(arked), '-': requested, but unknown to Redis */
    bool is_revoked;
    uint64_t ticket, token;
    uint32_t position;
    usec_t since_realtime;
    uint64_t moved;    /* number of a move that this host has not reported; 0: none */
    usec_t given_usec; /* by that move */
};
int synced_claim_reply_at(const struct redisReply *list, size_t i, struct synced_claim_reply *ret);

struct overcommitted_reply {
    const char *pool;
    uint64_t used, limit;
};
int overcommitted_reply_at(const struct redisReply *list, size_t i, struct overcommitted_reply *ret);

/* --- claims --- */

struct claim_reply {
    uint64_t more;
    const char *refusal; /* "busy" or "queue-full"; NULL: not refused */
    const char *pool;    /* of the refusal */
    char state;          /* H, W or P */
    uint64_t ticket, token;
    uint64_t previous; /* the number given to this session before `token` */
    uint32_t position;
    usec_t since_realtime;
};
/* The fields of a line that outlives `ret`. */
int claim_reply_parse(const struct reply_line *line, struct claim_reply *ret);

struct release_reply {
    uint64_t more;
    bool was_there; /* false: Redis does not have the claim */
    uint64_t clock; /* the last number drawn while it was held */
    uint64_t token; /* 0: it only waited */
};
int release_reply_parse(const struct reply_line *line, struct release_reply *ret);

/* --- the rest --- */

struct verify_reply {
    uint64_t more;
    bool is_incomplete; /* Redis lacks something that this host declared or requested */
};
int verify_reply_parse(const struct redisReply *reply, struct verify_reply *ret);
/* Returns whether keys of the namespace are missing. */
bool verify_reply_is_broken(const struct redisReply *reply);

struct bye_reply {
    uint64_t more;
    const struct redisReply *undeclared;
};
int bye_reply_parse(const struct redisReply *reply, struct bye_reply *ret);
