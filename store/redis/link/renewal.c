/* SPDX-License-Identifier: MIT */

#include <string.h>
#include <syslog.h>

#include "store/redis/store-redis.h"

/* --- the outcome --- */

void renewal_expect(struct store_redis *store) {
    store->renewal.is_awaited = true;
}

void renewal_conclude(struct store_redis *store, const char *why) {
    struct renewal *renewal = &store->renewal;
    struct store_use_watch *watch;

    renewal->is_awaited = false;
    while ((watch = list_first(&renewal->watches, struct store_use_watch, link))) {
        list_unlink(&watch->link);
        watch->on_used(watch, why);
    }
}

bool store_redis_watch_use(struct store *s, struct store_use_watch *watch) {
    struct renewal *renewal = &store_redis_of(s)->renewal;

    if (renewal->is_awaited)
        list_append(&renewal->watches, &watch->link);
    return renewal->is_awaited;
}

/* --- the second pair --- */

void renewal_reset(struct store_redis *store) {
    struct renewal *renewal = &store->renewal;

    renewal->is_under_way = false;
    renewal->why[0] = '\0';
    renewal->commands = redis_connection_free(renewal->commands);
    renewal->pushes = redis_connection_free(renewal->pushes);
}

bool renewal_fail(struct store_redis *store, const char *text) {
    char why[SOCKET_REASON_SIZE];

    if (!store->renewal.is_under_way)
        return false;
    (void) snprintf(why, sizeof(why), "%s", redis_error_text(text)); /* the connection that is freed may own the text */
    find_stop(store);
    find_release(store);
    renewal_reset(store);
    link_log_note_reload(store, false);
    (void) snprintf(store->renewal.why, sizeof(store->renewal.why),
                    "the old connections to Redis stay, new ones fail: %.220s",
                    why);
    journal_log(store_redis_journal(store), LOG_ERR, "%s", store->renewal.why);
    renewal_conclude(store, store->renewal.why);
    return true;
}

static void renewal_on_down(struct redis_connection *connection _unused_, enum redis_error error _unused_,
                            const char *text, void *userdata) {
    (void) renewal_fail(userdata, text);
}

/* Replaces the link's connections: the push connection, which begins last, is up. */
static void renewal_on_up(struct redis_connection *connection _unused_, void *userdata) {
    struct store_redis *store = userdata;
    struct redis_connection *commands = steal_pointer(&store->renewal.commands);
    struct redis_connection *pushes = steal_pointer(&store->renewal.pushes);

    link_replace(store, commands, pushes);
}

bool renewal_take(struct store_redis *store, struct redis_connection *connection) {
    struct renewal *renewal = &store->renewal;
    int r;

    if (!renewal->is_under_way)
        return false;
    renewal->commands = connection;
    redis_connection_set_options(connection, &renewal->options);
    r = redis_dial_again(&store->link.dial, &renewal->pushes);
    if (r < 0)
        return renewal_fail(store, strerror(-r));
    redis_connection_set_options(renewal->pushes, &renewal->options);
    return true;
}

void renewal_start(struct store_redis *store) {
    renewal_reset(store);
    store->renewal.is_under_way = true;
    find_start(store);
}

void renewal_init(struct store_redis *store) {
    struct renewal *renewal = &store->renewal;

    renewal->options = store->link.options;
    renewal->options.on_up = renewal_on_up;
    renewal->options.on_down = renewal_on_down;
    renewal->options.on_writing = NULL;
}
