/* SPDX-License-Identifier: MIT */
#include "store/redis/replies.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"

/* --- parts of several replies --- */

int override_reply_at(const struct redisReply *list, size_t i, struct override_reply *ret) {
    enum { POOL, VERSION_NUMBER, LIMIT, UNTIL, BY, RESTORE, REASON };
    const struct redisReply *item = reply_at(list, i);
    uint64_t number;

    if (!item)
        return -ENOENT;
    *ret = (struct override_reply) {};
    if (reply_copy(reply_at(item, POOL), ret->pool, sizeof(ret->pool)) < 0 || pool_name_parse(ret->pool) == POOL_NAME_INVALID ||
        reply_u64(reply_at(item, VERSION_NUMBER), &ret->version) < 0 ||
        reply_copy(reply_at(item, LIMIT), ret->limit, sizeof(ret->limit)) < 0 ||
        reply_copy(reply_at(item, UNTIL), ret->until, sizeof(ret->until)) < 0 ||
        reply_copy(reply_at(item, BY), ret->by, sizeof(ret->by)) < 0 ||
        reply_copy(reply_at(item, RESTORE), ret->restore, sizeof(ret->restore)) < 0 ||
        reply_copy(reply_at(item, REASON), ret->reason, sizeof(ret->reason)) < 0 ||
        number_parse(ret->until, NUMBER_MAX, &number) < 0 ||
        (strcmp(ret->limit, "-") != 0 && number_parse(ret->limit, UINT32_MAX, &number) < 0))
        return -EBADMSG;
    return 0;
}

int expired_reply_at(const struct redisReply *list, size_t i, struct expired_reply *ret) {
    enum { SESSION, HOST, CLOCK };
    const struct redisReply *item = reply_at(list, i);

    if (!item)
        return -ENOENT;
    ret->session = reply_text(reply_at(item, SESSION));
    ret->host = reply_text(reply_at(item, HOST));
    return !ret->session || !ret->host ? -EBADMSG : reply_u64(reply_at(item, CLOCK), &ret->clock);
}

int reclaimed_reply_at(const struct redisReply *list, size_t i, struct reclaimed_reply *ret) {
    enum { CLAIM, HOST, NAME, RUN, POOLS, TOKEN, CLOCK };
    const struct redisReply *item = reply_at(list, i);

    if (!item)
        return -ENOENT;
    ret->host = reply_text(reply_at(item, HOST));
    ret->name = reply_text(reply_at(item, NAME));
    ret->run = reply_text(reply_at(item, RUN));
    ret->pools = reply_text(reply_at(item, POOLS));
    if (!ret->host || !ret->name || !ret->run || !ret->pools ||
        reply_u64(reply_at(item, TOKEN), &ret->token) < 0)
        return -EBADMSG;
    return reply_u64(reply_at(item, CLOCK), &ret->clock);
}

int undeclared_reply_at(const struct redisReply *list, size_t i, struct undeclared_reply *ret) {
    enum { POOL, LOWEST, CLOCK };
    const struct redisReply *item = reply_at(list, i);

    if (!item)
        return -ENOENT;
    ret->pool = reply_text(reply_at(item, POOL));
    ret->is_declared = reply_u64(reply_at(item, LOWEST), &ret->lowest) == 0; /* else -1 */
    return ret->pool ? reply_u64(reply_at(item, CLOCK), &ret->clock) : -EBADMSG;
}

int differing_reply_at(const struct redisReply *list, size_t i, struct differing_reply *ret) {
    enum { POOL, LOWEST, HIGHEST, HOST_SCOPED, OTHER };
    const struct redisReply *item = reply_at(list, i);

    if (!item)
        return -ENOENT;
    ret->pool = reply_text(reply_at(item, POOL));
    if (reply_u64(reply_at(item, LOWEST), &ret->lowest) < 0 ||
        reply_u64(reply_at(item, HIGHEST), &ret->highest) < 0 ||
        reply_u64(reply_at(item, HOST_SCOPED), &ret->host_scoped) < 0)
        ret->lowest = ret->highest = ret->host_scoped = 0;
    if (reply_copy(reply_at(item, OTHER), ret->other, sizeof(ret->other)) < 0 || !name_is_valid(ret->other))
        ret->other[0] = '\0';
    return 0;
}

/* Checks that a list is there, and each of its elements. */
#define CHECK_LIST(list, type, at) \
    do { \
        struct type _item; \
        size_t _n; \
        if (reply_count((list), &_n) < 0) \
            return -EBADMSG; \
        for (size_t _i = 0; _i < _n; _i++) \
            if (at((list), _i, &_item) < 0) \
                return -EBADMSG; \
    } while (0)

static int undeclared_check(const struct redisReply *list) {
    CHECK_LIST(list, undeclared_reply, undeclared_reply_at);
    return 0;
}

static int sessions_reply_check(const struct sessions_reply *sessions) {
    CHECK_LIST(sessions->expired, expired_reply, expired_reply_at);
    CHECK_LIST(sessions->reclaimed, reclaimed_reply, reclaimed_reply_at);
    return undeclared_check(sessions->undeclared);
}

static int overrides_check(const struct redisReply *list) {
    CHECK_LIST(list, override_reply, override_reply_at);
    return 0;
}

/* --- heartbeat --- */

int heartbeat_reply_parse(const struct redisReply *reply, struct heartbeat_reply *ret) {
    enum { MORE = 2, GRACE, COUNT, LAST_NUMBER, N_CLAIMS, DRAWN, LATEST };
    enum { LINE, OVERRIDES, EXPIRED, RECLAIMED, UNDECLARED };
    bool has_news = reply_text(reply) == NULL;
    struct reply_line line;
    uint64_t grace;

    *ret = (struct heartbeat_reply) {.has_news = has_news};
    if (reply_line_read(has_news ? reply_at(reply, LINE) : reply, &line) < 0 ||
        reply_line_u64(&line, MORE, &ret->more) < 0 || reply_line_u64(&line, GRACE, &grace) < 0 ||
        reply_line_u64(&line, COUNT, &ret->count) < 0 ||
        reply_line_u64(&line, LAST_NUMBER, &ret->last_number) < 0 ||
        reply_line_u64(&line, N_CLAIMS, &ret->n_claims) < 0 || reply_line_u64(&line, DRAWN, &ret->drawn) < 0)
        return -EBADMSG;
    ret->grace = grace > 0;
    if (!has_news)
        return 0;
    ret->overrides = reply_at(reply, OVERRIDES);
    ret->sessions = (struct sessions_reply) {reply_at(reply, EXPIRED), reply_at(reply, RECLAIMED),
                                            reply_at(reply, UNDECLARED)};
    if (reply_line_u64(&line, LATEST, &ret->latest) < 0 || overrides_check(ret->overrides) < 0)
        return -EBADMSG;
    return sessions_reply_check(&ret->sessions);
}

/* --- hello --- */

enum hello_answer hello_reply_answer(const struct redisReply *reply) {
    static const struct {
        const char *text;
        enum hello_answer answer;
    } answers[] = {
        {"ok", HELLO_ACCEPTED},           {"stale", HELLO_STALE},
        {"schema", HELLO_SCHEMA},         {"none", HELLO_NONE},
        {"name-taken", HELLO_NAME_TAKEN}, {"lease-differs", HELLO_LEASE_DIFFERS},
        {"gone", HELLO_GONE},             {"again", HELLO_AGAIN},
        {"other", HELLO_OTHER_NAMESPACE},
    };

    for (size_t i = 0; i < ELEMENTSOF(answers); i++)
        if (reply_is(reply_at(reply, 0), answers[i].text))
            return answers[i].answer;
    return HELLO_OTHER;
}

int hello_reply_parse(const struct redisReply *reply, struct hello_reply *ret) {
    enum {
        EPOCH = 1,
        GRACE = 3,
        COUNT,
        KNOWN,
        LATEST,
        OVERRIDES,
        DIFFERING,
        UNDECLARED,
        EXPIRED,
        RECLAIMED,
        EFFECTIVE_AFTER,
        NAMESPACE
    };
    uint64_t grace, known;

    *ret = (struct hello_reply) {
        .epoch = reply_text(reply_at(reply, EPOCH)),
        .namespace = reply_text(reply_at(reply, NAMESPACE)),
        .overrides = reply_at(reply, OVERRIDES),
        .differing = reply_at(reply, DIFFERING),
        .sessions = {reply_at(reply, EXPIRED), reply_at(reply, RECLAIMED), reply_at(reply, UNDECLARED)},
    };
    if (!ret->epoch || strlen(ret->epoch) >= REPLY_NUMBER_TEXT_SIZE || !ret->namespace ||
        (*ret->namespace && !id_is_valid(ret->namespace)) || reply_u64(reply_at(reply, GRACE), &grace) < 0 ||
        reply_u64(reply_at(reply, COUNT), &ret->count) < 0 ||
        reply_u64(reply_at(reply, KNOWN), &known) < 0 ||
        reply_u64(reply_at(reply, LATEST), &ret->latest) < 0 ||
        reply_u64(reply_at(reply, EFFECTIVE_AFTER), &ret->effective_after) < 0 ||
        overrides_check(ret->overrides) < 0)
        return -EBADMSG;
    ret->grace = grace > 0;
    ret->is_known = known > 0;
    return sessions_reply_check(&ret->sessions);
}

int refusal_reply_parse(const struct redisReply *reply, struct refusal_reply *ret) {
    enum { EPOCH = 1, COUNT = 3, LEASE, LATEST, EXPIRED, RECLAIMED, UNDECLARED };

    *ret = (struct refusal_reply) {
        .epoch = reply_text(reply_at(reply, EPOCH)),
        .sessions = {reply_at(reply, EXPIRED), reply_at(reply, RECLAIMED), reply_at(reply, UNDECLARED)},
    };
    if (!ret->epoch || strlen(ret->epoch) >= REPLY_NUMBER_TEXT_SIZE ||
        reply_u64(reply_at(reply, COUNT), &ret->count) < 0 ||
        reply_u64(reply_at(reply, LEASE), &ret->lease_usec) < 0 ||
        reply_u64(reply_at(reply, LATEST), &ret->latest) < 0)
        return -EBADMSG;
    return sessions_reply_check(&ret->sessions);
}

int stale_reply_parse(const struct redisReply *reply, uint64_t *ret_connection) {
    enum { CONNECTION = 1 };

    return reply_u64(reply_at(reply, CONNECTION), ret_connection);
}

/* --- sync --- */

/* "OWN+GIVEN@NUMBER", or "". */
static int moved_parse(const char *text, struct synced_claim_reply *ret) {
    char copy[72], *given, *number;

    if (!text || !*text)
        return 0;
    if (snprintf(copy, sizeof(copy), "%s", text) >= (int) sizeof(copy) || !(given = strchr(copy, '+')) ||
        !(number = strchr(given, '@')))
        return -EBADMSG;
    *given++ = *number++ = '\0';
    if (reply_number_parse(given, &ret->given_usec) < 0)
        return -EBADMSG;
    return reply_number_parse(number, &ret->moved);
}

int synced_claim_reply_at(const struct redisReply *list, size_t i, struct synced_claim_reply *ret) {
    enum { ID, STATE, TICKET, TOKEN, POSITION, SINCE, REASON, HEAD_START };
    const struct redisReply *item = reply_at(list, i);
    const char *state = reply_text(reply_at(item, STATE)), *reason = reply_text(reply_at(item, REASON));

    if (!item)
        return -ENOENT;
    *ret = (struct synced_claim_reply) {.id = reply_text(reply_at(item, ID))};
    if (!ret->id || !state || !reason || reply_u64(reply_at(item, TICKET), &ret->ticket) < 0 ||
        reply_u64(reply_at(item, TOKEN), &ret->token) < 0 ||
        reply_u32(reply_at(item, POSITION), &ret->position) < 0 ||
        reply_u64(reply_at(item, SINCE), &ret->since_realtime) < 0)
        return -EBADMSG;
    ret->state = strlen(state) == 1 ? *state : 'W';
    ret->is_revoked = *reason != '\0';
    return moved_parse(reply_text(reply_at(item, HEAD_START)), ret);
}

int overcommitted_reply_at(const struct redisReply *list, size_t i, struct overcommitted_reply *ret) {
    enum { POOL, USED, LIMIT };
    const struct redisReply *item = reply_at(list, i);

    if (!item)
        return -ENOENT;
    ret->pool = reply_text(reply_at(item, POOL));
    if (!ret->pool || reply_u64(reply_at(item, USED), &ret->used) < 0)
        return -EBADMSG;
    return reply_u64(reply_at(item, LIMIT), &ret->limit);
}

int sync_reply_parse(const struct redisReply *reply, struct sync_reply *ret) {
    enum { MORE = 2, GRACE, LAST_NUMBER, DRAWN, CLAIMS, OVERCOMMITTED };
    uint64_t grace;

    *ret = (struct sync_reply) {.claims = reply_at(reply, CLAIMS),
                               .overcommitted = reply_at(reply, OVERCOMMITTED)};
    if (reply_u64(reply_at(reply, MORE), &ret->more) < 0 || reply_u64(reply_at(reply, GRACE), &grace) < 0 ||
        reply_u64(reply_at(reply, LAST_NUMBER), &ret->last_number) < 0 ||
        reply_u64(reply_at(reply, DRAWN), &ret->drawn) < 0)
        return -EBADMSG;
    CHECK_LIST(ret->claims, synced_claim_reply, synced_claim_reply_at);
    CHECK_LIST(ret->overcommitted, overcommitted_reply, overcommitted_reply_at);
    return 0;
}

/* --- claims --- */

int claim_reply_parse(const struct reply_line *line, struct claim_reply *ret) {
    enum { ANSWER, MORE = 2, STATE, TICKET, TOKEN, PREVIOUS, POSITION, SINCE };
    enum { REFUSAL = 3, POOL };
    uint64_t position;

    if (reply_line_u64(line, MORE, &ret->more) < 0)
        return -EBADMSG;
    ret->refusal = NULL;
    if (strcmp(reply_line_field(line, ANSWER), "refused") == 0) {
        ret->refusal = reply_line_field(line, REFUSAL);
        ret->pool = reply_line_field(line, POOL);
        return 0;
    }
    if (reply_line_u64(line, TICKET, &ret->ticket) < 0 || reply_line_u64(line, TOKEN, &ret->token) < 0 ||
        reply_line_u64(line, PREVIOUS, &ret->previous) < 0 ||
        reply_line_u64(line, POSITION, &position) < 0 || position > UINT32_MAX ||
        reply_line_u64(line, SINCE, &ret->since_realtime) < 0)
        return -EBADMSG;
    ret->state = strlen(reply_line_field(line, STATE)) == 1 ? *reply_line_field(line, STATE) : 'W';
    ret->position = (uint32_t) position;
    return 0;
}

int release_reply_parse(const struct reply_line *line, struct release_reply *ret) {
    enum { MORE = 2, CLOCK, TOKEN };

    *ret = (struct release_reply) {};
    if (reply_line_u64(line, MORE, &ret->more) < 0)
        return -EBADMSG;
    ret->was_there = reply_line_u64(line, CLOCK, &ret->clock) == 0;
    if (ret->was_there && (reply_line_u64(line, TOKEN, &ret->token) < 0 || ret->clock < ret->token))
        return -EBADMSG;
    return 0;
}

/* --- the rest --- */

int verify_reply_parse(const struct redisReply *reply, struct verify_reply *ret) {
    enum { MORE = 2, ODD };
    struct reply_line line;
    uint64_t odd;

    if (reply_line_read(reply, &line) < 0 || reply_line_u64(&line, MORE, &ret->more) < 0 ||
        reply_line_u64(&line, ODD, &odd) < 0)
        return -EBADMSG;
    ret->is_incomplete = odd > 0;
    return 0;
}

bool verify_reply_is_broken(const struct redisReply *reply) {
    enum { REASON = 2 };

    return reply_is(reply_at(reply, REASON), "broken");
}

int bye_reply_parse(const struct redisReply *reply, struct bye_reply *ret) {
    enum { ANSWER, MORE = 2, UNDECLARED };

    *ret = (struct bye_reply) {.undeclared = reply_at(reply, UNDECLARED)};
    if (!reply_is(reply_at(reply, ANSWER), "ok") || reply_u64(reply_at(reply, MORE), &ret->more) < 0)
        return -EBADMSG;
    return undeclared_check(ret->undeclared);
}
