/* SPDX-License-Identifier: MIT */

/* Asks the server for INFO, scripts and rights; client/server-info.h decides which server is usable. */

#include <string.h>
#include <syslog.h>

#include "store/redis/store-redis.h"

void handshake_reset(struct store_redis *store) {
    struct handshake *handshake = &store->handshake;

    handshake->info_due = handshake->scripts_due = handshake->probe_due = true;
    handshake->is_subscribed = false;
    handshake->clock = (struct server_clock) {0}; /* the server may be another one */
    handshake->loads = 0;
}

void handshake_reset_scripts(struct store_redis *store) {
    store->handshake.scripts_due = true;
}

static void send_probe(struct store_redis *store);

static void handshake_advance(struct store_redis *store) {
    const struct handshake *handshake = &store->handshake;

    if (store->link.phase != PHASE_CONNECTING || handshake->info_due || handshake->scripts_due ||
        handshake->loads > 0 || !handshake->is_subscribed)
        return;
    if (handshake->probe_due)
        send_probe(store);
    else
        link_begin_session(store);
}

void handshake_note_subscribed(struct store_redis *store) {
    store->handshake.is_subscribed = true;
    handshake_advance(store);
}

/* Returns whether a reply belongs to this attempt. An error fails the link. */
static bool handshake_is_current(struct store_redis *store, const struct redisReply *reply) {
    const char *error = reply_error(reply);

    if (store->link.phase != PHASE_CONNECTING)
        return false;
    if (error)
        link_fail(store, redis_error_class(error), error);
    return !error;
}

/* --- rights --- */

static void handshake_on_probed(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;
    const struct redisReply *refused = reply_at(reply, 1);
    char why[400];
    size_t n = 0, used;

    if (!handshake_is_current(store, reply))
        return;
    if (!reply_is(reply_at(reply, 0), "ok") || reply_count(refused, &n) < 0) {
        call_bad_reply(store, "probe");
        return;
    }
    if (n == 0) {
        store->handshake.probe_due = false;
        handshake_advance(store);
        return;
    }
    used = (size_t) snprintf(why, sizeof(why),
                             "Redis's user may not run all that berth needs (see redis.acl); it lacks");
    for (size_t i = 0; i < n && used < sizeof(why); i++)
        used += (size_t) snprintf(why + used, sizeof(why) - used, "%s %.30s", i > 0 ? "," : "",
                                  reply_text(reply_at(refused, i)) ? reply_text(reply_at(refused, i)) : "?");
    link_fail(store, REDIS_ERROR_FATAL, why);
}

/* Asks whether berthd's user may run all commands of the scripts. */
static void send_probe(struct store_redis *store) {
    _cleanup_command_ struct redis_command command = {0};

    call_begin_plain(store, &command, REDIS_SCRIPT_PROBE);
    if (call_send(store, &command, handshake_on_probed, store) == -ENOMEM)
        link_fail(store, REDIS_ERROR_RETRY, strerror(ENOMEM));
}

/* --- scripts --- */

void handshake_add_script(struct store_redis *store, struct redis_command *command, enum redis_script script) {
    struct handshake *handshake = &store->handshake;
    bool is_text = handshake->is_by_text && (handshake->sent & UINT32_C(1) << script) == 0;

    command_add(command, is_text ? "EVAL" : "EVALSHA");
    command_add(command, is_text ? redis_script_text(script) : redis_script_sha(script));
    if (is_text)
        handshake->sent |= UINT32_C(1) << script;
}

/* Returns whether this reply refuses SCRIPT. Then scripts are sent as text. */
static bool take_refusal(struct store_redis *store, const struct redisReply *reply) {
    const char *error = reply_error(reply);

    if (store->link.phase != PHASE_CONNECTING || !error ||
        (strncmp(error, "NOPERM", strlen("NOPERM")) != 0 &&
         strncmp(error, "ERR unknown", strlen("ERR unknown")) != 0))
        return false;
    store->handshake.is_by_text = true;
    store->handshake.sent = 0;
    return true;
}

static void handshake_on_loaded(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;

    if (!take_refusal(store, reply) && !handshake_is_current(store, reply))
        return;
    store->handshake.loads--;
    handshake_advance(store);
}

/* Loads the scripts that Redis lacks. When thousands of hosts return to a restarted Redis, the first ones
 * load them for all. */
static void handshake_on_scripts(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;

    if (take_refusal(store, reply)) {
        store->handshake.scripts_due = false;
        handshake_advance(store);
        return;
    }
    if (!handshake_is_current(store, reply))
        return;
    store->handshake.is_by_text = false;
    store->handshake.scripts_due = false;
    for (enum redis_script i = 0; i < REDIS_SCRIPTS; i++) {
        const char *load[] = {"SCRIPT", "LOAD", redis_script_text(i)};
        uint64_t exists;

        if (reply_u64(reply_at(reply, i), &exists) < 0) {
            call_bad_reply(store, "SCRIPT EXISTS");
            return;
        }
        if (exists)
            continue;
        if (redis_connection_call(store->link.commands, ELEMENTSOF(load), load, handshake_on_loaded, store) <
            0) {
            link_fail(store, REDIS_ERROR_RETRY, strerror(ENOMEM));
            return;
        }
        store->handshake.loads++;
    }
    handshake_advance(store);
}

static int send_script_exists(struct store_redis *store) {
    const char *scripts[2 + REDIS_SCRIPTS] = {"SCRIPT", "EXISTS"};

    for (enum redis_script i = 0; i < REDIS_SCRIPTS; i++)
        scripts[2 + i] = redis_script_sha(i);
    return redis_connection_call(store->link.commands, ELEMENTSOF(scripts), scripts, handshake_on_scripts,
                                 store);
}

/* --- the server --- */

#define INFO_SECTIONS "server", "clients", "memory", "replication", "persistence", "stats", "cluster"
#define INFO_REFUSED "ERR syntax error" /* by Redis before 7.0, whose INFO takes one section */
#define DAY (UINT64_C(86400) * USEC_PER_SEC)

/* Logs each warning when it begins. That of the clients comes and goes, and is logged once a day. */
static void log_warnings(struct store_redis *store) {
    struct handshake *handshake = &store->handshake;
    usec_t now = clock_boottime();
    char text[SERVER_WHY_SIZE];

    for (enum server_warning i = 0; i < SERVER_WARNINGS; i++) {
        bool is_due = now >= handshake->silent_until[i];

        if (!server_info_warns(&handshake->server, i, text, sizeof(text))) {
            if (i != SERVER_WARNING_CLIENTS)
                handshake->silent_until[i] = 0;
        } else if (is_due) {
            handshake->silent_until[i] = i == SERVER_WARNING_CLIENTS ? usec_add(now, DAY) : USEC_INFINITY;
            journal_log(store_redis_journal(store), LOG_WARNING, "%s", text);
        }
    }
}

/* Applies the reply of INFO. Fails the link and returns false if this Redis cannot be used. */
static bool take_info(struct store_redis *store, const char *info) {
    enum redis_error error;
    char why[SERVER_WHY_SIZE];

    server_info_read(&store->handshake.server, info);
    server_clock_note(&store->handshake.clock, &(struct server_clock_look) {.sent = store->handshake.info_sent,
                                                                            .received = clock_boottime(),
                                                                            .realtime = clock_realtime(),
                                                                            .server = store->handshake.server.time_usec});
    if (!server_info_is_usable(&store->handshake.server, &error, why, sizeof(why))) {
        if (error == REDIS_ERROR_REDIRECT && find_uses_sentinels(store))
            (void) snprintf(why, sizeof(why), "%s is a replica: the sentinels are behind", store->link.address);
        link_fail(store, error, why);
        return false;
    }
    log_warnings(store);
    return true;
}

static void handshake_on_version(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;
    const char *info = reply_text(reply);
    char why[SERVER_WHY_SIZE];

    if (!handshake_is_current(store, reply))
        return;
    if (!info || !server_info_is_too_old(info, why, sizeof(why)))
        (void) snprintf(why, sizeof(why), INFO_REFUSED " (INFO with several sections)");
    link_fail(store, REDIS_ERROR_FATAL, why);
}

static void ask_version(struct store_redis *store) {
    static const char *const info[] = {"INFO", "server"};

    if (redis_connection_call(store->link.commands, ELEMENTSOF(info), info, handshake_on_version, store) < 0)
        link_fail(store, REDIS_ERROR_RETRY, strerror(ENOMEM));
}

static void handshake_on_info(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;
    const char *info = reply_text(reply), *error = reply_error(reply);

    if (store->link.phase == PHASE_CONNECTING && error && strcmp(error, INFO_REFUSED) == 0) {
        ask_version(store);
        return;
    }
    if (!handshake_is_current(store, reply))
        return;
    if (!info) {
        call_bad_reply(store, "INFO");
        return;
    }
    if (!take_info(store, info))
        return;
    store->handshake.info_due = false;
    handshake_advance(store);
}

static int send_info(struct store_redis *store, redis_reply_fn fn) {
    static const char *const info[] = {"INFO", INFO_SECTIONS};

    store->handshake.info_sent = clock_boottime();
    return redis_connection_call(store->link.commands, ELEMENTSOF(info), info, fn, store);
}

void handshake_start(struct store_redis *store) {
    int r = send_info(store, handshake_on_info);

    if (r >= 0)
        r = send_script_exists(store);
    if (r == -ENOMEM)
        link_fail(store, REDIS_ERROR_RETRY, strerror(ENOMEM));
}

void handshake_continue(struct store_redis *store) {
    if (store->handshake.info_due || store->handshake.scripts_due)
        handshake_start(store);
    else
        handshake_advance(store);
}

static void handshake_on_recheck(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;
    const char *info = reply_text(reply);

    if (store->link.phase == PHASE_LIVE && !store->stop.is_under_way && info)
        (void) take_info(store, info);
}

void handshake_recheck(struct store_redis *store) {
    if (store->link.phase == PHASE_LIVE &&
        clock_boottime() >= usec_add(store->handshake.info_sent, store->env.lease_usec))
        (void) send_info(store, handshake_on_recheck); /* a failed call is repeated a lease later */
}
