/* SPDX-License-Identifier: MIT */

/* The claims of a pool in a snapshot. */

#include <stdlib.h>
#include <string.h>

#include "base/job-name.h"
#include "base/number.h"
#include "store/redis/operator/inspect-internal.h"
#include "store/redis/store-redis.h"

enum { HELD_CURSOR, HELD_MEMBERS }; /* of SSCAN */
enum { RECHECKED = INSPECT_FIRST };
/* The words of a claim's record (core.lua). */
enum { STATE, TOKEN, SESSION, POOLS, TICKET, SINCE, HEAD_START, PID, RUN, NAME, RECORD_WORDS };

struct claim_record {
    char state, session[ID_TEXT_SIZE], name[NAME_MAX_LENGTH + 1];
    uint64_t token, since;
    uint32_t permits;
};

struct inspected_claim {
    char id[ID_TEXT_SIZE];
    bool has_record;
    struct claim_record record;
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

static int read_record(const char *text, const char *pool, struct claim_record *ret) {
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
    ret->state = words[STATE][0];
    memcpy(ret->session, words[SESSION], strlen(words[SESSION]) + 1);
    memcpy(ret->name, words[NAME], strlen(words[NAME]) + 1);
    return read_permits(words[POOLS], pool, &ret->permits);
}

static struct snapshot_pool *pool_of(const struct inspection *i) {
    return &i->snapshot->pools[i->pool];
}

static struct snapshot_malformed *add_malformed(struct inspection *i, const struct redisReply *id,
                                                const struct redisReply *record) {
    char key[sizeof(i->snapshot->malformed->key)];

    (void) snprintf(key, sizeof(key), "pool:%s:%s", pool_of(i)->name, inspect_step_word(i->step));
    return inspect_malformed_add(i->snapshot, key, id, record);
}

/* --- the claims of a call, and their records, which may take another call --- */

/* Adds a claim of a list: "CLAIM", or "CLAIM#N" of a holder. Another text is listed as malformed. */
static void add_claim(struct inspection *i, const struct redisReply *member) {
    const char *text = reply_text(member);
    struct inspected_claim *c = &i->claims[i->n_claims];

    *c = (struct inspected_claim){0};
    if (text && strcspn(text, "#") == ID_TEXT_SIZE - 1)
        memcpy(c->id, text, ID_TEXT_SIZE - 1);
    if (id_is_valid(c->id))
        i->n_claims++;
    else
        (void) add_malformed(i, member, NULL);
}

static int compare_ids(const void *a, const void *b) {
    return strcmp(((const struct inspected_claim *) a)->id, ((const struct inspected_claim *) b)->id);
}

/* Keeps one of the members of each claim. */
static void drop_twin_ids(struct inspection *i) {
    size_t n = 0;

    if (i->n_claims > 0)
        qsort(i->claims, i->n_claims, sizeof(*i->claims), compare_ids);
    for (size_t at = 0; at < i->n_claims; at++)
        if (n == 0 || compare_ids(&i->claims[n - 1], &i->claims[at]) != 0)
            i->claims[n++] = i->claims[at];
    i->n_claims = n;
}

/* Begins with the claims of a list. Returns 1 if records must be read, 0 or a negative errno. */
static int take_claims(struct inspection *i, const struct redisReply *list) {
    struct inspected_claim *grown;
    size_t n;

    if (reply_count(list, &n) < 0)
        return -EBADMSG;
    grown = reallocarray(i->claims, n + 1, sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    i->claims = grown;
    i->n_claims = 0;
    i->n_members = n;
    for (size_t at = 0; at < n; at++)
        add_claim(i, reply_at(list, at));
    if (i->step == INSPECT_HELD)
        drop_twin_ids(i);
    i->part = i->n_claims > 0 ? INSPECT_RECORDS : INSPECT_LIST;
    return i->n_claims > 0;
}

void inspect_add_unknown(const struct inspection *i, struct redis_command *command) {
    for (size_t at = 0; at < i->n_claims; at++)
        if (!i->claims[at].has_record)
            command_add(command, i->claims[at].id);
}

/* Reads the record of a claim. A claim that has left the list since has an empty one. */
static int take_record(struct inspection *i, struct inspected_claim *c, const struct redisReply *record) {
    struct snapshot_malformed *malformed;
    int r;

    if (reply_is(record, ""))
        return 0;
    r = read_record(reply_text(record), pool_of(i)->name, &c->record);
    if (r == -ENOMEM)
        return r;
    if (r < 0 && (malformed = add_malformed(i, NULL, record)))
        memcpy(malformed->id, c->id, ID_TEXT_SIZE);
    c->has_record = r == 0;
    return 0;
}

/* Reads the records of the claims that have none yet. Returns 1 if some are missing and are read again, 0 or -ENOMEM. */
static int take_records(struct inspection *i, const struct redisReply *list) {
    enum inspect_part next = INSPECT_LIST;
    size_t n = 0;
    int r = 0;

    for (size_t at = 0; r == 0 && at < i->n_claims; at++) {
        struct inspected_claim *c = &i->claims[at];
        const struct redisReply *record = c->has_record ? NULL : reply_at(list, n++);

        if (c->has_record)
            continue;
        if (i->part == INSPECT_RECORDS && !reply_text(record))
            next = INSPECT_RECHECK;
        else
            r = take_record(i, c, record);
    }
    i->part = next;
    return r < 0 ? r : next == INSPECT_RECHECK;
}

/* Reads the reply to a call of a list. list: the claims in it, if it has claims. */
static int take_reply(struct inspection *i, const struct redisReply *reply, const struct redisReply *list) {
    if (i->part == INSPECT_LIST)
        return take_claims(i, list);
    return take_records(i, i->part == INSPECT_RECHECK ? reply_at(reply, RECHECKED) : reply);
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

/* Finds the texts of a claim. Returns 0 or -ENOMEM. */
static int find_texts(struct inspection *i, const struct claim_record *record, const struct snapshot_session *session,
                      const char **ret_host, const char **ret_name) {
    *ret_host = snapshot_text(i->snapshot, session ? session->host : "");
    *ret_name = snapshot_text(i->snapshot, record->name);
    return *ret_host && *ret_name ? 0 : -ENOMEM;
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

static int add_holder(struct inspection *i, const struct inspected_claim *c) {
    struct snapshot_pool *p = pool_of(i);
    struct snapshot_holder *h = &p->holders[p->n_holders++];
    const struct snapshot_session *session = inspect_find_session(i->snapshot, c->record.session);

    memcpy(h->claim, c->id, sizeof(h->claim));
    h->permits = c->record.permits;
    h->token = c->record.token;
    h->since_realtime = c->record.since;
    h->seen_usec = session ? session->seen_usec : USEC_INFINITY;
    return find_texts(i, &c->record, session, &h->host, &h->name);
}

/* Lists the claims of a call as holders. Returns 1 if more calls follow. */
static int list_holders(struct inspection *i) {
    struct snapshot_pool *p = pool_of(i);
    size_t room, before = p->n_holders;
    struct snapshot_holder *grown = reallocarray(p->holders, before + i->n_claims + 1, sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    p->holders = grown;
    for (size_t at = 0; at < i->n_claims; at++)
        if (i->claims[at].has_record && add_holder(i, &i->claims[at]) < 0)
            return -ENOMEM;
    drop_twins(p);
    room = take_room(i, before, p->n_holders);
    if (strcmp(i->cursor, "0") != 0 && room == p->n_holders && room < inspect_list_max(i))
        return 1;
    p->is_cut |= strcmp(i->cursor, "0") != 0 || room < p->n_holders;
    p->n_holders = room;
    qsort(p->holders, p->n_holders, sizeof(*p->holders), compare_tokens);
    return 0;
}

int inspect_read_held(struct inspection *i, const struct redisReply *reply) {
    int r;

    if (i->part == INSPECT_LIST && reply_copy(reply_at(reply, HELD_CURSOR), i->cursor, sizeof(i->cursor)) < 0)
        return -EBADMSG;
    r = take_reply(i, reply, reply_at(reply, HELD_MEMBERS));
    return r != 0 ? r : list_holders(i);
}

/* --- the queue, and then those parked --- */

static int add_waiter(struct inspection *i, const struct inspected_claim *c, uint32_t position) {
    struct snapshot_pool *p = pool_of(i);
    struct snapshot_waiter *w = &p->queue[p->n_queue++];

    memcpy(w->claim, c->id, sizeof(w->claim));
    w->permits = c->record.permits;
    w->position = position;
    w->waiting_usec = usec_sub(i->time_realtime, c->record.since);
    return find_texts(i, &c->record, inspect_find_session(i->snapshot, c->record.session), &w->host, &w->name);
}

/* Lists the claims of a call as waiting. Returns 1 if more calls follow. */
static int list_waiting(struct inspection *i, bool is_queued) {
    struct snapshot_pool *p = pool_of(i);
    size_t room, before = p->n_queue;
    struct snapshot_waiter *grown = reallocarray(p->queue, before + i->n_claims + 1, sizeof(*grown));
    uint64_t rank;

    if (!grown || number_parse(i->cursor, UINT32_MAX, &rank) < 0)
        return -ENOMEM;
    p->queue = grown;
    for (size_t at = 0; at < i->n_claims; at++)
        if (i->claims[at].has_record && add_waiter(i, &i->claims[at], is_queued ? (uint32_t) (rank + at + 1) : 0) < 0)
            return -ENOMEM;
    (void) snprintf(i->cursor, sizeof(i->cursor), "%" PRIu64, rank + i->n_members);
    room = take_room(i, before, p->n_queue);
    if (i->n_members == INSPECT_SLICE_MAX && room == p->n_queue && room < inspect_list_max(i))
        return 1;
    p->is_cut |= room < p->n_queue ||
                 (i->n_members == INSPECT_SLICE_MAX && room < p->waiting + (is_queued ? 0 : p->parked));
    p->n_queue = room;
    return 0;
}

static int read_waiting(struct inspection *i, const struct redisReply *reply, bool is_queued) {
    int r = take_reply(i, reply, reply);

    return r != 0 ? r : list_waiting(i, is_queued);
}

int inspect_read_queue(struct inspection *i, const struct redisReply *reply) {
    return read_waiting(i, reply, true);
}

int inspect_read_parked(struct inspection *i, const struct redisReply *reply) {
    return read_waiting(i, reply, false);
}
