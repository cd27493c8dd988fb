/* SPDX-License-Identifier: MIT */
/* R2 and R7: grants in the order of tickets minus head starts, and tokens that grow. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "cli/audit/index.h"
#include "cli/audit/model.h"

/* --- tokens --- */

static void check_twice(struct audit *a) {
    for (size_t i = 1; i < a->n_holds; i++)
        if (a->holds[i].token == a->holds[i - 1].token)
            audit_report_violation(a, AUDIT_TOKEN_TWICE, a->holds[i].entry,
                                   "token %" PRIu64 " was also granted to run %s", a->holds[i].token,
                                   a->holds[i - 1].run->id);
}

/* A claim made after another grant was logged gets a higher token. A lower token in a later entry proves
 * nothing: its host may have received it late. */
static void check_growth(struct audit *a) {
    usec_t first_logged = USEC_INFINITY, slack = usec_add(a->options->tolerance, a->report->doubt);
    const struct audit_hold *first = NULL;

    for (size_t i = a->n_holds; i-- > 0;) {
        const struct audit_hold *h = &a->holds[i];
        usec_t logged = audit_hosts_time(a, h->entry);

        if (h->entry->took.wait_ms >= 0 && first &&
            usec_sub(logged, (usec_t) (h->entry->took.wait_ms + 1) * USEC_PER_MSEC) > usec_add(first_logged, slack))
            audit_report_violation(a, AUDIT_TOKEN_ORDER, h->entry,
                                   "its token %" PRIu64 " is below %" PRIu64
                                   " of run %s, which was granted before this claim was made",
                                   h->token, first->token, first->run->id);
        if (logged < first_logged) {
            first_logged = logged;
            first = h;
        }
        if (h->entry->ticket > h->token)
            audit_report_violation(a, AUDIT_TOKEN_ORDER, h->entry,
                                   "its token %" PRIu64 " is below its own ticket %" PRIu64, h->token,
                                   h->entry->ticket);
    }
}

/* --- tickets --- */

struct grant {
    const struct audit_run *run;
    const struct audit_stand *stand; /* when it was granted */
    const struct entry *entry;
    uint64_t token;
};

struct queues { /* of claims whose waiting time is known */
    const struct audit_stand **by_score; /* a stand's place is its index */
    size_t n;
    struct audit_pool_users users; /* for each pool the places of its claims */
    struct maxima until;           /* of each user, until when it waits; 0: not in a queue of that pool */
    const struct audit_stand **found; /* see find_overtaken() */
    bool *is_parked;                  /* of each found one */
    /* A claim of one pool that is parked is no more than counted until the limit changes, or the claim waits no more. Else each grant
     * would be compared with each parked claim. */
    struct places parked; /* of the users */
    struct wake {
        uint64_t number; /* the last one at which the claim is parked */
        size_t user;
    } *wakes; /* a heap, the lowest number first */
    size_t n_wakes;
};

/* A claim that needs more than a limit is in no queue meanwhile. */
static bool is_parked(const struct audit *a, const struct audit_run *r, const struct grant *g) {
    for (size_t i = 0; i < r->n_uses; i++) {
        size_t pool = r->uses[i].pool;
        uint32_t limit, highest;

        if (a->pools[pool].host ? r->of_host && audit_limits_of_host_at(a, pool, g->run, &limit, &highest) &&
                                      r->uses[i].permits > limit
                                : audit_limits_at(a, pool, g->token, &limit) && r->uses[i].permits > limit)
            return true;
    }
    return false;
}

static bool is_before(const struct audit_stand *waiting, const struct audit_stand *granted) {
    return waiting->score < granted->score || (waiting->score == granted->score && waiting->run->ticket < granted->run->ticket);
}

/* Returns the last number at which the run waits in this place; 0: not known. */
static uint64_t until_of(const struct audit_stand *s) {
    const struct audit_stand *next = s + 1 < s->run->stands.items + s->run->stands.n ? s + 1 : NULL;
    uint64_t until = next && next->from < s->run->until ? next->from : s->run->until;

    return until > s->from ? until : 0;
}

static const struct audit_stand *stand_at(const struct audit_run *r, uint64_t number) {
    size_t i = r->stands.n - 1;

    while (i > 0 && r->stands.items[i].from >= number)
        i--;
    return &r->stands.items[i];
}

/* Returns whether the run's numbers are of this pool's clock. */
static bool has_place_in(const struct audit *a, const struct audit_run *r, size_t pool) {
    return !a->pools[pool].host == !r->of_host;
}

static int compare_scores(const void *a, const void *b) {
    const struct audit_stand *x = *(const struct audit_stand *const *) a, *y = *(const struct audit_stand *const *) b;

    return is_before(x, y) ? -1 : is_before(y, x) ? 1 : x < y ? -1 : x > y;
}

static int queues_make(const struct audit *a, struct queues *q, const struct audit_stand *const *queued, size_t n) {
    _cleanup_free_ const struct audit_run **runs = calloc(n + 1, sizeof(*runs));
    int k;

    q->by_score = calloc(n + 1, sizeof(*q->by_score));
    if (!q->by_score || !runs)
        return -ENOMEM;
    q->n = n;
    memcpy(q->by_score, queued, n * sizeof(*queued));
    qsort(q->by_score, n, sizeof(*q->by_score), compare_scores);
    for (size_t i = 0; i < n; i++)
        runs[i] = q->by_score[i]->run;
    k = audit_pools_make_users(a, runs, n, &q->users);
    k = k < 0 ? k : maxima_make(&q->until, q->users.n);
    k = k < 0 ? k : places_make(&q->parked, q->users.n);
    q->found = calloc(q->users.n + 1, sizeof(*q->found));
    q->is_parked = calloc(q->users.n + 1, sizeof(*q->is_parked));
    q->wakes = calloc(q->users.n + 1, sizeof(*q->wakes));
    return k < 0 || !q->found || !q->is_parked || !q->wakes ? -ENOMEM : 0;
}

static void queues_done(struct queues *q) {
    free(q->by_score);
    free(q->found);
    free(q->is_parked);
    free(q->wakes);
    places_done(&q->parked);
    audit_pools_users_done(&q->users);
    maxima_done(&q->until);
}

/* Returns how many places are before this one. */
static size_t count_before(const struct queues *q, const struct audit_stand *stand) {
    size_t low = 0, high = q->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (is_before(q->by_score[middle], stand))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t place_of(const struct queues *q, const struct audit_stand *s) {
    const struct audit_stand **at = bsearch(&s, q->by_score, q->n, sizeof(*q->by_score), compare_scores);

    return (size_t) (at - q->by_score);
}

static void queues_add(const struct audit *a, struct queues *q, const struct audit_stand *s) {
    const struct audit_run *r = s->run;
    size_t place = place_of(q, s);

    for (size_t i = 0; i < r->n_uses; i++)
        if (has_place_in(a, r, r->uses[i].pool))
            maxima_set(&q->until, audit_pools_find_user(&q->users, r->uses[i].pool, place), until_of(s));
}

/* --- parked claims of one pool --- */

static void swap(struct wake *x, struct wake *y) {
    struct wake z = *x;

    *x = *y;
    *y = z;
}

static void add_wake(struct queues *q, struct wake wake) {
    size_t i = q->n_wakes++;

    for (q->wakes[i] = wake; i > 0 && q->wakes[i].number < q->wakes[(i - 1) / 2].number; i = (i - 1) / 2)
        swap(&q->wakes[i], &q->wakes[(i - 1) / 2]);
}

static size_t take_wake(struct queues *q) {
    size_t user = q->wakes[0].user, i = 0, child;

    q->wakes[0] = q->wakes[--q->n_wakes];
    while ((child = 2 * i + 1) < q->n_wakes) {
        child += child + 1 < q->n_wakes && q->wakes[child + 1].number < q->wakes[child].number;
        if (q->wakes[i].number <= q->wakes[child].number)
            break;
        swap(&q->wakes[i], &q->wakes[child]);
        i = child;
    }
    return user;
}

/* Counts a claim that is parked at this number, instead of finding it again. */
static void queues_park(const struct audit *a, struct queues *q, const struct audit_stand *s, uint64_t number) {
    const struct audit_run *r = s->run;
    size_t pool = r->uses[0].pool, user;
    uint64_t until = until_of(s) - 1;

    if (r->n_uses > 1 || a->pools[pool].host)
        return;
    user = audit_pools_find_user(&q->users, pool, place_of(q, s));
    maxima_set(&q->until, user, 0);
    places_take(&q->parked, user);
    add_wake(q, (struct wake) {MIN(until, audit_limits_until(a, pool, number)), user});
}

/* Puts the claims back that may not be parked any more. */
static void queues_wake(struct queues *q, uint64_t number) {
    while (q->n_wakes > 0 && q->wakes[0].number < number) {
        size_t user = take_wake(q);

        places_leave(&q->parked, user);
        maxima_set(&q->until, user, until_of(q->by_score[q->users.items[user]]));
    }
}

static int compare_begins(const void *a, const void *b) {
    const struct audit_stand *x = *(const struct audit_stand *const *) a, *y = *(const struct audit_stand *const *) b;

    return x->from != y->from ? (x->from < y->from ? -1 : 1) : x < y ? -1 : x > y;
}

/* Stores in `found`, by ticket, the claims that are before it in a common queue and still wait. */
static size_t find_overtaken(const struct audit *a, struct queues *q, const struct grant *g) {
    size_t place = count_before(q, g->stand), n = 0, n_once = 0;

    for (size_t i = 0; i < g->run->n_uses; i++) {
        size_t pool = g->run->uses[i].pool, end = audit_pools_find_user(&q->users, pool, place);

        if (!has_place_in(a, g->run, pool))
            continue;
        for (size_t at = q->users.first[pool]; (at = maxima_next(&q->until, at, g->token + 1)) < end; at++)
            q->found[n++] = q->by_score[q->users.items[at]];
    }
    if (n > 1)
        qsort(q->found, n, sizeof(*q->found), compare_begins);
    for (size_t i = 0; i < n; i++)
        if (n_once == 0 || q->found[i] != q->found[n_once - 1]) /* else they share another queue, too */
            q->found[n_once++] = q->found[i];
    return n_once;
}

/* Returns how many parked claims that are only counted are before the grant in a queue; with `first`, those that began to
 * wait before that one. */
static size_t count_parked(const struct audit *a, const struct queues *q, const struct grant *g, const struct audit_stand *first) {
    size_t place = count_before(q, g->stand), n = 0;

    for (size_t i = 0; i < g->run->n_uses; i++) {
        size_t pool = g->run->uses[i].pool, begin = q->users.first[pool], end = audit_pools_find_user(&q->users, pool, place);

        if (!has_place_in(a, g->run, pool))
            continue;
        for (size_t at = begin; first && at < end; at++)
            n += places_before(&q->parked, at + 1) > places_before(&q->parked, at) &&
                 compare_begins(&q->by_score[q->users.items[at]], &first) < 0;
        if (!first)
            n += places_before(&q->parked, end) - places_before(&q->parked, begin);
    }
    return n;
}

/* Returns the first of the found claims that nothing explains, or NULL. Counts those before it that are explained. */
static const struct audit_stand *find_unexplained(struct audit *a, struct queues *q, const struct grant *g, size_t n) {
    const struct audit_stand *first;
    size_t i;

    for (i = 0; i < n; i++) {
        q->is_parked[i] = is_parked(a, q->found[i]->run, g);
        if (!q->is_parked[i] && !queue_presence_is_absent(a, q->found[i]->run, g->token))
            break;
    }
    first = i < n ? q->found[i] : NULL;
    a->report->n_explained += i + (q->n_wakes > 0 ? count_parked(a, q, g, first) : 0);
    while (i-- > 0)
        if (q->is_parked[i])
            queues_park(a, q, q->found[i], g->token);
    return first;
}

/* Compares a grant with the claims that wait at this moment. */
static void check_grant(struct audit *a, struct queues *q, const struct grant *g) {
    const struct audit_stand *first;
    const struct audit_run *w;

    queues_wake(q, g->token);
    first = find_unexplained(a, q, g, find_overtaken(a, q, g));
    if (!first)
        return;
    w = first->run;
    if (first->is_unsure || g->stand->is_unsure)
        audit_report_unproved(a, AUDIT_OVERTAKEN, g->entry,
                              "granted before run %s on %s, unless Redis had lost a move of one of them when it lost its data", w->id,
                              audit_run_host(w));
    else if (lost_answers_was_away(a, w, g->token))
        audit_report_unproved(a, AUDIT_OVERTAKEN, g->entry,
                              "granted before run %s on %s, unless that host had expired: it was away, and the "
                              "reply that expired it may be lost",
                              w->id, audit_run_host(w));
    else
        audit_report_violation(a, AUDIT_OVERTAKEN, g->entry,
                               "granted before run %s on %s, which has the earlier ticket %" PRIu64
                               " (this one: %" PRIu64 ") and waited until %" PRIu64,
                               w->id, audit_run_host(w), w->ticket, g->run->ticket, w->until);
}

static int compare_grants(const void *a, const void *b) {
    const struct grant *x = a, *y = b;

    return x->token < y->token ? -1 : x->token > y->token;
}

/* Lists the grants whose place is known. A grant after a lost lease has none. A claim that was made again in
 * the next session, because its host never received the grant, had another ticket than the logged one. */
static size_t list_grants(const struct audit *a, struct grant *grants) {
    size_t n = 0;

    for (size_t i = 0; i < a->n_holds; i++)
        if (!a->holds[i].renewed && !a->holds[i].again && a->holds[i].run->has_place && a->holds[i].token >= a->holds[i].run->ticket)
            grants[n++] = (struct grant) {a->holds[i].run, stand_at(a->holds[i].run, a->holds[i].token), a->holds[i].entry, a->holds[i].token};
    for (size_t i = 0; i < a->n_runs; i++)
        if (a->runs[i].of_host && a->runs[i].granted && a->runs[i].has_place)
            grants[n++] =
                (struct grant) {&a->runs[i], stand_at(&a->runs[i], a->runs[i].granted->token), a->runs[i].granted, a->runs[i].granted->token};
    qsort(grants, n, sizeof(*grants), compare_grants);
    return n;
}

static int check_tickets(struct audit *a) {
    _cleanup_free_ const struct audit_stand **queued = calloc(a->stands.n + 1, sizeof(*queued));
    _cleanup_free_ struct grant *grants = calloc(a->n_runs + a->n_holds + 1, sizeof(*grants));
    _cleanup_(queues_done) struct queues queues = {.n = 0};
    size_t n = 0, next = 0, n_grants;
    int k;

    if (!queued || !grants)
        return -ENOMEM;
    for (size_t i = 0; i < a->stands.n; i++)
        if (until_of(&a->stands.items[i]) > 0)
            queued[n++] = &a->stands.items[i];
    qsort(queued, n, sizeof(*queued), compare_begins);
    k = queues_make(a, &queues, queued, n);
    if (k < 0)
        return k;
    n_grants = list_grants(a, grants);
    for (size_t i = 0; i < n_grants; i++) {
        while (next < n && queued[next]->from < grants[i].token)
            queues_add(a, &queues, queued[next++]);
        check_grant(a, &queues, &grants[i]);
    }
    return 0;
}

int order_check(struct audit *a) {
    check_twice(a);
    check_growth(a);
    return check_tickets(a);
}
