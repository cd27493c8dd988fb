/* SPDX-License-Identifier: MIT */

/* What must happen to claims that are requested, released, or reported again by a sync. */

#include <string.h>

#include "tests/model/rules/model-rules.h"

static void parse_permits(struct effect *e, const char *text, uint32_t permits[static POOLS_MAX]) {
    memset(permits, 0, POOLS_MAX * sizeof(*permits));
    for (; text; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL) {
        unsigned p = model_find_pool(e->w, text);

        if (p < POOLS_MAX)
            permits[p] = (uint32_t) rules_number(strchr(text, ':') + 1);
    }
}

/* Returns whether Redis granted the claim in an epoch before the named one, which its host does not report. */
static bool is_doubtful(const struct effect *e, const struct m_claim *claim) {
    return claim->state == 'H' && claim->token < e->m->began;
}

/* Returns whether a queue of the claim has reached the limit of this host's config, and the first such
 * pool. */
static bool is_queue_full(const struct effect *e, const char **ret_pool) {
    for (size_t i = 7; i + 2 < e->n_args; i += 3) {
        unsigned p = model_find_pool(e->w, e->args[i]);
        uint64_t waiting = 0;

        for (unsigned k = 0; k < e->w->n_runs; k++) {
            const struct m_claim *claim = &e->m->claims[k];

            waiting += !claim->revoked && claim->permits[p] > 0 && (claim->state == 'W' || (claim->state == 'P' && claim->parked_at == p));
        }
        *ret_pool = e->args[i];
        if (waiting >= rules_number(e->args[i + 2]))
            return true;
    }
    return false;
}

/* Claims of a session whose end has begun may be gone, or may still be there. */
static bool is_any_ending(const struct effect *e) {
    for (unsigned s = 1; s <= e->w->n_sessions; s++)
        if (e->m->sessions[s].ending)
            return true;
    return false;
}

/* A claim with nowait is refused if it would wait, any other claim if the queue is full. No claim that has
 * waited before is refused. */
static void check_waiting(struct effect *e, unsigned c, const char *full_pool, const char *state) {
    bool nowait = *e->args[6] == '1', refused = strcmp(e->word, "refused") == 0;
    const char *want = nowait ? "busy" : full_pool ? "queue-full" : "W or P";

    if (is_any_ending(e))
        return;
    if (refused ? strcmp(state, want) != 0 : nowait || full_pool)
        model_fail(e->w, "queue: c%u was answered '%s', must be %s", c, state, want);
    if (refused && !nowait && full_pool && strcmp(reply_word(reply_at(e->reply, 4)), full_pool) != 0)
        model_fail(e->w, "queue: c%u was refused for pool %s, must be %s", c, reply_word(reply_at(e->reply, 4)), full_pool);
}

/* Returns where the requested claims begin in the arguments of a call, each with its description. */
static size_t first_requested(const struct effect *e) {
    return e->script == REDIS_SCRIPT_CLAIM ? 3 : 5;
}

static size_t next_requested(const struct effect *e, size_t at) {
    return e->script == REDIS_SCRIPT_CLAIM ? e->n_args : at + 2;
}

void rules_requested_again(struct effect *e) {
    for (size_t i = first_requested(e); i + 1 < e->n_args; i = next_requested(e, i)) {
        struct m_claim *claim = &e->m->claims[id_number(e->args[i])];

        if (is_doubtful(e, claim))
            claim->state = 0;
        else if (claim->state != 0)
            claim->session = id_number(e->args[0]);
    }
}

/* Returns the claim as requested. Its place is not known yet. */
static struct m_claim make_claim(const struct effect *e) {
    struct m_claim claim = {.state = 'W', .session = id_number(e->args[0])};

    head_parse(e->args[4], &claim.head, &claim.given, &claim.moved);
    for (size_t i = 7; i + 2 < e->n_args; i += 3)
        claim.permits[model_find_pool(e->w, e->args[i])] = (uint32_t) rules_number(e->args[i + 1]);
    return claim;
}

/* e: of a call for one claim. */
static void check_granted_claim(struct effect *e) {
    unsigned c = id_number(e->args[3]);
    struct m_claim *claim = &e->m->claims[c];
    const char *full_pool = NULL;
    const char *state = reply_word(reply_at(e->reply, 3));
    uint64_t ticket = reply_number(reply_at(e->reply, 4)), token = reply_number(reply_at(e->reply, 5)), clock = e->m->clock;
    bool refused = strcmp(e->word, "refused") == 0;

    if (strcmp(e->args[2], e->m->epoch) != 0)
        model_fail(e->w, "R10: c%u was requested in epoch %s, which is over", c, e->args[2]);
    if (claim->state != 0) {
        if (refused || *state != claim->state || ticket != claim->ticket)
            model_fail(e->w, "R6: c%u was requested again and is '%s', it was %c", c, refused ? "refused" : state, claim->state);
        return;
    }
    if (!is_queue_full(e, &full_pool) || strcmp(e->args[5], "0") != 0)
        full_pool = NULL;
    *claim = make_claim(e);
    claim->ticket = ticket;
    e->w->runs[c].requested_at = 0;
    if (refused || *state != 'H')
        check_waiting(e, c, full_pool, state);
    if (refused) {
        claim->ticket = reply_number(reply_at(e->state, 2)); /* the last one drawn, not lower than its own */
        if (!e->m->grace && !e->mismatch && !e->ended && !*reply_word(reply_at(e->state, 4)) && !is_any_ending(e) &&
            rules_is_first(e->w, c, true) && rules_fits(e->w, c, 0))
            model_fail(e->w, "c%u was refused as '%s' though its permits are free", c, state);
        claim->state = 0;
        return;
    }
    if (strcmp(e->args[5], "0") == 0 && ticket <= clock)
        model_fail(e->w, "R7: c%u got ticket %" PRIu64 ", the clock was at %" PRIu64 " before", c, ticket, clock);
    if (strcmp(e->args[5], "0") == 0)
        clock_ticket_drawn(e, c, ticket, *state != 'H');
    if (*state == 'H')
        rules_granted(e, c, reply_number(reply_at(e->reply, 6)), token);
    else if (*state == 'P' && !rules_may_be_parked(e->w, claim))
        model_fail(e->w, "R2: c%u is parked, but no limit is too low, or all its pools are paused", c);
    claim->state = *state;
    if (*state == 'P')
        rules_park(e, claim);
    if (ticket > e->m->clock)
        e->m->clock = ticket;
}

static void give_back(struct effect *e, const char *id, const redisReply *line);

/* session connection epoch claim details due overlap, then its pools. */
void rules_granted_turn(struct effect *e) {
    char *args[16] = {e->args[0], e->args[1], e->args[2], e->args[3], e->args[4], (char *) "0", (char *) "0"};
    struct effect claim = *e;

    memcpy(args + 7, e->args + 7, (e->n_args - 7) * sizeof(*args));
    claim.script = REDIS_SCRIPT_CLAIM;
    claim.args = args;
    check_granted_claim(&claim);
}

void rules_ended_turn(struct effect *e) {
    if (strcmp(e->args[3], "over") != 0 && strcmp(e->args[3], "back") != 0)
        return;
    if (strcmp(e->word, "ok") == 0)
        give_back(e, e->args[4], e->reply);
    else if (e->m->claims[id_number(e->args[4])].session == id_number(e->args[0]))
        e->m->claims[id_number(e->args[4])].state = 0;
}

/* Returns one claim of several as a call of its own. */
static struct effect one_of(const struct effect *e, size_t at, const redisReply *line, char *args[static 10]) {
    struct effect one = *e;

    memcpy(args, e->args, 3 * sizeof(*args));
    args[3] = e->args[at];
    args[4] = e->args[at + 1];
    args[5] = args[6] = (char *) "0";
    args[7] = e->args[3];
    args[8] = (char *) "1";
    args[9] = e->args[4];
    one.script = REDIS_SCRIPT_CLAIM;
    one.args = args;
    one.n_args = 10;
    one.reply = line;
    one.word = reply_word(reply_at(line, 0));
    return one;
}

void rules_request(struct effect *e) {
    size_t n = 0;

    if (e->script == REDIS_SCRIPT_CLAIM) {
        check_granted_claim(e);
        return;
    }
    for (size_t i = first_requested(e); i + 1 < e->n_args; i = next_requested(e, i)) {
        char *args[10];
        struct effect one = one_of(e, i, reply_at(e->reply, n++), args);

        if (strcmp(one.word, "ok") != 0 && strcmp(one.word, "refused") != 0)
            model_fail(e->w, "the line for %s is '%s'", e->args[i], one.word);
        check_granted_claim(&one);
    }
    if (reply_at(e->reply, n))
        model_fail(e->w, "more lines than claims");
}

void rules_requested_in_part(struct effect *e) {
    _cleanup_reply_ redisReply *look = bridge_inspect(e->w->bridge);

    for (size_t i = first_requested(e); e->script == REDIS_SCRIPT_CLAIMS && i + 1 < e->n_args; i = next_requested(e, i)) {
        struct m_claim *claim = &e->m->claims[id_number(e->args[i])];

        for (size_t k = 2; claim->state == 0 && reply_at(look, k + 5); k += 6) {
            char *args[10];
            struct effect one = one_of(e, i, NULL, args);

            if (strcmp(reply_word(reply_at(look, k)), e->args[i]) != 0)
                continue;
            *claim = make_claim(&one);
            claim->ticket = reply_number(reply_at(look, k + 4));
            if (*reply_word(reply_at(look, k + 1)) == 'H')
                model_fail(e->w, "R10: %s was granted by a Redis that is not that of the epoch", e->args[i]);
            if (*reply_word(reply_at(look, k + 1)) == 'P')
                rules_park(e, claim);
        }
    }
}

/* Checks which token the claim held, and until when. The reported clock is the last number drawn before the
 * call. */
static void give_back(struct effect *e, const char *id, const redisReply *line) {
    struct m_claim *claim = &e->m->claims[id_number(id)];
    bool is_there = claim->state != 0 && claim->session == id_number(e->args[0]);
    uint64_t token = is_there && claim->state == 'H' ? claim->token : 0;

    if (strcmp(reply_word(reply_at(line, 0)), "ok") != 0)
        model_fail(e->w, "the release of %s was answered '%s'", id, reply_word(reply_at(line, 0)));
    if (!reply_at(line, 3) != !is_there)
        model_fail(e->w, "R6: %s was released and is reported as %sexisting", id, is_there ? "not " : "");
    else if (is_there && (reply_number(reply_at(line, 3)) != e->m->clock || reply_number(reply_at(line, 4)) != token))
        model_fail(e->w, "%s was held with %" PRIu64 " up to %" PRIu64 ", reported is %" PRIu64 " up to %" PRIu64, id, token, e->m->clock,
                   reply_number(reply_at(line, 4)), reply_number(reply_at(line, 3)));
    if (is_there)
        claim->state = 0;
}

void rules_released_in_part(struct effect *e) {
    bool several = e->script == REDIS_SCRIPT_RELEASES;

    if (e->script == REDIS_SCRIPT_TURNED)
        rules_ended_turn(e);
    for (size_t i = 3; (several || e->script == REDIS_SCRIPT_RELEASE) && i < e->n_args; i++) {
        struct m_claim *claim = &e->m->claims[id_number(e->args[i])];

        if (claim->session == id_number(e->args[0]))
            claim->state = 0;
    }
}

void rules_release(struct effect *e) {
    give_back(e, e->args[3], e->reply);
}

void rules_releases(struct effect *e) {
    size_t n = 0;

    for (size_t i = 3; i < e->n_args; i++, n++)
        give_back(e, e->args[i], reply_at(e->reply, n));
    if (reply_at(e->reply, n))
        model_fail(e->w, "more lines than claims");
}

/* Applies one claim of a sync and the reply about it. */
static void apply_reported(struct effect *e, char **item, const redisReply *answer) {
    unsigned c = id_number(item[0]), s = id_number(e->args[0]);
    struct m_claim *claim = &e->m->claims[c];
    bool was = claim->state != 0;
    const char *state = reply_word(reply_at(answer, 1));
    uint64_t token = reply_number(reply_at(answer, 3)), own, given, moved;
    char head[HEAD_SIZE];

    if (!was && *item[1] == 'A') {
        if (strcmp(state, "-") != 0)
            model_fail(e->w, "R11: c%u is not there, but '%s'", c, state);
        return;
    }
    if (!was) {
        *claim = (struct m_claim) {.ticket = rules_number(item[3])};
        head_parse(item[4], &claim->head, &claim->given, &claim->moved);
        parse_permits(e, item[9], claim->permits);
        e->w->runs[c].requested_at = 0;
    }
    head_parse(item[4], &own, &given, &moved);
    if (moved > claim->moved) {
        claim->given = given;
        claim->moved = moved;
    }
    if (strcmp(reply_word(reply_at(answer, 7)), claim->moved > moved ? head_format(claim->head, claim->given, claim->moved, head) : "") != 0)
        model_fail(e->w, "R11: c%u was reported with %s, and is answered as %s", c, item[4], reply_word(reply_at(answer, 7)));
    claim->session = s;
    claim->unsynced = false;
    if (*item[1] == 'H' || *item[1] == 'K') {
        claim->state = 'H';
        claim->token = *item[1] == 'H' ? rules_number(item[2]) : token;
        if (*item[1] == 'K') {
            if (token <= e->m->clock)
                model_fail(e->w, "R7: c%u got token %" PRIu64 ", the clock was at %" PRIu64 " before", c, token, e->m->clock);
            e->m->clock = e->m->sessions[s].last = token;
        }
    } else if (!was || is_doubtful(e, claim)) {
        claim->state = 'W';
    }
    if (*state != claim->state || (claim->state == 'H' && token != claim->token))
        model_fail(e->w, "R11: c%u is reported as %s with %" PRIu64 ", must be %c with %" PRIu64, c, state, token, claim->state, claim->token);
}

void rules_sync(struct effect *e) {
    unsigned s = id_number(e->args[0]);
    size_t n = 0;

    for (unsigned i = 0; i < e->w->n_runs; i++)
        if (strcmp(e->args[4], "1") == 0 && e->m->claims[i].state && e->m->claims[i].session == s)
            e->m->claims[i].unsynced = true;
    for (size_t i = 6; i + 9 < e->n_args; i += 10)
        apply_reported(e, e->args + i, reply_at(reply_at(e->reply, 6), n++));
    for (unsigned i = 0; strcmp(e->args[5], "1") == 0 && e->more == 0 && i < e->w->n_runs; i++)
        if (e->m->claims[i].unsynced && e->m->claims[i].session == s) {
            e->m->claims[i].state = 0;
            e->m->claims[i].unsynced = false;
        }
}
