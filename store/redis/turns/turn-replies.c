/* SPDX-License-Identifier: MIT */
#include "store/redis/turns/turn-replies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "store/redis/store-redis.h"

/* Returns NULL for a value that is not known. */
static const char *known(const char *text) {
    return *text == '\0' || strcmp(text, "-") == 0 ? NULL : text;
}

static int parse_delay(const struct reply_line *line, enum store_turn turn, struct store_turn_answer *ret) {
    enum { DELAY = 3, ATTEMPT };
    uint64_t ms, attempt;

    if (reply_line_u64(line, DELAY, &ms) < 0)
        return -EBADMSG;
    ret->turn = turn;
    ret->after_usec = ms * USEC_PER_MSEC;
    if (reply_line_u64(line, ATTEMPT, &attempt) == 0 && attempt <= UINT32_MAX)
        ret->attempt = (uint32_t) attempt;
    return 0;
}

static int parse_refusal(const struct reply_line *line, const char *word, struct turn_reply *ret) {
    enum { WHY = 3, RUN, HOST, HOLDER = 4 };
    struct store_turn_answer *refusal = &ret->refusal;

    ret->kind = TURN_REPLY_REFUSED;
    if (strcmp(word, "later") == 0)
        return parse_delay(line, STORE_TURN_LATER, refusal);
    if (strcmp(word, "early") == 0)
        return parse_delay(line, STORE_TURN_EARLY, refusal);
    if (strcmp(word, "taken") == 0) {
        refusal->turn = STORE_TURN_TAKEN;
        refusal->host = known(reply_line_field(line, HOLDER));
        return 0;
    }
    refusal->turn = STORE_TURN_SKIPPED;
    refusal->why = strcmp(reply_line_field(line, WHY), "overlap") == 0 ? "overlap" : "queue-full";
    refusal->run = strcmp(refusal->why, "overlap") == 0 ? known(reply_line_field(line, RUN)) : NULL;
    refusal->host = known(reply_line_field(line, HOST));
    return 0;
}

int turn_reply_parse(const struct reply_line *line, struct turn_reply *ret) {
    enum { WORD, ATTEMPT = 9, CHAIN };
    const char *word = reply_line_field(line, WORD);
    uint64_t attempt;

    *ret = (struct turn_reply) {.kind = TURN_REPLY_OTHER};
    if (strcmp(word, "taken") == 0 || strcmp(word, "skipped") == 0 || strcmp(word, "later") == 0 ||
        strcmp(word, "early") == 0)
        return parse_refusal(line, word, ret);
    if (strcmp(word, "grace") == 0)
        ret->kind = TURN_REPLY_GRACE;
    if (strcmp(word, "ok") != 0)
        return 0;
    ret->kind = TURN_REPLY_OURS;
    ret->chain = reply_line_field(line, CHAIN);
    if (reply_line_u64(line, ATTEMPT, &attempt) < 0 || attempt == 0 || attempt > UINT32_MAX ||
        strlen(ret->chain) >= TURN_CHAIN_SIZE)
        return -EBADMSG;
    ret->attempt = (uint32_t) attempt;
    return 0;
}

int pass_reply_parse(const struct redisReply *reply) {
    struct reply_line line;

    if (reply_line_read(reply, &line) < 0)
        return -EBADMSG;
    if (strcmp(reply_line_field(&line, 0), "missed") == 0)
        return 0;
    return strcmp(reply_line_field(&line, 0), "taken") == 0 ? STORE_E_TAKEN : -EAGAIN;
}

/* --- ended --- */

static int parse_ended(const struct redisReply *turn, struct store_ended_turn *ret) {
    enum { DUE, ATTEMPT, CHAIN };
    uint64_t due, attempt;

    if (reply_copy(reply_at(turn, CHAIN), ret->chain, sizeof(ret->chain)) < 0 ||
        reply_u64(reply_at(turn, DUE), &due) < 0 || due > INT64_MAX / USEC_PER_SEC ||
        reply_u64(reply_at(turn, ATTEMPT), &attempt) < 0 || attempt == 0 || attempt > UINT32_MAX)
        return -EBADMSG;
    ret->due = (int64_t) due;
    ret->attempt = (uint32_t) attempt;
    return 0;
}

int superseded_reply_at(const struct redisReply *reply, size_t i, struct store_ended_turn *ret) {
    const struct redisReply *turn = reply_at(reply, i + 1);

    return turn ? parse_ended(turn, ret) : -ENOENT;
}

static int parse_other_run(const struct redisReply *reply, struct store_other_run *ret) {
    enum { RUN, HOST, HELD };
    uint64_t held;

    if (reply_copy(reply_at(reply, RUN), ret->run, sizeof(ret->run)) < 0 ||
        reply_copy(reply_at(reply, HOST), ret->host, sizeof(ret->host)) < 0 ||
        reply_u64(reply_at(reply, HELD), &held) < 0)
        return -EBADMSG;
    ret->waits = held == 0;
    return 0;
}

/* {'ok', epoch, 0, {{due, attempt, chain}, ...}, {{run, host, held}, ...}} */
int ended_turns_parse(const struct redisReply *reply, struct store_ended_turns *ret) {
    enum { TURNS = 3, RUNS };
    const struct redisReply *turns = reply_at(reply, TURNS), *runs = reply_at(reply, RUNS);
    struct store_ended_turns ended = {};
    struct reply_line line;
    int r = 0;

    if (reply_line_read(reply, &line) == 0)
        return strcmp(reply_line_field(&line, 0), "grace") == 0 ? -EAGAIN : -EBADMSG;
    if (reply_count(turns, &ended.n_turns) < 0 || reply_count(runs, &ended.n_runs) < 0)
        return -EBADMSG;
    ended.turns = calloc(ended.n_turns + 1, sizeof(*ended.turns));
    ended.runs = calloc(ended.n_runs + 1, sizeof(*ended.runs));
    if (!ended.turns || !ended.runs)
        r = -ENOMEM;
    for (size_t i = 0; r == 0 && i < ended.n_turns; i++)
        r = parse_ended(reply_at(turns, i), &ended.turns[i]);
    for (size_t i = 0; r == 0 && i < ended.n_runs; i++)
        r = parse_other_run(reply_at(runs, i), &ended.runs[i]);
    if (r == 0)
        *ret = ended;
    else
        ended_turns_done(&ended);
    return r;
}

void ended_turns_done(struct store_ended_turns *ended) {
    free(ended->turns);
    free(ended->runs);
}

/* --- hosts --- */

static int parse_shared_turn(const struct redisReply *turn, struct store_shared_turn *ret) {
    enum { DUE, ATTEMPT, DELAY };
    struct store_open_turn open;
    uint64_t due, attempt, delay;
    int r = -EBADMSG;

    if (reply_u64(reply_at(turn, DUE), &due) == 0 && reply_u64(reply_at(turn, ATTEMPT), &attempt) == 0 &&
        reply_u64(reply_at(turn, DELAY), &delay) == 0)
        r = open_turn_make(NULL, due, attempt, delay, "retry", &open);
    if (r == 0)
        *ret = (struct store_shared_turn) {.due = open.due, .attempt = open.attempt, .after_usec = open.after_usec};
    return r;
}

/* {'ok', epoch, 0, {host, version, ...}, {{due, attempt, ms}, ...}} */
int shared_parse(const struct redisReply *reply, struct store_shared *ret) {
    enum { HOSTS = 3, TURNS };
    const struct redisReply *hosts = reply_at(reply, HOSTS), *turns = reply_at(reply, TURNS);
    struct store_shared shared = {};
    size_t n_words;
    int r = 0;

    if (reply_count(hosts, &n_words) < 0 || n_words % 2 != 0 || reply_count(turns, &shared.n_turns) < 0)
        return -EBADMSG;
    shared.hosts = calloc(n_words / 2 + 1, sizeof(*shared.hosts));
    shared.turns = calloc(shared.n_turns + 1, sizeof(*shared.turns));
    if (!shared.hosts || !shared.turns)
        r = -ENOMEM;
    for (size_t i = 0; r == 0 && i < n_words; i += 2) {
        const char *version = reply_text(reply_at(hosts, i + 1)), *drained = version ? strstr(version, STORE_REDIS_DRAINED) : NULL;

        if (!version || reply_copy(reply_at(hosts, i), shared.hosts[shared.n_hosts], sizeof(*shared.hosts)) < 0 ||
            !name_is_valid(shared.hosts[shared.n_hosts]))
            r = -EBADMSG;
        else if (!drained || strcmp(drained, STORE_REDIS_DRAINED) != 0)
            shared.n_hosts++;
    }
    for (size_t i = 0; r == 0 && i < shared.n_turns; i++)
        r = parse_shared_turn(reply_at(turns, i), &shared.turns[i]);
    if (r == 0)
        *ret = shared;
    else
        shared_done(&shared);
    return r;
}

void shared_done(struct store_shared *shared) {
    free(shared->hosts);
    free(shared->turns);
}

/* --- open --- */

static const char *parse_why(const char *text) {
    static const char *const reasons[] = {"host-lost", "given-back", "retry"};

    for (size_t i = 0; i < ELEMENTSOF(reasons); i++)
        if (text && strcmp(text, reasons[i]) == 0)
            return reasons[i];
    return NULL;
}

int open_turn_make(const char *pool, uint64_t due, uint64_t attempt, uint64_t delay_ms, const char *why,
                   struct store_open_turn *ret) {
    why = parse_why(why);
    if (!why || due > INT64_MAX / USEC_PER_SEC || attempt == 0 || attempt > UINT32_MAX ||
        delay_ms > UINT64_MAX / USEC_PER_MSEC / 2)
        return -EBADMSG;
    *ret = (struct store_open_turn) {.pool = pool,
                                     .due = (int64_t) due,
                                     .attempt = (uint32_t) attempt,
                                     .after_usec = delay_ms * USEC_PER_MSEC,
                                     .why = why};
    return 0;
}

/* {'ok', epoch, 0, {job, mark, {due, attempt, ms, chain, why}, ...}, ...} */
enum { FIRST_JOB = 3 };
enum { JOB, MARK, FIRST_TURN };

int look_reply_at(const struct redisReply *reply, size_t k, size_t i, struct store_open_turn *ret) {
    enum { DUE, ATTEMPT, DELAY, WHY = 4 };
    const struct redisReply *job = reply_at(reply, FIRST_JOB + k), *turn = reply_at(job, FIRST_TURN + i);
    const char *pool = reply_text(reply_at(job, JOB));
    uint64_t due, attempt, delay;

    if (!turn)
        return -ENOENT;
    if (!pool || reply_u64(reply_at(turn, DUE), &due) < 0 || reply_u64(reply_at(turn, ATTEMPT), &attempt) < 0 ||
        reply_u64(reply_at(turn, DELAY), &delay) < 0)
        return -EBADMSG;
    return open_turn_make(pool, due, attempt, delay, reply_text(reply_at(turn, WHY)), ret);
}

size_t look_reply_jobs(const struct redisReply *reply) {
    size_t n = 0;

    return reply_count(reply, &n) == 0 && n > FIRST_JOB ? n - FIRST_JOB : 0;
}

int look_reply_parse(const struct redisReply *reply) {
    size_t n_jobs = look_reply_jobs(reply);

    for (size_t k = 0; k < n_jobs; k++) {
        struct store_open_turn turn;
        size_t n;
        int r = 0;

        if (reply_count(reply_at(reply, FIRST_JOB + k), &n) < 0 || n < FIRST_TURN ||
            !reply_text(reply_at(reply_at(reply, FIRST_JOB + k), JOB)))
            return -EBADMSG;
        for (size_t i = 0; r == 0; i++)
            r = look_reply_at(reply, k, i, &turn);
        if (r != -ENOENT)
            return r;
    }
    return 0;
}
