/* SPDX-License-Identifier: MIT */

/* What a claim may get: its places in the queues, parking, and permits that are free. */

#include "tests/model/rules/model-rules.h"

bool rules_wants_too_much(const struct world *w, const struct m_claim *c) {
    for (unsigned p = 0; p < w->setup.n_pools; p++)
        if (c->permits[p] > 0 && c->permits[p] > rules_limit(w, p))
            return true;
    return false;
}

bool rules_may_be_parked(const struct world *w, const struct m_claim *c) {
    bool is_in_the_way = false; /* in a paused pool it blocks no other claim */

    for (unsigned p = 0; p < w->setup.n_pools; p++)
        is_in_the_way = is_in_the_way || (c->permits[p] > 0 && rules_limit(w, p) > 0);
    return is_in_the_way && rules_wants_too_much(w, c);
}

bool rules_stays_parked(const struct world *w, const struct m_claim *c) {
    return c->permits[c->parked_at] > rules_limit(w, c->parked_at);
}

uint32_t rules_held(const struct world *w, unsigned pool, bool ending) {
    uint32_t held = 0;

    for (unsigned i = 0; i < w->n_runs; i++)
        if (w->redis.now.claims[i].state == 'H' &&
            (ending || !w->redis.now.sessions[w->redis.now.claims[i].session].ending))
            held += w->redis.now.claims[i].permits[pool];
    return held;
}

bool rules_is_first(const struct world *w, unsigned claim, bool surely) {
    const struct m_claim *c = &w->redis.now.claims[claim];

    for (unsigned i = 0; i < w->n_runs; i++) {
        const struct m_claim *d = &w->redis.now.claims[i];
        bool share = false;

        if (i == claim || (d->state != 'W' && d->state != 'P') || d->revoked ||
            w->redis.now.sessions[d->session].ending)
            continue;
        if ((int64_t) (d->ticket - d->head - d->given) >= (int64_t) (c->ticket - c->head - c->given) + surely || rules_wants_too_much(w, d))
            continue;
        for (unsigned p = 0; p < w->setup.n_pools;
             p++) /* a parked claim is requeued before its pool grants anything */
            share = share || (c->permits[p] > 0 && d->permits[p] > 0 && (d->state == 'W' || d->parked_at == p));
        if (share)
            return false;
    }
    return true;
}

bool rules_fits(const struct world *w, unsigned claim, uint32_t limit_slack) {
    const struct m_claim *c = &w->redis.now.claims[claim];

    for (unsigned p = 0; p < w->setup.n_pools; p++)
        if (c->permits[p] > 0 && rules_held(w, p, limit_slack == 0) + c->permits[p] > rules_limit(w, p))
            return false;
    return true;
}
