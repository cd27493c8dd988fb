/* SPDX-License-Identifier: MIT */
#pragma once

/* Limits of pools: those that this host declares, differences between hosts (R14), and overrides (R10). */

#include <stdbool.h>
#include <stddef.h>

#include "store/redis/client/command.h"
#include "store/redis/replies.h"
#include "store/store.h"

struct store_redis;

struct declared {
    struct store_pool pool;
    uint64_t lowest, highest; /* logged by the last limits-differ; equal: hosts agree */
    uint64_t host_scoped;     /* likewise: sessions that have the pool with scope host */
    char other[NAME_MAX_LENGTH + 1]; /* logged by the last jobs-differ; "": none */
    int64_t decided;          /* of a job's pool: due times up to this one are decided, as far as known; 0: none */
    uint64_t in_force;        /* the lowest limit as last logged in BERTH_LIMITS; UINT64_MAX: never */
};

struct limits {
    struct declared *declared;
    size_t n_declared;
    bool is_drained;                  /* declared with the version */
    struct override_reply *overrides; /* the newest of each pool */
    size_t n_overrides;
    uint64_t overrides_version;
    bool overrides_received;  /* once; changes are news from then on */
    uint64_t effective_after; /* the clock's last number before the declared limits took effect */
};

void limits_done(struct store_redis *store);
/* Replaces what this host declares. 0 or -ENOMEM. */
int limits_declare(struct store_redis *store, const struct store_pool *pools, size_t n, bool drained);
/* Forgets the overrides, because another namespace has others. */
void limits_forget_overrides(struct store_redis *store);
/* NULL: not declared here, or with scope host. */
struct declared *limits_find(struct store_redis *store, const char *pool);
/* Returns whether this host declares the pool of a job that hosts share. */
bool limits_has_job(const struct store_redis *store);
uint32_t limits_queue_limit(const struct store_redis *store, const char *pool);
/* The version of the known override of a pool; 0: none. */
uint64_t limits_override_version(const struct store_redis *store, const char *pool);
/* Adds declared limits and known overrides to a hello. */
void limits_add_to(struct store_redis *store, struct redis_command *command);
/* Returns the limits in force for BERTH_LIMITS, such as "db:4/declared,db:2,net:3/declared"; to be freed.
 * NULL: no memory or no pools. */
char *limits_format(struct store_redis *store);

/* --- replies, checked before --- */

/* 0 or -ENOMEM. */
int limits_apply_overrides(struct store_redis *store, const struct redisReply *list);
/* skip_declared: ignores pools that this host declares, whose limits its own hello has changed. */
void limits_apply_undeclared(struct store_redis *store, const struct redisReply *list, bool skip_declared);
/* Logs limits that differ between hosts, and limits in force that have changed. */
void limits_apply_differing(struct store_redis *store, const struct redisReply *list,
                            uint64_t effective_after);
