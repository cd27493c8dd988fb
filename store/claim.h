/* SPDX-License-Identifier: MIT */
#pragma once

/* A claim as its owner (a run) and a store see it: plain data, no fd, no clock. The owner allocates the
 * claim and fills the first part. The store writes the second part, from store_claim() until on_released or
 * on_refused. */

#include "base/clock.h"
#include "base/demand.h"
#include "base/list.h"
#include "base/name.h"

enum claim_state {
    CLAIM_STATE_NONE,      /* unknown to the store */
    CLAIM_STATE_ASKED,     /* requested, not answered yet (Redis may be away) */
    CLAIM_STATE_WAITING,   /* queued, has its ticket */
    CLAIM_STATE_PARKED,    /* as WAITING, but its demand exceeds a limit in force (R2) */
    CLAIM_STATE_HELD,      /* granted, has its token */
    CLAIM_STATE_RELEASING, /* released or withdrawn, not answered yet */
};

struct run;

enum turn_overlap { TURN_OVERLAP_SKIP, TURN_OVERLAP_QUEUE, TURN_OVERLAP_ALLOW };

#define TURN_CHAIN_SIZE (2 * ID_TEXT_SIZE)

/* The turn of a job at a due time, which comes with the claim of its run (R18). */
struct claim_turn {
    /* the owner's */
    const char *pool;            /* of the job, "@report"; the claim demands it */
    int64_t due;                 /* seconds since 1970; 0: none: Redis answers by overlap alone, and the owner removes the turn */
    enum turn_overlap overlap;
    usec_t again_usec;           /* delay from the loss of this host to the next attempt; USEC_INFINITY: none follows. Set before store_commit() */

    /* The store's; the owner fills them for a recovered claim, and sets chain before store_commit() and store_give_back(). */
    bool is_committed;           /* its command may have begun */
    uint32_t attempt;            /* from 1; 0: not known yet */
    char chain[TURN_CHAIN_SIZE]; /* one word from the host of the attempt before; "" or "-": none */
};

struct claim {
    /* the owner's */
    struct run *owner;
    const char *id;    /* the run's */
    const char *name;  /* job or label, for people */
    bool nowait;       /* grant at once or refuse (`busy`) */
    bool keep;         /* on-lease-lost = continue: outlives a lost session and gets a new token */
    uint32_t pid;      /* of the holder, for people; 0: not known yet */
    usec_t needs_usec; /* time before the deadline that a grant needs (R12); 0: none with `keep` */
    size_t n_demands;
    const struct demand_ref *demands; /* at least one, all of this store's scope */
    usec_t head_start_usec;
    struct claim_turn *turn; /* NULL: none. Valid as long as the claim is not CLAIM_STATE_NONE */

    /* the store's */
    enum claim_state state;
    uint32_t position;      /* the highest of those in its queues when it was queued; 1: first; 0: not known */
    uint64_t ticket, token; /* 0: none yet */
    usec_t lead_usec;       /* how far the token is ahead of Redis's TIME (R7) */
    usec_t given_usec;      /* head start from moves. The owner fills this and `moved` for a recovered claim */
    uint64_t moved;         /* number of the last move (R2); 0: none */
    uint64_t released;      /* last number of the clock (R7) drawn while it was held; 0: not known */
    usec_t since_realtime;  /* when it was queued, by the store's clock; for people */
    struct list link;       /* on the store's list of its claims */
    void *store_data;
};

static inline usec_t claim_head_start(const struct claim *c) {
    return c->head_start_usec + c->given_usec;
}
