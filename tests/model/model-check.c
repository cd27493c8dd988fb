/* SPDX-License-Identifier: MIT */

/* Checks what must be true at each instant. The processes that run decide, whatever Redis and the hosts
 * believe. */

#include <string.h>

#include "tests/model/model-internal.h"

/* Returns the permits in use by processes within their lease, except those of run `but`. Only runs with
 * `keep` may outlive their lease. */
static uint32_t in_use(const struct world *w, unsigned pool, unsigned but) {
    uint32_t n = 0;

    for (const struct run *r = w->runs; r < w->runs + w->n_runs; r++)
        n += r->id != but && r->process.alive && !r->process.over_lease ? r->permits[pool] : 0;
    return n;
}

/* Returns whether Redis's memory went back under one replication id, and hosts had no time to report it. No
 * host can know then that a grant or an expiry is wrong. */
static bool is_excused(const struct world *w) {
    return w->redis.went_back > 0 && w->now < w->redis.went_back + 3 * w->longest;
}

/* Returns whether a host remembers a number from before the grant and has sent it to Redis. Aged by the
 * host's clock over a grace period, this number exceeds all later ones, unless Redis's clock ran ahead. */
static bool is_remembered(const struct world *w, const struct run *r) {
    if (w->redis.was_ahead)
        return false;
    for (unsigned i = 0; i < w->setup.n_hosts; i++)
        if (w->hosts[i].up && w->hosts[i].phase == HOST_LIVE &&
            strcmp(w->hosts[i].clock.epoch, w->redis.now.epoch) == 0 && w->hosts[i].live_since > 0 &&
            w->hosts[i].live_since < r->grant.at)
            return true;
    return false;
}

/* Compares the token with those of ended processes as well, because what they wrote has their token. */
static void check_token(struct world *w, const struct run *run, uint64_t token) {
    if (is_excused(w))
        return;
    for (const struct run *r = w->runs; r < w->runs + w->n_runs; r++) {
        if (r == run)
            continue;
        if (r->process.alive && !r->process.over_lease && r->token >= token)
            model_fail(w, "R7: c%u gets token %" PRIu64 ", a process of c%u lives with %" PRIu64, run->id, token, r->id, r->token);
        if (r->process.started && r->grant.floor >= token + (w->operators.ended_grace ? w->longest : 0) &&
            is_remembered(w, r))
            model_fail(w, "R7: c%u gets token %" PRIu64 ", a process of c%u had %" PRIu64, run->id, token,
                       r->id, r->grant.floor);
    }
    for (unsigned i = 0; i < w->setup.n_hosts; i++) {
        const struct host *h = &w->hosts[i];

        if (h->up && h->phase == HOST_LIVE && strcmp(h->clock.epoch, w->redis.now.epoch) == 0 &&
            h->clock.max_started >= token)
            model_fail(w, "R7: c%u gets token %" PRIu64 ", h%u has seen %" PRIu64, run->id, token, i,
                       h->clock.max_started);
    }
}

void check_grant(struct world *w, unsigned claim) {
    struct run *run = &w->runs[claim];
    const struct m_claim *c = &w->redis.now.claims[claim];

    if (!rules_is_first(w, claim, false))
        model_fail(w, "R2: c%u was granted though another claim stands before it", claim);
    if (!rules_fits(w, claim, w->setup.tight))
        model_fail(w, "R1: c%u was granted beyond a limit", claim);
    for (unsigned p = 0; p < w->setup.n_pools; p++)
        if (c->permits[p] > 0 && !is_excused(w) && in_use(w, p, run->id) + c->permits[p] > rules_limit(w, p))
            model_fail(w, "R1: c%u was granted %u of pool %s while processes use %u of %u", claim, c->permits[p], model_pool(w, p), in_use(w, p, run->id),
                       rules_limit(w, p));
    check_token(w, run, c->token);
    run->grant.number = ++w->n_grants;
    run->grant.at = w->now;
    run->grant.floor = c->token < world_redis_time(w) ? c->token : world_redis_time(w);
    for (unsigned p = 0; p < w->setup.n_pools; p++)
        run->grant.limit[p] = rules_limit(w, p);
}

void check_session_end(struct world *w, unsigned session) {
    if (is_excused(w))
        return;
    for (unsigned i = 0; i < w->n_runs; i++)
        if (w->redis.now.claims[i].state == 'H' && w->redis.now.claims[i].session == session &&
            w->runs[i].process.alive && !w->runs[i].process.over_lease)
            model_fail(w,
                       "R8: s%u of h%u ends while a process of c%u lives, which would be stopped %" PRIu64
                       " ms later",
                       session, w->runs[i].host, i,
                       usec_sub(w->runs[i].process.guard_deadline, w->now) / USEC_PER_MSEC);
}

/* When the last of these claims was granted, all others were held. So the limit in force at that grant
 * bounds all. */
void check_start(struct world *w, const struct run *run) {
    if (is_excused(w))
        return;
    if (strcmp(w->hosts[run->host].clock.epoch, w->redis.now.epoch) == 0 &&
        w->redis.now.replid == w->redis.replid && w->redis.now.claims[run->id].state != 'H')
        model_fail(w, "R12: a process of c%u begins, but its state in Redis is %c", run->id,
                   w->redis.now.claims[run->id].state ? w->redis.now.claims[run->id].state : '-');
    for (unsigned p = 0; p < w->setup.n_pools; p++) {
        const struct run *last = run;
        uint32_t used = in_use(w, p, RUNS_MAX);

        if (run->permits[p] == 0 || run->process.over_lease)
            continue;
        for (const struct run *r = w->runs; r < w->runs + w->n_runs; r++)
            if (r->process.alive && !r->process.over_lease && r->permits[p] > 0 &&
                r->grant.number > last->grant.number)
                last = r;
        if (used > last->grant.limit[p])
            model_fail(w, "R1: the process of c%u begins: %u of pool %s are in use, the limit was %u",
                       run->id, used, model_pool(w, p), last->grant.limit[p]);
    }
}

/* Hosts with claims find dead sessions within 4/3 of a lease. The two longer pauses of an idle host add half
 * a lease at most. */
void check_heartbeat(struct world *w, const struct host *h) {
    usec_t bound = w->longest + w->longest / 3 + w->longest / 20 + USEC_PER_SEC,
           idle_bound = bound + w->longest / 2;

    if (h->health.since == 0)
        return;
    for (unsigned s = 1; s <= w->n_sessions; s++) {
        const struct m_session *session = &w->redis.now.sessions[s];
        usec_t beat = session->heartbeat_at, since = beat > h->health.since ? beat : h->health.since,
               idle_since = beat > h->health.idle_since ? beat : h->health.idle_since;

        if (session->live && !session->ending && (w->now > since + bound || w->now > idle_since + idle_bound))
            model_fail(w, "R4: s%u sent no heartbeat for %" PRIu64 " ms and still exists", s, usec_sub(w->now, beat) / USEC_PER_MSEC);
    }
}

void check_idle(struct world *w) {
    for (unsigned s = 1; s <= w->n_sessions; s++)
        if (w->redis.now.sessions[s].ending)
            return; /* what it held or waited for goes with the next heartbeats */
    for (unsigned i = 0; i < w->n_runs; i++) {
        const struct m_claim *c = &w->redis.now.claims[i];

        if ((c->state != 'W' && c->state != 'P') || c->revoked)
            continue;
        if (c->state == 'P' && !rules_stays_parked(w, c))
            model_fail(w, "R2: c%u stays parked, but no limit is too low", i);
        else if (c->state == 'W' && rules_is_first(w, i, true) && rules_fits(w, i, 0))
            model_fail(w, "R12: c%u waits, but is first in all its queues and its permits are free", i);
    }
}

void check_data(struct world *w, bool at_rest) {
    _cleanup_reply_ redisReply *look = bridge_inspect(w->bridge);
    bool found[RUNS_MAX] = {false};

    if (!look || look->type != REDIS_REPLY_ARRAY) {
        model_fail(w, "the inspection of Redis failed: %s", look && look->str ? look->str : "");
        return;
    }
    if (*reply_word(reply_at(look, 0)))
        model_fail(w, "R5: %s", reply_word(reply_at(look, 0)));
    if (at_rest && *reply_word(reply_at(look, 1)))
        model_fail(w, "R16: left behind: %s", reply_word(reply_at(look, 1)));
    for (size_t i = 2; reply_at(look, i + 5); i += 6) {
        unsigned c = id_number(reply_word(reply_at(look, i)));
        const struct m_claim *claim = &w->redis.now.claims[c];
        char state = *reply_word(reply_at(look, i + 1)), head[HEAD_SIZE];

        found[c] = true;
        if (claim->state == 0)
            model_fail(w, "R16: c%u is there as %c, must be gone", c, state);
        else if (claim->state != state || id_number(reply_word(reply_at(look, i + 3))) != claim->session ||
                 reply_number(reply_at(look, i + 4)) != claim->ticket ||
                 (state == 'H' && reply_number(reply_at(look, i + 2)) != claim->token) ||
                 strcmp(reply_word(reply_at(look, i + 5)), head_format(claim->head, claim->given, claim->moved, head)) != 0)
            model_fail(w, "c%u is there as %c of %s, must be %c of s%u", c, state, reply_word(reply_at(look, i + 3)), claim->state,
                       claim->session);
    }
    for (unsigned i = 0; i < w->n_runs; i++)
        if (w->redis.now.claims[i].state && !found[i])
            model_fail(w, "c%u is not there, must be %c", i, w->redis.now.claims[i].state);
}
