/* SPDX-License-Identifier: MIT */

/* Reads the replies of an inspection into a snapshot. A record that does not parse is listed as malformed,
 * because any client may have written it; the rest is read. */

#include <stdlib.h>
#include <string.h>

#include "base/job-name.h"
#include "base/number.h"
#include "base/text.h"
#include "store/redis/store-redis.h"

#define POOLS_MAX 1000

/* Positions in the replies of inspect.lua. */
enum { SESSIONS_GRACE = 2, SESSIONS_KNOWN, SESSIONS_TIME, SESSIONS_LIST, SESSIONS_MALFORMED };
enum { SESSION_ID, SESSION_RECORD, SESSION_COUNT, SESSION_CLAIMS };
enum {
    ANSWER, POOL_LIMIT, POOL_LOWEST, POOL_HIGHEST, POOL_OVERRIDE, POOL_USED, POOL_WAITING,
    POOL_PARKED, POOL_HOLDERS, POOL_QUEUE, POOL_POSITIONS, POOL_HOST_SCOPED, POOL_LOWEST_SESSION,
    POOL_MALFORMED,
};
enum { HOLDER_CLAIM, HOLDER_SESSION, HOLDER_NAME, HOLDER_PERMITS, HOLDER_TOKEN, HOLDER_SINCE, HOLDER_PID };
enum { WAITER_CLAIM, WAITER_SESSION, WAITER_NAME, WAITER_PERMITS, WAITER_SINCE, WAITER_POSITION };
enum { OVERRIDE_LIMIT, OVERRIDE_UNTIL, OVERRIDE_REASON };

/* --- sessions --- */

/* Reads "db=4,net=host"; pools of scope host are left out. */
static int read_limits(struct snapshot_session *s, char *declared) {
    size_t n = 1;
    char *item;

    for (const char *p = declared; *p; p++)
        n += *p == ',';
    s->limits = calloc(n, sizeof(*s->limits));
    if (!s->limits)
        return -ENOMEM;
    while ((item = strsep(&declared, ","))) {
        struct snapshot_limit *l = &s->limits[s->n_limits];
        char *number = strchr(item, '=');
        uint64_t limit;

        if (*item == '\0' && s->n_limits == 0 && !declared)
            return 0; /* none */
        if (!number)
            return -EBADMSG;
        *number++ = '\0';
        if (pool_name_parse(item) == POOL_NAME_INVALID)
            return -EBADMSG;
        if (strcmp(number, "host") == 0)
            continue;
        if (number_parse(number, UINT32_MAX, &limit) < 0)
            return -EBADMSG;
        (void) snprintf(l->pool, sizeof(l->pool), "%s", item);
        l->limit = (uint32_t) limit;
        s->n_limits++;
    }
    return 0;
}

/* "host machine version declared" */
static int read_record(struct snapshot_session *s, const char *record) {
    _cleanup_free_ char *copy = strdup(record);
    char *rest = copy, *host, *machine, *version, *suffix;

    if (!copy)
        return -ENOMEM;
    host = strsep(&rest, " ");
    machine = strsep(&rest, " ");
    version = strsep(&rest, " ");
    if (!machine || !version || !rest || !name_is_valid(host) || strlen(version) >= sizeof(s->version) ||
        !text_is_utf8(version) || text_has_control(version, false))
        return -EBADMSG;
    (void) snprintf(s->host, sizeof(s->host), "%s", host);
    (void) snprintf(s->version, sizeof(s->version), "%s", version);
    suffix = strstr(s->version, STORE_REDIS_DRAINED);
    s->drained = suffix && strcmp(suffix, STORE_REDIS_DRAINED) == 0;
    if (s->drained)
        *suffix = '\0';
    return read_limits(s, rest);
}

static int read_session(const struct store_redis *store, struct snapshot *all, const struct redisReply *item,
                        usec_t now) {
    struct snapshot_session *s = &all->sessions[all->n_sessions];
    const char *record = reply_text(reply_at(item, SESSION_RECORD));
    uint64_t count;
    int r = -EBADMSG;

    if (reply_copy(reply_at(item, SESSION_ID), s->id, sizeof(s->id)) == 0 && id_is_valid(s->id) && record &&
        reply_u64(reply_at(item, SESSION_COUNT), &count) == 0 &&
        reply_u32(reply_at(item, SESSION_CLAIMS), &s->claims) == 0)
        r = read_record(s, record);
    if (r == -EBADMSG) {
        free(s->limits);
        memset(s, 0, sizeof(*s));
        inspect_malformed_add(all, "sessions", reply_at(item, SESSION_ID), reply_at(item, SESSION_RECORD));
        return 0;
    }
    all->n_sessions++; /* before the error, so that snapshot_free() frees it */
    if (r >= 0)
        s->seen_usec = strcmp(s->id, store->session.id) == 0 ? 0 : samples_last_seen(store, count, now);
    return r;
}

static struct snapshot_pool *find_pool(struct snapshot *s, const char *name) {
    for (size_t i = 0; i < s->n_pools; i++)
        if (strcmp(s->pools[i].name, name) == 0)
            return &s->pools[i];
    return NULL;
}

static void collect_pool(struct snapshot *s, const char *name, uint32_t limit) {
    struct snapshot_pool *p = find_pool(s, name);

    if (!p && s->n_pools < POOLS_MAX) {
        p = &s->pools[s->n_pools++];
        (void) snprintf(p->name, sizeof(p->name), "%s", name);
        p->limit = limit;
    } else if (p && limit < p->limit) {
        p->limit = limit;
    }
}

/* Collects the pools that sessions or this host declare. Until the reply for a pool arrives its limit is the
 * lowest declared one. */
static int collect_pools(const struct store_redis *store, struct snapshot *s, char *const *names, size_t n_names) {
    size_t n = store->limits.n_declared + n_names + 1;

    for (size_t i = 0; i < s->n_sessions; i++)
        n += s->sessions[i].n_limits;
    s->pools = calloc(n, sizeof(*s->pools));
    if (!s->pools)
        return -ENOMEM;
    for (size_t i = 0; i < store->limits.n_declared; i++)
        if (!store->limits.declared[i].pool.is_host_scoped)
            collect_pool(s, store->limits.declared[i].pool.name, store->limits.declared[i].pool.limit);
    for (size_t i = 0; i < s->n_sessions; i++)
        for (size_t k = 0; k < s->sessions[i].n_limits; k++)
            collect_pool(s, s->sessions[i].limits[k].pool, s->sessions[i].limits[k].limit);
    for (size_t i = 0; i < n_names; i++)
        if (!find_pool(s, names[i]) && s->n_pools < POOLS_MAX) {
            collect_pool(s, names[i], 0);
            s->pools[s->n_pools - 1].has_pattern = true;
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

int inspect_parse_sessions(const struct store_redis *store, struct snapshot *s, char *const *names,
                           size_t n_names, const struct redisReply *reply, usec_t *ret_time) {
    const struct redisReply *list = reply_at(reply, SESSIONS_LIST);
    usec_t now = clock_boottime(), known_here = usec_sub(now, store->epoch.known_since);
    uint64_t grace, known;
    size_t n;
    int r = 0;

    if (!reply_is(reply_at(reply, ANSWER), "ok") ||
        reply_u64(reply_at(reply, SESSIONS_GRACE), &grace) < 0 ||
        reply_u64(reply_at(reply, SESSIONS_TIME), ret_time) < 0 || reply_count(list, &n) < 0)
        return -EBADMSG;
    if (reply_u64(reply_at(reply, SESSIONS_KNOWN), &known) < 0 ||
        known < known_here) /* implausible: this host knows better */
        known = known_here;
    s->grace_usec = grace ? usec_sub(store->env.lease_usec, known) + 1 : 0;
    s->sessions = calloc(n + 1, sizeof(*s->sessions));
    if (!s->sessions)
        return -ENOMEM;
    for (size_t i = 0; r >= 0 && i < n; i++)
        r = read_session(store, s, reply_at(list, i), now);
    inspect_malformed_read(s, reply_at(reply, SESSIONS_MALFORMED));
    return r < 0 ? r : collect_pools(store, s, names, n_names);
}

/* --- pools --- */

static const struct snapshot_session *find_session(const struct snapshot *s, const struct redisReply *id) {
    for (size_t i = 0; i < s->n_sessions; i++)
        if (reply_is(id, s->sessions[i].id))
            return &s->sessions[i];
    return NULL;
}

/* A job or a label. */
static int read_name(const struct redisReply *r, char name[static NAME_MAX_LENGTH + 1]) {
    return reply_copy(r, name, NAME_MAX_LENGTH + 1) < 0 || !job_name_is_runnable(name) ? -EBADMSG : 0;
}

static int read_id(const struct redisReply *r, char id[static ID_TEXT_SIZE]) {
    return reply_copy(r, id, ID_TEXT_SIZE) < 0 || !id_is_valid(id) ? -EBADMSG : 0;
}

static int read_holder(const struct snapshot *s, struct snapshot_holder *h, const struct redisReply *item) {
    const struct snapshot_session *session = find_session(s, reply_at(item, HOLDER_SESSION));

    if (read_id(reply_at(item, HOLDER_CLAIM), h->claim) < 0 ||
        read_name(reply_at(item, HOLDER_NAME), h->name) < 0 ||
        reply_u32(reply_at(item, HOLDER_PERMITS), &h->permits) < 0 ||
        reply_u64(reply_at(item, HOLDER_TOKEN), &h->token) < 0 ||
        reply_u64(reply_at(item, HOLDER_SINCE), &h->since_realtime) < 0 ||
        reply_u32(reply_at(item, HOLDER_PID), &h->pid) < 0)
        return -EBADMSG;
    (void) snprintf(h->host, sizeof(h->host), "%s", session ? session->host : "");
    h->seen_usec = session ? session->seen_usec : USEC_INFINITY;
    return 0;
}

static int read_waiter(const struct snapshot *s, struct snapshot_waiter *w, const struct redisReply *item,
                       usec_t time) {
    const struct snapshot_session *session = find_session(s, reply_at(item, WAITER_SESSION));
    uint64_t since;

    if (read_id(reply_at(item, WAITER_CLAIM), w->claim) < 0 ||
        read_name(reply_at(item, WAITER_NAME), w->name) < 0 ||
        reply_u32(reply_at(item, WAITER_PERMITS), &w->permits) < 0 ||
        reply_u64(reply_at(item, WAITER_SINCE), &since) < 0 ||
        reply_u32(reply_at(item, WAITER_POSITION), &w->position) < 0)
        return -EBADMSG;
    (void) snprintf(w->host, sizeof(w->host), "%s", session ? session->host : "");
    w->waiting_usec = usec_sub(time, since);
    return 0;
}

/* Returns how many of n elements are listed, so that invented pools do not exhaust this host's memory. */
static size_t take_room(struct snapshot *s, size_t n) {
    n = n < SNAPSHOT_ALL_MAX - s->n_listed ? n : SNAPSHOT_ALL_MAX - s->n_listed;
    s->n_listed += n;
    return n;
}

static int read_holders(struct snapshot *s, struct snapshot_pool *p, const struct redisReply *list) {
    size_t n;

    if (reply_count(list, &n) < 0 || n > SNAPSHOT_LIST_MAX)
        return -EBADMSG;
    n = take_room(s, n);
    p->holders = calloc(n + 1, sizeof(*p->holders));
    if (!p->holders)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (read_holder(s, &p->holders[p->n_holders], reply_at(list, i)) < 0)
            inspect_malformed_add(s, "claims", reply_at(reply_at(list, i), HOLDER_CLAIM),
                          reply_at(reply_at(list, i), HOLDER_NAME));
        else
            p->n_holders++;
    return 0;
}

static int read_queue(struct snapshot *s, struct snapshot_pool *p, usec_t time,
                      const struct redisReply *list) {
    size_t n;

    if (reply_count(list, &n) < 0 || n > SNAPSHOT_LIST_MAX)
        return -EBADMSG;
    n = take_room(s, n);
    p->queue = calloc(n + 1, sizeof(*p->queue));
    if (!p->queue)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (read_waiter(s, &p->queue[p->n_queue], reply_at(list, i), time) < 0)
            inspect_malformed_add(s, "claims", reply_at(reply_at(list, i), WAITER_CLAIM),
                          reply_at(reply_at(list, i), WAITER_NAME));
        else
            p->n_queue++;
    return 0;
}

static int compare_holders(const void *a, const void *b) {
    const struct snapshot_holder *x = a, *y = b;

    return x->token < y->token ? -1 : x->token > y->token;
}

static int read_override(struct snapshot *s, struct snapshot_pool *p, const struct redisReply *o) {
    /* not reply_u64(): `--for` may exceed reply_number_max() */
    const char *until = reply_text(reply_at(o, OVERRIDE_UNTIL));
    char reason[256];
    size_t n;

    if (reply_count(o, &n) < 0)
        return -EBADMSG;
    if (n == 0)
        return 0;
    if (reply_u32(reply_at(o, OVERRIDE_LIMIT), &p->override_limit) < 0 || !until ||
        number_parse(until, NUMBER_MAX, &p->override_until) < 0) {
        inspect_malformed_add(s, "meta", reply_at(o, OVERRIDE_LIMIT), reply_at(o, OVERRIDE_UNTIL));
        return 0;
    }
    if (p->override_until == 0)
        p->override_until = USEC_INFINITY;
    p->has_override = true;
    reply_readable(reply_at(o, OVERRIDE_REASON), reason, sizeof(reason));
    if (!*reason)
        return 0;
    p->override_reason = strdup(reason);
    return p->override_reason ? 0 : -ENOMEM;
}

/* Reads which session declares the lowest limit, if limits differ. A limit of 0 parks the pool. */
static void read_lowest(struct snapshot *s, struct snapshot_pool *p, const struct redisReply *reply) {
    const struct snapshot_session *session = find_session(s, reply_at(reply, POOL_LOWEST_SESSION));
    uint64_t host_scoped = 0;
    char lowest[32], highest[32];

    reply_escape(reply_at(reply, POOL_LOWEST), lowest, sizeof(lowest));
    reply_escape(reply_at(reply, POOL_HIGHEST), highest, sizeof(highest));
    (void) reply_u64(reply_at(reply, POOL_HOST_SCOPED), &host_scoped);
    p->limits_differ = strcmp(lowest, highest) != 0 || host_scoped > 0;
    if (strcmp(lowest, highest) == 0)
        return;
    (void) snprintf(p->lowest, sizeof(p->lowest), "%s", lowest);
    (void) snprintf(p->lowest_host, sizeof(p->lowest_host), "%s", session ? session->host : "");
    reply_escape(reply_at(reply, POOL_LOWEST_SESSION), p->lowest_session, sizeof(p->lowest_session));
}

int inspect_parse_pool(struct snapshot *s, size_t pool, usec_t time, const struct redisReply *reply) {
    struct snapshot_pool *p = &s->pools[pool];
    int r;

    if (!reply_is(reply_at(reply, ANSWER), "ok") ||
        reply_u32(reply_at(reply, POOL_USED), &p->used) < 0 ||
        reply_u32(reply_at(reply, POOL_WAITING), &p->waiting) < 0 ||
        reply_u32(reply_at(reply, POOL_PARKED), &p->parked) < 0)
        return -EBADMSG;
    if (reply_u32(reply_at(reply, POOL_LIMIT), &p->limit) < 0) { /* no berth declares such a limit */
        p->limit = 0;
        inspect_malformed_add(s, "limits", reply_at(reply, POOL_LOWEST_SESSION), reply_at(reply, POOL_LIMIT));
    }
    read_lowest(s, p, reply);
    inspect_malformed_read(s, reply_at(reply, POOL_MALFORMED));
    r = read_override(s, p, reply_at(reply, POOL_OVERRIDE));
    if (r >= 0)
        r = read_holders(s, p, reply_at(reply, POOL_HOLDERS));
    if (r >= 0)
        r = read_queue(s, p, time, reply_at(reply, POOL_QUEUE));
    if (r >= 0)
        qsort(p->holders, p->n_holders, sizeof(*p->holders), compare_holders);
    return r;
}

int inspect_parse_positions(struct snapshot *s, size_t pool, const char (*mine)[ID_TEXT_SIZE], size_t n,
                            const struct redisReply *reply) {
    struct snapshot_position *grown = reallocarray(s->mine, s->n_mine + n + 1, sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    s->mine = grown;
    for (size_t i = 0; i < n; i++) {
        struct snapshot_position *p = &s->mine[s->n_mine];
        uint32_t position;

        if (reply_u32(reply_at(reply_at(reply, POOL_POSITIONS), i), &position) < 0)
            return -EBADMSG;
        if (position == 0)
            continue;
        *p = (struct snapshot_position) {.position = position};
        memcpy(p->claim, mine[i], sizeof(p->claim));
        memcpy(p->pool, s->pools[pool].name, sizeof(p->pool));
        s->n_mine++;
    }
    return 0;
}
