/* SPDX-License-Identifier: MIT */

/* Checks the clock from which numbers are drawn: tickets keep the pace of time (R2), and the clock does not run away from Redis's own (R7,
 * R10). */

#include "tests/model/rules/model-rules.h"

#include <string.h>

#define SLACK (2 * USEC_PER_MSEC)

static int64_t ahead_of_redis(const struct world *w, uint64_t number) {
    int64_t ahead = (int64_t) (number - world_redis_time(w));

    return number == 0 || ahead < 0 ? 0 : ahead;
}

/* Returns whether the claim has waited since it got its ticket, and since then no clock was stepped and no
 * epoch began. Otherwise the lead may have shrunk. */
static bool is_comparable(const struct effect *e, unsigned other) {
    const struct m_claim *claim = &e->m->claims[other];
    usec_t requested_at = e->w->runs[other].requested_at;

    return (claim->state == 'W' || claim->state == 'P') && !claim->revoked &&
           !e->m->sessions[claim->session].ending && requested_at > e->w->redis.stepped;
}

static void check_pace(struct effect *e, unsigned claim, uint64_t ticket) {
    const struct world *w = e->w;

    for (unsigned i = 0; i < w->n_runs; i++) {
        int64_t apart = (int64_t) (ticket - e->m->claims[i].ticket), passed = (int64_t) (w->now - w->runs[i].requested_at);

        if (i != claim && is_comparable(e, i) && (apart > passed + (int64_t) SLACK || apart < passed - (int64_t) SLACK))
            model_fail(e->w, "R2: c%u was requested %" PRIi64 " us after c%u, their tickets are %" PRIi64 " apart",
                       claim, passed, i, apart);
    }
}

static bool somebody_waits(const struct effect *e, unsigned but) {
    for (unsigned i = 0; i < e->w->n_runs; i++)
        if (i != but && (e->m->claims[i].state == 'W' || e->m->claims[i].state == 'P'))
            return true;
    return false;
}

void clock_ticket_drawn(struct effect *e, unsigned claim, uint64_t ticket, bool waits) {
    if (e->m->grace)
        return;
    if (ticket > e->m->clock + SLACK && ahead_of_redis(e->w, ticket) > (int64_t) SLACK && !somebody_waits(e, claim))
        model_fail(e->w, "R7: no claim waits, and the ticket of c%u is %" PRIi64 " us ahead of Redis's clock",
                   claim, ahead_of_redis(e->w, ticket));
    if (!waits)
        return;
    check_pace(e, claim, ticket);
    e->w->runs[claim].requested_at = e->w->now;
}

/* Of a head start "OWN+GIVEN@NUMBER" the number of the move counts. */
static uint64_t highest(const struct effect *e, size_t from, size_t step, uint64_t most) {
    for (size_t i = from; i < e->n_args; i += step) {
        const char *move = strchr(e->args[i], '@');
        uint64_t number = rules_number(move ? move + 1 : e->args[i]);

        most = number > most ? number : most;
    }
    return most;
}

/* Returns the highest number that this call names as drawn. Redis may have lost it in an earlier epoch. */
static uint64_t named_number(const struct effect *e) {
    switch (e->script) {
    case REDIS_SCRIPT_CLAIM:
        return rules_number(e->args[5]);
    case REDIS_SCRIPT_SYNC: /* tokens, tickets and moves; a head start without a move is a time, far below all of them */
        return highest(e, 8, 10, highest(e, 9, 10, highest(e, 10, 10, 0)));
    case REDIS_SCRIPT_HELLO: /* versions of overrides */
        return highest(e, HELLO_LIMITS + 2 + 2 * rules_number(e->args[HELLO_LIMITS]), 7, 0);
    default:
        return 0;
    }
}

/* Only a loss of data or a stepped clock increases the lead: Redis uses the numbers that hosts remember only in grace. */
void clock_check_lead(struct effect *e) {
    struct world *w = e->w;
    int64_t stored = (int64_t) reply_number(reply_at(e->state, 6)), ahead = ahead_of_redis(w, reply_number(reply_at(e->state, 2)));
    int64_t lead = stored > ahead ? stored : ahead, named = ahead_of_redis(w, named_number(e));
    bool went_back = w->redis.went_back > 0 && w->now < w->redis.went_back + 3 * w->longest;
    bool is_steady = !e->was_grace && !w->redis.now.grace && !w->redis.now.empty && *w->redis.now.epoch &&
                     !e->new_epoch && w->redis.lead_noted > w->redis.stepped && !went_back;

    if (named > w->redis.lead) { /* the clock jumps: tickets from before and after this are not comparable */
        w->redis.lead = named;
        w->redis.stepped = w->now;
    }
    if (is_steady && lead > w->redis.lead + (int64_t) SLACK)
        model_fail(w, "R7: the clock was %" PRIi64 " us ahead of Redis's, %s brought it to %" PRIi64,
                   w->redis.lead, redis_script_name(e->script), lead);
    w->redis.lead = is_steady && w->redis.lead < lead ? w->redis.lead : lead;
    w->redis.lead_noted = w->now;
}
