/* SPDX-License-Identifier: MIT */

#include <stdlib.h>
#include <systemd/sd-id128.h>

#include "store/redis/store-redis.h"

struct journal *store_redis_journal(struct store_redis *store) {
    return events_get_journal(store->env.events);
}

void store_redis_set_state(struct store_redis *store, enum store_state state) {
    struct store *base = &store->base;

    if (base->state == state)
        return;
    base->state = state;
    if (state != STORE_STATE_AWAY)
        base->away_why[0] = '\0';
    base->listener.on_state(base, state, base->listener.userdata);
}

static struct store *store_redis_free(struct store *base) {
    struct store_redis *store = store_redis_of(base);

    link_close(store);
    admin_fail(store);
    inspect_fail(store);
    inspect_done(store);
    publish_done(store);
    turns_reset(store);
    claim_table_done(store);
    full_done(store);
    heartbeat_done(store);
    link_done(store);
    session_done(store);
    limits_done(store);
    sd_event_unref(store->env.event);
    free(store);
    return NULL;
}

static int store_redis_start(struct store *base) {
    struct store_redis *store = store_redis_of(base);

    session_open(store);
    link_start(store);
    return 0;
}

static void store_redis_stop(struct store *base, store_reply_fn done, void *userdata) {
    stop_start(store_redis_of(base), done, userdata);
}

static int store_redis_declare(struct store *base, const struct store_pool *pools, size_t n, bool drained) {
    struct store_redis *store = store_redis_of(base);
    int r = limits_declare(store, pools, n, drained);

    if (r < 0)
        return r;
    hello_declare(store);
    return 0;
}

int store_redis_use(struct store *base, const struct redis_settings *settings) {
    return link_use(store_redis_of(base), settings);
}

int store_redis_accept(struct store *base) {
    struct store_redis *store = store_redis_of(base);

    if (!hello_is_of_another_namespace(store))
        return STORE_E_UNKNOWN;
    session_forget_namespace(store);
    limits_forget_overrides(store);
    session_lose(store, "another namespace was accepted");
    clock_forget(store);
    epoch_init(store);
    samples_reset(store);
    base->known = 0;
    return 0;
}

int store_redis_check(const struct redis_settings *settings, char *why, size_t size) {
    return settings->tls.is_used ? tls_settings_check(&settings->tls, clock_realtime(), why, size) : 0;
}

static void store_redis_send(struct store *base) {
    struct store_redis *store = store_redis_of(base);

    if (store->link.commands)
        redis_connection_send(store->link.commands);
}

static const struct store_ops ops = {
    .free = store_redis_free,
    .start = store_redis_start,
    .stop = store_redis_stop,
    .declare = store_redis_declare,
    .claim = claims_request,
    .adopt = claims_adopt,
    .release = claims_release,
    .send = store_redis_send,
    .commit = turns_commit,
    .give_back = turns_give_back,
    .pass = turn_questions_pass,
    .remember = turns_remember,
    .end_turns = turn_questions_stop,
    .ask_shared = turn_questions_ask,
    .override = admin_override,
    .revoke = admin_revoke,
    .move = admin_move,
    .end_grace = admin_end_grace,
    .inspect = inspect_start,
    .publish = publish_set,
};

/* Identifies the machine, to distinguish hosts of one name. Containers without a machine id use
 * the boot id. */
static void find_machine(char machine[static ID_TEXT_SIZE], char boot_text[static ID_TEXT_SIZE]) {
    static const sd_id128_t application =
        SD_ID128_MAKE(5b, 41, 0c, 27, 9e, d3, 4f, 6a, 8c, 15, 70, b2, e6, 9d, 3a, 11);
    sd_id128_t id, boot;

    if (sd_id128_get_boot(&boot) < 0)
        boot = SD_ID128_NULL;
    if (sd_id128_get_machine_app_specific(application, &id) < 0)
        id = boot;
    (void) sd_id128_to_string(id, machine);
    (void) sd_id128_to_string(boot, boot_text);
}

static void env_init(struct redis_env *env, sd_event *event, struct events *events,
                     const struct store_redis_options *options) {
    env->event = sd_event_ref(event);
    env->events = events;
    (void) snprintf(env->host, sizeof(env->host), "%s", options->host);
    (void) snprintf(env->version, sizeof(env->version), "%s", options->version);
    (void) snprintf(env->prefix, sizeof(env->prefix), "berth:{%s}:", options->namespace);
    (void) snprintf(env->key, sizeof(env->key), "%smeta", env->prefix);
    (void) snprintf(env->none, sizeof(env->none), "%snone", env->prefix);
    env->lease_usec = options->lease_usec;
    env->heartbeat_usec = options->heartbeat_usec;
}

int store_redis_new(struct store **ret, sd_event *event, struct events *events,
                    const struct store_redis_options *options, const struct store_listener *listener) {
    struct store_redis *store = calloc(1, sizeof(*store));
    char boot[ID_TEXT_SIZE];
    int r;

    if (!store)
        return -ENOMEM;
    store->base = (struct store) {
        .ops = &ops, .listener = *listener, .state = STORE_STATE_AWAY, .away_since = clock_realtime()};
    env_init(&store->env, event, events, options);
    find_machine(store->env.machine, boot);
    list_init(&store->operator.admins);
    list_init(&store->renewal.watches);
    list_init(&store->operator.inspections.list);
    batch_init(store);
    turns_init(store);
    epoch_init(store);
    samples_set_expiry(store, options->lease_usec);
    r = claim_table_init(store);
    if (r >= 0)
        r = session_init(store, options, boot);
    if (r >= 0)
        r = link_init(store, options->redis);
    renewal_init(store);
    if (r >= 0)
        r = full_init(store);
    if (r >= 0)
        r = inspect_init(store);
    if (r >= 0)
        r = heartbeat_init(store);
    if (r < 0) {
        store_redis_free(&store->base);
        return r;
    }
    *ret = &store->base;
    return 0;
}
