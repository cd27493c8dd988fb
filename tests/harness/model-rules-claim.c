/* SPDX-License-Identifier: MIT */

/* What must become of claims: asked for, given back, revoked, told anew by a sync. */

#include <string.h>

#include "tests/harness/model-rules.h"

static void parse_permits(struct effect *e, const char *text, uint32_t permits[static POOLS_MAX]) {
    memset(permits, 0, POOLS_MAX * sizeof(*permits));
    for (; text; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL)
        if (*text >= 'a' && *text < 'a' + (char) e->w->n_pools)
            permits[*text - 'a'] = (uint32_t) rules_number(text + 2);
}

/* Held by the word of an earlier epoch alone: its host does not say so. */
static bool is_doubtful(const struct effect *e, const struct m_claim *claim) {
    return claim->state == 'H' && claim->token < rules_number(e->m->epoch);
}

/* Whether the queue of a pool that it asks for has as many as this host's config lets wait; the first such pool. */
static bool is_queue_full(const struct effect *e, char *ret_pool) {
    for (size_t i = 7; i + 2 < e->n_args; i += 3) {
        unsigned p = (unsigned) (e->args[i][0] - 'a');
        uint64_t waiting = 0;

        for (unsigned k = 0; k < e->w->n_runs; k++) {
            const struct m_claim *claim = &e->m->claims[k];

            waiting += !claim->revoked && claim->permits[p] > 0 && (claim->state == 'W' || (claim->state == 'P' && claim->parked_at == p));
        }
        *ret_pool = (char) ('a' + p);
        if (waiting >= rules_number(e->args[i + 2]))
            return true;
    }
    return false;
}

/* Who does not want to wait is refused if he would have to; who would, if too many wait already; not who has waited before. */
static void judge_waiting(struct effect *e, unsigned c, char full_pool, const char *state) {
    bool nowait = *e->args[6] == '1', refused = strcmp(e->word, "refused") == 0;
    const char *want = nowait ? "busy" : full_pool ? "queue-full" : "W or P";

    for (unsigned s = 1; s <= e->w->n_sessions; s++)
        if (e->m->sessions[s].ending)
            return; /* those of its claims that were in the way may be gone */
    if (refused ? strcmp(state, want) != 0 : nowait || full_pool)
        model_fail(e->w, "queue: c%u was answered '%s', must be %s", c, state, want);
    if (refused && !nowait && full_pool && *reply_word(reply_at(e->reply, 4)) != full_pool)
        model_fail(e->w, "queue: c%u was refused for pool %s, must be %c", c, reply_word(reply_at(e->reply, 4)), full_pool);
}

void rules_claim(struct effect *e) {
    unsigned c = id_number(e->args[3]);
    struct m_claim *claim = &e->m->claims[c];
    char full_pool = '\0';
    const char *state = reply_word(reply_at(e->reply, 3));
    uint64_t ticket = reply_number(reply_at(e->reply, 4)), token = reply_number(reply_at(e->reply, 5)), clock = e->m->clock;
    bool refused = strcmp(e->word, "refused") == 0;

    if (claim->state != 0 && !is_doubtful(e, claim)) {
        if (refused || *state != claim->state || ticket != claim->ticket)
            model_fail(e->w, "R6: c%u was asked for again and is '%s', it was %c", c, refused ? "refused" : state, claim->state);
        claim->session = id_number(e->args[0]);
        return;
    }
    claim->state = 0;
    if (!is_queue_full(e, &full_pool) || strcmp(e->args[5], "0") != 0)
        full_pool = '\0';
    *claim = (struct m_claim) {.state = 'W', .session = id_number(e->args[0]), .head = rules_number(e->args[4]), .ticket = ticket};
    for (size_t i = 7; i + 2 < e->n_args; i += 3)
        claim->permits[e->args[i][0] - 'a'] = (uint32_t) rules_number(e->args[i + 1]);
    if (refused || *state != 'H')
        judge_waiting(e, c, full_pool, state);
    if (refused) {
        claim->ticket = clock + 1 > world_redis_time(e->w) ? clock + 1 : world_redis_time(e->w);
        if (!e->m->grace && !e->mismatch && !*reply_word(reply_at(e->state, 4)) &&
            rules_is_first(e->w, c) && rules_fits(e->w, c, 0))
            model_fail(e->w, "c%u was refused as '%s' though all is free", c, state);
        claim->state = 0;
        return;
    }
    if (strcmp(e->args[5], "0") == 0 && ticket <= clock)
        model_fail(e->w, "R7: c%u got ticket %" PRIu64 ", the clock was at %" PRIu64 " before", c, ticket, clock);
    if (*state == 'H')
        rules_granted(e, c, reply_number(reply_at(e->reply, 6)), token);
    else if ((*state == 'P') != rules_wants_too_much(e->w, claim))
        model_fail(e->w, "R2: c%u %s", c, *state == 'P' ? "is parked, but no limit is too low" : "waits, but a limit is too low");
    claim->state = *state;
    if (*state == 'P')
        rules_park(e, claim);
}

void rules_release(struct effect *e) {
    struct m_claim *claim = &e->m->claims[id_number(e->args[3])];

    if (claim->session == id_number(e->args[0]))
        claim->state = 0;
}

/* One claim of a sync and what was answered about it. */
static void apply_told(struct effect *e, char **item, const redisReply *answer) {
    unsigned c = id_number(item[0]), s = id_number(e->args[0]);
    struct m_claim *claim = &e->m->claims[c];
    bool was = claim->state != 0;
    const char *state = reply_word(reply_at(answer, 1));
    uint64_t token = reply_number(reply_at(answer, 3));

    if (!was && *item[1] == 'A') {
        if (strcmp(state, "-") != 0)
            model_fail(e->w, "R11: c%u is not there, but '%s'", c, state);
        return;
    }
    if (!was) {
        *claim = (struct m_claim) {.head = rules_number(item[4]), .ticket = rules_number(item[3])};
        parse_permits(e, item[9], claim->permits);
    }
    claim->session = s;
    claim->unnamed = false;
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
        if (rules_wants_too_much(e->w, claim))
            rules_park(e, claim);
    }
    if (*state != claim->state || (claim->state == 'H' && token != claim->token))
        model_fail(e->w, "R11: c%u is told as %s with %" PRIu64 ", must be %c with %" PRIu64, c, state, token, claim->state, claim->token);
}

void rules_sync(struct effect *e) {
    unsigned s = id_number(e->args[0]);
    size_t n = 0;

    for (unsigned i = 0; i < e->w->n_runs; i++)
        if (strcmp(e->args[4], "1") == 0 && e->m->claims[i].state && e->m->claims[i].session == s)
            e->m->claims[i].unnamed = true;
    for (size_t i = 6; i + 9 < e->n_args; i += 10)
        apply_told(e, e->args + i, reply_at(reply_at(e->reply, 6), n++));
    for (unsigned i = 0; strcmp(e->args[5], "1") == 0 && e->more == 0 && i < e->w->n_runs; i++)
        if (e->m->claims[i].unnamed && e->m->claims[i].session == s) {
            e->m->claims[i].state = 0;
            e->m->claims[i].unnamed = false;
        }
}

void rules_revoke(struct effect *e) {
    struct m_claim *claim = &e->m->claims[id_number(e->args[3])];

    if ((strcmp(e->word, "unknown") == 0) != (claim->state == 0))
        model_fail(e->w, "revoke of %s was answered '%s'", e->args[3], e->word);
    if (claim->state != 0 && claim->state != 'H' && !claim->revoked)
        claim->revoked = true;
}
