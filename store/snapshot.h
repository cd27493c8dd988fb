/* SPDX-License-Identifier: MIT */
#pragma once

/* The pools and sessions of a store (store_inspect): plain data. A snapshot of Redis takes several calls, so a
 * claim whose state changes meanwhile may be in two lists or in none. */

#include <stdbool.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "base/pool-name.h"

#define SNAPSHOT_LIST_MAX \
    1000 /* most holders and most waiting claims listed of a pool; the counts are exact (R15) */

#define SNAPSHOT_KEYS_MAX 1000 /* keys of a pattern: those with the most waiting claims */
#define SNAPSHOT_ALL_MAX 100000 /* claims listed in all pools together */
#define SNAPSHOT_ID_SIZE 136    /* of any id in Redis, escaped */

struct snapshot_holder {
    char claim[ID_TEXT_SIZE];
    uint32_t permits;
    const char *host, *name; /* of the snapshot's texts */
    uint64_t token;
    usec_t since_realtime;
    usec_t seen_usec; /* how long ago at most its host was alive; USEC_INFINITY: not known (yet) */
};

struct snapshot_waiter {
    char claim[ID_TEXT_SIZE];
    const char *host, *name; /* of the snapshot's texts */
    uint32_t permits;
    uint32_t position; /* 1 first; 0: parked */
    usec_t waiting_usec;
};

struct snapshot_pool {
    char name[POOL_NAME_SIZE];
    bool host_scope;
    bool has_pattern; /* a key that no config names in full */
    bool is_undefined; /* no live host declares it, nor its pattern: a reload removed it */
    uint32_t n_keys;  /* of a pattern: keys with claims; its counts below are those of all its keys */
    uint32_t limit;   /* in force */
    bool has_override;
    uint32_t override_limit;
    usec_t override_until; /* realtime; USEC_INFINITY: no end */
    char *override_reason; /* NULL: none */
    bool limits_differ;
    char lowest[32]; /* where hosts declare different limits: the lowest, escaped; else "" */
    char lowest_host[NAME_MAX_LENGTH + 1],
        lowest_session[SNAPSHOT_ID_SIZE]; /* its session; "": without a record; escaped */
    uint32_t used, waiting, parked;
    struct snapshot_holder *holders;
    size_t n_holders;
    struct snapshot_waiter *queue;
    size_t n_queue;
    bool is_cut; /* a bound was reached: not all holders and waiting claims are listed */
};

struct snapshot_limit { /* a limit that a session declares */
    char pool[POOL_NAME_SIZE];
    uint32_t limit, due_hash; /* due_hash: of store_pool */
    bool is_host_scoped;      /* there; then it has no limit */
    bool differs;             /* from the limit in force without override */
    bool is_due_otherwise;    /* of a job whose due times differ on this host */
    bool is_only_there, is_only_here; /* of a cluster pool that one of the two hosts does not declare */
};

struct snapshot_session {
    char id[ID_TEXT_SIZE], host[NAME_MAX_LENGTH + 1], version[48];
    bool drained;                  /* it requests nothing new */
    uint32_t claims;               /* held and waiting */
    usec_t seen_usec;              /* as above */
    struct snapshot_limit *limits; /* those that have one of these four */
    size_t n_limits;
};

struct snapshot_position { /* of one of this host's waiting claims, in one pool */
    char claim[ID_TEXT_SIZE], pool[POOL_NAME_SIZE];
    uint32_t position; /* 1 first */
};

struct snapshot_times { /* what a host publishes (store_publish()); of another berthd, so not to be trusted */
    char host[NAME_MAX_LENGTH + 1];
    char *text;
};

struct snapshot_malformed { /* a record in the store that does not parse; all escaped */
    char key[SNAPSHOT_ID_SIZE], id[SNAPSHOT_ID_SIZE], record[256];
};

struct snapshot {
    unsigned n_shared; /* receivers besides the first; each of them calls snapshot_free() */
    usec_t begun;      /* boottime of the first call: nothing in it is older */
    usec_t grace_usec; /* longest time until grace ends; 0: no grace */
    struct snapshot_pool *pools;
    size_t n_pools;
    struct snapshot_session *sessions;
    size_t n_sessions;
    struct snapshot_position *mine;
    size_t n_mine;
    size_t n_listed; /* holders and waiting claims of all pools */
    struct snapshot_malformed *malformed;
    size_t n_malformed;
    struct snapshot_times *times; /* of some hosts; text NULL: the host publishes nothing */
    size_t n_times;
    void *texts; /* tsearch(3) tree of char *; thousands of claims have a few hosts and names */
};

/* Frees the snapshot, or drops one receiver of a shared one. Returns NULL. */
struct snapshot *snapshot_free(struct snapshot *s);
DEFINE_CLEANUP(struct snapshot, snapshot_free)
/* Returns the snapshot's copy of a text, one for all that are equal. NULL: no memory. */
const char *snapshot_text(struct snapshot *s, const char *text);
/* Returns a pool, or NULL. s: may be NULL. */
struct snapshot_pool *snapshot_find_pool(const struct snapshot *s, const char *name);
