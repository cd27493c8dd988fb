/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "store/redis/store-redis.h"
#include "store/redis/turns/turn-replies.h"

void turns_add_again(struct redis_command *command, const struct claim_turn *turn) {
    if (turn->again_usec == USEC_INFINITY)
        command_add(command, "-");
    else
        command_add_u64(command, turn->again_usec / USEC_PER_MSEC);
    command_add(command, turn->chain[0] != '\0' ? turn->chain : "-");
}

void turns_begin_call(struct store_redis *store, struct redis_command *command, const char *what) {
    call_begin(store, command, REDIS_SCRIPT_TURNED);
    command_add(command, what);
}

/* --- asked for --- */

static void add_pool(struct store_redis *store, struct redis_command *command, const struct demand_ref *demand) {
    command_add(command, demand->pool);
    command_add_u64(command, demand->permits);
    command_add_u64(command, limits_queue_limit(store, demand->pool));
}

void turns_add_request(struct store_redis *store, struct redis_command *command, const struct claim *claim,
                       const char *details) {
    static const char *const overlaps[] = {"skip", "queue", "allow"};

    command_add(command, claim->id);
    command_add(command, details);
    command_add_u64(command, turns_number(claim->turn->due));
    command_add(command, overlaps[claim->turn->overlap]);
    for (size_t i = 0; i < claim->n_demands; i++)
        if (strcmp(claim->demands[i].pool, claim->turn->pool) == 0)
            add_pool(store, command, &claim->demands[i]);
    for (size_t i = 0; i < claim->n_demands; i++)
        if (strcmp(claim->demands[i].pool, claim->turn->pool) != 0)
            add_pool(store, command, &claim->demands[i]);
}

static void refuse(struct claim_entry *entry, const struct store_turn_answer *answer) {
    const struct store_listener *listener = &entry->store->base.listener;
    struct claim *claim = entry->claim;

    if (claim->state != CLAIM_STATE_ASKED)
        return; /* withdrawn: the reply to its release ends it */
    claim_table_remove(entry);
    claim->state = CLAIM_STATE_NONE;
    listener->on_turn_refused(claim, answer, listener->userdata);
}

int turns_handle_reply(struct claim_entry *entry, const struct reply_line *line) {
    struct claim_turn *turn = entry->claim->turn;
    struct turn_reply reply;

    if (turn_reply_parse(line, &reply) < 0)
        return -EBADMSG;
    switch (reply.kind) {
    case TURN_REPLY_REFUSED:
        refuse(entry, &reply.refusal);
        return 1;
    case TURN_REPLY_GRACE:
        entry->sent = false; /* asked again when grace is over: epoch_set_grace() */
        heartbeat_request_resend(entry->store);
        return 1;
    case TURN_REPLY_OURS:
        turn->attempt = reply.attempt;
        (void) snprintf(turn->chain, sizeof(turn->chain), "%s", reply.chain);
        entry->awaits_turn = false;
        claims_deliver_grants(entry->store); /* a push may have granted it before this reply */
        break;
    case TURN_REPLY_OTHER:
        break;
    }
    return 0;
}

void turns_handle_superseded(struct claim_entry *entry, const struct redisReply *reply) {
    const struct store_listener *listener = &entry->store->base.listener;
    struct store_ended_turn turn;

    for (size_t i = 0; superseded_reply_at(reply, i, &turn) == 0; i++)
        listener->on_turn_superseded(entry->claim, &turn, listener->userdata);
}

/* --- committed --- */

static void commit_on_reply(const struct redisReply *reply, void *userdata) {
    struct claim_entry *entry = userdata;
    struct store_redis *store = entry->store;
    const struct store_listener *listener = &store->base.listener;
    struct claim *claim = entry->claim;
    struct reply_line line;
    bool is_ours;

    claims_end_call(entry);
    FAILPOINT("commit-answered");
    if (!call_accept_reply(store, reply, PHASE_LIVE))
        return;
    if (reply_line_read(reply, &line) < 0) {
        call_bad_reply(store, "turned");
        return;
    }
    if (!entry->wants_commit || claim->state != CLAIM_STATE_HELD || entry->lease_lost)
        return;
    if (strcmp(reply_line_field(&line, 0), "waits") == 0)
        return; /* Redis has lost the grant of this host: the sync decides */
    is_ours = strcmp(reply_line_field(&line, 0), "ok") == 0;
    entry->wants_commit = false;
    claim->turn->is_committed = is_ours;
    listener->on_committed(claim, is_ours, listener->userdata);
}

void turns_send_commit(struct claim_entry *entry) {
    struct store_redis *store = entry->store;
    _cleanup_command_ struct redis_command command = {0};

    if (!entry->wants_commit || entry->calls > 0 || entry->claim->state != CLAIM_STATE_HELD)
        return;
    turns_begin_call(store, &command, "commit");
    command_add(&command, entry->claim->id);
    turns_add_again(&command, entry->claim->turn);
    if (call_send(store, &command, commit_on_reply, entry) == 0)
        claims_begin_call(entry);
    FAILPOINT("commit-sent");
}

void turns_commit(struct store *base, struct claim *claim) {
    struct claim_entry *entry = claim->store_data;

    if (!entry)
        return;
    entry->wants_commit = true;
    if (heartbeat_is_ready(store_redis_of(base)))
        turns_send_commit(entry);
}

/* --- ended, given back --- */

static void end_on_reply(const struct redisReply *reply, void *userdata) {
    struct claim_entry *entry = userdata;
    struct store_redis *store = entry->store;
    struct release_reply release;
    struct reply_line line;
    int r;

    claims_end_call(entry);
    FAILPOINT("turn-ended");
    if (!call_accept_reply(store, reply, PHASE_LIVE))
        return;
    r = reply_line_read(reply, &line);
    if (r >= 0)
        r = release_reply_parse(&line, &release);
    if (r >= 0)
        r = claims_handle_released(entry, &release);
    if (r < 0)
        call_bad_reply(store, "turned");
    else if (release.more > 0)
        heartbeat_send_extra(store);
}

void turns_send_end(struct claim_entry *entry) {
    struct store_redis *store = entry->store;
    const struct claim_turn *turn = entry->claim->turn;
    _cleanup_command_ struct redis_command command = {0};

    turns_begin_call(store, &command, entry->back_attempt > 0 ? "back" : "over");
    command_add(&command, entry->claim->id);
    if (entry->back_attempt > 0) {
        command_add_u64(&command, entry->back_attempt);
        command_add_u64(&command, entry->back_usec / USEC_PER_MSEC);
        command_add(&command, turn->chain[0] != '\0' ? turn->chain : "-");
    }
    if (call_send(store, &command, end_on_reply, entry) == 0)
        claims_begin_call(entry);
}

void turns_give_back(struct store *base, struct claim *claim, uint32_t attempt, usec_t delay_usec) {
    struct claim_entry *entry = claim->store_data;

    if (!entry || claim->state == CLAIM_STATE_RELEASING)
        return;
    entry->back_attempt = attempt;
    entry->back_usec = delay_usec;
    claims_release(base, claim);
}

void turns_lose(struct claim_entry *entry) {
    if (!entry->claim->turn)
        return;
    entry->back_attempt = 0;
    entry->claim->turn->attempt = 0;
}

/* --- made and freed --- */

void turns_reset(struct store_redis *store) {
    store->turns.looked = 0;
    turn_questions_reset(store);
}

void turns_init(struct store_redis *store) {
    list_init(&store->turns.questions);
}
