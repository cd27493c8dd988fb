/* SPDX-License-Identifier: MIT */
#pragma once

/* The fair semaphore of one host, in memory: pools, and the claims that wait for their permits or hold them. Rules R1-R3, R5, R7
 * and R14 of doc/protocol.md, without leases. Core: decisions only; no fd, no library, and the time is passed in.
 *
 * Orders and costs. A queue is a list ordered by place (ticket minus head start), and a claim is put in from the tail: one that has
 * no more head start than those before it finds its place at once, one with a head start walks over those that it overtakes (10 000
 * at most by default, about 20 µs). A release, a grant or a refusal costs no more however many claims wait. What is used is counted
 * from the held records, once a pool and call (R5): a pool has no more of them than permits. */

#include <stdbool.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/name.h"
#include "store/claim.h"

struct pool_override {
    bool is_set, is_pause;
    uint32_t limit;
    usec_t until;  /* by the clock of pools_expire(); USEC_INFINITY: until cleared */
    char *reason;  /* owned; or NULL */
};

struct pool {
    struct list link;             /* on pools->pools */
    struct list due;              /* on pools->due */
    char name[NAME_MAX_LENGTH + 1];
    bool declared;                /* false: only here because there are claims in it still */
    uint32_t declared_limit, queue_limit;
    struct pool_override override;
    struct pool_override replaced; /* by a pause; comes back when that ends */
    struct list queue, parked;    /* struct pool_part of claims in these states, ordered by place */
    struct list held;             /* struct pool_part of held claims, oldest grant first */
    uint32_t n_queue, n_parked;   /* elements of the two; kept where they are linked and unlinked */
    bool is_settled;              /* pools_settle() has seen it: */
    uint32_t settled_limit;       /* with this limit in force */
    uint32_t used;                /* counted in call number `counted` */
    uint64_t counted;
};

enum pool_claim_state {
    POOL_CLAIM_STATE_NONE,    /* in no pool */
    POOL_CLAIM_STATE_WAITING, /* all parts are on pool->queue */
    POOL_CLAIM_STATE_PARKED,  /* pool->parked */
    POOL_CLAIM_STATE_HELD,    /* pool->held */
};

struct pool_part { /* of a claim, in one of its pools */
    struct list link;
    struct pool *pool;
    struct pool_claim *claim;
    uint32_t permits;
};

struct pool_claim {
    const struct claim *claim;
    struct list link;           /* on pools->claims */
    struct list news;           /* on pools->news; or on the owner's list, when taken from there */
    enum pool_claim_state state;
    uint64_t ticket, token;     /* token 0: not held yet */
    uint64_t place;             /* in every queue: ticket minus head start */
    uint32_t position;          /* the last one that it had when it was queued, over all its pools; 1 first; 0: never queued */
    usec_t queued_realtime, granted_realtime;
    size_t n_parts;
    struct pool_part parts[];
};

struct pools {
    struct list pools;  /* struct pool */
    struct list claims; /* struct pool_claim, each that was not freed */
    struct list due;    /* struct pool whose first waiting claim is to be looked at */
    struct list news;   /* struct pool_claim that got another state by somebody else's doing; the owner takes them off */
    bool is_open;       /* else nothing is granted */
    uint64_t clock;     /* the last ticket or token (R7) */
    uint64_t call;      /* number of the counting of what is used */
};

void pools_init(struct pools *p);
void pools_done(struct pools *p); /* with all pools and claims */

struct pool *pools_find(struct pools *p, const char *name);
/* The pool of that name; a new one is not declared and has the limit 0. 0 or -ENOMEM. */
int pools_make(struct pools *p, const char *name, struct pool **ret);
/* Config: all pools that are not declared again between the two are undeclared. Those keep their limit while claims are in them, and
 * are gone after that. */
void pools_undeclare(struct pools *p);
void pool_declare(struct pool *pool, uint32_t limit, uint32_t queue_limit);

/* The limit in force: the override, or what is declared. */
uint32_t pool_limit(const struct pool *pool);
/* Permits held, counted now. */
uint32_t pool_used(const struct pool *pool);

/* These take effect on claims with the next pools_settle(). reason is copied; 0 or -ENOMEM, and then nothing has changed. */
int pool_override(struct pool *pool, uint32_t limit, usec_t until, const char *reason);
int pool_pause(struct pool *pool, usec_t until, const char *reason);
void pool_resume(struct pool *pool, usec_t now); /* nothing if it is not paused */
void pool_clear(struct pool *pool);
/* Ends overrides whose time is over; a pause gives way to what it had replaced. When the next one ends, or USEC_INFINITY. */
usec_t pools_expire(struct pools *p, usec_t now);

/* After limits were changed: parks, brings back, then grants what has become possible (R2). */
void pools_settle(struct pools *p, usec_t now_realtime);
/* Whether another limit is in force than when the pools were last settled; not for a new pool. */
bool pool_has_new_limit(const struct pool *pool);
/* From now on claims are granted. */
void pools_open(struct pools *p, usec_t now_realtime);

enum { /* named answers of pools_claim() */
    POOL_E_BUSY = 1,   /* nowait, and it would have to wait */
    POOL_E_QUEUE_FULL,
};
/* A claim as its owner filled it; claim must outlive the result. claim->ticket not 0 is kept, and is no newcomer to the queue limit.
 * 0: the state says whether it is held, waits or is parked. -ENOENT: no such pool is declared. -ENOMEM.
 * A named answer: *ret is there, in no pool; *ret_pool is the one that stands in the way. */
int pools_claim(struct pools *p, const struct claim *claim, usec_t now_realtime, struct pool_claim **ret, struct pool **ret_pool);
/* A claim that held its permits already (token) or waited (ticket), whatever the limit says; makes pools that it does not find. */
int pools_adopt(struct pools *p, const struct claim *claim, usec_t now_realtime, struct pool_claim **ret);
/* Takes a claim out of all its pools, in any state, and grants what has become possible; idempotent. */
void pools_leave(struct pools *p, struct pool_claim *c, usec_t now_realtime);
/* Of a claim in state NONE. */
struct pool_claim *pool_claim_free(struct pool_claim *c);
