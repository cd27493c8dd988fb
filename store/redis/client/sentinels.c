/* SPDX-License-Identifier: MIT */
#include "store/redis/client/sentinels.h"

#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MAX (1 * USEC_PER_SEC) /* of an answer: a sentinel that hangs must not delay a failover */
/* After a majority's answers. A machine that is lost with its master often had a sentinel, too. */
#define LATE_AFTER (250 * USEC_PER_MSEC)
#define CREDENTIAL "sentinel-password"

/* --- one sentinel --- */

static struct sentinel *sentinel_free(struct sentinel *sentinel) {
    if (!sentinel)
        return NULL;
    sentinel->connection = redis_connection_free(sentinel->connection);
    redis_dial_done(&sentinel->dial);
    free(sentinel);
    return NULL;
}

/* Notes that a sentinel has answered or failed; the decision follows outside of the connection's callbacks. Returns
 * false if it did before, or if nobody asks. */
static bool is_first_answer(struct sentinel *sentinel) {
    if (sentinel->has_answered || !sentinel->sentinels->is_asking)
        return false;
    sentinel->has_answered = true;
    defer_set(&sentinel->sentinels->defer);
    return true;
}

static void sentinel_fail(struct sentinel *sentinel, enum redis_error error, const char *text) {
    if (is_first_answer(sentinel))
        sentinel_poll_fail(&sentinel->sentinels->poll, sentinel->where, error, redis_error_text(text));
}

static void sentinel_on_answer(const struct redisReply *reply, void *userdata) {
    struct sentinel *sentinel = userdata;

    sentinel->is_refusing = reply_error(reply) != NULL;
    if (is_first_answer(sentinel))
        sentinel_poll_take(&sentinel->sentinels->poll, sentinel->where, reply);
}

static void sentinel_ask(struct sentinel *sentinel) {
    const char *question[] = {"SENTINEL", "MASTER", sentinel->sentinels->poll.master};
    int r = redis_connection_call(sentinel->connection, ELEMENTSOF(question), question, sentinel_on_answer, sentinel);

    if (r < 0)
        sentinel_fail(sentinel, REDIS_ERROR_RETRY, strerror(-r));
}

static void sentinel_on_found(struct redis_connection *connection, void *userdata) {
    struct sentinel *sentinel = userdata;

    sentinel->is_dialing = false;
    sentinel->connection = connection;
    if (sentinel->sentinels->is_asking)
        sentinel_ask(sentinel);
}

static void sentinel_on_not_found(enum redis_error error, const char *text, void *userdata) {
    struct sentinel *sentinel = userdata;

    sentinel->is_dialing = false;
    sentinel_fail(sentinel, error, text);
}

static void sentinel_on_down(struct redis_connection *connection, enum redis_error error, const char *text,
                             void *userdata) {
    struct sentinel *sentinel = userdata;

    sentinel_fail(sentinel, error, text);
    sentinel->connection = redis_connection_free(connection);
}

/* The master's connections use the same files and pass such a warning on. */
static void sentinel_on_warning(_unused_ const char *text, _unused_ void *userdata) {
}

/* The settings of a sentinel's connection are those of the master, with address, user and password of the
 * sentinel. */
static void set_settings(struct sentinel *sentinel, const struct redis_settings *redis, uint16_t port) {
    struct redis_settings *s = &sentinel->settings;

    *s = *redis;
    s->unix_path = s->others = NULL;
    s->host = sentinel->host;
    s->port = port;
    s->db = 0;
    s->username = redis->sentinels.username;
    s->password_file = redis->sentinels.password_file;
    s->timeout_usec = redis->timeout_usec < TIMEOUT_MAX ? redis->timeout_usec : TIMEOUT_MAX;
}

/* Makes sentinel number i of the config. 0, -ENOENT if there is none, or a negative errno. */
static int sentinel_new(struct sentinels *sentinels, size_t i, struct sentinel **ret) {
    const struct redis_settings *redis = &sentinels->settings;
    struct sentinel *sentinel = calloc(1, sizeof(*sentinel));
    const struct redis_dial_handler handler = {sentinel_on_found, sentinel_on_not_found, sentinel_on_warning, sentinel};
    uint16_t port = REDIS_SENTINEL_PORT_DEFAULT;
    int r = sentinel ? redis_url_get_host(redis->sentinels.hosts, i, sentinel->host, sizeof(sentinel->host), &port)
                     : -ENOMEM;

    if (r != 0) {
        free(sentinel);
        return r < 0 ? r : -EINVAL;
    }
    sentinel->sentinels = sentinels;
    set_settings(sentinel, redis, port);
    (void) snprintf(sentinel->where, sizeof(sentinel->where), strchr(sentinel->host, ':') ? "[%s]:%u" : "%s:%u",
                    sentinel->host, port);
    sentinel->options = (struct redis_connection_options) {
        .settings = &sentinel->settings,
        .client_name = sentinels->dial->options->client_name,
        .on_down = sentinel_on_down,
        .userdata = sentinel,
    };
    r = redis_dial_init(&sentinel->dial, sentinels->event, &sentinel->options, &handler);
    if (r < 0) {
        sentinel_free(sentinel);
        return r;
    }
    sentinel->dial.credential = CREDENTIAL;
    redis_dial_share_tls(&sentinel->dial, sentinels->dial);
    *ret = sentinel;
    return 0;
}

/* --- the question --- */

/* Closes the connections that cannot be used again. An answer that is still to come would count for the next question. */
void sentinels_stop(struct sentinels *sentinels) {
    for (size_t i = 0; i < sentinels->n; i++) {
        struct sentinel *sentinel = sentinels->items[i];

        if (!sentinel->has_answered || sentinel->is_refusing)
            sentinel->connection = redis_connection_free(sentinel->connection);
    }
    sentinels->is_asking = false;
    defer_off(&sentinels->defer);
    timer_off(&sentinels->late);
}

void sentinels_close(struct sentinels *sentinels) {
    sentinels_stop(sentinels);
    for (size_t i = 0; i < sentinels->n; i++)
        sentinels->items[i] = sentinel_free(sentinels->items[i]);
    sentinels->n = 0;
    redis_settings_done(&sentinels->settings);
}

static void sentinels_on_defer(void *userdata) {
    struct sentinels *sentinels = userdata;
    enum sentinel_verdict verdict = sentinel_poll_decide(&sentinels->poll);

    if (verdict == SENTINEL_VERDICT_OPEN && sentinel_poll_has_majority(&sentinels->poll) &&
        !timer_is_set(&sentinels->late))
        timer_set(&sentinels->late, usec_add(clock_boottime(), LATE_AFTER));
    if (verdict == SENTINEL_VERDICT_OPEN)
        return;
    sentinels_stop(sentinels);
    if (verdict == SENTINEL_VERDICT_FOUND)
        sentinels->handler.on_found(&sentinels->poll.best, sentinels->handler.userdata);
    else
        sentinels->handler.on_none(sentinels->poll.error, sentinels->poll.reasons, sentinels->handler.userdata);
}

static void sentinels_on_late(void *userdata) {
    struct sentinels *sentinels = userdata;

    sentinels->poll.is_late = true;
    sentinels_on_defer(sentinels);
}

/* 0 or a negative errno. */
static int make_all(struct sentinels *sentinels) {
    int r = redis_settings_copy(&sentinels->settings, sentinels->dial->options->settings);

    while (r >= 0 && sentinels->n < REDIS_HOSTS_MAX) {
        r = sentinel_new(sentinels, sentinels->n, &sentinels->items[sentinels->n]);
        if (r >= 0)
            sentinels->n++;
    }
    return r == -ENOENT ? 0 : r;
}

static void begin(struct sentinel *sentinel) {
    sentinel->has_answered = false;
    if (sentinel->connection) {
        sentinel_ask(sentinel);
    } else if (!sentinel->is_dialing) {
        sentinel->is_dialing = true;
        redis_dial_start(&sentinel->dial);
    }
}

void sentinels_ask(struct sentinels *sentinels) {
    int r;

    sentinels_stop(sentinels);
    r = sentinels->n > 0 ? 0 : make_all(sentinels);
    if (r < 0) { /* some of the sentinels must not decide alone */
        sentinels_close(sentinels);
        sentinel_poll_begin(&sentinels->poll, sentinels->dial->options->settings->sentinels.master, 1);
        sentinel_poll_fail(&sentinels->poll, "this host", REDIS_ERROR_RETRY, strerror(-r));
        defer_set(&sentinels->defer);
        return;
    }
    sentinel_poll_begin(&sentinels->poll, sentinels->settings.sentinels.master, sentinels->n);
    sentinels->is_asking = true;
    for (size_t i = 0; i < sentinels->n; i++)
        begin(sentinels->items[i]);
}

int sentinels_init(struct sentinels *sentinels, struct redis_dial *dial, const struct sentinels_handler *handler) {
    int r;

    sentinels->event = dial->event;
    sentinels->dial = dial;
    sentinels->handler = *handler;
    r = timer_init(&sentinels->late, dial->event, SD_EVENT_PRIORITY_NORMAL, sentinels_on_late, sentinels);
    return r < 0 ? r
                 : defer_init(&sentinels->defer, dial->event, SD_EVENT_PRIORITY_NORMAL, sentinels_on_defer,
                              sentinels);
}

void sentinels_done(struct sentinels *sentinels) {
    sentinels_close(sentinels);
    defer_done(&sentinels->defer);
    timer_done(&sentinels->late);
}
