/* SPDX-License-Identifier: MIT */

/* The keys of patterns in a snapshot. Redis lists them in parts (SSCAN). */

#include <stdlib.h>
#include <string.h>

#include "store/redis/operator/inspect-internal.h"
#include "store/redis/store-redis.h"

#define KEYS_MAX 100000 /* of one pattern that are counted */

/* Positions in a reply of inspect.lua, and in its part of each key. */
enum { ANSWER, NEXT_CURSOR, FIRST_KEY };
enum { KEY_NAME, KEY_LIMIT, KEY_USED, KEY_WAITING, KEY_PARKED, KEY_WORDS };

static struct inspected_key *keys_add(struct pool_call *call) {
    if (call->n_keys == call->n_keys_allocated) {
        size_t allocated = call->n_keys_allocated > 0 ? 2 * call->n_keys_allocated : 256;
        struct inspected_key *grown = reallocarray(call->keys, allocated, sizeof(*grown));

        if (!grown)
            return NULL;
        call->keys = grown;
        call->n_keys_allocated = allocated;
    }
    return &call->keys[call->n_keys++];
}

/* Leaves out what is no key of the pattern: any client may have written it. */
static int read_keys(struct pool_call *call, const char *pattern, const struct redisReply *reply) {
    const struct redisReply *name;

    for (size_t i = FIRST_KEY; (name = reply_at(reply, i)) && call->n_keys < KEYS_MAX; i += KEY_WORDS) {
        struct inspected_key key, *added;

        if (reply_copy(name, key.name, sizeof(key.name)) < 0 || !pool_name_matches(pattern, key.name) ||
            reply_u32(reply_at(reply, i + KEY_LIMIT), &key.limit) < 0 || reply_u32(reply_at(reply, i + KEY_USED), &key.used) < 0 ||
            reply_u32(reply_at(reply, i + KEY_WAITING), &key.waiting) < 0 || reply_u32(reply_at(reply, i + KEY_PARKED), &key.parked) < 0)
            continue;
        added = keys_add(call);
        if (!added)
            return -ENOMEM;
        *added = key;
    }
    return 0;
}

static void inspect_on_keys(const struct redisReply *reply, void *userdata) {
    struct pool_call *call = userdata;
    struct inspection *inspection = call->inspection;
    const char *cursor = reply_text(reply_at(reply, NEXT_CURSOR));
    size_t n;
    int r = 0;

    if (!inspection_end_call(inspection))
        return;
    if (!reply_is(reply_at(reply, ANSWER), "ok") || !cursor || reply_count(reply, &n) < 0)
        r = -EBADMSG;
    if (r == 0)
        r = read_keys(call, inspection->snapshot->pools[call - inspection->pools].name, reply);
    if (r == 0 && strcmp(cursor, "0") != 0 && n > FIRST_KEY && call->n_keys < KEYS_MAX)
        r = inspect_keys_send(call, cursor);
    inspection_continue(inspection, r);
}

int inspect_keys_send(struct pool_call *call, const char *cursor) {
    struct inspection *inspection = call->inspection;
    _cleanup_command_ struct redis_command command = {0};
    int r;

    inspection_begin_call(inspection->store, &command, "keys");
    command_add(&command, inspection->snapshot->pools[call - inspection->pools].name);
    command_add(&command, cursor);
    r = call_send(inspection->store, &command, inspect_on_keys, call);
    if (r >= 0)
        inspection->n_calls++;
    return r;
}

/* --- into the snapshot --- */

static int compare_names(const void *a, const void *b) {
    return strcmp(((const struct inspected_key *) a)->name, ((const struct inspected_key *) b)->name);
}

static int compare_waiting(const void *a, const void *b) {
    const struct inspected_key *x = a, *y = b;
    uint64_t more = (uint64_t) y->waiting + y->parked, less = (uint64_t) x->waiting + x->parked;

    return more != less ? (more > less ? 1 : -1) : compare_names(a, b);
}

/* SSCAN may return a key twice. */
static void drop_twins(struct pool_call *call) {
    size_t n = 0;

    if (call->n_keys > 0)
        qsort(call->keys, call->n_keys, sizeof(*call->keys), compare_names);
    for (size_t i = 0; i < call->n_keys; i++)
        if (n == 0 || strcmp(call->keys[n - 1].name, call->keys[i].name) != 0)
            call->keys[n++] = call->keys[i];
    call->n_keys = n;
}

static bool has_pool(const struct snapshot *s, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(s->pools[i].name, name) == 0)
            return true;
    return false;
}

static int add_keys(struct snapshot *s, size_t n_inspected, struct pool_call *call, struct snapshot_pool *pattern) {
    size_t n = call->n_keys < SNAPSHOT_KEYS_MAX ? call->n_keys : SNAPSHOT_KEYS_MAX, at = (size_t) (pattern - s->pools);
    struct snapshot_pool *grown = reallocarray(s->pools, s->n_pools + n + 1, sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    s->pools = grown;
    pattern = &s->pools[at];
    pattern->n_keys = (uint32_t) call->n_keys;
    for (size_t i = 0; i < call->n_keys; i++) {
        const struct inspected_key *key = &call->keys[i];

        pattern->used += key->used;
        pattern->waiting += key->waiting;
        pattern->parked += key->parked;
        if (i >= n || has_pool(s, n_inspected, key->name))
            continue;
        grown = &s->pools[s->n_pools++];
        *grown = (struct snapshot_pool) {.has_pattern = true, .limit = key->limit, .used = key->used, .waiting = key->waiting,
                                         .parked = key->parked};
        memcpy(grown->name, key->name, sizeof(grown->name));
    }
    return 0;
}

int inspect_keys_finish(struct inspection *inspection) {
    struct snapshot *s = inspection->snapshot;
    int r = 0;

    for (size_t i = 0; r == 0 && i < inspection->n_pools; i++) {
        struct pool_call *call = &inspection->pools[i];

        if (call->n_keys == 0)
            continue;
        drop_twins(call);
        qsort(call->keys, call->n_keys, sizeof(*call->keys), compare_waiting);
        r = add_keys(s, inspection->n_pools, call, &s->pools[i]);
    }
    return r;
}
