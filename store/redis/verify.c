/* SPDX-License-Identifier: MIT */

#include <syslog.h>

#include "store/redis/store-redis.h"

#define VERIFY_CLAIMS 8 /* in one call */
#define VERIFY_STEPS 64 /* entries searched for them */

static struct claim_entry *next_entry(struct store_redis *store, struct claim_entry *entry) {
    struct list *entries = &store->table.entries;

    return !entry || entry->link.next == entries ? list_first(entries, struct claim_entry, link)
                                                 : list_entry(entry->link.next, struct claim_entry, link);
}

void verify_forget(struct claim_entry *entry) {
    struct store_redis *store = entry->store;

    if (store->verify.next == entry)
        store->verify.next = entry->link.next == &store->table.entries ? NULL : next_entry(store, entry);
}

void verify_reset(struct store_redis *store) {
    store->verify.is_under_way = false;
}

static void verify_on_reply(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;
    struct verify_reply verify;

    store->verify.is_under_way = false;
    if (store->link.phase != PHASE_LIVE)
        return;
    if (verify_reply_is_broken(reply))
        journal_log(store_redis_journal(store), LOG_WARNING,
                    "keys of this namespace were deleted: nothing is granted for a lease, while hosts report their claims");
    if (!call_accept_reply(store, reply, PHASE_LIVE))
        return;
    if (verify_reply_parse(reply, &verify) < 0) {
        call_bad_reply(store, "verify");
    } else if (verify.is_incomplete) {
        journal_log(store_redis_journal(store), LOG_WARNING,
                    "Redis lost some of this host's claims, resyncing");
        link_resync(store);
    } else if (verify.more > 0) {
        heartbeat_send_extra(store);
    }
}

static bool is_verifiable(const struct claim_entry *entry) {
    return entry->confirmed && !entry->lease_lost && !entry->revoke_notified && !entry->needs_token &&
           !claim_entry_is_finished(entry) && entry->claim->state != CLAIM_STATE_RELEASING;
}

/* Adds some claims, starting where the last call ended. */
static size_t add_claims(struct store_redis *store, struct redis_command *command) {
    struct claim_entry *first = store->verify.next ? store->verify.next : next_entry(store, NULL),
                       *entry = first;
    size_t n = 0;

    for (size_t i = 0; entry && i < VERIFY_STEPS && n < VERIFY_CLAIMS && (i == 0 || entry != first); i++) {
        if (is_verifiable(entry)) {
            command_add(command, entry->claim->id);
            n++;
        }
        entry = next_entry(store, entry);
    }
    store->verify.next = entry;
    return n;
}

void verify_some(struct store_redis *store) {
    _cleanup_command_ struct redis_command command = {0};
    struct verify *verify = &store->verify;
    usec_t now = clock_boottime();

    if (store->link.phase != PHASE_LIVE || verify->is_under_way ||
        now < usec_add(verify->sent, store->env.lease_usec) || store->table.n_confirmed == 0)
        return;
    verify->sent = now;
    call_begin(store, &command, REDIS_SCRIPT_VERIFY);
    if (add_claims(store, &command) > 0 && call_send(store, &command, verify_on_reply, store) == 0)
        verify->is_under_way = true;
}
