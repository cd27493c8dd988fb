/* SPDX-License-Identifier: MIT */
#pragma once

/* What this host knows of its Redis, without a call: from its connection, heartbeats and the last INFO. */

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/name.h"

#define STATUS_ADDRESS_SIZE 128
#define STATUS_WARNINGS_MAX 8
#define STATUS_WARNING_SIZE 320

struct redis_data { /* of the last INFO, which is a lease old at most */
    uint64_t memory_used, memory_max; /* bytes; max 0: no bound */
    uint64_t evicted;                 /* keys, since Redis started */
    bool snapshot_failed, append_failed, appends;
    uint64_t unsaved; /* changes since the last snapshot */
    usec_t saved;     /* since that was made, or read at the start; USEC_INFINITY: not known */
};

struct redis_clock { /* against the clocks of this host; for people alone */
    bool is_known, has_rate;
    int64_t offset_usec; /* Redis's wall clock minus this host's */
    usec_t error_usec;   /* by which the offset may be wrong */
    double rate_ppm;     /* by which Redis's clock is faster, in millionths */
};

struct redis_standstill { /* a heartbeat was sent late, because berthd did not run */
    usec_t at;     /* boottime of its end; 0: there was none */
    usec_t lasted;
};

struct redis_replicas {
    bool has_count, has_good;
    uint32_t count, good; /* good: not behind; known where min-replicas-to-write is not 0 */
};

struct redis_status { /* "", 0: not known, unless there is a has_... */
    char address[STATUS_ADDRESS_SIZE]; /* "10.0.0.5:6379", "[::1]:6379", "/run/redis.sock"; also while away */
    char master[NAME_MAX_LENGTH + 1];  /* the name by which sentinels know the master; "": they are not asked; also while away */
    usec_t down_after;                 /* time without an answer after which they take it for down */
    char server[16], version[32];      /* "valkey", "8.1.1" */
    char tls_version[16];              /* "TLSv1.3"; "": plain */
    time_t tls_until;                  /* end of the server's certificate */
    char role[16], policy[32];
    struct redis_replicas replicas;
    uint32_t clients, clients_max;
    struct redis_data data;
    struct redis_clock clock;
    bool is_cluster;
    unsigned slot; /* of the namespace, in a cluster */
    unsigned scripts;        /* scripts called by their hash */
    bool has_scripts;
    usec_t round_trip_usec;  /* median of the last heartbeats */
    usec_t grace_usec;       /* longest time until grace ends; 0: no grace */
    usec_t failover_margin;  /* of a grace period, beyond a lease */
    char warnings[STATUS_WARNINGS_MAX][STATUS_WARNING_SIZE];
    unsigned n_warnings;
};

enum status_error { /* classes of errors of Redis and of the connection */
    STATUS_ERROR_RETRY,
    STATUS_ERROR_RELOAD,   /* the scripts are loaded again */
    STATUS_ERROR_REDIRECT, /* another node has the namespace, or will have it */
    STATUS_ERROR_FATAL,
    STATUS_ERRORS
};

struct redis_counts { /* since berthd started */
    uint64_t errors[STATUS_ERRORS];
    struct histogram round_trips; /* of heartbeats; its bounds: status_round_trip_bounds */
    usec_t heartbeat_age_usec;    /* since the last answered one was sent; USEC_INFINITY: none was */
    struct redis_standstill standstill; /* the longest of a day */
    uint64_t view_calls;                /* calls that only look */
    usec_t view_usec;                   /* Redis's time for them, estimated */
};
extern const struct histogram_bounds status_round_trip_bounds;

struct store;

/* Of a store on Redis. While it is away only the address is known. */
void store_redis_get_status(const struct store *s, struct redis_status *ret);
/* Of a store on Redis, also while it is away. */
void store_redis_get_counts(const struct store *s, struct redis_counts *ret);
