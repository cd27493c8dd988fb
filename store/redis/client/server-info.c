/* SPDX-License-Identifier: MIT */

#include "store/redis/client/server-info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"

#define REDIS_VERSION_MIN 7
#define REPLICATION_ID_LENGTH 40
#define CLIENTS_NEAR 80 /* percent of maxclients */

/* --- INFO --- */

/* Copies the value of the line "key:value", made printable; "" if there is none. Returns whether there is
 * one. */
static bool find(const char *info, const char *key, char *value, size_t size) {
    size_t length = strlen(key);

    value[0] = '\0';
    for (const char *line = info, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        if (strncmp(line, key, length) != 0 || line[length] != ':')
            continue;
        (void) snprintf(value, size, "%.*s", (int) strcspn(line + length + 1, "\r\n"), line + length + 1);
        text_make_printable(value);
        return true;
    }
    return false;
}

static bool find_large(const char *info, const char *key, uint64_t max, uint64_t *ret) {
    char value[24];

    *ret = 0;
    return find(info, key, value, sizeof(value)) && number_parse(value, max, ret) == 0;
}

static bool find_number(const char *info, const char *key, uint32_t *ret) {
    uint64_t number;
    bool is_known = find_large(info, key, UINT32_MAX, &number);

    *ret = is_known ? (uint32_t) number : 0;
    return is_known;
}

/* Returns whether the line "key:word" is there. */
static bool is_said(const char *info, const char *key, const char *word) {
    char value[16];

    return find(info, key, value, sizeof(value)) && strcmp(value, word) == 0;
}

static bool is_replication_id(const char *text) {
    return strlen(text) == REPLICATION_ID_LENGTH &&
           strspn(text, "0123456789abcdefABCDEF") == REPLICATION_ID_LENGTH;
}

/* Memory, files and clock. */
static void read_data(struct server_info *server, const char *info) {
    (void) find_large(info, "used_memory", INT64_MAX, &server->memory_used);
    (void) find_large(info, "maxmemory", INT64_MAX, &server->memory_max);
    (void) find_large(info, "evicted_keys", INT64_MAX, &server->evicted);
    server->appends = is_said(info, "aof_enabled", "1");
    server->append_failed = is_said(info, "aof_last_write_status", "err") || is_said(info, "aof_last_bgrewrite_status", "err");
    (void) find_large(info, "rdb_changes_since_last_save", INT64_MAX, &server->unsaved);
    (void) find_large(info, "rdb_last_save_time", INT64_MAX / USEC_PER_SEC, &server->saved_sec);
    (void) find_large(info, "server_time_usec", INT64_MAX, &server->time_usec);
}

void server_info_read(struct server_info *ret, const char *info) {
    struct server_info server = {0};
    char value[REPLICATION_ID_LENGTH + 2];
    uint32_t number;

    if (find(info, "valkey_version", server.version, sizeof(server.version)))
        (void) snprintf(server.name, sizeof(server.name), "valkey");
    else if (find(info, "redis_version", server.version, sizeof(server.version)))
        (void) snprintf(server.name, sizeof(server.name), "redis");
    (void) find(info, "role", server.role, sizeof(server.role));
    (void) find(info, "maxmemory_policy", server.policy, sizeof(server.policy));
    (void) find(info, "master_replid", value, sizeof(value));
    server.has_replication_id = is_replication_id(value);
    server.snapshot_failed = is_said(info, "rdb_last_bgsave_status", "err");
    server.is_cluster = find_number(info, "cluster_enabled", &number) && number == 1;
    server.is_standalone = find_number(info, "cluster_enabled", &number) && number == 0;
    server.is_sentinel = is_said(info, "redis_mode", "sentinel");
    server.is_32_bit = is_said(info, "arch_bits", "32");
    server.has_replicas = find_number(info, "connected_slaves", &server.replicas);
    server.has_good_replicas = find_number(info, "min_slaves_good_slaves", &server.good_replicas);
    (void) find_number(info, "connected_clients", &server.clients);
    (void) find_number(info, "maxclients", &server.clients_max);
    read_data(&server, info);
    *ret = server;
}

/* --- whether it can be used --- */

static bool is_too_old(const struct server_info *server, char *why, size_t size) {
    if (strcmp(server->name, "redis") != 0 || server->version[0] < '0' || server->version[0] > '9' ||
        strtoul(server->version, NULL, 10) >= REDIS_VERSION_MIN)
        return false;
    (void) snprintf(why, size, "Redis %s is too old: berth needs Redis 7.0 or Valkey 7.2", server->version);
    return true;
}

bool server_info_is_too_old(const char *info, char *why, size_t size) {
    struct server_info server;

    server_info_read(&server, info);
    return is_too_old(&server, why, size);
}

bool server_info_is_usable(const struct server_info *server, enum redis_error *ret_error, char *why,
                            size_t size) {
    *ret_error = REDIS_ERROR_FATAL;
    if (is_too_old(server, why, size))
        return false;
    /* Also a writable one: its master would miss the writes. In a cluster it names its master (MOVED). */
    if (strcmp(server->role, "slave") == 0 && !server->is_cluster) {
        *ret_error = REDIS_ERROR_REDIRECT;
        (void) snprintf(why, size, "this Redis is a replica (role:slave)");
    } else if (strncmp(server->policy, "allkeys-", strlen("allkeys-")) == 0) {
        (void) snprintf(why, size, "Redis evicts keys (maxmemory-policy is \"%s\"): set it to noeviction",
                        server->policy);
    } else if (server->is_sentinel) {
        (void) snprintf(why, size, "this is a sentinel: name it in sentinels, and no host in url (redis:///0)");
    } else if (server->is_32_bit) {
        (void) snprintf(why, size, "this is a 32-bit build, whose Lua has no integers of 64 bits: use a 64-bit build of Redis");
    } else if (!server->has_replication_id) {
        (void) snprintf(why, size,
                        "Redis does not report its replication id: berth could not notice a failover (INFO "
                        "replication has no master_replid)");
    } else {
        return true;
    }
    return false;
}

/* --- warnings --- */

/* No key of berth expires, so that volatile-* evicts none of them. */
static bool keeps_keys(const char *policy) {
    return strcmp(policy, "noeviction") == 0 || strncmp(policy, "volatile-", strlen("volatile-")) == 0;
}

static bool warns_of_policy(const struct server_info *server, char *text, size_t size) {
    if (keeps_keys(server->policy))
        return false;
    if (server->policy[0])
        (void) snprintf(text, size,
                        "berth does not know the maxmemory-policy \"%s\" of Redis: make sure that it evicts no keys "
                        "without TTL",
                        server->policy);
    else
        (void) snprintf(text, size,
                        "Redis does not report its maxmemory-policy: make sure that it evicts no keys without TTL");
    return true;
}

static bool warns_of_clients(const struct server_info *server, char *text, size_t size) {
    if ((uint64_t) server->clients * 100 <= (uint64_t) server->clients_max * CLIENTS_NEAR ||
        server->clients_max == 0)
        return false;
    (void) snprintf(text, size, "Redis has %" PRIu32 " of %" PRIu32 " clients: each host takes 2",
                    server->clients, server->clients_max);
    return true;
}

bool server_info_warns(const struct server_info *server, enum server_warning warning, char *text,
                        size_t size) {
    switch (warning) {
    case SERVER_WARNING_POLICY:
        return warns_of_policy(server, text, size);
    case SERVER_WARNING_REPLICAS:
        if (server->replicas == 0 || server->has_good_replicas)
            return false;
        (void) snprintf(text, size,
                        "Redis has %" PRIu32 " replica%s and min-replicas-to-write is 0: a partitioned old "
                        "master would go on granting",
                        server->replicas, server->replicas == 1 ? "" : "s");
        return true;
    case SERVER_WARNING_SNAPSHOT:
        if (server->snapshot_failed)
            (void) snprintf(text, size,
                            "the last snapshot of Redis failed: with stop-writes-on-bgsave-error yes (its default) it "
                            "refuses heartbeats, and all jobs are stopped; free its disk or set that to no");
        return server->snapshot_failed;
    case SERVER_WARNING_CLIENTS:
        return warns_of_clients(server, text, size);
    case SERVER_WARNINGS:
        break;
    }
    return false;
}
