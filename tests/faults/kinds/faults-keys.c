/* SPDX-License-Identifier: MIT */

/* Each key of the namespace is deleted while runs hold permits and wait for them (redisson/redisson#3573,
 * dv/redis-semaphore#40). Only `held` is not: without it Redis does not know the holders until hosts
 * report them (tests/faults/test-assumptions.c). */

#include <stdio.h>
#include <string.h>

#include "cli/audit/check.h"
#include "tests/faults/fault.h"
#include "tests/harness/test.h"

static void delete_keys(struct bed *b, struct injection *i, const char *pattern) {
    _cleanup_reply_ redisReply *keys = b->frozen || b->master->pid <= 0 ? NULL : redis_command(b->master, "KEYS %s", pattern);

    for (size_t k = 0; keys && keys->type == REDIS_REPLY_ARRAY && k < keys->elements; k++)
        i->n_hit += redis_number(b->master, "DEL %s", keys->element[k]->str) == 1;
}

/* The fault's name has the key: "deleted-KEY", of pool db where it is a pool's. Where the key has the order
 * of a queue, the order is lost (R2), and no journal has it; the limit holds. A waiting claim without its
 * record in `claims` leaves the queue until its host reports it again. */
static void delete_key(struct bed *b, struct injection *i) {
    static const struct {
        const char *key;
        bool has_order;
    } of_pool[] = {{"queue", true}, {"parked", true}, {"limits", true}};
    const char *name = i->fault->name + strlen("deleted-");
    char pattern[64];

    if (strcmp(name, "claims") == 0)
        cluster.broken |= 1U << AUDIT_OVERTAKEN;
    snprintf(pattern, sizeof(pattern), "berth:{test}:%s", strcmp(name, "claims-of-sessions") == 0 ? "session:*:claims" : name);
    for (size_t k = 0; k < ELEMENTSOF(of_pool); k++)
        if (strcmp(name, of_pool[k].key) == 0) {
            snprintf(pattern, sizeof(pattern), "berth:{test}:pool:db:%s", name);
            cluster.broken |= of_pool[k].has_order ? 1U << AUDIT_OVERTAKEN : 0;
        }
    delete_keys(b, i, pattern);
}

/* Deletes keys of the pattern; then its limit is raised for the waiting claims. */
static void pause_and_delete_keys(struct bed *b, struct injection *i) {
    (void) load_set_limit(&b->load, "tenant/*", 0);
    load_turn(&b->load, clock_boottime() + 300 * USEC_PER_MSEC);
    cluster.broken |= 1U << AUDIT_OVERTAKEN;
    delete_keys(b, i,
                strcmp(i->fault->name, "deleted-keys") == 0 ? "berth:{test}:pool:tenant/?:keys"
                                                            : "berth:{test}:pool:tenant/*:queue");
}

/* Lowers the limit first, so that claims for two permits are parked. */
static void pause_and_delete(struct bed *b, struct injection *i) {
    (void) load_set_limit(&b->load, "db", 1);
    load_turn(&b->load, clock_boottime() + 300 * USEC_PER_MSEC);
    delete_key(b, i);
}

/* Deletes keys in the grace period, before its end settles the pools. */
static void restart_and_delete(struct bed *b, struct injection *i) {
    if (b->frozen || redis_server_restart(b->master, true) < 0)
        return;
    load_turn(&b->load, clock_boottime() + USEC_PER_SEC);
    delete_key(b, i);
}

const struct fault faults_keys[] = {
    {"deleted-meta", "key `meta` deleted", FAULT_REDIS, 0, delete_key, NULL, NULL},
    {"deleted-sessions", "key `sessions` deleted", FAULT_REDIS, 0, delete_key, NULL, NULL},
    {"deleted-heartbeats", "key `heartbeats` deleted", FAULT_REDIS, 0, delete_key, NULL, NULL},
    {"deleted-claims-of-sessions", "keys `session:SESSION:claims` deleted", FAULT_REDIS, 0, delete_key, NULL, NULL},
    {"deleted-claims", "key `claims` deleted", FAULT_REDIS, 0, delete_key, NULL, "redisson/redisson#3573 dv/redis-semaphore#40"},
    {"deleted-queue", "key `queue` of a pool deleted", FAULT_REDIS, 0, delete_key, NULL, "redisson/redisson#3573"},
    {"deleted-limits", "key `limits` of a pool deleted", FAULT_REDIS, 0, delete_key, NULL, NULL},
    {"deleted-parked", "key `parked` of a pool deleted, then its limit raised", FAULT_REDIS, 1200, pause_and_delete, restore_limit, NULL},
    {"deleted-overrides", "key `overrides` deleted, then the limit raised", FAULT_REDIS, 1200, pause_and_delete, restore_limit, NULL},
    {"deleted-queues-of-keys", "keys `queue` of a pattern's keys deleted, then its limit raised",
     FAULT_REDIS, 1200, pause_and_delete_keys, restore_pattern, NULL},
    /* Not in mixes: the function that deletes the rest finds keys by this one. */
    {"deleted-keys", "key `keys` of a pattern deleted, then its limit raised", FAULT_REDIS | FAULT_ALONE,
     1200, pause_and_delete_keys, restore_pattern, NULL},
    {"deleted-unsettled", "key `unsettled` deleted in grace", FAULT_REDIS, 0, restart_and_delete, NULL, NULL},
    {0},
};
