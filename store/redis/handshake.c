/* SPDX-License-Identifier: MIT */

/* Which Redis is usable: its role, settings and rights. A version is asked for only by an error that Redis before
 * 7.0 gives: INFO takes one section there, and the scripts (#!lua) do not load. */

#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "store/redis/store-redis.h"

void handshake_reset(struct store_redis *store) {
    struct handshake *handshake = &store->handshake;

    handshake->info_due = handshake->scripts_due = handshake->probe_due = true;
    handshake->is_subscribed = false;
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

    call_begin(store, &command, REDIS_SCRIPT_PROBE);
    if (call_send(store, &command, handshake_on_probed, store) == -ENOMEM)
        link_fail(store, REDIS_ERROR_RETRY, strerror(ENOMEM));
}

/* --- scripts --- */

static void handshake_on_loaded(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;

    if (!handshake_is_current(store, reply))
        return;
    store->handshake.loads--;
    handshake_advance(store);
}

/* Loads the scripts that Redis lacks. When thousands of hosts return to a restarted Redis, the first ones
 * load them for all. */
static void handshake_on_scripts(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;

    if (!handshake_is_current(store, reply))
        return;
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

/* Copies the value of "key:value\r\n" in INFO's text; "" if there is none. */
static void find_info(const char *text, const char *key, char *value, size_t size) {
    size_t length = strlen(key);

    value[0] = '\0';
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, key, length) == 0 && line[length] == ':') {
            (void) snprintf(value, size, "%.*s", (int) strcspn(line + length + 1, "\r\n"),
                            line + length + 1);
            return;
        }
}

/* Fails the link and returns false if this Redis cannot be used. */
static bool is_usable(struct store_redis *store, const char *info) {
    char role[16], policy[40], why[160];

    find_info(info, "role", role, sizeof(role));
    find_info(info, "maxmemory_policy", policy, sizeof(policy));
    if (strcmp(role, "slave") == 0) { /* also a writable replica: its master would miss the writes */
        link_fail(store, REDIS_ERROR_REDIRECT, "this Redis is a replica (role:slave)");
        return false;
    }
    if (strcmp(policy, "noeviction") != 0) {
        (void) snprintf(why, sizeof(why),
                        "Redis evicts keys (maxmemory-policy is \"%s\"): set it to noeviction", policy);
        link_fail(store, REDIS_ERROR_FATAL, why);
        return false;
    }
    return true;
}

static void warn_of_replicas(struct store_redis *store, const char *info) {
    char replicas[24], good[24];

    find_info(info, "connected_slaves", replicas, sizeof(replicas));
    find_info(info, "min_slaves_good_slaves", good, sizeof(good));
    if (strcmp(replicas, "0") != 0 && *replicas && !*good)
        journal_log(store_redis_journal(store), LOG_WARNING,
                    "Redis has %s replica(s) and min-replicas-to-write is 0: a partitioned old master would "
                    "go on granting",
                    replicas);
}

/* Logs a failed snapshot, once until a snapshot succeeds. berthd has no right to read
 * stop-writes-on-bgsave-error itself. */
static void warn_of_snapshot(struct store_redis *store, const char *info) {
    char status[16];
    bool failed;

    find_info(info, "rdb_last_bgsave_status", status, sizeof(status));
    failed = strcmp(status, "err") == 0;
    if (failed && !store->handshake.snapshot_logged)
        journal_log(store_redis_journal(store), LOG_WARNING,
                    "the last snapshot of Redis failed: with stop-writes-on-bgsave-error yes (its default) "
                    "it refuses heartbeats, "
                    "and all jobs are stopped; free its disk or set that to no");
    store->handshake.snapshot_logged = failed;
}

/* --- a Redis that is too old --- */

#define INFO_REFUSED "ERR syntax error"
#define VERSION_NEEDED 7

static void handshake_on_version(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;
    char version[32] = "", why[200];

    if (!handshake_is_current(store, reply))
        return;
    if (reply_text(reply))
        find_info(reply_text(reply), "redis_version", version, sizeof(version));
    if (version[0] == '\0' || strtoul(version, NULL, 10) >= VERSION_NEEDED)
        (void) snprintf(why, sizeof(why), INFO_REFUSED " (INFO memory replication persistence)");
    else
        (void) snprintf(why, sizeof(why),
                        "this Redis is version %s, and berth needs 7.0: upgrade it, or use Valkey 7.2 or later",
                        version);
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
    if (!is_usable(store, info))
        return;
    store->handshake.info_due = false;
    if (!store->link.connected_logged)
        warn_of_replicas(store, info);
    warn_of_snapshot(store, info);
    handshake_advance(store);
}

static int send_info(struct store_redis *store, redis_reply_fn fn) {
    static const char *const info[] = {"INFO", "memory", "replication", "persistence"};

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

static void handshake_on_recheck(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;
    const char *info = reply_text(reply);

    if (store->link.phase == PHASE_LIVE && !store->link.is_stopping && info && is_usable(store, info))
        warn_of_snapshot(store, info);
}

void handshake_recheck(struct store_redis *store) {
    if (store->link.phase == PHASE_LIVE &&
        clock_boottime() >= usec_add(store->handshake.info_sent, store->env.lease_usec))
        (void) send_info(store, handshake_on_recheck); /* a failed call is repeated a lease later */
}
