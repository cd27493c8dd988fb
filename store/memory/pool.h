/* SPDX-License-Identifier: MIT */
#pragma once

/* The fair semaphore of one host, in memory: pools, and the claims that wait for their permits or hold them.
 * Implements rules R1-R3, R5, R7 and R14 of doc/protocol.md, without leases. Core: decisions only; no fd, no
 * library, and the time is passed in.
 *
 * A queue is a list ordered by queue key (ticket minus head start). A claim is inserted from the tail:
 * without a head start at once, with one after the claims that it overtakes (10 000 at most by default,
 * about 20 µs). A release, a grant or a refusal costs the same however many claims wait.
 * Permits in use are counted from the held claims, once a pool and call (R5): a pool has no more of them
 * than permits. */

#include <stdbool.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/pool-name.h"
#include "store/claim.h"

struct pool_override {
    bool is_set, is_pause;
    uint32_t limit;
    usec_t until; /* by the clock of pools_expire(); USEC_INFINITY: until cleared */
    char *reason; /* owned; or NULL */
};

struct pool {
    struct list link; /* on pools->pools */
    struct list due;  /* on pools->due */
    char name[POOL_NAME_SIZE];
    bool declared; /* false: kept only because of its claims or its keys, or a key of a pattern */
    struct pool *pattern; /* of a key, also one that is not declared; borrowed; else NULL */
    uint32_t n_keys;      /* of a pattern: its keys that exist */
    uint32_t declared_limit, queue_limit;
    struct pool_override override;
    struct pool_override replaced; /* by a pause; restored when that ends */
    struct list queue, parked;     /* struct pool_part of claims in these states, by queue key */
    struct list held;              /* struct pool_part of held claims, oldest grant first */
    uint32_t n_queue, n_parked;    /* elements of the two; kept where they are linked and unlinked */
    bool is_evaluated;             /* by pools_reevaluate(), */
    uint32_t evaluated_limit;      /* with this limit in force */
    bool evaluated_own;            /* as pool_has_own_limit() */
    uint32_t used;                 /* counted in call number `counted` */
    uint64_t counted;
};

enum pool_claim_state {
    POOL_CLAIM_STATE_NONE,    /* in no pool */
    POOL_CLAIM_STATE_WAITING, /* all parts are on pool->queue */
    POOL_CLAIM_STATE_PARKED,  /* pool->parked */
    POOL_CLAIM_STATE_HELD,    /* pool->held */
};

/* The next call of the claim's listener. */
enum pool_notice {
    POOL_NOTICE_STATE, /* on_waiting or on_granted, if the state has changed */
    POOL_NOTICE_REVOKED,
    POOL_NOTICE_REVOKE_SENT,
    POOL_NOTICE_REFUSED,
    POOL_NOTICE_RELEASED,
};

struct pool_part { /* of a claim, in one of its pools */
    struct list link;
    struct pool *pool;
    struct pool_claim *claim;
    uint32_t permits;
};

struct pool_claim {
    struct claim *claim; /* read by the pools, written by their owner */
    struct list link;    /* on pools->claims */
    struct list changed; /* on pools->changed, or on a list of the pools' owner */
    enum pool_claim_state state;
    enum pool_notice notice; /* this and the next two belong to the pools' owner */
    int refusal;             /* POOL_E_... */
    size_t refused_demand;   /* index of the demand that was refused */
    uint64_t ticket, token;  /* token 0: not held yet */
    uint64_t queue_key;      /* order in every queue: ticket minus head start */
    usec_t given_usec;       /* of the head start: by moves */
    uint64_t moved;          /* number of the last move; 0: none */
    uint32_t position; /* the last in any of its queues when it was queued; 1: first; 0: never queued */
    usec_t queued_realtime, granted_realtime;
    size_t n_parts;
    struct pool_part parts[];
};

struct pools {
    struct list pools;   /* struct pool */
    struct list claims;  /* struct pool_claim */
    struct list due;     /* struct pool whose first waiting claim may fit */
    struct list changed; /* struct pool_claim, changed by another claim; the owner unlinks them */
    bool is_open;        /* else nothing is granted */
    uint64_t clock;      /* the last ticket or token (R7) */
    uint64_t call;       /* number of the call that counts permits in use */
};

void pools_init(struct pools *p);
void pools_done(struct pools *p); /* with all pools and claims */

struct pool *pools_find(struct pools *p, const char *name);
/* Finds or makes the pool of that name. A new one is not declared, and has the limit 0 or that of its pattern. 0 or
 * -ENOMEM. */
int pools_make(struct pools *p, const char *name, struct pool **ret);
/* Finds the pool of that name, or makes it if it is a key of a declared pattern. 0 (*ret: NULL if neither) or
 * -ENOMEM. */
int pools_get(struct pools *p, const char *name, struct pool **ret);
/* A reload undeclares all pools and declares those of the new config. An undeclared pool keeps its limit
 * until its last claim is gone. */
void pools_undeclare(struct pools *p);
void pool_declare(struct pool *pool, uint32_t limit, uint32_t queue_limit);
/* Frees pools that are neither declared nor in use; keys with an override of their own stay. */
void pools_drop_unused(struct pools *p);
void pool_drop_if_unused(struct pool *pool); /* the same for one, and for its pattern */

/* Returns whether the config has the pool, or the pattern of the key. */
bool pool_is_defined(const struct pool *pool);
/* Returns the limit in force: the override, or else the declared limit. A key uses those of its pattern where it has
 * none of its own. */
uint32_t pool_limit(const struct pool *pool);
/* Returns whether a key has an override or a declaration of its own; true for other pools. */
bool pool_has_own_limit(const struct pool *pool);
uint32_t pool_queue_limit(const struct pool *pool);
/* Permits held, counted now. */
uint32_t pool_used(const struct pool *pool);

/* These affect claims with the next pools_reevaluate(). reason: copied. 0, or -ENOMEM without any effect. */
int pool_override(struct pool *pool, uint32_t limit, usec_t until, const char *reason);
int pool_pause(struct pool *pool, usec_t until, const char *reason);
void pool_resume(struct pool *pool, usec_t now); /* nothing if it is not paused */
void pool_clear(struct pool *pool);
/* Ends overrides whose time is over; the end of a pause restores the override that it replaced. Returns the
 * time of the next end, or USEC_INFINITY. */
usec_t pools_expire(struct pools *p, usec_t now);

/* Applies changed limits: parks and requeues claims, then grants what has become possible (R2). */
void pools_reevaluate(struct pools *p, usec_t now_realtime);
/* Returns whether the limit in force has changed since pools_reevaluate(); false for a new pool, and for a
 * key that had and has the limit of its pattern. */
bool pool_has_new_limit(const struct pool *pool);
/* Starts to grant claims. */
void pools_open(struct pools *p, usec_t now_realtime);

/* Named answers of pools_claim(). */
enum {
    POOL_E_BUSY = 1, /* nowait, and the claim would have to wait */
    POOL_E_QUEUE_FULL,
};
/* Enqueues a claim as its owner filled it; claim must outlive the result. A ticket is kept, and exempt from
 * the queue limit. Returns 0 if the claim is held, waits or is parked; -ENOENT if a pool is not declared;
 * -ENOMEM. After a named answer *ret is in no pool, and *ret_demand is the index of the demand that was
 * refused. */
int pools_claim(struct pools *p, struct claim *claim, usec_t now_realtime, struct pool_claim **ret,
                size_t *ret_demand);
/* Takes over a claim that holds its permits (token) or waits (ticket), beyond any limit. Makes missing
 * pools. */
int pools_adopt(struct pools *p, struct claim *claim, usec_t now_realtime, struct pool_claim **ret);
/* Removes a claim in any state from its pools, and grants what has become possible; idempotent. */
void pools_leave(struct pools *p, struct pool_claim *c, usec_t now_realtime);
/* Adds this head start to that of a waiting or parked claim, moves the claim in all its queues, and draws the number of
 * the move. The caller then calls pools_settle(). */
void pools_place(struct pools *p, struct pool_claim *c, usec_t given_usec, usec_t now_realtime);
/* Grants what has become possible. */
void pools_settle(struct pools *p, usec_t now_realtime);
/* Of a claim in state NONE. */
struct pool_claim *pool_claim_free(struct pool_claim *c);
