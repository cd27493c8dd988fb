/* SPDX-License-Identifier: MIT */

#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/text.h"
#include "store/redis/store-redis.h"

/* Interval at which the push connection is checked, which is silent for twice as long at most. TCP proxies close
 * silent connections after a minute, some after 35 s. */
#define SILENCE (15 * USEC_PER_SEC)

static void link_connect(struct store_redis *store);

/* --- the pause before a retry --- */

usec_t link_next_pause(struct store_redis *store) {
    return backoff_next(&store->link.backoff, backoff_longest(&store->link.backoff));
}

void link_reset_backoff(struct store_redis *store, usec_t sent) {
    if (sent >= usec_add(store->link.live_since, store->env.heartbeat_usec / 2))
        backoff_reset(&store->link.backoff);
}

void link_retry(struct store_redis *store, usec_t delay) {
    timer_set(&store->link.retry, usec_add(clock_boottime(), delay));
}

void link_start(struct store_redis *store) {
    link_retry(store, 0);
}

/* --- down --- */

void link_close(struct store_redis *store) {
    struct redis_link *link = &store->link;

    link->commands = redis_connection_free(link->commands);
    link->pushes = redis_connection_free(link->pushes);
    find_stop(store);
    renewal_reset(store);
    link->is_replaced = false;
    slot_reset(store);
    replicas_reset(store);
    link->phase = PHASE_DOWN;
    store->base.is_connecting = false;
    handshake_reset(store);
    push_reset_connection(store);
    hello_reset(store);
    sync_reset(store);
    heartbeat_reset(store);
    claims_reset(store);
    admin_reset(store);
    inspect_reset(store);
}

void link_note_away(struct store_redis *store, const char *why) {
    (void) snprintf(store->base.away_why, sizeof(store->base.away_why), "%s", why);
    if (store->base.state != STORE_STATE_AWAY)
        store->base.away_since = clock_realtime();
}

void link_enter_away(struct store_redis *store) {
    char why[sizeof(store->base.away_why) + 32];

    store->base.is_connecting = false;
    store_redis_set_state(store, STORE_STATE_AWAY);
    claims_refuse_nowait(store);
    admin_fail(store);
    inspect_fail(store);
    (void) snprintf(why, sizeof(why), "Redis cannot be used: %s", store->base.away_why);
    renewal_conclude(store, why);
}

static bool link_is_away(const struct store_redis *store) {
    if (store->link.is_replaced)
        return false;
    return store->link.phase == PHASE_DOWN || store->link.phase == PHASE_CONNECTING || hello_is_refused(store) ||
           slot_is_away(store);
}

static void link_on_fail_waiting(void *userdata) {
    struct store_redis *store = userdata;

    if (link_is_away(store)) {
        admin_fail(store);
        inspect_fail(store);
    }
}

void link_fail_waiting_later(struct store_redis *store) {
    if (link_is_away(store))
        defer_set(&store->link.fail_waiting);
}

static const enum status_error classes[REDIS_ERROR_FATAL + 1] = { /* the last class; STATUS_ERROR_RETRY: all others */
    [REDIS_ERROR_RELOAD] = STATUS_ERROR_RELOAD,
    [REDIS_ERROR_REDIRECT] = STATUS_ERROR_REDIRECT,
    [REDIS_ERROR_WAIT] = STATUS_ERROR_REDIRECT,
    [REDIS_ERROR_FATAL] = STATUS_ERROR_FATAL,
};

static usec_t pause_after(struct store_redis *store, enum redis_error error) {
    struct backoff *backoff = &store->link.backoff;
    bool is_busy = error == REDIS_ERROR_BUSY || error == REDIS_ERROR_LATER;
    usec_t least = error == REDIS_ERROR_LATER ? backoff_longest(backoff) : 0, pause;

    if (error == REDIS_ERROR_RETRY && (find_awaits_failover(store) || replicas_are_awaited(store)))
        return backoff_next_brief(backoff);
    pause = backoff_next(backoff, is_busy ? backoff_longest_busy(backoff) : backoff_longest(backoff));
    if (error == REDIS_ERROR_FATAL)
        return BACKOFF_MAX;
    return pause > least ? pause : least;
}

void link_fail(struct store_redis *store, enum redis_error error, const char *text) {
    bool lacks_right = strncmp(text, "NOPERM ", strlen("NOPERM ")) == 0 || strstr(text, "ACL failure");
    bool all_tried = true;
    usec_t delay;
    char why[256];

    store->link.n_errors[classes[error]]++;
    if (error == REDIS_ERROR_REDIRECT && slot_redirect(store, text))
        return;
    (void) snprintf(why, sizeof(why), "%s%.180s%s",
                    slot_goes_in_circles(store) ? "the nodes of the cluster send this host in circles: " : "",
                    redis_error_text(text), lacks_right ? " (see redis.acl)" : "");
    if (error == REDIS_ERROR_WAIT && store->link.phase >= PHASE_HELLO && !store->stop.is_under_way) {
        slot_wait(store, why);
        return;
    }
    if (replicas_wait(store, text, why))
        return;
    store->slot.n_redirects = 0;
    if (store->link.phase != PHASE_LIVE)
        all_tried = redis_dial_next(&store->link.dial);
    /* The hosts of the url are tried in quick succession: one of them may be right. */
    delay = all_tried || error == REDIS_ERROR_FATAL ? pause_after(store, error) : BACKOFF_MIN;
    link_close(store);
    link_log_lost(store, why, error == REDIS_ERROR_FATAL);
    link_note_away(store, why);
    link_retry(store, backoff_draw(&store->link.backoff, delay));
    link_enter_away(store);
}

static void link_on_down(struct redis_connection *connection _unused_, enum redis_error error,
                         const char *text, void *userdata) {
    struct store_redis *store = userdata;

    if (store->stop.is_under_way)
        stop_fail(store, text);
    else
        link_fail(store, error, text);
}

static void link_on_retry(void *userdata) {
    struct store_redis *store = userdata;

    if (store->stop.is_under_way) {
        stop_fail(store, "it is not connected");
    } else if (store->link.phase == PHASE_DOWN) {
        link_connect(store);
    } else if (store->link.phase == PHASE_HELLO) {
        hello_send(store);
    } else if (store->link.phase == PHASE_CONNECTING && store->link.commands) {
        handshake_continue(store);
    }
}

/* This turn of the event loop ends. */
static void link_on_writing(struct redis_connection *connection, void *userdata) {
    struct store_redis *store = userdata;

    if (connection == store->link.commands)
        batch_flush(store);
}

/* --- up --- */

static void link_on_pushes(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;
    const char *error = reply_error(reply);

    if (error)
        link_fail(store, redis_error_class(error), error);
    else if (reply_is(reply_at(reply, 0), "ssubscribe"))
        handshake_note_subscribed(store);
    else if (reply_is(reply_at(reply, 0), "sunsubscribe") && store->link.phase == PHASE_LIVE)
        heartbeat_send_extra(store); /* the slot has left this node; the reply names the other one */
    else
        push_on_message(reply, store);
}

static void link_on_up(struct redis_connection *connection, void *userdata) {
    struct store_redis *store = userdata;
    char channel[sizeof(store->env.prefix) + ID_TEXT_SIZE + 4];

    (void) snprintf(channel, sizeof(channel), "%sto:%s", store->env.prefix, store->session.id);
    if (redis_connection_subscribe(connection, channel, link_on_pushes, store) == -ENOMEM)
        link_fail(store, REDIS_ERROR_RETRY, strerror(ENOMEM));
}

static void note_address(struct store_redis *store) {
    redis_dial_format_address(&store->link.dial, store->link.address, sizeof(store->link.address));
}

/* Begins the push connection when the other one is up, so that it can go to the same address and resume its TLS
 * session. */
static void link_on_found(struct redis_connection *connection, void *userdata) {
    struct store_redis *store = userdata;
    int r;

    find_settle(store);
    if (renewal_take(store, connection))
        return;
    store->link.commands = connection;
    note_address(store);
    r = redis_dial_again(&store->link.dial, &store->link.pushes);
    if (r < 0)
        link_fail(store, REDIS_ERROR_RETRY, strerror(-r));
    else
        handshake_start(store);
}

void link_on_not_found(enum redis_error error, const char *text, void *userdata) {
    if (!renewal_fail(userdata, text))
        link_on_down(NULL, error, text, userdata);
}

static void link_on_warning(const char *text, void *userdata) {
    journal_log(store_redis_journal(userdata), LOG_WARNING, "%s", text);
}

static void link_connect(struct store_redis *store) {
    struct redis_link *link = &store->link;

    link->phase = PHASE_CONNECTING;
    link->options.patience_usec = link->settings.connect_timeout_usec; /* thousands of hosts may connect at once */
    store->base.is_connecting = true;
    handshake_reset(store);
    heartbeat_begin_connection(store);
    session_begin_connection(store);
    find_start(store);
}

void link_replace(struct store_redis *store, struct redis_connection *commands, struct redis_connection *pushes) {
    struct redis_link *link = &store->link;

    link_close(store);
    link->commands = commands;
    link->pushes = pushes;
    note_address(store);
    redis_connection_set_options(commands, &link->options);
    redis_connection_set_options(pushes, &link->options);
    link->phase = PHASE_CONNECTING;
    link->is_replaced = true;
    heartbeat_begin_connection(store);
    session_begin_connection(store);
    handshake_start(store);
    if (link->pushes)
        link_on_up(link->pushes, store);
}

void link_restart(struct store_redis *store) {
    bool was_away = store->base.state == STORE_STATE_AWAY;

    link_close(store);
    store->link.is_replaced = !was_away;
    link_retry(store, 0);
}

void link_repeat_hello_after(struct store_redis *store, usec_t pause) {
    sync_reset(store);
    heartbeat_reset(store);
    store->link.phase = PHASE_HELLO;
    link_retry(store, pause);
}

int link_use(struct store_redis *store, const struct redis_settings *settings) {
    struct redis_link *link = &store->link;
    struct redis_settings copy;
    int r = redis_settings_copy(&copy, settings);

    if (r < 0) {
        redis_settings_done(&copy);
        return r;
    }
    redis_settings_done(&link->settings);
    link->settings = copy;
    if (store->stop.is_under_way || (redis_dial_is_current(&link->dial) && !store->renewal.why[0] &&
                                     store->base.state != STORE_STATE_AWAY))
        return 0;
    link_log_note_reload(store, true);
    renewal_expect(store);
    if (link->phase == PHASE_LIVE) {
        renewal_start(store);
    } else { /* the attempt under way has the old settings */
        link_close(store);
        find_release(store);
        backoff_reset(&link->backoff);
        link_retry(store, 0);
    }
    return 0;
}

void link_begin_session(struct store_redis *store) {
    find_release(store);
    store->link.phase = PHASE_HELLO;
    hello_send(store);
}

void link_begin_sync(struct store_redis *store) {
    store->link.phase = PHASE_SYNC;
    sync_start(store);
}

void link_go_live(struct store_redis *store) {
    store->link.phase = PHASE_LIVE;
    store->link.is_replaced = false;
    store->link.options.patience_usec = 0;
    slot_reset(store);
    replicas_reset(store);
    store->link.live_since = clock_boottime();
    link_log_live(store);
    store->slot.n_redirects = 0;
    renewal_conclude(store, NULL);
}

void link_repeat_hello(struct store_redis *store) {
    usec_t pause = link_next_pause(store);

    if (pause > 0) {
        store->link.phase = PHASE_HELLO;
        link_retry(store, pause);
    } else {
        link_begin_session(store);
    }
}

void link_resync(struct store_redis *store) {
    sync_reset(store);
    heartbeat_reset(store);
    link_repeat_hello(store);
}

void link_reload_scripts(struct store_redis *store) {
    store->link.n_errors[STATUS_ERROR_RELOAD]++;
    sync_reset(store);
    heartbeat_reset(store);
    store->link.phase = PHASE_CONNECTING;
    handshake_reset_scripts(store);
    link_retry(store, link_next_pause(store));
}

/* --- made and freed --- */

int link_init(struct store_redis *store, const struct redis_settings *settings) {
    struct redis_link *link = &store->link;
    int r = redis_settings_copy(&link->settings, settings);

    backoff_init(&link->backoff, store->env.heartbeat_usec);
    (void) snprintf(link->client_name, sizeof(link->client_name), "berth-%s", store->env.host);
    link->options = (struct redis_connection_options) {
        .settings = &link->settings,
        .client_name = link->client_name,
        .on_up = link_on_up,
        .on_down = link_on_down,
        .on_writing = link_on_writing,
        .userdata = store,
        .silence_usec = SILENCE,
    };
    if (r >= 0)
        r = redis_dial_init(&link->dial, store->env.event, &link->options,
                            &(struct redis_dial_handler) {link_on_found, link_on_not_found, link_on_warning, store});
    if (r >= 0)
        r = find_init(store);
    if (r >= 0)
        r = timer_init(&link->retry, store->env.event, SD_EVENT_PRIORITY_NORMAL, link_on_retry, store);
    if (r >= 0)
        r = defer_init(&link->fail_waiting, store->env.event, SD_EVENT_PRIORITY_NORMAL, link_on_fail_waiting,
                       store);
    return r;
}

void link_done(struct store_redis *store) {
    struct redis_link *link = &store->link;

    timer_done(&link->retry);
    defer_done(&link->fail_waiting);
    find_done(store);
    redis_dial_done(&link->dial);
    redis_settings_done(&link->settings);
}
