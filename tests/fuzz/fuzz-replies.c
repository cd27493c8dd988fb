/* SPDX-License-Identifier: MIT */

/* The parsers of replies: whatever Redis sends is rejected, or all its elements can be read. fuzz-redis.c
 * goes through the store. */

#include <errno.h>
#include <hiredis/hiredis.h>
#include <string.h>

#include "store/redis/client/reply-bounds.h"
#include "store/redis/replies.h"
#include "store/redis/turns/turn-replies.h"
#include "tests/fuzz/fuzz.h"

/* Reads a list that a parser has accepted, to its end. */
#define READ_ALL(list, type, at) \
    do { \
        struct type _item; \
        size_t _i = 0; \
        int _r; \
        while ((_r = at((list), _i, &_item)) == 0) \
            _i++; \
        FUZZ_ASSERT(_r == -ENOENT); \
    } while (0)

static void read_sessions(const struct sessions_reply *sessions) {
    READ_ALL(sessions->expired, expired_reply, expired_reply_at);
    READ_ALL(sessions->reclaimed, reclaimed_reply, reclaimed_reply_at);
    READ_ALL(sessions->undeclared, undeclared_reply, undeclared_reply_at);
}

static void parse_session_replies(const redisReply *reply) {
    struct heartbeat_reply heartbeat;
    struct hello_reply hello;
    struct refusal_reply refusal;
    struct bye_reply bye;
    uint64_t connection;

    if (heartbeat_reply_parse(reply, &heartbeat) == 0) {
        READ_ALL(heartbeat.overrides, override_reply, override_reply_at);
        read_sessions(&heartbeat.sessions);
    }
    (void) hello_reply_answer(reply);
    if (hello_reply_parse(reply, &hello) == 0) {
        READ_ALL(hello.overrides, override_reply, override_reply_at);
        READ_ALL(hello.differing, differing_reply, differing_reply_at);
        read_sessions(&hello.sessions);
    }
    if (refusal_reply_parse(reply, &refusal) == 0)
        read_sessions(&refusal.sessions);
    if (bye_reply_parse(reply, &bye) == 0)
        READ_ALL(bye.undeclared, undeclared_reply, undeclared_reply_at);
    (void) stale_reply_parse(reply, &connection);
}

static void parse_claim_replies(const redisReply *reply) {
    struct sync_reply sync;
    struct claim_reply claim;
    struct release_reply release;
    struct verify_reply verify;
    struct reply_line line;

    if (sync_reply_parse(reply, &sync) == 0) {
        READ_ALL(sync.claims, synced_claim_reply, synced_claim_reply_at);
        READ_ALL(sync.overcommitted, overcommitted_reply, overcommitted_reply_at);
    }
    if (reply_line_read(reply, &line) == 0) {
        if (claim_reply_parse(&line, &claim) == 0)
            FUZZ_ASSERT(!claim.refusal || claim.pool);
        if (release_reply_parse(&line, &release) == 0)
            FUZZ_ASSERT(release.clock >= release.token);
    }
    (void) verify_reply_is_broken(reply);
    (void) verify_reply_parse(reply, &verify);
}

static void parse_superseded(const redisReply *reply) {
    struct store_ended_turn turn;

    for (size_t i = 0; superseded_reply_at(reply, i, &turn) == 0; i++)
        FUZZ_ASSERT(turn.attempt > 0 && strlen(turn.chain) < TURN_CHAIN_SIZE);
}

static void parse_ended(const redisReply *reply) {
    struct store_ended_turns ended;

    if (ended_turns_parse(reply, &ended) < 0)
        return;
    for (size_t i = 0; i < ended.n_turns; i++)
        FUZZ_ASSERT(ended.turns[i].attempt > 0);
    for (size_t i = 0; i < ended.n_runs; i++)
        FUZZ_ASSERT(strlen(ended.runs[i].run) < ID_TEXT_SIZE && strlen(ended.runs[i].host) <= NAME_MAX_LENGTH);
    ended_turns_done(&ended);
}

static void parse_shared(const redisReply *reply) {
    struct store_shared shared;

    if (shared_parse(reply, &shared) < 0)
        return;
    for (size_t i = 0; i < shared.n_hosts; i++)
        FUZZ_ASSERT(name_is_valid(shared.hosts[i]));
    for (size_t i = 0; i < shared.n_turns; i++)
        FUZZ_ASSERT(shared.turns[i].attempt > 0);
    shared_done(&shared);
}

static void parse_turn_replies(const redisReply *reply) {
    struct turn_reply turn;
    struct reply_line line;

    if (reply_line_read(reply, &line) == 0 && turn_reply_parse(&line, &turn) == 0 && turn.kind == TURN_REPLY_OURS)
        FUZZ_ASSERT(turn.attempt > 0 && strlen(turn.chain) < TURN_CHAIN_SIZE);
    (void) pass_reply_parse(reply);
    parse_superseded(reply);
    parse_ended(reply);
    parse_shared(reply);
    if (look_reply_parse(reply) < 0)
        return;
    for (size_t k = 0; k < look_reply_jobs(reply); k++) {
        struct store_open_turn open;
        size_t i = 0;
        int r;

        while ((r = look_reply_at(reply, k, i, &open)) == 0)
            i++;
        FUZZ_ASSERT(r == -ENOENT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    redisReader *reader = redisReaderCreate();
    struct redis_meter meter = {.bounds = &redis_bounds_reply};
    void *reply = NULL;

    redis_meter_attach(&meter, reader);
    if (redisReaderFeed(reader, (const char *) data, size) == REDIS_OK)
        while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
            parse_session_replies(reply);
            parse_claim_replies(reply);
            parse_turn_replies(reply);
            freeReplyObject(reply);
            reply = NULL;
        }
    redisReaderFree(reader);
    return 0;
}
