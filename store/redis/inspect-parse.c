/* SPDX-License-Identifier: MIT */

/* Reads the replies of an inspection into a snapshot. A record that does not parse is listed as malformed,
 * because any client may have written it; the rest is read. */

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "store/redis/store-redis.h"

#define POOLS_MAX 1000

/* --- malformed records --- */

/* id, record: of any bytes, or NULL. Without memory the list is shorter. */
static void add_malformed(struct snapshot *s, const char *key, const struct redisReply *id,
                          const struct redisReply *record) {
    struct snapshot_malformed *grown;

    if (s->n_malformed >= SNAPSHOT_LIST_MAX)
        return;
    grown = reallocarray(s->malformed, s->n_malformed + 1, sizeof(*grown));
    if (!grown)
        return;
    s->malformed = grown;
    grown = &s->malformed[s->n_malformed++];
    (void) snprintf(grown->key, sizeof(grown->key), "%s", key);
    reply_escape(id, grown->id, sizeof(grown->id));
    reply_escape(record, grown->record, sizeof(grown->record));
}

/* Adds the records that the script has rejected. */
static void read_malformed(struct snapshot *s, const struct redisReply *list) {
    const struct redisReply *item;

    for (size_t i = 0; (item = reply_at(list, i)); i++) {
        char key[sizeof(s->malformed->key)];

        reply_escape(reply_at(item, 0), key, sizeof(key));
        add_malformed(s, key, reply_at(item, 1), reply_at(item, 2));
    }
}

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
        if (!name_is_valid(item))
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
    const char *record = reply_text(reply_at(item, 1));
    uint64_t count;
    int r = -EBADMSG;

    if (reply_copy(reply_at(item, 0), s->id, sizeof(s->id)) == 0 && id_is_valid(s->id) && record &&
        reply_u64(reply_at(item, 2), &count) == 0 && reply_u32(reply_at(item, 3), &s->claims) == 0)
        r = read_record(s, record);
    if (r == -EBADMSG) {
        free(s->limits);
        memset(s, 0, sizeof(*s));
        add_malformed(all, "sessions", reply_at(item, 0), reply_at(item, 1));
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
static int collect_pools(const struct store_redis *store, struct snapshot *s) {
    size_t n = store->limits.n_declared + 1;

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

int inspect_parse_sessions(const struct store_redis *store, struct snapshot *s,
                           const struct redisReply *reply, usec_t *ret_time) {
    const struct redisReply *list = reply_at(reply, 5);
    usec_t now = clock_boottime(), known_here = usec_sub(now, store->epoch.known_since);
    uint64_t grace, known;
    size_t n;
    int r = 0;

    if (!reply_is(reply_at(reply, 0), "ok") || reply_u64(reply_at(reply, 2), &grace) < 0 ||
        reply_u64(reply_at(reply, 4), ret_time) < 0 || reply_count(list, &n) < 0)
        return -EBADMSG;
    if (reply_u64(reply_at(reply, 3), &known) < 0 ||
        known < known_here) /* implausible: this host knows better */
        known = known_here;
    s->grace_usec = grace ? usec_sub(store->env.lease_usec, known) + 1 : 0;
    s->sessions = calloc(n + 1, sizeof(*s->sessions));
    if (!s->sessions)
        return -ENOMEM;
    for (size_t i = 0; r >= 0 && i < n; i++)
        r = read_session(store, s, reply_at(list, i), now);
    read_malformed(s, reply_at(reply, 6));
    return r < 0 ? r : collect_pools(store, s);
}

/* --- pools --- */

static const struct snapshot_session *find_session(const struct snapshot *s, const struct redisReply *id) {
    for (size_t i = 0; i < s->n_sessions; i++)
        if (reply_is(id, s->sessions[i].id))
            return &s->sessions[i];
    return NULL;
}

static int read_name(const struct redisReply *r, char name[static NAME_MAX_LENGTH + 1]) {
    return reply_copy(r, name, NAME_MAX_LENGTH + 1) < 0 || !name_is_valid(name) ? -EBADMSG : 0;
}

static int read_id(const struct redisReply *r, char id[static ID_TEXT_SIZE]) {
    return reply_copy(r, id, ID_TEXT_SIZE) < 0 || !id_is_valid(id) ? -EBADMSG : 0;
}

static int read_holder(const struct snapshot *s, struct snapshot_holder *h, const struct redisReply *item) {
    const struct snapshot_session *session = find_session(s, reply_at(item, 1));

    if (read_id(reply_at(item, 0), h->claim) < 0 || read_name(reply_at(item, 2), h->name) < 0 ||
        reply_u32(reply_at(item, 3), &h->permits) < 0 || reply_u64(reply_at(item, 4), &h->token) < 0 ||
        reply_u64(reply_at(item, 5), &h->since_realtime) < 0 || reply_u32(reply_at(item, 6), &h->pid) < 0)
        return -EBADMSG;
    (void) snprintf(h->host, sizeof(h->host), "%s", session ? session->host : "");
    h->seen_usec = session ? session->seen_usec : USEC_INFINITY;
    return 0;
}

static int read_waiter(const struct snapshot *s, struct snapshot_waiter *w, const struct redisReply *item,
                       usec_t time) {
    const struct snapshot_session *session = find_session(s, reply_at(item, 1));
    uint64_t since;

    if (read_id(reply_at(item, 0), w->claim) < 0 || read_name(reply_at(item, 2), w->name) < 0 ||
        reply_u32(reply_at(item, 3), &w->permits) < 0 || reply_u64(reply_at(item, 4), &since) < 0 ||
        reply_u32(reply_at(item, 5), &w->position) < 0)
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
            add_malformed(s, "claims", reply_at(reply_at(list, i), 0), reply_at(reply_at(list, i), 2));
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
            add_malformed(s, "claims", reply_at(reply_at(list, i), 0), reply_at(reply_at(list, i), 2));
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
    const char *until = reply_text(reply_at(o, 1));
    char reason[256];
    size_t n;

    if (reply_count(o, &n) < 0)
        return -EBADMSG;
    if (n == 0)
        return 0;
    if (reply_u32(reply_at(o, 0), &p->override_limit) < 0 || !until ||
        number_parse(until, NUMBER_MAX, &p->override_until) < 0) {
        add_malformed(s, "meta", reply_at(o, 0), reply_at(o, 1));
        return 0;
    }
    if (p->override_until == 0)
        p->override_until = USEC_INFINITY;
    p->has_override = true;
    reply_readable(reply_at(o, 2), reason, sizeof(reason));
    if (!*reason)
        return 0;
    p->override_reason = strdup(reason);
    return p->override_reason ? 0 : -ENOMEM;
}

/* Reads which session declares the lowest limit, if limits differ. A limit of 0 parks the pool. */
static void read_lowest(struct snapshot *s, struct snapshot_pool *p, const struct redisReply *reply) {
    const struct snapshot_session *session = find_session(s, reply_at(reply, 12));
    uint64_t host_scoped = 0;
    char lowest[32], highest[32];

    reply_escape(reply_at(reply, 2), lowest, sizeof(lowest));
    reply_escape(reply_at(reply, 3), highest, sizeof(highest));
    (void) reply_u64(reply_at(reply, 11), &host_scoped);
    p->limits_differ = strcmp(lowest, highest) != 0 || host_scoped > 0;
    if (strcmp(lowest, highest) == 0)
        return;
    (void) snprintf(p->lowest, sizeof(p->lowest), "%s", lowest);
    (void) snprintf(p->lowest_host, sizeof(p->lowest_host), "%s", session ? session->host : "");
    reply_escape(reply_at(reply, 12), p->lowest_session, sizeof(p->lowest_session));
}

int inspect_parse_pool(struct snapshot *s, size_t pool, usec_t time, const struct redisReply *reply) {
    struct snapshot_pool *p = &s->pools[pool];
    int r;

    if (!reply_is(reply_at(reply, 0), "ok") || reply_u32(reply_at(reply, 5), &p->used) < 0 ||
        reply_u32(reply_at(reply, 6), &p->waiting) < 0 || reply_u32(reply_at(reply, 7), &p->parked) < 0)
        return -EBADMSG;
    if (reply_u32(reply_at(reply, 1), &p->limit) < 0) { /* no berth declares such a limit */
        p->limit = 0;
        add_malformed(s, "limits", reply_at(reply, 12), reply_at(reply, 1));
    }
    read_lowest(s, p, reply);
    read_malformed(s, reply_at(reply, 13));
    r = read_override(s, p, reply_at(reply, 4));
    if (r >= 0)
        r = read_holders(s, p, reply_at(reply, 8));
    if (r >= 0)
        r = read_queue(s, p, time, reply_at(reply, 9));
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

        if (reply_u32(reply_at(reply_at(reply, 10), i), &position) < 0)
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
