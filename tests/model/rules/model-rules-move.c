/* SPDX-License-Identifier: MIT */

/* What must happen to claims that an operator revokes or moves (R2). */

#include <string.h>

#include "tests/model/rules/model-rules.h"

void rules_revoke(struct effect *e) {
    struct m_claim *claim = &e->m->claims[id_number(e->args[3])];

    if ((strcmp(e->word, "unknown") == 0) != (claim->state == 0))
        model_fail(e->w, "revoke of %s was answered '%s'", e->args[3], e->word);
    if (claim->state != 0 && claim->state != 'H' && !claim->revoked)
        claim->revoked = true;
}

/* Returns whether the claim can be moved. If not, checks the word of the reply. */
static bool can_move(struct effect *e, const char *id) {
    const struct m_claim *claim = &e->m->claims[id_number(id)];
    const char *want = claim->state == 0 || claim->revoked || !e->m->sessions[claim->session].live || e->m->sessions[claim->session].ending
                           ? "unknown"
                           : claim->state == 'H' ? "held" : NULL;

    if (want && e->m->sessions[claim->session].ending && strcmp(e->word, "held") == 0)
        return false;
    if (want && strcmp(e->word, want) != 0)
        model_fail(e->w, "a move about %s was answered '%s', must be '%s'", id, e->word, want);
    return !want;
}

static bool share_queue(const struct m_claim *a, const struct m_claim *b) {
    for (unsigned p = 0; p < POOLS_MAX; p++)
        if (a->permits[p] > 0 && b->permits[p] > 0)
            return true;
    return false;
}

/* Checks the reply, before its pushes are applied. */
void rules_move(struct effect *e) {
    const struct m_claim *claim = &e->m->claims[id_number(e->args[3])], *other = &e->m->claims[id_number(e->args[5])];
    bool is_before = strcmp(e->args[4], "before") == 0;

    if (e->m->grace) {
        if (strcmp(e->word, "grace") != 0)
            model_fail(e->w, "R10: a move in grace was answered '%s'", e->word);
        return;
    }
    if (!can_move(e, e->args[3]) || (is_before && !can_move(e, e->args[5])))
        return;
    if (is_before && (claim == other || !share_queue(claim, other))) {
        if (strcmp(e->word, "apart") != 0)
            model_fail(e->w, "a move before one that shares no queue was answered '%s'", e->word);
        return;
    }
    if (strcmp(e->word, "ok") != 0)
        model_fail(e->w, "a move of %s was answered '%s'", e->args[3], e->word);
    else if (reply_number(reply_at(e->reply, 3)) == 0 && reply_at(e->pushes, 0) && strstr(reply_word(reply_at(e->pushes, 1)), "moved "))
        model_fail(e->w, "a move of %s has no number, and is published", e->args[3]);
}

static int64_t place_of(const struct m_claim *c) {
    return (int64_t) (c->ticket - c->head - c->given);
}

/* Checks that the claim stands before all others of its queues, or before the named one. */
static void check_place(struct effect *e, unsigned c) {
    const struct m_claim *claim = &e->m->claims[c];
    bool is_first = strcmp(e->args[4], "first") == 0;

    for (unsigned i = 0; i < e->w->n_runs; i++) {
        const struct m_claim *d = &e->m->claims[i];

        if (i == c || d->revoked || (d->state != 'W' && d->state != 'P') || e->m->sessions[d->session].ending)
            continue;
        if (is_first ? d->state == 'W' && share_queue(claim, d) : strcmp(e->args[4], "before") == 0 && id_number(e->args[5]) == i)
            if (place_of(d) <= place_of(claim))
                model_fail(e->w, "R2: c%u was moved, and c%u stands before it", c, i);
    }
}

void rules_moved(struct effect *e, unsigned c, uint64_t before, uint64_t number, const char *text) {
    struct m_claim *claim = &e->m->claims[c];
    struct m_session *session = &e->m->sessions[claim->session];
    uint64_t given = 0;

    if (e->script != REDIS_SCRIPT_MOVE || c != id_number(e->args[3]) || number != reply_number(reply_at(e->reply, 3)))
        model_fail(e->w, "R12: c%u was moved without a call", c);
    if (before != session->last || number <= e->m->clock)
        model_fail(e->w, "R12: the move of c%u has number %" PRIu64 " after %" PRIu64, c, number, before);
    (void) sscanf(text, "%*s %*s %*s %*s %*s %" SCNu64, &given);
    claim->given = given;
    claim->moved = session->last = e->m->clock = number;
    check_place(e, c);
}
