/* SPDX-License-Identifier: MIT */

/* The store on Redis: what is made and freed, what others ask of it as a whole. */

#include <stdlib.h>
#include <string.h>
#include <systemd/sd-id128.h>
#include <syslog.h>

#include "store/redis/store-redis.h"

struct journal *redis_journal(struct store_redis *r) {
    return events_get_journal(r->events);
}

void redis_set_state(struct store_redis *r, enum store_state state) {
    if (r->store.state == state)
        return;
    r->store.state = state;
    if (state != STORE_STATE_AWAY)
        r->store.away_why[0] = '\0';
    r->store.listener.on_state(&r->store, state, r->store.listener.userdata);
}

static struct store *redis_free(struct store *s) {
    struct store_redis *r = store_redis_of(s);

    link_drop(r);
    admin_fail(r);
    inspect_fail(r);
    sync_reset(r);
    claim_done(r);
    beat_done(r);
    sd_event_source_disable_unref(r->retry);
    sd_event_source_disable_unref(r->away);
    sd_event_unref(r->event);
    free(r->settings.unix_path);
    free(r->settings.host);
    free(r->settings.username);
    if (r->password)
        explicit_bzero(r->password, strlen(r->password));
    free(r->password);
    free(r->session_path);
    free(r->declared);
    free(r->overrides);
    free(r);
    return NULL;
}

static int redis_start(struct store *s) {
    struct store_redis *r = store_redis_of(s);
    int k = session_open(r);

    if (k < 0)
        return k;
    r->started = true;
    link_retry(r, 0);
    return 0;
}

static void bye_on_reply(const struct redisReply *reply, void *userdata) {
    struct store_redis *r = userdata;
    uint64_t more = 0;

    (void) beat_hear_undeclared(r, reply_at(reply, 3), false);
    if (reply_is(reply_at(reply, 0), "ok") && reply_u64(reply_at(reply, 2), &more) == 0 && more > 0 &&
        beat_may_go_on(r)) {
        _cleanup_command_ struct redis_command w = {0};

        link_begin(r, &w, REDIS_SCRIPT_BYE);
        if (link_call(r, &w, bye_on_reply, r) == 0)
            return;
    }
    session_forget(r);
    link_stopped(r, 0);
}

static void redis_stop(struct store *s, store_reply_fn done, void *userdata) {
    struct store_redis *r = store_redis_of(s);
    _cleanup_command_ struct redis_command w = {0};

    r->stopping = true;
    r->stop_done = done;
    r->stop_userdata = userdata;
    beat_reset(r);
    if (r->phase >= PHASE_HELLO) {
        link_begin(r, &w, REDIS_SCRIPT_BYE);
        if (link_call(r, &w, bye_on_reply, r) == 0)
            return;
    }
    link_retry(r, 0); /* told a turn later */
}

/* A pool that is declared for the first time was never told; its limit is news if hosts are told of the others'. */
static uint64_t lowest_told(const struct store_redis *r, const char *pool) {
    for (size_t i = 0; i < r->n_declared; i++)
        if (strcmp(r->declared[i].pool.name, pool) == 0)
            return r->declared[i].in_force;
    return r->connected_told ? UINT64_MAX - 1 : UINT64_MAX;
}

static int redis_declare(struct store *s, const struct store_pool *pools, size_t n, bool drained) {
    struct store_redis *r = store_redis_of(s);
    struct declared *declared = calloc(n > 0 ? n : 1, sizeof(*declared));

    if (!declared)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        declared[i] = (struct declared) {.pool = pools[i], .in_force = lowest_told(r, pools[i].name)};
    free(r->declared);
    r->declared = declared;
    r->n_declared = n;
    r->drained = drained;
    if (r->phase == PHASE_LIVE)
        hello_declare(r);
    else
        r->declare_again = r->phase > PHASE_CONNECTING;
    return 0;
}

static const struct store_ops ops = {
    .free = redis_free,
    .start = redis_start,
    .stop = redis_stop,
    .declare = redis_declare,
    .claim = redis_claim,
    .adopt = redis_adopt,
    .release = redis_release,
    .override = redis_override,
    .revoke = redis_revoke,
    .end_grace = redis_end_grace,
    .inspect = redis_inspect,
};

static int copy(char **ret, const char *text) {
    if (!text)
        return 0;
    *ret = strdup(text);
    return *ret ? 0 : -ENOMEM;
}

static int copy_options(struct store_redis *r, const struct store_redis_options *o) {
    int k;

    r->settings = *o->redis;
    r->settings.unix_path = r->settings.host = r->settings.username = r->settings.password_file = NULL;
    k = copy(&r->settings.unix_path, o->redis->unix_path);
    if (k == 0)
        k = copy(&r->settings.host, o->redis->host);
    if (k == 0)
        k = copy(&r->settings.username, o->redis->username);
    if (k == 0)
        k = copy(&r->password, o->password);
    if (k == 0)
        k = copy(&r->session_path, o->session_path);
    (void) snprintf(r->host, sizeof(r->host), "%s", o->host);
    (void) snprintf(r->version, sizeof(r->version), "%s", o->version);
    (void) snprintf(r->client_name, sizeof(r->client_name), "berth-%s", o->host);
    (void) snprintf(r->prefix, sizeof(r->prefix), "berth:{%s}:", o->namespace);
    (void) snprintf(r->key, sizeof(r->key), "%smeta", r->prefix);
    r->lease_usec = r->expiry_usec = o->lease_usec;
    r->heartbeat_usec = o->heartbeat_usec;
    return k;
}

/* Tells two hosts of one name apart. Without a machine id (containers) the boot id must do. */
static void find_machine(struct store_redis *r) {
    static const sd_id128_t application =
        SD_ID128_MAKE(5b, 41, 0c, 27, 9e, d3, 4f, 6a, 8c, 15, 70, b2, e6, 9d, 3a, 11);
    sd_id128_t id, boot;

    if (sd_id128_get_boot(&boot) < 0)
        boot = SD_ID128_NULL;
    if (sd_id128_get_machine_app_specific(application, &id) < 0)
        id = boot;
    (void) sd_id128_to_string(id, r->machine);
    (void) sd_id128_to_string(boot, r->boot);
}

int store_redis_new(struct store **ret, sd_event *event, struct events *events, const struct store_redis_options *options,
                    const struct store_listener *listener) {
    struct store_redis *r = calloc(1, sizeof(*r));
    int k;

    if (!r)
        return -ENOMEM;
    r->store = (struct store) {.ops = &ops, .listener = *listener, .state = STORE_STATE_AWAY, .away_since = clock_realtime()};
    r->event = sd_event_ref(event);
    r->events = events;
    memcpy(r->epoch, "0", sizeof("0"));
    list_init(&r->admins);
    list_init(&r->inspections);
    list_init(&r->questions);
    find_machine(r);
    k = claim_init(r);
    if (k >= 0)
        k = copy_options(r, options);
    if (k >= 0)
        k = link_init(r);
    if (k >= 0)
        k = beat_init(r);
    if (k < 0) {
        redis_free(&r->store);
        return k;
    }
    *ret = &r->store;
    return 0;
}
