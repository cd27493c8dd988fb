/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/redis/store-redis.h"

/* As refusals. */
#define OTHER_NAMESPACE "other"
#define ELSEWHERE "elsewhere"

static void hello_compose(struct store_redis *store, struct redis_command *command) {
    const struct redis_env *env = &store->env;
    const struct heartbeat_sample *own = &store->samples.own;
    usec_t now = clock_boottime();
    char version[sizeof(env->version) + sizeof(STORE_REDIS_DRAINED)], epoch[ID_TEXT_SIZE], id[ID_TEXT_SIZE],
        fresh[EPOCH_LENGTH + 3 + ID_TEXT_SIZE];
    bool is_known = store->session.namespace[0] != '\0' && !session_is_renamed(&store->session);

    id_make(epoch);
    id_make(id);
    store->hello.must_be_known = session_must_be_known(store);
    (void) snprintf(fresh, sizeof(fresh), "%.*s,%c%s%s", EPOCH_LENGTH, epoch, is_known ? '=' : '+',
                    is_known ? store->session.namespace : id, store->hello.must_be_known ? "!" : "");
    (void) snprintf(version, sizeof(version), "%s%s", env->version,
                    store->limits.is_drained ? STORE_REDIS_DRAINED : "");
    call_begin_session(store, command, REDIS_SCRIPT_HELLO);
    command_add(command, store->session.replaced);
    command_add(command, env->host);
    command_add(command, env->machine);
    command_add(command, version);
    command_add_u64(command, env->lease_usec);
    command_add_u64(command, store->clock.drawn);
    command_add_u64(command, clock_latest(store, now));
    command_add(command, store->epoch.id);
    command_add_u64(command, own->sent + env->lease_usec > now ? own->count : 0);
    command_add_u64(command, samples_dead_count(store, now));
    command_add_u64(command, store->epoch.data_loss);
    command_add(command, fresh);
    limits_add_to(store, command);
}

/* --- refusals --- */

void hello_reset(struct store_redis *store) {
    store->hello.refused[0] = '\0';
}

bool hello_is_of_another_namespace(const struct store_redis *store) {
    return strcmp(store->hello.refused, OTHER_NAMESPACE) == 0 || strcmp(store->hello.refused, ELSEWHERE) == 0;
}

bool hello_is_refused(const struct store_redis *store) {
    return store->hello.refused[0] != '\0';
}

static void log_refusal(struct store_redis *store, const struct refusal_reply *refusal, bool lease_differs) {
    char why[160];

    if (lease_differs)
        (void) snprintf(why, sizeof(why),
                        "the namespace has a lease of %" PRIu64 " ms, this host's config names %" PRIu64
                        " ms: all hosts must name the same",
                        refusal->lease_usec / USEC_PER_MSEC, store->env.lease_usec / USEC_PER_MSEC);
    else
        (void) snprintf(why, sizeof(why),
                        "another machine in the namespace has the name %s: give this host a name of its own",
                        store->env.host);
    link_note_away(store, why);
    event_emit(store->env.events,
               &(struct event) {.type = lease_differs ? EVENT_LEASE_DIFFERS : EVENT_HOST_NAME_TAKEN}, "%s",
               why);
}

/* Handles that a live session has this host's name, or another lease. Logs that once, and repeats hello at the
 * interval of heartbeats. Observes the heartbeat count meanwhile, so that this host may report that session as dead
 * (R4). */
static void handle_refusal(struct store_redis *store, const struct redisReply *reply, bool lease_differs) {
    const char *word = lease_differs ? "lease-differs" : "name-taken";
    struct refusal_reply refusal;
    usec_t sent = store->hello.sent;

    if (refusal_reply_parse(reply, &refusal) < 0) {
        call_bad_reply(store, "hello");
        return;
    }
    expired_log(store, &refusal.sessions, false);
    epoch_observe(store, refusal.epoch);
    clock_observe_latest(store, refusal.latest, sent);
    samples_set_expiry(store, refusal.lease_usec > store->env.lease_usec ? refusal.lease_usec
                                                                         : store->env.lease_usec);
    samples_add(store, refusal.count, sent, false);
    if (strcmp(store->hello.refused, word) != 0) {
        (void) snprintf(store->hello.refused, sizeof(store->hello.refused), "%s", word);
        log_refusal(store, &refusal, lease_differs);
    }
    link_retry(store, store->env.heartbeat_usec);
    link_enter_away(store);
}

static void format_other(const struct store_redis *store, char *why, size_t size) {
    const struct session *session = &store->session;

    if (!store->hello.must_be_known)
        (void) snprintf(why, size, "this Redis has another namespace \"%s\", not the one that this host was in: wrong url?",
                        session->configured.namespace);
    else if (session_is_renamed(session))
        (void) snprintf(why, size, "runs of this host hold permits of namespace \"%s\": name it again and restart berthd, or wait "
                                   "until they have ended",
                        session->place.namespace);
    else
        (void) snprintf(why, size, "runs of this host hold permits of another Redis, and this one does not know them: correct the "
                                   "url and restart berthd, or wait until they have ended");
}

/* Handles that Redis has another namespace than the one whose permits this host holds or held. Repeats hello at the interval
 * of heartbeats, because the former Redis may come back, and the runs end. */
static void handle_other_namespace(struct store_redis *store) {
    struct hello *hello = &store->hello;
    const char *word = hello->must_be_known ? ELSEWHERE : OTHER_NAMESPACE;
    char why[256];

    if (strcmp(hello->refused, word) != 0) {
        (void) snprintf(hello->refused, sizeof(hello->refused), "%s", word);
        format_other(store, why, sizeof(why));
        link_note_away(store, why);
        event_emit(store->env.events,
                   &(struct event) {.type = EVENT_NAMESPACE_DIFFERS, .reason = why, .redis = store->link.address},
                   "%s", why);
    }
    link_retry(store, store->env.heartbeat_usec);
    link_enter_away(store);
}

/* --- hello --- */

/* Applies what a first and a repeated hello have in common. 0 or -ENOMEM. */
static int apply_common(struct store_redis *store, const struct hello_reply *reply) {
    int r = limits_apply_overrides(store, reply->overrides);

    if (r >= 0)
        expired_log(store, &reply->sessions, true);
    return r;
}

static void handle_accepted(struct store_redis *store, const struct redisReply *reply) {
    struct hello_reply hello;
    usec_t sent = store->hello.sent;

    if (hello_reply_parse(reply, &hello) < 0) {
        call_bad_reply(store, "hello");
        return;
    }
    if (apply_common(store, &hello) < 0) {
        link_fail(store, REDIS_ERROR_RETRY, strerror(ENOMEM));
        return;
    }
    hello_reset(store);
    samples_set_expiry(store, store->env.lease_usec);
    epoch_observe(store, hello.epoch);
    clock_observe_latest(store, hello.latest, sent);
    samples_add(store, hello.count, sent, true);
    limits_apply_differing(store, hello.differing, hello.effective_after);
    if (!hello.is_known && !hello.grace &&
        session_has_lost_claims(store)) { /* it expired while berthd was away */
        session_lose(store, "berthd was away for longer than the lease");
        return;
    }
    session_confirm(store);
    session_note_namespace(store, hello.namespace);
    epoch_set_grace(store, hello.grace);
    link_begin_sync(store);
}

static void handle_stale(struct store_redis *store, const struct redisReply *reply) {
    uint64_t connection;

    if (stale_reply_parse(reply, &connection) < 0) {
        (void) call_handle_common_reply(store, reply, PHASE_HELLO);
        return;
    }
    session_skip_connections(store, connection); /* the file was older than Redis's record */
    link_repeat_hello(store);
}

static void hello_on_reply(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;
    char why[NAME_MAX_LENGTH + 80];

    if (store->link.phase != PHASE_HELLO)
        return;
    switch (hello_reply_answer(reply)) {
    case HELLO_ACCEPTED:
        handle_accepted(store, reply);
        return;
    case HELLO_STALE:
        handle_stale(store, reply);
        return;
    case HELLO_SCHEMA:
        link_fail(store, REDIS_ERROR_FATAL, "the namespace was written by a newer berth: update this host");
        return;
    case HELLO_NONE:
        (void) snprintf(why, sizeof(why), "another program made the key %s: delete it", store->env.none);
        link_fail(store, REDIS_ERROR_FATAL, why);
        return;
    case HELLO_LEASE_DIFFERS:
        handle_refusal(store, reply, true);
        return;
    case HELLO_NAME_TAKEN:
        handle_refusal(store, reply, false);
        return;
    case HELLO_OTHER_NAMESPACE:
        handle_other_namespace(store);
        return;
    case HELLO_GONE:
        session_lose(store, "it is the session of another machine: the runtime directory was copied");
        return;
    case HELLO_AGAIN:
        link_repeat_hello(store);
        return;
    case HELLO_OTHER:
        if (call_handle_common_reply(store, reply, PHASE_HELLO))
            call_bad_reply(store, "hello");
        return;
    }
}

void hello_send(struct store_redis *store) {
    _cleanup_command_ struct redis_command command = {0};

    store->hello.sent = clock_boottime();
    hello_compose(store, &command);
    store->hello.declare_due = false;
    if (call_send(store, &command, hello_on_reply, store) == -ENOMEM)
        link_retry(store, store->env.heartbeat_usec);
}

/* --- changed limits on a live link --- */

static void hello_on_declared(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;
    struct hello_reply hello;

    if (!call_handle_common_reply(store, reply, PHASE_LIVE) || store->link.phase != PHASE_LIVE)
        return;
    if (hello_reply_answer(reply) != HELLO_ACCEPTED) {
        link_resync(store);
    } else if (hello_reply_parse(reply, &hello) < 0) {
        call_bad_reply(store, "hello");
    } else if (!epoch_is(store, hello.epoch)) {
        link_resync(store);
    } else if (apply_common(store, &hello) < 0) {
        link_fail(store, REDIS_ERROR_RETRY, strerror(ENOMEM));
    } else {
        session_note_namespace(store, hello.namespace);
        limits_apply_differing(store, hello.differing, hello.effective_after);
    }
}

static void declare_now(struct store_redis *store) {
    _cleanup_command_ struct redis_command command = {0};

    if (store->stop.is_under_way) /* behind the bye, a hello would begin the session again */
        return;
    hello_compose(store, &command);
    store->hello.declare_due = call_send(store, &command, hello_on_declared, store) == -ENOMEM;
}

void hello_declare_due(struct store_redis *store) {
    if (store->hello.declare_due)
        declare_now(store);
}

void hello_declare(struct store_redis *store) {
    if (store->link.phase == PHASE_LIVE)
        declare_now(store);
    else
        store->hello.declare_due = store->link.phase > PHASE_CONNECTING;
}
