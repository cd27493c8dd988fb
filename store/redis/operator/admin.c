/* SPDX-License-Identifier: MIT */

#include <stdlib.h>
#include <string.h>

#include "store/redis/operator/move.h"
#include "store/redis/store-redis.h"

#define TRIES_MAX 5 /* of an override that others change at the same time */

enum admin_kind { ADMIN_OVERRIDE, ADMIN_REVOKE, ADMIN_MOVE, ADMIN_GRACE };

struct admin {
    struct store_redis *store;
    struct list link; /* on store->operator.admins */
    enum admin_kind kind;
    store_reply_fn fn;
    void *userdata;
    bool is_sent;      /* on this connection */
    bool may_have_run; /* was sent on an earlier connection, without a reply */
    unsigned tries;
    uint64_t version;
    char id[ID_TEXT_SIZE], claim[ID_TEXT_SIZE], pool[POOL_NAME_SIZE], reason[256];
    const char *verb;
    uint32_t limit;
    usec_t for_usec;
    struct store_move *move; /* the caller's */
};

static void admin_answer(struct admin *admin, int result) {
    store_reply_fn fn = admin->fn;
    void *userdata = admin->userdata;

    list_unlink(&admin->link);
    free(admin);
    fn(result, userdata);
}

static void admin_send(struct admin *admin);

/* Handles a call without effect: sends it again, for the version that exists now. */
static void handle_conflict(struct admin *admin, const struct redisReply *reply) {
    enum { NEWEST_VERSION = 2 };
    uint64_t version;

    if (admin->may_have_run || ++admin->tries >= TRIES_MAX ||
        reply_u64(reply_at(reply, NEWEST_VERSION), &version) < 0) {
        admin_answer(admin, STORE_E_CONFLICT);
        return;
    }
    id_make(admin->id);
    admin->version = version;
    admin_send(admin);
}

static void admin_on_reply(const struct redisReply *reply, void *userdata) {
    struct admin *admin = userdata;
    struct store_redis *store = admin->store;

    admin->is_sent = false;
    if (!call_accept_reply(store, reply, PHASE_LIVE))
        return; /* a failing link answers it, or it is sent again once the link is live */
    if (admin->kind == ADMIN_MOVE) {
        int r = move_reply_parse(reply, admin->move);

        admin_answer(admin, r == -EBADMSG ? -EREMOTEIO : r);
        if (r == -EBADMSG)
            call_bad_reply(store, "move");
        else
            heartbeat_send(store);
        return;
    }
    if (reply_is(reply_at(reply, 0), "conflict")) {
        handle_conflict(admin, reply);
    } else if (reply_is(reply_at(reply, 0), "unknown")) {
        admin_answer(admin, STORE_E_UNKNOWN);
    } else {
        admin_answer(admin, 0);
        heartbeat_send(store); /* reports the change, and continues where the script reached a bound */
    }
}

static void admin_send(struct admin *admin) {
    struct store_redis *store = admin->store;
    _cleanup_command_ struct redis_command command = {0};

    switch (admin->kind) {
    case ADMIN_OVERRIDE:
        call_begin(store, &command, REDIS_SCRIPT_OVERRIDE);
        command_add(&command, admin->pool);
        command_add_u64(&command, admin->version);
        command_add(&command, admin->id);
        command_add(&command, admin->verb);
        command_add_u64(&command, admin->limit);
        command_add_u64(&command, admin->for_usec);
        command_add(&command, admin->reason);
        break;
    case ADMIN_REVOKE:
        call_begin(store, &command, REDIS_SCRIPT_REVOKE);
        command_add(&command, admin->claim);
        command_add(&command, admin->reason);
        break;
    case ADMIN_MOVE:
        call_begin(store, &command, REDIS_SCRIPT_MOVE);
        move_add(&command, admin->move);
        break;
    case ADMIN_GRACE: /* a heartbeat that claims to know the epoch for a whole lease */
        admin->is_sent = true;
        heartbeat_send(store);
        return;
    }
    admin->is_sent = call_send(store, &command, admin_on_reply, admin) == 0;
}

bool admin_is_ending_grace(const struct store_redis *store) {
    list_foreach(admin, &store->operator.admins, struct admin, link)
        if (admin->kind == ADMIN_GRACE)
            return true;
    return false;
}

void admin_answer_grace(struct store_redis *store) {
    list_foreach_safe(admin, &store->operator.admins, struct admin, link)
        if (admin->kind == ADMIN_GRACE && admin->is_sent)
            admin_answer(admin, 0);
}

void admin_leave_grace(struct store_redis *store) {
    list_foreach_safe(admin, &store->operator.admins, struct admin, link)
        if (admin->kind == ADMIN_GRACE)
            admin_answer(admin, -ENOTCONN);
}

void admin_send_pending(struct store_redis *store) {
    list_foreach_safe(admin, &store->operator.admins, struct admin, link)
        if (!admin->is_sent && admin->kind == ADMIN_MOVE && admin->may_have_run)
            admin_answer(admin, -EREMOTEIO); /* sent twice, it might move twice as far */
        else if (!admin->is_sent)
            admin_send(admin);
}

void admin_reset(struct store_redis *store) {
    list_foreach(admin, &store->operator.admins, struct admin, link) {
        admin->may_have_run = admin->may_have_run || admin->is_sent;
        admin->is_sent = false;
    }
}

void admin_fail(struct store_redis *store) {
    struct list all = LIST_INIT(all);
    struct admin *admin;

    list_foreach_safe(each, &store->operator.admins, struct admin, link) {
        if (each->is_sent)
            continue;
        list_unlink(&each->link);
        list_append(&all, &each->link);
    }
    while ((admin = list_first(&all, struct admin, link)))
        admin_answer(admin, admin->kind == ADMIN_MOVE && admin->may_have_run ? -EREMOTEIO : -ENOTCONN);
}

static struct admin *admin_new(struct store_redis *store, enum admin_kind kind, const char *reason,
                               store_reply_fn fn, void *userdata) {
    struct admin *admin = calloc(1, sizeof(*admin));

    if (!admin)
        return NULL;
    admin->store = store;
    admin->kind = kind;
    admin->fn = fn;
    admin->userdata = userdata;
    (void) snprintf(admin->reason, sizeof(admin->reason), "%s", reason ? reason : "");
    for (char *p = admin->reason; *p; p++)
        if ((unsigned char) *p < ' ' || *p == 127)
            *p = '?';
    list_append(&store->operator.admins, &admin->link);
    return admin;
}

static int admin_start(struct admin *admin) {
    if (heartbeat_is_ready(admin->store))
        admin_send(admin);
    else
        link_fail_waiting_later(admin->store);
    return 0;
}

int admin_override(struct store *base, const struct store_override *override, store_reply_fn fn,
                   void *userdata) {
    struct store_redis *store = store_redis_of(base);
    struct admin *admin = admin_new(store, ADMIN_OVERRIDE, override->reason, fn, userdata);

    if (!admin)
        return -ENOMEM;
    id_make(admin->id);
    (void) snprintf(admin->pool, sizeof(admin->pool), "%s", override->pool);
    admin->verb = override->clear    ? "clear"
                  : override->pause  ? "pause"
                  : override->resume ? "resume"
                                     : "set";
    admin->limit = override->limit;
    admin->for_usec = override->for_usec == USEC_INFINITY ? 0 : override->for_usec;
    admin->version = limits_override_version(store, override->pool);
    return admin_start(admin);
}

int admin_revoke(struct store *base, const char *claim, const char *reason, store_reply_fn fn,
                 void *userdata) {
    struct admin *admin = admin_new(store_redis_of(base), ADMIN_REVOKE, reason, fn, userdata);

    if (!admin)
        return -ENOMEM;
    (void) snprintf(admin->claim, sizeof(admin->claim), "%s", claim);
    return admin_start(admin);
}

int admin_move(struct store *base, struct store_move *move, store_reply_fn fn, void *userdata) {
    struct admin *admin = admin_new(store_redis_of(base), ADMIN_MOVE, NULL, fn, userdata);

    if (!admin)
        return -ENOMEM;
    admin->move = move;
    return admin_start(admin);
}

int admin_end_grace(struct store *base, store_reply_fn fn, void *userdata) {
    struct admin *admin = admin_new(store_redis_of(base), ADMIN_GRACE, NULL, fn, userdata);

    return admin ? admin_start(admin) : -ENOMEM;
}
