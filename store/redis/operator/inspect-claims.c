/* SPDX-License-Identifier: MIT */

/* The claims of a pool in a snapshot. */

#include <stdlib.h>
#include <string.h>

#include "base/job-name.h"
#include "base/number.h"
#include "store/redis/operator/inspect-internal.h"

enum { HELD_CURSOR = INSPECT_FIRST, HELD_IDS, HELD_RECORDS };
enum { QUEUE_IDS = INSPECT_FIRST, QUEUE_RECORDS };
/* The words of a claim's record (core.lua). */
enum { STATE, TOKEN, SESSION, POOLS, TICKET, SINCE, HEAD_START, PID, RUN, NAME, RECORD_WORDS };

struct claim_record {
    char session[ID_TEXT_SIZE], name[NAME_MAX_LENGTH + 1];
    uint64_t token, since;
    uint32_t permits, pid;
};

/* Reads the permits of the pool in "db:2,net:1". */
static int read_permits(char *pools, const char *pool, uint32_t *ret) {
    char *item, *number;
    uint64_t permits;

    while ((item = strsep(&pools, ","))) {
        number = strrchr(item, ':');
        if (!number)
            return -EBADMSG;
        *number++ = '\0';
        if (strcmp(item, pool) != 0)
            continue;
        if (number_parse(number, UINT32_MAX, &permits) < 0)
            return -EBADMSG;
        *ret = (uint32_t) permits;
        return 0;
    }
    return -EBADMSG;
}

static int read_record(const struct redisReply *reply, const char *pool, struct claim_record *ret) {
    const char *text = reply_text(reply);
    _cleanup_free_ char *copy = text ? strdup(text) : NULL;
    char *words[RECORD_WORDS], *rest = copy;
    uint64_t pid;

    if (!copy)
        return text ? -ENOMEM : -EBADMSG;
    for (size_t i = 0; i < RECORD_WORDS; i++)
        if (!(words[i] = strsep(&rest, " ")))
            return -EBADMSG;
    if (strlen(words[SESSION]) >= sizeof(ret->session) || strlen(words[NAME]) >= sizeof(ret->name) ||
        !job_name_is_runnable(words[NAME]) || reply_number_parse(words[TOKEN], &ret->token) < 0 ||
        reply_number_parse(words[SINCE], &ret->since) < 0 || number_parse(words[PID], UINT32_MAX, &pid) < 0)
        return -EBADMSG;
    memcpy(ret->session, words[SESSION], strlen(words[SESSION]) + 1);
    memcpy(ret->name, words[NAME], strlen(words[NAME]) + 1);
    ret->pid = (uint32_t) pid;
    return read_permits(words[POOLS], pool, &ret->permits);
}

static struct snapshot_pool *pool_of(const struct inspection *i) {
    return &i->snapshot->pools[i->pool];
}

static void add_malformed(struct inspection *i, const struct redisReply *id, const struct redisReply *record) {
    char key[sizeof(i->snapshot->malformed->key)];

    (void) snprintf(key, sizeof(key), "pool:%s:%s", pool_of(i)->name, inspect_step_word(i->step));
    inspect_malformed_add(i->snapshot, key, id, record);
}

/* Reads claim `at` of a reply. 0, -EBADMSG (which is listed as malformed) or -ENOMEM. */
static int read_claim(struct inspection *i, const struct redisReply *ids, const struct redisReply *records, size_t at,
                      char id[static ID_TEXT_SIZE], struct claim_record *ret) {
    int r = reply_copy(reply_at(ids, at), id, ID_TEXT_SIZE) < 0 || !id_is_valid(id) ? -EBADMSG : 0;

    if (r == 0)
        r = read_record(reply_at(records, at), pool_of(i)->name, ret);
    if (r == -EBADMSG)
        add_malformed(i, reply_at(ids, at), reply_at(records, at));
    return r;
}

/* Returns how many of n claims stay listed, of which `before` were before this reply. The bound over all pools keeps
 * invented pools from exhausting this host's memory. */
static size_t take_room(struct inspection *i, size_t before, size_t n) {
    size_t max = inspect_list_max(i), all = before + SNAPSHOT_ALL_MAX - i->snapshot->n_listed;

    n = n < max ? n : max;
    n = n < all ? n : all;
    i->snapshot->n_listed += n - before;
    return n;
}

static const char *host_of(const struct snapshot_session *session) {
    return session ? session->host : "";
}

/* --- holders --- */

static int compare_claims(const void *a, const void *b) {
    return strcmp(((const struct snapshot_holder *) a)->claim, ((const struct snapshot_holder *) b)->claim);
}

static int compare_tokens(const void *a, const void *b) {
    const struct snapshot_holder *x = a, *y = b;

    return x->token < y->token ? -1 : x->token > y->token;
}

/* SSCAN may return a member twice, and the members of one claim in several calls. */
static void drop_twins(struct snapshot_pool *p) {
    size_t n = 0;

    if (p->n_holders > 0)
        qsort(p->holders, p->n_holders, sizeof(*p->holders), compare_claims);
    for (size_t i = 0; i < p->n_holders; i++)
        if (n == 0 || compare_claims(&p->holders[n - 1], &p->holders[i]) != 0)
            p->holders[n++] = p->holders[i];
    p->n_holders = n;
}

static int add_holder(struct inspection *i, const struct redisReply *ids, const struct redisReply *records, size_t at) {
    struct snapshot_pool *p = pool_of(i);
    struct snapshot_holder *h = &p->holders[p->n_holders];
    const struct snapshot_session *session;
    struct claim_record record;
    int r = read_claim(i, ids, records, at, h->claim, &record);

    if (r < 0)
        return r == -EBADMSG ? 0 : r;
    session = inspect_find_session(i->snapshot, record.session);
    (void) snprintf(h->host, sizeof(h->host), "%s", host_of(session));
    memcpy(h->name, record.name, sizeof(h->name));
    h->permits = record.permits;
    h->pid = record.pid;
    h->token = record.token;
    h->since_realtime = record.since;
    h->seen_usec = session ? session->seen_usec : USEC_INFINITY;
    p->n_holders++;
    return 0;
}

int inspect_read_held(struct inspection *i, const struct redisReply *reply) {
    const struct redisReply *ids = reply_at(reply, HELD_IDS), *records = reply_at(reply, HELD_RECORDS);
    struct snapshot_pool *p = pool_of(i);
    struct snapshot_holder *grown;
    size_t n, room, before = p->n_holders;
    int r = 0;

    if (reply_count(ids, &n) < 0 || reply_copy(reply_at(reply, HELD_CURSOR), i->cursor, sizeof(i->cursor)) < 0)
        return -EBADMSG;
    grown = reallocarray(p->holders, before + n + 1, sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    p->holders = grown;
    for (size_t at = 0; r == 0 && at < n; at++)
        r = add_holder(i, ids, records, at);
    if (r < 0)
        return r;
    drop_twins(p);
    room = take_room(i, before, p->n_holders);
    if (strcmp(i->cursor, "0") != 0 && room == p->n_holders && room < inspect_list_max(i))
        return 1;
    p->is_cut |= strcmp(i->cursor, "0") != 0 || room < p->n_holders;
    p->n_holders = room;
    qsort(p->holders, p->n_holders, sizeof(*p->holders), compare_tokens);
    return 0;
}

/* --- the queue, and then those parked --- */

static int add_waiter(struct inspection *i, const struct redisReply *reply, size_t at, uint32_t position) {
    struct snapshot_pool *p = pool_of(i);
    struct snapshot_waiter *w = &p->queue[p->n_queue];
    struct claim_record record;
    int r = read_claim(i, reply_at(reply, QUEUE_IDS), reply_at(reply, QUEUE_RECORDS), at, w->claim, &record);

    if (r < 0)
        return r == -EBADMSG ? 0 : r;
    (void) snprintf(w->host, sizeof(w->host), "%s", host_of(inspect_find_session(i->snapshot, record.session)));
    memcpy(w->name, record.name, sizeof(w->name));
    w->permits = record.permits;
    w->position = position;
    w->waiting_usec = usec_sub(i->time_realtime, record.since);
    p->n_queue++;
    return 0;
}

static int read_waiting(struct inspection *i, const struct redisReply *reply, bool is_queued) {
    struct snapshot_pool *p = pool_of(i);
    struct snapshot_waiter *grown;
    uint64_t rank;
    size_t n, room, before = p->n_queue;
    int r = 0;

    if (reply_count(reply_at(reply, QUEUE_IDS), &n) < 0 || number_parse(i->cursor, UINT32_MAX, &rank) < 0)
        return -EBADMSG;
    grown = reallocarray(p->queue, before + n + 1, sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    p->queue = grown;
    for (size_t at = 0; r == 0 && at < n; at++)
        r = add_waiter(i, reply, at, is_queued ? (uint32_t) (rank + at + 1) : 0);
    if (r < 0)
        return r;
    (void) snprintf(i->cursor, sizeof(i->cursor), "%" PRIu64, rank + n);
    room = take_room(i, before, p->n_queue);
    if (n == INSPECT_SLICE_MAX && room == p->n_queue && room < inspect_list_max(i))
        return 1;
    p->is_cut |= room < p->n_queue || (n == INSPECT_SLICE_MAX && room < p->waiting + (is_queued ? 0 : p->parked));
    p->n_queue = room;
    return 0;
}

int inspect_read_queue(struct inspection *i, const struct redisReply *reply) {
    return read_waiting(i, reply, true);
}

int inspect_read_parked(struct inspection *i, const struct redisReply *reply) {
    return read_waiting(i, reply, false);
}
