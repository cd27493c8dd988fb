/* SPDX-License-Identifier: MIT */
#pragma once

/* What a server reports in INFO, whether berth can use it, and which of its settings are risky. No input or output; the
 * text may be anything. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/redis/client/reply.h"

#define SERVER_NAME_SIZE 16
#define SERVER_VERSION_SIZE 32
#define SERVER_WHY_SIZE 256

struct server_info { /* "", 0: not known; texts are printable */
    char name[SERVER_NAME_SIZE]; /* "redis", "valkey" */
    char version[SERVER_VERSION_SIZE];
    char role[16];   /* "master", "slave" */
    char policy[32]; /* maxmemory-policy */
    bool has_replication_id, snapshot_failed;
    bool is_cluster, is_standalone; /* by INFO; neither: unknown */
    bool is_sentinel;
    bool is_32_bit;
    bool has_replicas, has_good_replicas; /* whether the numbers are known */
    uint32_t replicas;
    uint32_t good_replicas; /* replicas that are not behind; known where min-replicas-to-write is not 0 */
    uint32_t clients, clients_max;
    uint64_t memory_used, memory_max; /* bytes; max 0: no bound */
    uint64_t evicted;                 /* keys, since the server started */
    bool append_failed, appends;      /* to the append-only file */
    uint64_t unsaved;                 /* changes since the last snapshot */
    uint64_t saved_sec;               /* when that was made or read, in seconds since 1970 */
    uint64_t time_usec;               /* the server's clock, in µs since 1970 */
};

/* Reads the text of INFO. Of several lines with one name the first counts. */
void server_info_read(struct server_info *ret, const char *info);
/* Returns whether berth can use the server. Otherwise sets why, for people, and *ret_error, the reaction. */
bool server_info_is_usable(const struct server_info *server, enum redis_error *ret_error, char *why,
                           size_t size);
/* Returns whether the version is too old, also from an INFO with nothing else. */
bool server_info_is_too_old(const char *info, char *why, size_t size);

/* Settings that an administrator should change, although berth goes on. */
enum server_warning {
    SERVER_WARNING_POLICY,   /* keys may be evicted */
    SERVER_WARNING_REPLICAS, /* an old master goes on alone */
    SERVER_WARNING_SNAPSHOT, /* writes may be refused */
    SERVER_WARNING_CLIENTS,  /* clients may be refused */
    SERVER_WARNINGS
};
/* Returns whether there is such a warning, and writes its text. */
bool server_info_warns(const struct server_info *server, enum server_warning warning, char *text,
                       size_t size);
