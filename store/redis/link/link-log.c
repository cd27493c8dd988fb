/* SPDX-License-Identifier: MIT */

#include "store/redis/link/link-log.h"

#include <string.h>
#include <syslog.h>

#include "store/redis/store-redis.h"

static const char *known_address(const struct store_redis *store) {
    return store->link.address[0] ? store->link.address : NULL;
}

void link_log_lost(struct store_redis *store, const char *why, bool needs_administrator) {
    struct link_log *log = &store->link.log;

    if (needs_administrator && strcmp(why, log->last_error) != 0)
        journal_log(store_redis_journal(store), LOG_ERR, "Redis refuses, an administrator is needed: %s",
                    why);
    (void) snprintf(log->last_error, sizeof(log->last_error), "%s", why);
    if (!log->is_lost && !store->stop.is_under_way)
        event_emit(store->env.events,
                   &(struct event) {.type = EVENT_REDIS_LOST, .reason = why, .redis = known_address(store)},
                   "Redis cannot be used: %s", why);
    log->is_lost = true;
    log->is_connected = false;
}

static void log_moved(struct store_redis *store, const char *address) {
    struct link_log *log = &store->link.log;
    const char *why = log->is_reloaded               ? "reload"
                      : store->slot.n_redirects > 0 ? "MOVED"
                      : find_uses_sentinels(store)  ? "the sentinels name another master"
                      : store->link.settings.others ? "another host of the url answers"
                                                    : "the name has another address";

    event_emit(store->env.events,
               &(struct event) {.type = EVENT_REDIS_MOVED, .reason = why, .redis = address},
               "Redis is at %s now, it was at %s: %s", address, log->address, why);
    log->is_connected = false;
}

static void log_connected(struct store_redis *store) {
    _cleanup_free_ char *limits = limits_format(store);

    event_emit(store->env.events,
               &(struct event) {.type = EVENT_REDIS_CONNECTED,
                                .limits = limits,
                                .clock = store->limits.effective_after,
                                .redis = known_address(store)},
               "Redis is connected and has this host's claims");
    store->link.log.is_connected = true;
}

void link_log_live(struct store_redis *store) {
    struct link_log *log = &store->link.log;
    const char *address = store->link.address;

    log->is_lost = false;
    log->last_error[0] = '\0';
    if (log->address[0] && strcmp(log->address, address) != 0)
        log_moved(store, address);
    (void) snprintf(log->address, sizeof(log->address), "%s", address);
    log->is_reloaded = false;
    if (!log->is_connected)
        log_connected(store);
}

void link_log_forget_connected(struct store_redis *store) {
    store->link.log.is_connected = false;
}

void link_log_note_reload(struct store_redis *store, bool is_reloaded) {
    store->link.log.is_reloaded = is_reloaded;
}
