/* SPDX-License-Identifier: MIT */

/* Turns apart from the calls for claims: open turns, and the reports after a loss of data, of turns and of due times
 * that are decided. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/store-redis.h"
#include "store/redis/turns/turn-replies.h"

#define MARKS_PART 200 /* in one report (R15) */
#define LOOK_PART 100  /* jobs in one look */

/* --- open turns --- */

static bool is_job(const struct store_redis *store, size_t i) {
    return store->limits.declared[i].pool.name[0] == '@';
}

void turns_handle_open(struct store_redis *store, const char *pool, uint64_t due, uint64_t attempt,
                       uint64_t delay_ms, const char *why) {
    const struct store_listener *listener = &store->base.listener;
    struct store_open_turn turn;

    if (open_turn_make(pool, due, attempt, delay_ms, why, &turn) == 0) /* else the next look has it */
        listener->on_turn_open(&store->base, &turn, listener->userdata);
}

static void look_on_reply(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;
    const struct store_listener *listener = &store->base.listener;
    struct store_open_turn turn;

    if (!call_accept_reply(store, reply, PHASE_LIVE))
        return;
    if (look_reply_parse(reply) < 0) {
        call_bad_reply(store, "turned");
        return;
    }
    for (size_t k = 0, n = look_reply_jobs(reply); k < n; k++)
        for (size_t i = 0; look_reply_at(reply, k, i, &turn) == 0; i++)
            listener->on_turn_open(&store->base, &turn, listener->userdata);
}

void turns_look(struct store_redis *store) {
    usec_t now = clock_boottime();
    size_t i = 0, n_declared = store->limits.n_declared;

    if (store->base.state != STORE_STATE_READY ||
        (store->turns.looked > 0 && now - store->turns.looked < store->env.lease_usec))
        return;
    store->turns.looked = now;
    while (i < n_declared) {
        _cleanup_command_ struct redis_command command = {0};
        size_t n = 0;

        turns_begin_call(store, &command, "look");
        for (; i < n_declared && n < LOOK_PART; i++)
            if (is_job(store, i)) {
                command_add(&command, store->limits.declared[i].pool.name);
                n++;
            }
        if (n > 0 && call_send(store, &command, look_on_reply, store) < 0)
            return;
    }
}

/* --- reported --- */

void turns_remember(struct store *base, const char *pool, int64_t due) {
    struct declared *declared = limits_find(store_redis_of(base), pool);

    if (declared && due > declared->decided)
        declared->decided = due;
}

static void report_on_reply(const struct redisReply *reply, void *userdata) {
    (void) call_accept_reply(userdata, reply, PHASE_LIVE);
}

static void report_marks(struct store_redis *store) {
    size_t i = 0, n_declared = store->limits.n_declared;

    while (i < n_declared) {
        _cleanup_command_ struct redis_command command = {0};
        size_t n = 0;

        turns_begin_call(store, &command, "marks");
        for (; i < n_declared && n < MARKS_PART; i++)
            if (store->limits.declared[i].decided > 0) {
                command_add(&command, store->limits.declared[i].pool.name);
                command_add_u64(&command, turns_number(store->limits.declared[i].decided));
                n++;
            }
        if (n > 0)
            (void) call_send(store, &command, report_on_reply, store);
    }
}

static void add_turn(struct redis_command *command, const struct claim *claim) {
    const struct claim_turn *turn = claim->turn;

    command_add(command, claim->id);
    command_add(command, turn->is_committed ? "C" : "T");
    command_add(command, turn->pool);
    command_add_u64(command, turns_number(turn->due));
    command_add_u64(command, turn->attempt > 0 ? turn->attempt : 1);
    turns_add_again(command, turn);
}

static void report_turns(struct store_redis *store) {
    list_foreach (entry, &store->table.entries, struct claim_entry, link) {
        const struct claim_turn *turn = entry->claim->turn;
        _cleanup_command_ struct redis_command command = {0};

        if (!turn || (turn->attempt == 0 && !turn->is_committed) || entry->lease_lost ||
            claim_entry_is_finished(entry) ||
            (entry->claim->state == CLAIM_STATE_RELEASING && entry->back_attempt == 0))
            continue;
        turns_begin_call(store, &command, "report");
        add_turn(&command, entry->claim);
        (void) call_send(store, &command, report_on_reply, store);
    }
}

void turns_report(struct store_redis *store) {
    store->turns.looked = 0;
    if (!store->epoch.in_grace)
        return;
    report_marks(store);
    report_turns(store);
}
