/* SPDX-License-Identifier: MIT */
#include "store/redis/client/dial.h"

#include <string.h>

#include "conf/hash.h"
#include "conf/redis-url.h"
#include "conf/settings.h"
#include "store/redis/client/secret.h"

#define NEXT_ADDRESS (1 * USEC_PER_SEC) /* after which the next address is tried beside those that do not answer */
#define EXPIRY_NEAR (INT64_C(14) * 86400) /* seconds before the end of the server's certificate */
#define DAY (UINT64_C(86400) * USEC_PER_SEC)
#define CREDENTIAL_DEFAULT "redis-password"

/* --- failure --- */

static void give_up(struct redis_dial *dial, enum redis_error error, const char *text) {
    dial->error = error;
    (void) snprintf(dial->reasons, sizeof(dial->reasons), "%s", text);
    defer_set(&dial->defer);
}

static void dial_on_defer(void *userdata) {
    struct redis_dial *dial = userdata;
    char text[sizeof(dial->reasons)];

    (void) snprintf(text, sizeof(text), "%s", dial->reasons);
    redis_dial_stop(dial);
    /* OpenSSL parses a trusted certificate once. If it ran out of memory then, the certificate stays unusable. */
    if (dial->error == REDIS_ERROR_FATAL)
        *dial->tls = tls_context_unref(*dial->tls);
    dial->handler.on_down(dial->error, text, dial->handler.userdata);
}

static bool is_waiting(const struct redis_dial *dial) {
    for (size_t i = 0; i < RESOLVE_ADDRESSES_MAX; i++)
        if (dial->tries[i])
            return true;
    return dial->next < dial->addresses.n;
}

/* Returns whether the text is an error reply of Redis, which begins with a word in capitals. */
static bool is_of_redis(const char *text) {
    return text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'A' && text[1] <= 'Z' && strncmp(text, "TLS ", 4) != 0;
}

/* Adds a reason, with the address that was tried. An error for administrators takes precedence over a temporary one. */
static void note_reason(struct redis_dial *dial, size_t i, enum redis_error error, const char *text) {
    size_t used = strlen(dial->reasons);
    char target[SOCKET_WHERE_SIZE];
    const char *who = dial->addresses.items[i];

    if (dial->addresses.n == 1) {
        redis_dial_format_target(dial, target, sizeof(target));
        who = is_of_redis(text) || strstr(text, target) ? "" : target;
    }
    (void) snprintf(dial->reasons + used, sizeof(dial->reasons) - used, "%s%s%s%s", used > 0 ? "; " : "", who,
                    *who ? ": " : "", text);
    if (used == 0 || error == REDIS_ERROR_FATAL)
        dial->error = error;
}

/* --- addresses --- */

static bool is_elsewhere(const struct redis_dial *dial) {
    return dial->node.port > 0;
}

/* NULL: a unix socket. */
static const char *host_of(const struct redis_dial *dial) {
    return is_elsewhere(dial) ? dial->node.host : dial->options->settings->host;
}

static struct redis_target target_of(const struct redis_dial *dial, const char *address) {
    const struct redis_settings *s = dial->options->settings;

    return (struct redis_target){
        .unix_path = is_elsewhere(dial) ? NULL : s->unix_path,
        .address = address,
        .port = is_elsewhere(dial) ? dial->node.port : s->port,
        .name = host_of(dial),
        .tls = s->tls.is_used ? *dial->tls : NULL,
        .password = dial->password,
        .deadline = dial->deadline,
    };
}

/* Tries the next address, and further ones while each fails at once. */
static void try_next(struct redis_dial *dial) {
    while (dial->next < dial->addresses.n) {
        size_t i = dial->next++;
        struct redis_target target = target_of(dial, dial->addresses.items[i]);
        int r = redis_connection_new(&dial->tries[i], dial->event, &target, &dial->own);

        if (r >= 0) {
            if (dial->next < dial->addresses.n)
                timer_set(&dial->timer, usec_add(clock_boottime(), NEXT_ADDRESS));
            return;
        }
        note_reason(dial, i, REDIS_ERROR_RETRY, strerror(-r));
    }
    if (!is_waiting(dial))
        defer_set(&dial->defer);
}

static void dial_on_timer(void *userdata) {
    try_next(userdata);
}

static void dial_on_connection_down(struct redis_connection *c, enum redis_error error, const char *text,
                                    void *userdata) {
    struct redis_dial *dial = userdata;

    for (size_t i = 0; i < RESOLVE_ADDRESSES_MAX; i++)
        if (dial->tries[i] == c) {
            note_reason(dial, i, error, text);
            dial->tries[i] = redis_connection_free(c);
        }
    try_next(dial);
}

bool redis_dial_warns_of_expiry(const struct redis_dial *dial, const struct redis_connection *c, char *text,
                                size_t size) {
    const struct tls_session *tls = redis_connection_tls(c);
    time_t until = tls ? tls_until(tls) : 0;
    char date[16] = "";
    struct tm tm;

    if (until == 0 || until - (time_t) (clock_realtime() / USEC_PER_SEC) > EXPIRY_NEAR)
        return false;
    (void) strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&until, &tm));
    (void) snprintf(text, size, "the certificate of %.200s is not valid after %s: renew it",
                    host_of(dial), date);
    return true;
}

bool redis_dial_warns_of_files(const struct redis_dial *dial, char *text, size_t size) {
    const char *warning = dial->own_tls ? tls_context_warning(dial->own_tls) : NULL;

    if (warning)
        (void) snprintf(text, size, "%s", warning);
    return warning != NULL;
}

/* Passes the warning on once a day. */
static void warn_of_expiry(struct redis_dial *dial, const struct redis_connection *c) {
    char text[320];

    if (clock_boottime() < dial->expiry_silent || !redis_dial_warns_of_expiry(dial, c, text, sizeof(text)))
        return;
    dial->expiry_silent = usec_add(clock_boottime(), DAY);
    dial->handler.on_warning(text, dial->handler.userdata);
}

static void dial_on_connection_up(struct redis_connection *c, void *userdata) {
    struct redis_dial *dial = userdata;

    for (size_t i = 0; i < RESOLVE_ADDRESSES_MAX; i++)
        if (dial->tries[i] == c) {
            memcpy(dial->up, dial->addresses.items[i], sizeof(dial->up));
            dial->tries[i] = NULL;
        } else {
            dial->tries[i] = redis_connection_free(dial->tries[i]);
        }
    timer_off(&dial->timer);
    redis_connection_set_options(c, dial->options);
    warn_of_expiry(dial, c);
    dial->handler.on_up(c, dial->handler.userdata);
}

static void dial_on_resolved(const struct redis_addresses *addresses, void *userdata) {
    struct redis_dial *dial = userdata;
    char why[192];

    dial->addresses = *addresses;
    dial->resolve = redis_resolve_free(dial->resolve);
    if (dial->addresses.n > 0) {
        try_next(dial);
        return;
    }
    (void) snprintf(why, sizeof(why), "cannot resolve %.80s: %.60s", host_of(dial), dial->addresses.why);
    give_up(dial, REDIS_ERROR_RETRY, why);
}

/* --- an attempt --- */

static uint64_t stamp_of(const struct redis_dial *dial) {
    const struct redis_settings *s = dial->options->settings;
    uint64_t stamp = s->tls.is_used ? tls_settings_stamp(&s->tls) : HASH_EMPTY;
    char path[SECRET_PATH_SIZE];

    hash_add_text(&stamp, "user", s->username ? s->username : "");
    redis_secret_add_stamp(&stamp, redis_secret_path(s->password_file, dial->credential, path));
    return stamp;
}

void redis_dial_format_address(const struct redis_dial *dial, char *buffer, size_t size) {
    const struct redis_settings *s = dial->options->settings;

    if (!host_of(dial))
        (void) snprintf(buffer, size, "%s", s->unix_path);
    else
        (void) snprintf(buffer, size, strchr(dial->up, ':') ? "[%s]:%u" : "%s:%u", dial->up,
                        is_elsewhere(dial) ? dial->node.port : s->port);
}

void redis_dial_format_target(const struct redis_dial *dial, char *buffer, size_t size) {
    const struct redis_settings *s = dial->options->settings;
    const char *host = host_of(dial);

    if (!host)
        (void) snprintf(buffer, size, "%s", s->unix_path ? s->unix_path : "");
    else
        (void) snprintf(buffer, size, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host,
                        is_elsewhere(dial) ? dial->node.port : s->port);
}

bool redis_dial_is_current(const struct redis_dial *dial) {
    return dial->stamp == stamp_of(dial);
}

/* Reads the password and the certificates. Returns whether that succeeded. */
static bool read_files(struct redis_dial *dial) {
    const struct redis_settings *s = dial->options->settings;
    const char *warning;
    char why[SOCKET_REASON_SIZE];
    int r = redis_secret_read(s->password_file, dial->credential, &dial->password, why, sizeof(why));

    if (r == 0 && s->tls.is_used)
        r = tls_context_load(dial->tls, &s->tls, why, sizeof(why));
    if (r != 0) {
        give_up(dial, r < 0 ? REDIS_ERROR_RETRY : REDIS_ERROR_FATAL, r < 0 ? strerror(-r) : why);
        return false;
    }
    if (dial->own_tls && dial->stamp != dial->warned && (warning = tls_context_warning(dial->own_tls)))
        dial->handler.on_warning(warning, dial->handler.userdata);
    dial->warned = dial->stamp;
    return true;
}

void redis_dial_start(struct redis_dial *dial) {
    const struct redis_settings *s = dial->options->settings;
    const char *host = host_of(dial);
    int r;

    redis_dial_stop(dial);
    dial->deadline = usec_add(clock_boottime(), s->connect_timeout_usec);
    dial->reasons[0] = '\0';
    dial->stamp = stamp_of(dial);
    if (!read_files(dial))
        return;
    if (!host || redis_resolve_is_address(host)) {
        dial->addresses.n = 1;
        (void) snprintf(dial->addresses.items[0], RESOLVE_ADDRESS_SIZE, "%.*s", RESOLVE_ADDRESS_SIZE - 1, host ? host : "");
        try_next(dial);
        return;
    }
    r = redis_resolve_new(&dial->resolve, dial->event, host, s->connect_timeout_usec, dial_on_resolved, dial);
    if (r < 0)
        give_up(dial, REDIS_ERROR_RETRY, strerror(-r));
}

/* An empty host is that of the node that sent the redirection. */
void redis_dial_redirect(struct redis_dial *dial, const struct moved *moved) {
    const char *host = moved->host[0] != '\0' ? moved->host : dial->up;
    struct moved to = {.port = moved->port};

    (void) snprintf(to.host, sizeof(to.host), "%s", host);
    dial->node = to;
}

bool redis_dial_next(struct redis_dial *dial) {
    const char *others = dial->options->settings->others;
    struct moved *node = &dial->node;

    node->port = REDIS_PORT_DEFAULT;
    if (redis_url_get_host(others, dial->n_failed, node->host, sizeof(node->host), &node->port) == 0) {
        dial->n_failed++;
        return false;
    }
    dial->n_failed = 0;
    node->port = 0;
    return true;
}

int redis_dial_again(struct redis_dial *dial, struct redis_connection **ret) {
    struct redis_target target = target_of(dial, dial->up);
    int r = redis_connection_new(ret, dial->event, &target, dial->options);

    dial->password = redis_secret_free(dial->password);
    return r;
}

void redis_dial_stop(struct redis_dial *dial) {
    dial->resolve = redis_resolve_free(dial->resolve);
    for (size_t i = 0; i < RESOLVE_ADDRESSES_MAX; i++)
        dial->tries[i] = redis_connection_free(dial->tries[i]);
    dial->addresses.n = dial->next = 0;
    dial->password = redis_secret_free(dial->password);
    timer_off(&dial->timer);
    defer_off(&dial->defer);
}

int redis_dial_init(struct redis_dial *dial, sd_event *event, const struct redis_connection_options *options,
                    const struct redis_dial_handler *handler) {
    int r;

    dial->event = event;
    dial->options = options;
    dial->handler = *handler;
    dial->credential = CREDENTIAL_DEFAULT;
    dial->tls = &dial->own_tls;
    dial->own = (struct redis_connection_options){
        .settings = options->settings,
        .client_name = options->client_name,
        .on_up = dial_on_connection_up,
        .on_down = dial_on_connection_down,
        .userdata = dial,
    };
    r = timer_init(&dial->timer, event, SD_EVENT_PRIORITY_NORMAL, dial_on_timer, dial);
    return r < 0 ? r : defer_init(&dial->defer, event, SD_EVENT_PRIORITY_NORMAL, dial_on_defer, dial);
}

void redis_dial_share_tls(struct redis_dial *dial, struct redis_dial *other) {
    dial->tls = &other->own_tls;
}

void redis_dial_done(struct redis_dial *dial) {
    if (!dial->event)
        return;
    redis_dial_stop(dial);
    timer_done(&dial->timer);
    defer_done(&dial->defer);
    dial->own_tls = tls_context_unref(dial->own_tls);
    dial->event = NULL;
}
