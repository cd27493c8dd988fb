/* SPDX-License-Identifier: MIT */

/* What administrators ask: overrides, revocations, the end of grace. Answered once each: by Redis, or -ENOTCONN when it is away. */

#include <stdlib.h>
#include <string.h>

#include "store/redis/store-redis.h"

#define TRIES 5 /* of an override that others change at the same time */

enum admin_kind { ADMIN_OVERRIDE, ADMIN_REVOKE, ADMIN_GRACE };

struct admin {
    struct store_redis *redis;
    struct list link;       /* on redis->admins */
    enum admin_kind kind;
    store_reply_fn fn;      /* NULL: its answer was given */
    void *userdata;
    bool sent, resent;      /* on this connection; ever before, with no answer */
    unsigned tries;
    uint64_t version;
    char id[ID_TEXT_SIZE], claim[ID_TEXT_SIZE], pool[NAME_MAX_LENGTH + 1], reason[200];
    const char *verb;
    uint32_t limit;
    usec_t for_usec;
};

static void admin_answer(struct admin *a, int k) {
    store_reply_fn fn = a->fn;
    void *userdata = a->userdata;

    list_unlink(&a->link);
    free(a);
    fn(k, userdata);
}

static void admin_send(struct admin *a);

static void admin_on_conflict(struct admin *a, const struct redisReply *reply) {
    uint64_t version;

    if (a->resent || ++a->tries >= TRIES || reply_u64(reply_at(reply, 2), &version) < 0 || id_make(a->id) < 0) {
        admin_answer(a, STORE_E_CONFLICT);
        return;
    }
    a->version = version; /* this one certainly did nothing: say it again over what is there now */
    admin_send(a);
}

static void admin_on_reply(const struct redisReply *reply, void *userdata) {
    struct admin *a = userdata;
    struct store_redis *r = a->redis;

    a->sent = false;
    if (!link_judge(r, reply, PHASE_LIVE)) { /* an error ended the link and answered it, or it goes out again when we are live */
        return;
    }
    if (reply_is(reply_at(reply, 0), "conflict")) {
        admin_on_conflict(a, reply);
    } else if (reply_is(reply_at(reply, 0), "unknown")) {
        admin_answer(a, STORE_E_UNKNOWN);
    } else {
        admin_answer(a, 0);
        beat_send(r); /* brings the news, and goes on where a bound was reached */
    }
}

static void admin_send(struct admin *a) {
    struct store_redis *r = a->redis;
    _cleanup_command_ struct redis_command w = {0};

    switch (a->kind) {
    case ADMIN_OVERRIDE:
        link_begin(r, &w, REDIS_SCRIPT_OVERRIDE);
        command_add(&w, r->epoch);
        command_add(&w, a->pool);
        command_add_u64(&w, a->version);
        command_add(&w, a->id);
        command_add(&w, a->verb);
        command_add_u64(&w, a->limit);
        command_add_u64(&w, a->for_usec);
        command_add(&w, a->reason);
        break;
    case ADMIN_REVOKE:
        link_begin(r, &w, REDIS_SCRIPT_REVOKE);
        command_add(&w, r->epoch);
        command_add(&w, a->claim);
        command_add(&w, a->reason);
        break;
    case ADMIN_GRACE: /* the heartbeat names a whole lease, whatever this host knows of the epoch */
        a->sent = true;
        beat_send(r);
        return;
    }
    a->sent = link_call(r, &w, admin_on_reply, a) == 0;
}

bool admin_is_ending_grace(const struct store_redis *r) {
    list_foreach(a, &r->admins, struct admin, link) if (a->kind == ADMIN_GRACE) return true;
    return false;
}

void admin_answer_grace(struct store_redis *r) {
    list_foreach_safe(a, &r->admins, struct admin, link) if (a->kind == ADMIN_GRACE && a->sent) admin_answer(a, 0);
}

void admin_flush(struct store_redis *r) {
    list_foreach_safe(a, &r->admins, struct admin, link) if (!a->sent) admin_send(a);
}

void admin_reset(struct store_redis *r) {
    list_foreach(a, &r->admins, struct admin, link) {
        a->resent = a->resent || a->sent;
        a->sent = false;
    }
}

void admin_fail(struct store_redis *r) {
    struct list all = LIST_INIT(all);
    struct admin *a;

    list_foreach_safe(each, &r->admins, struct admin, link) {
        if (each->sent)
            continue;
        list_unlink(&each->link);
        list_append(&all, &each->link);
    }
    while ((a = list_first(&all, struct admin, link)))
        admin_answer(a, -ENOTCONN);
}

static struct admin *admin_new(struct store_redis *r, enum admin_kind kind, const char *reason, store_reply_fn fn, void *userdata) {
    struct admin *a = calloc(1, sizeof(*a));

    if (!a)
        return NULL;
    a->redis = r;
    a->kind = kind;
    a->fn = fn;
    a->userdata = userdata;
    (void) snprintf(a->reason, sizeof(a->reason), "%s", reason ? reason : "");
    for (char *p = a->reason; *p; p++)
        if ((unsigned char) *p < ' ' || *p == 127)
            *p = '?';
    list_append(&r->admins, &a->link);
    return a;
}

static int admin_start(struct admin *a) {
    struct store_redis *r = a->redis;

    if (r->phase == PHASE_LIVE && r->beaten)
        admin_send(a);
    else
        link_tell_away(r);
    return 0;
}

int redis_override(struct store *s, const struct store_override *o, store_reply_fn fn, void *userdata) {
    struct store_redis *r = store_redis_of(s);
    struct admin *a = admin_new(r, ADMIN_OVERRIDE, o->reason, fn, userdata);

    if (!a)
        return -ENOMEM;
    if (id_make(a->id) < 0) {
        list_unlink(&a->link);
        free(a);
        return -EIO;
    }
    (void) snprintf(a->pool, sizeof(a->pool), "%s", o->pool);
    a->verb = o->clear ? "clear" : o->pause ? "pause" : o->resume ? "resume" : "set";
    a->limit = o->limit;
    a->for_usec = o->for_usec == USEC_INFINITY ? 0 : o->for_usec;
    for (size_t i = 0; i < r->n_overrides; i++)
        if (strcmp(r->overrides[i].pool, o->pool) == 0)
            a->version = r->overrides[i].version;
    return admin_start(a);
}

int redis_revoke(struct store *s, const char *claim, const char *reason, store_reply_fn fn, void *userdata) {
    struct admin *a = admin_new(store_redis_of(s), ADMIN_REVOKE, reason, fn, userdata);

    if (!a)
        return -ENOMEM;
    (void) snprintf(a->claim, sizeof(a->claim), "%s", claim);
    return admin_start(a);
}

int redis_end_grace(struct store *s, store_reply_fn fn, void *userdata) {
    struct admin *a = admin_new(store_redis_of(s), ADMIN_GRACE, NULL, fn, userdata);

    return a ? admin_start(a) : -ENOMEM;
}
