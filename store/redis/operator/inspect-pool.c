/* SPDX-License-Identifier: MIT */

/* A pool's limit, override and counts, and the positions of this host's claims in its queue. */

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "store/redis/operator/inspect-internal.h"

enum {
    POOL_LIMIT = INSPECT_FIRST, POOL_LOWEST, POOL_HIGHEST, POOL_OVERRIDE, POOL_USED, POOL_WAITING, POOL_PARKED, POOL_HOST_SCOPED,
    POOL_LOWEST_SESSION,
};
enum { OVERRIDE_LIMIT, OVERRIDE_UNTIL, OVERRIDE_REASON };

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

/* Reads which session declares the lowest limit, if limits differ. */
static void read_lowest(struct snapshot *s, struct snapshot_pool *p, const struct redisReply *reply) {
    const char *id = reply_text(reply_at(reply, POOL_LOWEST_SESSION));
    const struct snapshot_session *session = id ? inspect_find_session(s, id) : NULL;
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

int inspect_read_pool(struct inspection *i, const struct redisReply *reply) {
    struct snapshot *s = i->snapshot;
    struct snapshot_pool *p = &s->pools[i->pool];

    if (reply_u32(reply_at(reply, POOL_USED), &p->used) < 0 || reply_u32(reply_at(reply, POOL_WAITING), &p->waiting) < 0 ||
        reply_u32(reply_at(reply, POOL_PARKED), &p->parked) < 0)
        return -EBADMSG;
    if (reply_u32(reply_at(reply, POOL_LIMIT), &p->limit) < 0) { /* no berth declares such a limit */
        p->limit = 0;
        inspect_malformed_add(s, "limits", reply_at(reply, POOL_LOWEST_SESSION), reply_at(reply, POOL_LIMIT));
    }
    read_lowest(s, p, reply);
    return read_override(s, p, reply_at(reply, POOL_OVERRIDE));
}

int inspect_read_positions(struct inspection *i, const struct redisReply *reply) {
    struct snapshot *s = i->snapshot;
    size_t left = i->n_mine - i->mine_at, n = left < INSPECT_SLICE_MAX ? left : INSPECT_SLICE_MAX;
    struct snapshot_position *grown = reallocarray(s->mine, s->n_mine + n + 1, sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    s->mine = grown;
    for (size_t at = 0; at < n; at++) {
        struct snapshot_position *p = &s->mine[s->n_mine];
        uint32_t position;

        if (reply_u32(reply_at(reply, INSPECT_FIRST + at), &position) < 0)
            return -EBADMSG;
        if (position == 0)
            continue;
        *p = (struct snapshot_position) {.position = position};
        memcpy(p->claim, i->mine[i->mine_at + at], sizeof(p->claim));
        memcpy(p->pool, s->pools[i->pool].name, sizeof(p->pool));
        s->n_mine++;
    }
    i->mine_at += n;
    return i->mine_at < i->n_mine;
}
