/* SPDX-License-Identifier: MIT */

/* The keys of a pattern in a snapshot. Redis lists them in parts (SSCAN). */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/operator/inspect-internal.h"

#define KEYS_MAX 100000 /* keys of one pattern that are counted */

enum { KEYS_CURSOR = INSPECT_FIRST, FIRST_KEY };
enum { KEY_NAME, KEY_LIMIT, KEY_USED, KEY_WAITING, KEY_PARKED, KEY_WORDS };

static struct inspected_key *add_key(struct inspection *i) {
    if (i->n_of_pattern == i->n_of_pattern_allocated) {
        size_t allocated = i->n_of_pattern_allocated > 0 ? 2 * i->n_of_pattern_allocated : 256;
        struct inspected_key *grown = reallocarray(i->of_pattern, allocated, sizeof(*grown));

        if (!grown)
            return NULL;
        i->of_pattern = grown;
        i->n_of_pattern_allocated = allocated;
    }
    return &i->of_pattern[i->n_of_pattern++];
}

static void add_malformed(struct inspection *i, const char *pattern, const struct redisReply *name) {
    char key[POOL_NAME_SIZE + sizeof("pool::keys")];

    (void) snprintf(key, sizeof(key), "pool:%s:keys", pattern);
    (void) inspect_malformed_add(i->snapshot, key, name, NULL);
}

/* Reads keys. Texts that are none of the pattern, which any client may have written, are listed as malformed. */
static int read_keys(struct inspection *i, const char *pattern, const struct redisReply *reply) {
    const struct redisReply *name;

    for (size_t at = FIRST_KEY; (name = reply_at(reply, at)) && i->n_of_pattern < KEYS_MAX; at += KEY_WORDS) {
        struct inspected_key key, *added;

        if (reply_copy(name, key.name, sizeof(key.name)) < 0 || !pool_name_matches(pattern, key.name) ||
            reply_u32(reply_at(reply, at + KEY_LIMIT), &key.limit) < 0 || reply_u32(reply_at(reply, at + KEY_USED), &key.used) < 0 ||
            reply_u32(reply_at(reply, at + KEY_WAITING), &key.waiting) < 0 || reply_u32(reply_at(reply, at + KEY_PARKED), &key.parked) < 0) {
            add_malformed(i, pattern, name);
            continue;
        }
        added = add_key(i);
        if (!added)
            return -ENOMEM;
        *added = key;
    }
    return 0;
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
static void drop_twins(struct inspection *i) {
    size_t n = 0;

    if (i->n_of_pattern > 0)
        qsort(i->of_pattern, i->n_of_pattern, sizeof(*i->of_pattern), compare_names);
    for (size_t at = 0; at < i->n_of_pattern; at++)
        if (n == 0 || strcmp(i->of_pattern[n - 1].name, i->of_pattern[at].name) != 0)
            i->of_pattern[n++] = i->of_pattern[at];
    i->n_of_pattern = n;
}

static bool has_pool(const struct snapshot *s, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(s->pools[i].name, name) == 0)
            return true;
    return false;
}

static int add_keys(struct inspection *i) {
    struct snapshot *s = i->snapshot;
    size_t n = i->n_of_pattern < SNAPSHOT_KEYS_MAX ? i->n_of_pattern : SNAPSHOT_KEYS_MAX;
    struct snapshot_pool *grown = reallocarray(s->pools, s->n_pools + n + 1, sizeof(*grown)), *pattern;

    if (!grown)
        return -ENOMEM;
    s->pools = grown;
    pattern = &s->pools[i->pool];
    pattern->n_keys = (uint32_t) i->n_of_pattern;
    for (size_t at = 0; at < i->n_of_pattern; at++) {
        const struct inspected_key *key = &i->of_pattern[at];

        pattern->used += key->used;
        pattern->waiting += key->waiting;
        pattern->parked += key->parked;
        if (at >= n || has_pool(s, i->n_pools, key->name))
            continue;
        grown = &s->pools[s->n_pools++];
        *grown = (struct snapshot_pool) {.has_pattern = true, .limit = key->limit, .used = key->used, .waiting = key->waiting,
                                         .parked = key->parked};
        memcpy(grown->name, key->name, sizeof(grown->name));
    }
    return 0;
}

int inspect_read_keys(struct inspection *i, const struct redisReply *reply) {
    int r = reply_copy(reply_at(reply, KEYS_CURSOR), i->cursor, sizeof(i->cursor)) < 0
                ? -EBADMSG
                : read_keys(i, i->snapshot->pools[i->pool].name, reply);

    if (r < 0)
        return r;
    if (strcmp(i->cursor, "0") != 0 && i->n_of_pattern < KEYS_MAX)
        return 1;
    drop_twins(i);
    if (i->n_of_pattern > 0)
        qsort(i->of_pattern, i->n_of_pattern, sizeof(*i->of_pattern), compare_waiting);
    r = add_keys(i);
    i->n_of_pattern = 0;
    return r;
}
