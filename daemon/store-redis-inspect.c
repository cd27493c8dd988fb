/* SPDX-License-Identifier: MIT */

/* The snapshot: first the sessions, which name the pools, then one call a pool, all pipelined. */

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "daemon/store-redis.h"

#define POOLS_MAX 1000
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

/* --- sessions --- */

static int add_limits(struct snapshot_session *s, const char *declared) {
    size_t n = 1;

    for (const char *p = declared; *p; p++)
        n += *p == ',';
    s->limits = calloc(n, sizeof(*s->limits));
    if (!s->limits)
        return -ENOMEM;
    while (*declared) {
        size_t length = strcspn(declared, ",");
        const char *equals = memchr(declared, '=', length);
        struct snapshot_limit *l = &s->limits[s->n_limits];
        char number[12];
        uint64_t limit;

        if (length > 5 && strncmp(declared + length - 5, "=host", 5) == 0) { /* no limit of the cluster's */
            declared += length + (declared[length] == ',');
            continue;
        }
        if (!equals || (size_t) (equals - declared) > NAME_MAX_LENGTH || length - (size_t) (equals - declared) > sizeof(number))
            return -EBADMSG;
        (void) snprintf(l->pool, sizeof(l->pool), "%.*s", (int) (equals - declared), declared);
        (void) snprintf(number, sizeof(number), "%.*s", (int) (declared + length - equals - 1), equals + 1);
        if (!name_is_valid(l->pool) || number_parse(number, UINT32_MAX, &limit) < 0)
            return -EBADMSG;
        l->limit = (uint32_t) limit;
        s->n_limits++;
        declared += length + (declared[length] == ',');
    }
    return 0;
}

static int add_session(struct inspection *n, const struct redisReply *item, usec_t now) {
    struct snapshot_session *s = &n->snapshot->sessions[n->snapshot->n_sessions];
    const char *declared = reply_text(reply_at(item, 3));
    char *suffix;
    uint64_t count;

    if (reply_copy(reply_at(item, 0), s->id, sizeof(s->id)) < 0 || reply_copy(reply_at(item, 1), s->host, sizeof(s->host)) < 0 ||
        reply_copy(reply_at(item, 2), s->version, sizeof(s->version)) < 0 || !declared ||
        reply_u64(reply_at(item, 4), &count) < 0 || reply_u32(reply_at(item, 5), &s->claims) < 0)
        return -EBADMSG;
    suffix = strstr(s->version, STORE_REDIS_DRAINED);
    s->drained = suffix && strcmp(suffix, STORE_REDIS_DRAINED) == 0;
    if (s->drained)
        *suffix = '\0';
    s->seen_usec = strcmp(s->id, n->redis->session) == 0 ? 0 : beat_seen(n->redis, count, now);
    n->snapshot->n_sessions++;
    return add_limits(s, declared);
}

static struct snapshot_pool *find_pool(struct snapshot *s, const char *name) {
    for (size_t i = 0; i < s->n_pools; i++)
        if (strcmp(s->pools[i].name, name) == 0)
            return &s->pools[i];
    return NULL;
}

/* Pools by the sessions' declarations; `limit` is the lowest until the pool itself is asked. */
static int gather_pools(struct snapshot *s) {
    size_t n = 0;

    for (size_t i = 0; i < s->n_sessions; i++)
        n += s->sessions[i].n_limits;
    s->pools = calloc(n > 0 ? n : 1, sizeof(*s->pools));
    if (!s->pools)
        return -ENOMEM;
    for (size_t i = 0; i < s->n_sessions; i++)
        for (size_t k = 0; k < s->sessions[i].n_limits; k++) {
            const struct snapshot_limit *l = &s->sessions[i].limits[k];
            struct snapshot_pool *p = find_pool(s, l->pool);

            if (!p && s->n_pools < POOLS_MAX) {
                p = &s->pools[s->n_pools++];
                memcpy(p->name, l->pool, sizeof(p->name));
                p->limit = l->limit;
            } else if (p && l->limit < p->limit) {
                p->limit = l->limit;
            }
        }
    for (size_t i = 0; i < s->n_sessions; i++) {
        struct snapshot_session *session = &s->sessions[i];
        size_t kept = 0;

        for (size_t k = 0; k < session->n_limits; k++) {
            const struct snapshot_pool *p = find_pool(s, session->limits[k].pool);

            if (p && session->limits[k].limit != p->limit)
                session->limits[kept++] = session->limits[k];
        }
        session->n_limits = kept;
    }
    return 0;
}

/* --- pools --- */

static const struct snapshot_session *find_session(const struct snapshot *s, const char *id) {
    for (size_t i = 0; id && i < s->n_sessions; i++)
        if (strcmp(s->sessions[i].id, id) == 0)
            return &s->sessions[i];
    return NULL;
}

static int read_holders(struct inspection *n, struct snapshot_pool *p, const struct redisReply *list) {
    const struct redisReply *item;
    size_t count;

    if (reply_count(list, &count) < 0 || count > SNAPSHOT_LIST_MAX)
        return -EBADMSG;
    p->holders = calloc(count > 0 ? count : 1, sizeof(*p->holders));
    if (!p->holders)
        return -ENOMEM;
    for (size_t i = 0; (item = reply_at(list, i)); i++) {
        struct snapshot_holder *h = &p->holders[p->n_holders];
        const struct snapshot_session *s = find_session(n->snapshot, reply_text(reply_at(item, 1)));

        if (reply_copy(reply_at(item, 0), h->claim, sizeof(h->claim)) < 0 ||
            reply_copy(reply_at(item, 2), h->name, sizeof(h->name)) < 0 || reply_u32(reply_at(item, 3), &h->permits) < 0 ||
            reply_u64(reply_at(item, 4), &h->token) < 0 || reply_u64(reply_at(item, 5), &h->since_realtime) < 0 ||
            reply_u32(reply_at(item, 6), &h->pid) < 0)
            return -EBADMSG;
        (void) snprintf(h->host, sizeof(h->host), "%s", s ? s->host : "");
        h->seen_usec = s ? s->seen_usec : USEC_INFINITY;
        p->n_holders++;
    }
    return 0;
}

static int compare_holders(const void *a, const void *b) {
    const struct snapshot_holder *x = a, *y = b;

    return x->token < y->token ? -1 : x->token > y->token;
}

static int read_queue(struct inspection *n, struct snapshot_pool *p, const struct redisReply *list) {
    const struct redisReply *item;
    size_t count;

    if (reply_count(list, &count) < 0 || count > SNAPSHOT_LIST_MAX)
        return -EBADMSG;
    p->queue = calloc(count > 0 ? count : 1, sizeof(*p->queue));
    if (!p->queue)
        return -ENOMEM;
    for (size_t i = 0; (item = reply_at(list, i)); i++) {
        struct snapshot_waiter *w = &p->queue[p->n_queue];
        const struct snapshot_session *s = find_session(n->snapshot, reply_text(reply_at(item, 1)));
        uint64_t since;

        if (reply_copy(reply_at(item, 0), w->claim, sizeof(w->claim)) < 0 ||
            reply_copy(reply_at(item, 2), w->name, sizeof(w->name)) < 0 || reply_u32(reply_at(item, 3), &w->permits) < 0 ||
            reply_u64(reply_at(item, 4), &since) < 0 || reply_u32(reply_at(item, 5), &w->position) < 0)
            return -EBADMSG;
        (void) snprintf(w->host, sizeof(w->host), "%s", s ? s->host : "");
        w->waiting_usec = usec_sub(n->time_realtime, since);
        p->n_queue++;
    }
    return 0;
}

static int read_override(struct snapshot_pool *p, const struct redisReply *o) {
    const char *until = reply_text(reply_at(o, 1)), *reason = reply_text(reply_at(o, 2)); /* `--for` may be longer than any time ahead */
    size_t count;

    if (reply_count(o, &count) < 0)
        return -EBADMSG;
    if (count == 0)
        return 0;
    if (reply_u32(reply_at(o, 0), &p->override_limit) < 0 || !until || number_parse(until, NUMBER_MAX, &p->override_until) < 0 || !reason)
        return -EBADMSG;
    if (p->override_until == 0)
        p->override_until = USEC_INFINITY;
    p->has_override = true;
    if (*reason) {
        p->override_reason = strdup(reason);
        if (!p->override_reason)
            return -ENOMEM;
    }
    return 0;
}

static int read_positions(struct inspection *n, const struct question *call, const struct redisReply *reply) {
    struct snapshot *s = n->snapshot;
    struct snapshot_position *grown = reallocarray(s->mine, s->n_mine + call->n_mine + 1, sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    s->mine = grown;
    for (size_t i = 0; i < call->n_mine; i++) {
        struct snapshot_position *p = &s->mine[s->n_mine];
        uint32_t position;

        if (reply_u32(reply_at(reply_at(reply, 10), i), &position) < 0)
            return -EBADMSG;
        if (position == 0)
            continue;
        p->position = position;
        memcpy(p->claim, call->mine[i], sizeof(p->claim));
        memcpy(p->pool, s->pools[call->pool].name, sizeof(p->pool));
        s->n_mine++;
    }
    return 0;
}

static int read_pool(struct inspection *n, const struct question *call, const struct redisReply *reply) {
    struct snapshot_pool *p = &n->snapshot->pools[call->pool];
    uint64_t lowest = 0, highest = 0, elsewhere = 0;
    int k;

    (void) reply_u64(reply_at(reply, 2), &lowest); /* -1: declared by nobody any more */
    (void) reply_u64(reply_at(reply, 3), &highest);
    (void) reply_u64(reply_at(reply, 11), &elsewhere);
    p->limits_differ = lowest != highest || elsewhere > 0;
    if (reply_u32(reply_at(reply, 1), &p->limit) < 0 || reply_u32(reply_at(reply, 5), &p->used) < 0 ||
        reply_u32(reply_at(reply, 6), &p->waiting) < 0 || reply_u32(reply_at(reply, 7), &p->parked) < 0)
        return -EBADMSG;
    k = read_override(p, reply_at(reply, 4));
    if (k >= 0)
        k = read_holders(n, p, reply_at(reply, 8));
    if (k >= 0)
        k = read_queue(n, p, reply_at(reply, 9));
    if (k >= 0)
        k = read_positions(n, call, reply);
    if (k >= 0)
        qsort(p->holders, p->n_holders, sizeof(*p->holders), compare_holders);
    return k;
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
    k = reply_is(reply_at(reply, 0), "ok") ? read_pool(n, call, reply) : -EBADMSG;
    if (k < 0)
        inspection_answer(n, k);
    else if (--n->calls == 0)
        inspection_answer(n, 0);
}

static int add_mine(struct store_redis *r, struct question *call, const char *pool, struct words *w) {
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
                words_add(w, e->claim->id);
            }
    }
    return 0;
}

static int ask_pool(struct inspection *n, size_t pool) {
    _cleanup_(question_freep) struct question *call = question_new(n, pool);
    _cleanup_words_ struct words w = {0};
    struct store_redis *r = n->redis;
    int k;

    if (!call)
        return -ENOMEM;
    words_add(&w, "EVALSHA");
    words_add(&w, redis_script_sha(REDIS_SCRIPT_INSPECT));
    words_add(&w, "1");
    words_add(&w, r->key);
    words_add(&w, "pool");
    words_add(&w, n->snapshot->pools[pool].name);
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
    const struct redisReply *list = reply_at(reply, 5);
    usec_t now = clock_boottime();
    uint64_t grace, known;
    size_t count;
    int k = 0;

    if (!n)
        return;
    if (!reply_is(reply_at(reply, 0), "ok") || reply_u64(reply_at(reply, 2), &grace) < 0 ||
        reply_u64(reply_at(reply, 3), &known) < 0 || reply_u64(reply_at(reply, 4), &n->time_realtime) < 0 ||
        reply_count(list, &count) < 0) {
        inspection_answer(n, -EBADMSG);
        return;
    }
    known = usec_sub(now, n->redis->epoch_known) > known ? usec_sub(now, n->redis->epoch_known) : known;
    n->snapshot->grace_usec = grace ? usec_sub(n->redis->lease_usec, known) + 1 : 0;
    n->snapshot->sessions = calloc(count > 0 ? count : 1, sizeof(*n->snapshot->sessions));
    if (!n->snapshot->sessions)
        k = -ENOMEM;
    for (size_t i = 0; k >= 0 && i < count; i++)
        k = add_session(n, reply_at(list, i), now);
    if (k >= 0)
        k = gather_pools(n->snapshot);
    for (size_t i = 0; k >= 0 && i < n->snapshot->n_pools; i++)
        k = ask_pool(n, i);
    if (k < 0 || n->calls == 0)
        inspection_answer(n, k < 0 ? k : 0);
}

/* --- asked --- */

static void inspection_send(struct inspection *n) {
    _cleanup_(question_freep) struct question *call = question_new(n, 0);
    _cleanup_words_ struct words w = {0};
    struct store_redis *r = n->redis;

    if (!call)
        return;
    words_add(&w, "EVALSHA");
    words_add(&w, redis_script_sha(REDIS_SCRIPT_INSPECT));
    words_add(&w, "1");
    words_add(&w, r->key);
    words_add(&w, "sessions");
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
