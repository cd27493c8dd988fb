/* SPDX-License-Identifier: MIT */
#pragma once

/* Composes the store on Redis; store/store.h is its interface. Each part is a struct declared in the header
 * of its own name and written by the file of that name alone. Other files read it and call its functions.
 *
 * A call is EVALSHA SHA 2 berth:{ns}:meta berth:{ns}:none SESSION CONNECTION ..., without a cluster EVALSHA SHA 1
 * berth:{ns}:meta ...; its reply begins with a word.
 * call_handle_common_reply() handles those that any call can get: "epoch", "gone", "stale", errors. */

#include "base/list.h"
#include "store/redis/operator/admin.h"
#include "store/redis/batch.h"
#include "store/redis/call.h"
#include "store/redis/claim-table.h"
#include "store/redis/claims.h"
#include "store/redis/clock.h"
#include "store/redis/epoch.h"
#include "store/redis/expired.h"
#include "store/redis/link/find.h"
#include "store/redis/full.h"
#include "store/redis/link/handshake.h"
#include "store/redis/heartbeat.h"
#include "store/redis/hello.h"
#include "store/redis/operator/inspect.h"
#include "store/redis/operator/publish.h"
#include "store/redis/limits.h"
#include "store/redis/link/link.h"
#include "store/redis/push.h"
#include "store/redis/link/renewal.h"
#include "store/redis/link/replicas.h"
#include "store/redis/samples.h"
#include "store/redis/session.h"
#include "store/redis/link/slot.h"
#include "store/redis/stop.h"
#include "store/redis/sync.h"
#include "store/redis/turns/turns.h"
#include "store/redis/verify.h"
#include "store/store.h"

#define STORE_REDIS_DRAINED ",drained" /* appended to the version of a drained host's session in Redis */

struct redis_env { /* constant after store_redis_new() */
    sd_event *event;
    struct events *events;
    char host[NAME_MAX_LENGTH + 1], version[32], machine[ID_TEXT_SIZE];
    char key[NAME_MAX_LENGTH + 24];    /* berth:{ns}:meta */
    char none[NAME_MAX_LENGTH + 24];   /* berth:{ns}:none, a key that never exists (R17) */
    char prefix[NAME_MAX_LENGTH + 16]; /* berth:{ns}: */
    usec_t lease_usec, heartbeat_usec;
};

struct store_redis {
    struct store base; /* first */
    struct redis_env env;
    struct redis_link link;
    struct finder finder;
    struct store_stop stop;
    struct namespace_slot slot;
    struct missing_replicas replicas;
    struct renewal renewal;
    struct handshake handshake;
    struct session session;
    struct hello hello;
    struct sync sync;
    struct heartbeat heartbeat;
    struct samples samples;
    struct epoch epoch;
    struct namespace_clock clock;
    struct claim_table table;
    struct claims claims;
    struct full full;
    struct batches batches;
    struct push_log pushes;
    struct verify verify;
    struct turns turns;
    struct limits limits;
    struct {                 /* of the files of operator/ */
        struct list admins;  /* struct admin */
        struct inspections inspections;
        struct publish publish;
    } operator;
};

static inline struct store_redis *store_redis_of(struct store *base) {
    return (struct store_redis *) (void *) base;
}

void store_redis_set_state(struct store_redis *store, enum store_state state);
struct journal *store_redis_journal(struct store_redis *store);
