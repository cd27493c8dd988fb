/* SPDX-License-Identifier: MIT */
#pragma once

/* The table of this host's claims, and the end of each. */

#include <stdbool.h>

#include "base/list.h"
#include "base/timer.h"
#include "store/claim.h"

#define CLAIM_TABLE_BUCKETS 1024 /* a power of two */

struct store_redis;

struct claim_entry { /* a claim that the store owns; thousands may wait. claims.c writes the bits */
    struct store_redis *store;
    struct claim *claim;
    struct list link;         /* on table.entries, in the order of the requests */
    struct list bucket;       /* on table.buckets[...] */
    struct list finish;       /* on table.finished: on_released is due */
    unsigned calls;           /* under way on this connection */
    bool sent : 1;            /* Redis may know the claim */
    bool confirmed : 1;       /* Redis has the claim */
    bool notified : 1;        /* held: its owner received the grant */
    bool lease_lost : 1;      /* held: the lease was lost, its owner has to stop */
    bool needs_token : 1;     /* held beyond a lost lease (`keep`) */
    bool revoke_notified : 1; /* its owner received the revocation */
    bool refuse_busy : 1;     /* finished by a refusal: `nowait`, and Redis is away or full */
    bool wants_commit : 1;    /* held: its owner awaits on_committed */
    bool awaits_turn : 1;     /* no reply has named the attempt of its turn */
    uint32_t back_attempt;    /* releasing: the attempt as which its turn is given back; 0: its turn is over */
    usec_t back_usec;         /* delay before that attempt */
};

struct claim_table {
    struct list entries;                      /* struct claim_entry */
    struct list buckets[CLAIM_TABLE_BUCKETS]; /* struct claim_entry by id */
    struct list finished;                     /* struct claim_entry */
    size_t n_confirmed;
    struct defer finish; /* calls on_released */
};

int claim_table_init(struct store_redis *store);
void claim_table_done(struct store_redis *store);

/* NULL: no memory. */
struct claim_entry *claim_table_add(struct store_redis *store, struct claim *claim, enum claim_state state);
/* Returns the claim to its owner at once. */
void claim_table_remove(struct claim_entry *entry);
struct claim_entry *claim_table_find(struct store_redis *store, const char *id);
/* Notes whether Redis has the claim. */
void claim_table_confirm(struct claim_entry *entry, bool confirmed);
/* Ends a claim of which nothing is left in Redis: on_released is called a turn later. */
void claim_table_finish(struct claim_entry *entry);
/* Ends a claim that would not wait: on_refused is called a turn later. */
void claim_table_refuse(struct claim_entry *entry);

static inline bool claim_entry_is_finished(const struct claim_entry *entry) {
    return list_is_linked(&entry->finish);
}
