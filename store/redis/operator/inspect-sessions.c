/* SPDX-License-Identifier: MIT */

/* The sessions of a snapshot. A record that does not parse is listed as malformed, because any client may have written
 * it; the rest is read. */

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "store/redis/operator/inspect-internal.h"
#include "store/redis/store-redis.h"

#define SESSIONS_MAX 1000
#define LIMITS_MAX 1000000 /* of all sessions together */

enum {
    SESSIONS_EPOCH = INSPECT_FIRST, SESSIONS_GRACE, SESSIONS_KNOWN, SESSIONS_TIME, SESSIONS_IDS, SESSIONS_COUNTS, SESSIONS_RECORDS,
    SESSIONS_CLAIMS,
};

/* Reads "4", or "1x0123abcd" of a job that hosts share. */
static int read_limit(char *text, uint64_t *ret, uint32_t *ret_hash) {
    char *hash = strchr(text, 'x'), *end = hash;

    *ret_hash = 0;
    if (hash) {
        *hash++ = '\0';
        if (strlen(hash) != 8 || strspn(hash, "0123456789abcdef") != 8)
            return -EBADMSG;
        *ret_hash = (uint32_t) strtoul(hash, &end, 16);
    }
    return number_parse(text, UINT32_MAX, ret);
}

/* Reads "db=4,net=host". max: more are -EBADMSG. */
static int read_limits(struct snapshot_session *s, char *declared, size_t max) {
    size_t n = 1;
    char *item;

    for (const char *p = declared; *p; p++)
        n += *p == ',';
    if (n > max)
        return -EBADMSG;
    s->limits = calloc(n, sizeof(*s->limits));
    if (!s->limits)
        return -ENOMEM;
    while ((item = strsep(&declared, ","))) {
        struct snapshot_limit *l = &s->limits[s->n_limits];
        char *number = strchr(item, '=');
        uint64_t limit = 0;

        if (*item == '\0' && s->n_limits == 0 && !declared)
            return 0; /* none */
        if (!number)
            return -EBADMSG;
        *number++ = '\0';
        if (pool_name_parse(item) == POOL_NAME_INVALID)
            return -EBADMSG;
        l->is_host_scoped = strcmp(number, "host") == 0;
        if (!l->is_host_scoped && read_limit(number, &limit, &l->due_hash) < 0)
            return -EBADMSG;
        (void) snprintf(l->pool, sizeof(l->pool), "%s", item);
        l->limit = (uint32_t) limit;
        s->n_limits++;
    }
    return 0;
}

/* "host machine version declared" */
static int read_record(struct snapshot_session *s, const char *record, size_t limits_max) {
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
    return read_limits(s, rest, limits_max);
}

/* Adds session `at` of a reply. */
static int add_session(struct inspection *i, const struct redisReply *reply, size_t at, usec_t now) {
    struct snapshot *all = i->snapshot;
    struct snapshot_session *s = &all->sessions[all->n_sessions];
    const struct redisReply *id = reply_at(reply_at(reply, SESSIONS_IDS), at);
    const struct redisReply *record = reply_at(reply_at(reply, SESSIONS_RECORDS), at);
    uint64_t count;
    int r = -EBADMSG;

    memset(s, 0, sizeof(*s));
    if (reply_copy(id, s->id, sizeof(s->id)) == 0 && id_is_valid(s->id) && reply_text(record) &&
        reply_u64(reply_at(reply_at(reply, SESSIONS_COUNTS), at), &count) == 0 &&
        reply_u32(reply_at(reply_at(reply, SESSIONS_CLAIMS), at), &s->claims) == 0)
        r = read_record(s, reply_text(record), LIMITS_MAX - i->n_limits);
    if (r == -EBADMSG) {
        free(s->limits);
        inspect_malformed_add(all, "sessions", id, record);
        return 0;
    }
    all->n_sessions++; /* before the error, so that snapshot_free() frees it */
    i->n_limits += s->n_limits;
    if (r >= 0)
        s->seen_usec = strcmp(s->id, i->store->session.id) == 0 ? 0 : samples_last_seen(i->store, count, now);
    return r;
}

static int read_grace(struct inspection *i, const struct redisReply *reply, usec_t now) {
    usec_t known_here = usec_sub(now, i->store->epoch.known_since), margin = slot_failover_margin(i->store);
    uint64_t grace, known;

    if (reply_u64(reply_at(reply, SESSIONS_GRACE), &grace) < 0 ||
        reply_u64(reply_at(reply, SESSIONS_TIME), &i->time_realtime) < 0)
        return -EBADMSG;
    if (reply_u64(reply_at(reply, SESSIONS_KNOWN), &known) < 0 || known + margin < known_here) /* this host knows better */
        known = usec_sub(known_here, margin);
    i->snapshot->grace_usec = !grace ? 0
                              : known > 0 ? usec_sub(i->store->env.lease_usec, known) + 1
                                          : usec_sub(i->store->env.lease_usec + margin, known_here) + 1;
    return 0;
}

int inspect_read_sessions(struct inspection *i, const struct redisReply *reply) {
    const struct redisReply *ids = reply_at(reply, SESSIONS_IDS);
    struct snapshot *s = i->snapshot;
    const char *epoch = reply_text(reply_at(reply, SESSIONS_EPOCH));
    struct snapshot_session *grown;
    usec_t now = clock_boottime();
    size_t n;
    int r = !epoch || reply_count(ids, &n) < 0 ? -EBADMSG : read_grace(i, reply, now);

    if (r < 0)
        return r;
    if (!epoch_is(i->store, epoch))
        return -ESTALE;
    grown = reallocarray(s->sessions, s->n_sessions + n + 1, sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    s->sessions = grown;
    for (size_t at = 0; r >= 0 && at < n; at++)
        r = add_session(i, reply, at, now);
    if (r < 0 || n < INSPECT_SESSIONS_MAX || s->n_sessions >= SESSIONS_MAX)
        return r;
    return reply_copy(reply_at(reply_at(reply, SESSIONS_COUNTS), n - 1), i->cursor, sizeof(i->cursor)) < 0 ? -EBADMSG : 1;
}

/* --- found by id --- */

static int compare_sessions(const void *a, const void *b) {
    return strcmp(((const struct snapshot_session *) a)->id, ((const struct snapshot_session *) b)->id);
}

void inspect_sort_sessions(struct snapshot *s) {
    size_t n = 0;

    if (s->n_sessions > 0)
        qsort(s->sessions, s->n_sessions, sizeof(*s->sessions), compare_sessions);
    for (size_t i = 0; i < s->n_sessions; i++)
        if (n == 0 || compare_sessions(&s->sessions[n - 1], &s->sessions[i]) != 0)
            s->sessions[n++] = s->sessions[i];
        else
            free(s->sessions[i].limits);
    s->n_sessions = n;
}

const struct snapshot_session *inspect_find_session(const struct snapshot *s, const char *id) {
    size_t low = 0, high = s->n_sessions;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(s->sessions[middle].id, id);

        if (order == 0)
            return &s->sessions[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
