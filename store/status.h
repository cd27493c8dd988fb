/* SPDX-License-Identifier: MIT */
#pragma once

/* What this host knows of its Redis, without a call: from its connection, heartbeats and the last INFO. */

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"

#define STATUS_ADDRESS_SIZE 128
#define STATUS_WARNINGS_MAX 8
#define STATUS_WARNING_SIZE 320

struct redis_status { /* "", 0: not known, unless there is a has_... */
    char address[STATUS_ADDRESS_SIZE]; /* "10.0.0.5:6379", "[::1]:6379", "/run/redis.sock"; also while away */
    char server[16], version[32];      /* "valkey", "8.1.1" */
    char tls_version[16];              /* "TLSv1.3"; "": plain */
    time_t tls_until;                  /* end of the server's certificate */
    char role[16], policy[32];
    bool has_replicas, has_good_replicas;
    uint32_t replicas, good_replicas; /* good: not behind; known where min-replicas-to-write is not 0 */
    uint32_t clients, clients_max;
    bool is_cluster;
    unsigned slot; /* of the namespace, in a cluster */
    unsigned scripts;        /* that are called by their hash */
    bool has_scripts;
    usec_t round_trip_usec;  /* median of the last heartbeats */
    usec_t grace_usec;       /* it may take so long; 0: no grace */
    usec_t failover_margin;  /* of a grace period, beyond a lease */
    char warnings[STATUS_WARNINGS_MAX][STATUS_WARNING_SIZE];
    unsigned n_warnings;
};

struct store;

/* Of a store on Redis. While it is away only the address is known. */
void store_redis_get_status(const struct store *s, struct redis_status *ret);
