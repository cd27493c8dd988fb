/* SPDX-License-Identifier: MIT */

/* The snapshot is asked for: first the sessions, which name the pools, then one call a pool, all pipelined. */

#include <stdlib.h>
#include <string.h>

#include "store/redis/store-redis.h"

#define MINE_MAX 1000 /* of this host's waiting claims whose places are asked for, a pool */

struct inspection {
    struct store_redis *redis;
    struct list link;          /* on redis->inspections */
    store_inspect_fn fn;
    void *userdata;
    struct snapshot *snapshot;
    size_t calls;              /* pools still to be answered */
    usec_t time_realtime;      /* Redis's */
    bool begun, lost;          /* under way; its answer will not come */
};

struct question {              /* one call of an inspection, under way */
    struct list link;          /* on redis->questions */
    struct store_redis *redis;
    struct inspection *inspection; /* NULL: it was given up */
    size_t pool;               /* index in the snapshot */
    size_t n_mine;
    char (*mine)[ID_TEXT_SIZE];
};

static void inspection_answer(struct inspection *n, int k) {
    store_inspect_fn fn = n->fn;
    void *userdata = n->userdata;
    struct snapshot *snapshot = k == 0 ? n->snapshot : snapshot_free(n->snapshot);

    list_foreach(q, &n->redis->questions, struct question, link) if (q->inspection == n) q->inspection = NULL;
    list_unlink(&n->link);
    free(n);
    fn(k, snapshot, userdata);
}

static struct question *question_free(struct question *q) {
    if (q) {
        list_unlink(&q->link);
        free(q->mine);
        free(q);
    }
    return NULL;
}
DEFINE_CLEANUP(struct question, question_free)

static struct question *question_new(struct inspection *n, size_t pool) {
    struct question *q = calloc(1, sizeof(*q));

    if (!q)
        return NULL;
    *q = (struct question) {.redis = n->redis, .inspection = n, .pool = pool};
    list_append(&n->redis->questions, &q->link);
    return q;
}

void inspect_reset(struct store_redis *r) {
    list_foreach_safe(q, &r->questions, struct question, link) question_free(q);
    list_foreach(n, &r->inspections, struct inspection, link) n->lost = n->begun;
}

static void inspect_on_pool(const struct redisReply *reply, void *userdata) {
    _cleanup_(question_freep) struct question *call = userdata;
    struct inspection *n = call->inspection;
    int k;

    if (!n)
        return;
    k = snapshot_read_pool(n->snapshot, call->pool, n->time_realtime, reply);
    if (k >= 0)
        k = snapshot_read_positions(n->snapshot, call->pool, (const char (*)[ID_TEXT_SIZE]) call->mine, call->n_mine, reply);
    if (k < 0)
        inspection_answer(n, k);
    else if (--n->calls == 0)
        inspection_answer(n, 0);
}

static int add_mine(struct store_redis *r, struct question *call, const char *pool, struct redis_command *w) {
    call->mine = calloc(MINE_MAX, sizeof(*call->mine));
    if (!call->mine)
        return -ENOMEM;
    list_foreach(e, &r->entries, struct entry, link) {
        if (call->n_mine == MINE_MAX)
            break;
        if (e->claim->state != CLAIM_STATE_WAITING)
            continue;
        for (size_t i = 0; i < e->claim->n_demands; i++)
            if (strcmp(e->claim->demands[i].pool, pool) == 0) {
                memcpy(call->mine[call->n_mine++], e->claim->id, ID_TEXT_SIZE);
                command_add(w, e->claim->id);
            }
    }
    return 0;
}

static int ask_pool(struct inspection *n, size_t pool) {
    _cleanup_(question_freep) struct question *call = question_new(n, pool);
    _cleanup_command_ struct redis_command w = {0};
    struct store_redis *r = n->redis;
    int k;

    if (!call)
        return -ENOMEM;
    command_add(&w, "EVALSHA");
    command_add(&w, redis_script_sha(REDIS_SCRIPT_INSPECT));
    command_add(&w, "1");
    command_add(&w, r->key);
    command_add(&w, "pool");
    command_add(&w, n->snapshot->pools[pool].name);
    k = add_mine(r, call, n->snapshot->pools[pool].name, &w);
    if (k >= 0)
        k = link_call(r, &w, inspect_on_pool, call);
    if (k < 0)
        return k;
    call = NULL; /* its answer frees it, or inspect_reset() */
    n->calls++;
    return 0;
}

static void inspect_on_sessions(const struct redisReply *reply, void *userdata) {
    _cleanup_(question_freep) struct question *call = userdata;
    struct inspection *n = call->inspection;
    int k;

    if (!n)
        return;
    k = snapshot_read_sessions(n->redis, n->snapshot, reply, &n->time_realtime);
    for (size_t i = 0; k >= 0 && i < n->snapshot->n_pools; i++)
        k = ask_pool(n, i);
    if (k < 0 || n->calls == 0)
        inspection_answer(n, k < 0 ? k : 0);
}

/* --- asked --- */

static void inspection_send(struct inspection *n) {
    _cleanup_(question_freep) struct question *call = question_new(n, 0);
    _cleanup_command_ struct redis_command w = {0};
    struct store_redis *r = n->redis;

    if (!call)
        return;
    command_add(&w, "EVALSHA");
    command_add(&w, redis_script_sha(REDIS_SCRIPT_INSPECT));
    command_add(&w, "1");
    command_add(&w, r->key);
    command_add(&w, "sessions");
    if (link_call(r, &w, inspect_on_sessions, call) < 0)
        return; /* the link is going down and answers it, or it is sent with inspect_flush() */
    call = NULL;
    n->begun = true;
}

void inspect_flush(struct store_redis *r) {
    list_foreach_safe(n, &r->inspections, struct inspection, link) if (!n->begun) inspection_send(n);
}

/* Redis is away: those not under way are not answered any more. */
void inspect_fail(struct store_redis *r) {
    struct inspection *n;
    struct list all = LIST_INIT(all);

    list_foreach_safe(each, &r->inspections, struct inspection, link) {
        if (each->begun && !each->lost)
            continue;
        list_unlink(&each->link);
        list_append(&all, &each->link);
    }
    while ((n = list_first(&all, struct inspection, link)))
        inspection_answer(n, -ENOTCONN);
}

int redis_inspect(struct store *s, store_inspect_fn fn, void *userdata) {
    struct store_redis *r = store_redis_of(s);
    struct inspection *n = calloc(1, sizeof(*n));

    if (!n)
        return -ENOMEM;
    n->snapshot = calloc(1, sizeof(*n->snapshot));
    if (!n->snapshot) {
        free(n);
        return -ENOMEM;
    }
    n->redis = r;
    n->fn = fn;
    n->userdata = userdata;
    list_append(&r->inspections, &n->link);
    if (r->phase >= PHASE_SYNC)
        inspection_send(n);
    else
        link_tell_away(r);
    return 0;
}
