/* SPDX-License-Identifier: MIT */
/* Which claims may affect the start of another one: those before it, and those that free permits for it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/explain/queue-internal.h"

struct marks { /* claims that are before another claim, or free permits for it */
    bool *before;
    json_int_t *needed, *lowest; /* of each pool: the permits of its holders and of those claims; its lowest limit */
};

static void marks_done(struct marks *m) {
    free(m->before);
    free(m->needed);
    free(m->lowest);
}

static int marks_begin(struct marks *m, const struct play *p) {
    size_t n = p->q->n_pools;

    m->before = calloc(p->q->n_claims + 1, sizeof(*m->before));
    m->needed = calloc(n + 1, sizeof(*m->needed));
    m->lowest = calloc(n + 1, sizeof(*m->lowest));
    if (!m->before || !m->needed || !m->lowest)
        return -ENOMEM;
    memcpy(m->needed, p->used, n * sizeof(*m->needed));
    memcpy(m->lowest, p->limits, n * sizeof(*m->lowest));
    for (size_t i = 0; i < p->times->n_later; i++) {
        const struct queue_later *later = &p->times->later[i];

        if (m->lowest[later->pool] == 0 || later->limit < m->lowest[later->pool])
            m->lowest[later->pool] = later->limit;
    }
    return 0;
}

static bool mark(const struct play *p, struct marks *m, size_t claim) {
    const struct claim *c = &p->q->claims[claim];

    m->before[claim] = true;
    for (size_t i = 0; i < c->n_wants; i++)
        m->needed[c->wants[i].pool] += c->wants[i].permits;
    return true;
}

/* Returns whether other claims keep a marked one waiting: not the one that was moved before all others, unless its limit
 * has still to rise. */
static bool has_others_before(const struct play *p, const struct marks *m, size_t claim) {
    return m->before[claim] && (claim != p->first || play_is_parked(p, &p->q->claims[claim]));
}

static bool has_marked(const struct play *p, const struct pool *line, const struct marks *m) {
    for (size_t i = 0; i < line->n_line; i++)
        if (has_others_before(p, m, line->line[i]))
            return true;
    return false;
}

/* Marks the claims before a marked one in one queue. If a limit will change, marks the whole queue, because
 * claims may pass a parked one. Returns whether there were new ones. */
static bool mark_before(const struct play *p, size_t pool, struct marks *m) {
    const struct pool *line = &p->q->pools[pool];
    bool is_new = false, is_behind = p->times->n_later > 0 && has_marked(p, line, m);

    for (size_t i = line->n_line; i-- > 0;) {
        size_t c = line->line[i];

        if (!m->before[c] && is_behind && (p->times->n_later > 0 || !play_is_parked(p, &p->q->claims[c])))
            is_new = mark(p, m, c);
        is_behind |= has_others_before(p, m, c);
    }
    return is_new;
}

/* Returns whether the holders of the pool and the marked claims do not all fit into it. */
static bool is_scarce(const struct marks *m, size_t pool) {
    return m->needed[pool] > m->lowest[pool];
}

static bool wants_scarce(const struct claim *c, const struct marks *m) {
    for (size_t i = 0; i < c->n_wants; i++)
        if (is_scarce(m, c->wants[i].pool))
            return true;
    return false;
}

/* Marks all claims whose start may affect the start of the marked one. */
static void mark_all(const struct play *p, struct marks *m) {
    bool is_new = true;

    while (is_new) {
        is_new = false;
        for (size_t pool = 0; pool < p->q->n_pools; pool++)
            is_new |= mark_before(p, pool, m);
        /* Permits that a run holds while it waits return after its wait. */
        for (size_t i = 0; i < p->q->n_claims; i++) {
            const struct claim *c = &p->q->claims[i];

            if (claim_is_of_waiting(c) && !m->before[c->twin] && wants_scarce(c, m))
                is_new = mark(p, m, c->twin);
        }
    }
}

/* Returns whether the end of a claim frees permits of a scarce pool. A run that holds some while it waits frees them
 * with its others. */
static bool frees_scarce(const struct queue *q, const struct claim *c, const struct marks *m) {
    return wants_scarce(c, m) || (c->twin != SIZE_MAX && wants_scarce(&q->claims[c->twin], m));
}

int queue_needs(const struct queue *q, const struct queue_change *change, const char *claim,
                const struct queue_times *times, bool *needs) {
    _cleanup_(play_done) struct play p = {};
    _cleanup_(marks_done) struct marks m = {};
    size_t wanted = queue_find(q->waiting, claim);

    memset(needs, 0, q->n_claims * sizeof(*needs));
    if (play_begin(&p, q, change) < 0)
        return -ENOMEM;
    if (wanted == SIZE_MAX)
        return 0;
    p.times = times;
    if (marks_begin(&m, &p) < 0)
        return -ENOMEM;
    mark(&p, &m, wanted);
    mark_all(&p, &m);
    for (size_t i = 0; i < q->n_claims; i++) { /* a waiting run holds its permits until it ends */
        const struct claim *c = &q->claims[i];

        needs[i] = i != wanted && (m.before[i] || c->is_held) && !claim_is_of_waiting(c) && frees_scarce(q, c, &m);
    }
    return 0;
}
