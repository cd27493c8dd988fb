/* SPDX-License-Identifier: MIT */

/* The calls of a snapshot. Lists of claims and their records are read by plain commands, because a script copies each
 * text twice and takes three to eight times as long. All else is read by inspect.lua. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/operator/inspect-internal.h"
#include "store/redis/store-redis.h"

bool inspect_is_plain(const struct inspection *inspection) {
    bool is_list = inspection->step == INSPECT_HELD || inspection->step == INSPECT_QUEUE || inspection->step == INSPECT_PARKED;

    return is_list && inspection->part != INSPECT_RECHECK;
}

/* --- plain commands --- */

static void add_plain(const struct inspection *inspection, struct redis_command *command) {
    const char *prefix = inspection->store->env.prefix;
    char key[NAME_MAX_LENGTH + POOL_NAME_SIZE + 32];

    batch_flush(inspection->store); /* its command comes first */
    if (inspection->part == INSPECT_RECORDS) {
        (void) snprintf(key, sizeof(key), "%sclaims", prefix);
        command_add(command, "HMGET");
        command_add(command, key);
        inspect_add_unknown(inspection, command);
        return;
    }
    (void) snprintf(key, sizeof(key), "%spool:%s:%s", prefix, inspection->snapshot->pools[inspection->pool].name,
                    inspect_step_word(inspection->step));
    command_add(command, inspection->step == INSPECT_HELD ? "SSCAN" : "ZRANGE");
    command_add(command, key);
    command_add(command, inspection->cursor);
    if (inspection->step == INSPECT_HELD)
        command_add(command, "COUNT");
    command_add_u64(command, inspection->step == INSPECT_HELD ? INSPECT_SLICE_MAX
                                                              : strtoull(inspection->cursor, NULL, 10) + INSPECT_SLICE_MAX - 1);
}

/* --- inspect.lua --- */

static void add_arguments(struct inspection *inspection, struct redis_command *command) {
    if (inspection->step == INSPECT_TIMES) {
        inspect_add_hosts(inspection, command);
        return;
    }
    if (inspection->step != INSPECT_SESSIONS)
        command_add(command, inspection->snapshot->pools[inspection->pool].name);
    if (inspection->part == INSPECT_RECHECK) {
        command_add(command, inspect_step_word(inspection->step));
        inspect_add_unknown(inspection, command);
    } else if (inspection->step == INSPECT_POSITIONS) {
        for (size_t i = inspection->mine_at; i < inspection->n_mine && i < inspection->mine_at + INSPECT_SLICE_MAX; i++)
            command_add(command, inspection->mine[i]);
    } else if (inspection->step != INSPECT_POOL) {
        command_add(command, inspection->cursor);
    }
}

/* Ignores an error of the link: the link fails the inspection, or inspect_send_pending() repeats the call. */
void inspect_send_call(struct inspection *inspection, redis_reply_fn fn) {
    _cleanup_command_ struct redis_command command = {0};

    if (inspect_is_plain(inspection)) {
        add_plain(inspection, &command);
    } else {
        call_begin_plain(inspection->store, &command, REDIS_SCRIPT_INSPECT);
        command_add(&command, inspection->part == INSPECT_RECHECK ? "records" : inspect_step_word(inspection->step));
        add_arguments(inspection, &command);
    }
    inspection->is_under_way = call_send(inspection->store, &command, fn, inspection) >= 0;
}

/* --- what it costs --- */

/* Returns an estimate in µs: 2 for a position, 4 for a session, 10 for a key. */
static usec_t cost_of_script(const struct redisReply *reply) {
    const struct redisReply *item;
    usec_t cost = 10;
    size_t n;

    for (size_t i = 0; (item = reply_at(reply, i)); i++)
        cost += 2 + (reply_count(item, &n) == 0 ? n : 0);
    return cost;
}

usec_t inspect_cost_of(const struct inspection *inspection, const struct redisReply *reply) {
    size_t n = 0;

    if (!inspect_is_plain(inspection))
        return cost_of_script(reply);
    (void) reply_count(inspection->part == INSPECT_LIST && inspection->step == INSPECT_HELD ? reply_at(reply, 1) : reply, &n);
    return 10 + n / 2;
}
