/* SPDX-License-Identifier: MIT */
#include "base/explain/estimate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/format.h"

#define INT "%" JSON_INTEGER_FORMAT

struct estimator {
    struct estimate_view view;
    size_t n;               /* claims */
    struct basis *bases;    /* of each claim that has mattered so far */
    bool *has_basis;
    size_t *names, n_names; /* of each claim: the number of its host and name */
    struct basis *of_pools; /* of each pool */
    size_t n_pools;
    struct queue_later *later;
    size_t n_later;
    uint64_t seed;
    double *began; /* of each claim in the first sample, in the second ...; NULL: not played yet */
    /* Of one estimate: */
    bool *needs, *is_listed; /* of each claim; of each name: it is in the list */
    size_t *needed, n_needed; /* the claims that matter */
    double *msec;            /* of each claim: how long it will hold in this sample */
    double starts[ESTIMATE_SAMPLES];
};

struct estimator *estimator_free(struct estimator *s) {
    if (!s)
        return NULL;
    for (size_t i = 0; s->bases && i < s->n; i++)
        basis_done(&s->bases[i]);
    for (size_t i = 0; i < s->n_pools; i++)
        basis_done(&s->of_pools[i]);
    free(s->of_pools);
    free(s->bases);
    free(s->has_basis);
    free(s->names);
    free(s->later);
    free(s->began);
    free(s->needs);
    free(s->is_listed);
    free(s->needed);
    free(s->msec);
    free(s);
    return NULL;
}

double estimate_age(const json_t *holder, usec_t now) {
    double age = (double) now / (double) USEC_PER_MSEC - (double) format_get_time(holder, "since");

    return age > 0 ? age : 0;
}

void estimate_done(struct estimate *e) {
    json_decref(e->basis);
}

/* --- limits that will change --- */

static int compare_later(const void *a, const void *b) {
    const struct queue_later *x = a, *y = b;

    return (x->msec > y->msec) - (x->msec < y->msec);
}

/* Collects the limits in force after overrides end: the lowest that a host declares. */
static int find_later(struct estimator *s) {
    const json_t *pools = s->view.pools;
    json_t *pool;
    size_t i;

    s->later = calloc(json_array_size(pools) + 1, sizeof(*s->later));
    if (!s->later)
        return -ENOMEM;
    json_array_foreach (pools, i, pool) {
        const json_t *until = json_object_get(json_object_get(pool, "override"), "until"),
                     *limit = json_object_get(json_object_get(pool, "lowest"), "limit");

        if (!json_is_integer(limit))
            limit = json_object_get(pool, "configured");
        if (json_is_string(until) && json_is_integer(limit))
            s->later[s->n_later++] = (struct queue_later){
                .pool = i,
                .limit = json_integer_value(limit),
                .msec = (double) format_get_time(json_object_get(pool, "override"), "until") -
                        (double) s->view.now / (double) USEC_PER_MSEC};
    }
    qsort(s->later, s->n_later, sizeof(*s->later), compare_later);
    return 0;
}

/* --- claims that matter --- */

static int find_bases_of_pools(struct estimator *s) {
    json_t *pool;
    size_t i;

    s->of_pools = calloc(json_array_size(s->view.pools) + 1, sizeof(*s->of_pools));
    if (!s->of_pools)
        return -ENOMEM;
    json_array_foreach (s->view.pools, i, pool)
        if (basis_make_of_pool(&s->of_pools[s->n_pools++], s->view.usuals, pool) < 0)
            return -ENOMEM;
    return 0;
}

/* Numbers the hosts and names of all claims. */
static int number_names(struct estimator *s) {
    _cleanup_(json_decrefp) json_t *numbers = json_object();
    bool is_held;

    for (size_t i = 0; i < s->n; i++) {
        const json_t *claim = queue_claim(s->view.q, i, &is_held);
        char key[FORMAT_SIZE];
        const json_t *known;

        snprintf(key, sizeof(key), "%.200s\n%.200s", format_get_text(claim, "host"), format_get_text(claim, "name"));
        known = json_object_get(numbers, key);
        if (!known && json_object_set_new(numbers, key, json_integer((json_int_t) s->n_names)) < 0)
            return -ENOMEM;
        s->names[i] = known ? (size_t) json_integer_value(known) : s->n_names++;
    }
    return 0;
}

/* Makes a seed of the holders: the draws stay the same until one ends or another one begins. */
static uint64_t seed_of(const struct queue *q) { /* FNV-1a */
    uint64_t seed = 0xcbf29ce484222325;
    bool is_held;

    for (size_t i = 0; i < queue_count(q); i++) {
        const char *id = format_get_text(queue_claim(q, i, &is_held), "claim");

        for (; is_held && *id; id++)
            seed = (seed ^ (unsigned char) *id) * 0x100000001b3;
    }
    return seed;
}

struct estimator *estimator_new(const struct estimate_view *view) {
    _cleanup_(estimator_freep) struct estimator *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->view = *view;
    s->n = queue_count(view->q);
    s->seed = seed_of(view->q);
    s->bases = calloc(s->n + 1, sizeof(*s->bases));
    s->has_basis = calloc(s->n + 1, sizeof(*s->has_basis));
    s->names = calloc(s->n + 1, sizeof(*s->names));
    s->needs = calloc(s->n + 1, sizeof(*s->needs));
    s->is_listed = calloc(s->n + 1, sizeof(*s->is_listed));
    s->needed = calloc(s->n + 1, sizeof(*s->needed));
    s->msec = calloc(s->n + 1, sizeof(*s->msec));
    if (!s->bases || !s->has_basis || !s->names || !s->needs || !s->is_listed || !s->needed || !s->msec ||
        number_names(s) < 0 || find_later(s) < 0 || find_bases_of_pools(s) < 0)
        return NULL;
    return steal_pointer(&s);
}

/* Stores the claims that matter. */
static int begin(struct estimator *s, const struct queue_change *change, const char *claim) {
    const struct queue_times times = {.later = s->later, .n_later = s->n_later};
    const struct queue_change none = {.pool = NULL};

    if (queue_needs(s->view.q, change ? change : &none, claim, &times, s->needs) < 0)
        return -ENOMEM;
    memset(s->is_listed, 0, s->n_names * sizeof(*s->is_listed));
    s->n_needed = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->needs[i])
            s->needed[s->n_needed++] = i;
    return 0;
}

static int add_basis(struct estimator *s, json_t *list, size_t i) {
    bool is_held;
    const json_t *claim = queue_claim(s->view.q, i, &is_held);
    const struct basis *b = &s->bases[i];

    if (s->is_listed[s->names[i]])
        return 0;
    s->is_listed[s->names[i]] = true;
    return json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:s}", "host", format_get_text(claim, "host"), "name",
                                                 format_get_text(claim, "name"), "runs", b->runs, "basis",
                                                 b->is_pool ? "pool" : "own"));
}

static int find_basis(struct estimator *s, size_t i) {
    bool is_held;
    const json_t *claim = queue_claim(s->view.q, i, &is_held);

    if (s->has_basis[i])
        return 0;
    s->has_basis[i] = true;
    return basis_make(&s->bases[i], s->view.usuals, claim, &s->of_pools[queue_pool_of(s->view.q, i)],
                      is_held ? estimate_age(claim, s->view.now) : 0);
}

static void explain_too_few(struct estimate *e, const struct usuals *usuals, const json_t *claim) {
    const char *host = format_get_text(claim, "host"), *name = format_get_text(claim, "name");
    const struct usual *u = usuals_find(usuals, host, name);
    json_int_t runs = u ? u->runs : 0;

    if (runs == 0)
        snprintf(e->why, sizeof(e->why), "no run of %.64s:%.64s is known", host, name);
    else
        snprintf(e->why, sizeof(e->why), "%.64s:%.64s has run only " INT " time%s", host, name, runs,
                 runs == 1 ? "" : "s");
}

/* Returns the shortest history of the claims that matter; 0: one is too short, and e->why names it.
 * -ENOMEM. */
static json_int_t find_bases(struct estimator *s, struct estimate *e) {
    json_int_t shortest = RUN_TIMES_MAX;

    for (size_t n = 0; n < s->n_needed; n++) {
        size_t i = s->needed[n];
        const struct basis *b = &s->bases[i];
        bool is_held;
        const json_t *claim = queue_claim(s->view.q, i, &is_held);

        if (find_basis(s, i) < 0)
            return -ENOMEM;
        if (b->n == 0) {
            explain_too_few(e, s->view.usuals, claim);
            return 0;
        }
        e->is_open |= is_held && basis_is_overdue(b);
        shortest = b->runs < shortest ? b->runs : shortest;
        if (add_basis(s, e->basis, i) < 0)
            return -ENOMEM;
    }
    return shortest;
}

/* --- samples --- */

static int compare_starts(const void *a, const void *b) {
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

/* Returns how long a claim holds in one sample. That is the same in all estimates of the same queues, whatever
 * else changes, so two estimates differ by the change alone, and of two claims of a queue the first starts first. */
static double draw_time(const struct estimator *s, size_t sample, size_t claim) {
    static const uint64_t apart[] = {0xd1342543de82ef95, 0xaf251af3b0f025b5}; /* large and odd */
    struct chance chance = {.state = (s->seed + sample) * apart[0] + claim * apart[1]};

    return basis_draw(&s->bases[claim], &chance);
}

/* Plays all samples to their end. Claims of which too little is known never end: find_bases() has refused the
 * estimates in which they matter. */
static int play_all(struct estimator *s) {
    const struct queue_times times = {.msec = s->msec, .later = s->later, .n_later = s->n_later};
    _cleanup_(queue_player_freep) struct queue_player *player = queue_player_new(s->view.q, &(struct queue_change){}, NULL);

    s->began = player ? calloc(ESTIMATE_SAMPLES * s->n + 1, sizeof(*s->began)) : NULL;
    if (!s->began)
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++)
        if (find_basis(s, i) < 0)
            return -ENOMEM;
    for (size_t k = 0; k < ESTIMATE_SAMPLES; k++) {
        for (size_t i = 0; i < s->n; i++)
            s->msec[i] = s->bases[i].n > 0 ? draw_time(s, k, i) : INFINITY;
        queue_player_start_times(player, &times, &s->began[k * s->n]);
    }
    return 0;
}

/* Plays all samples with a change, until the claim starts. Claims that do not matter never end. */
static int play_change(struct estimator *s, const struct queue_change *change, const char *claim) {
    const struct queue_times times = {.msec = s->msec, .later = s->later, .n_later = s->n_later};
    _cleanup_(queue_player_freep) struct queue_player *player = queue_player_new(s->view.q, change, claim);

    if (!player)
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++)
        s->msec[i] = INFINITY;
    for (size_t k = 0; k < ESTIMATE_SAMPLES; k++) {
        for (size_t n = 0; n < s->n_needed; n++)
            s->msec[s->needed[n]] = draw_time(s, k, s->needed[n]);
        s->starts[k] = queue_player_start_time(player, &times);
    }
    return 0;
}

/* Stores when the claim starts in each sample, in order; -1: it does not. */
static int find_starts(struct estimator *s, const struct queue_change *change, const char *claim) {
    size_t wanted = queue_number(s->view.q, claim);
    int k = 0;

    if (change)
        k = play_change(s, change, claim);
    else if (!s->began)
        k = play_all(s);
    for (size_t i = 0; i < ESTIMATE_SAMPLES && k == 0 && !change; i++)
        s->starts[i] = wanted == SIZE_MAX ? -1 : s->began[i * s->n + wanted];
    qsort(s->starts, ESTIMATE_SAMPLES, sizeof(*s->starts), compare_starts);
    return k;
}

/* Returns how many samples are cut off at each end. Draws from a short history vary too little, so fewer are
 * cut. */
static size_t cut_of(json_int_t shortest) {
    return shortest >= RUN_TIMES_MAX ? 20 : shortest >= 20 ? 15 : 10;
}

int estimate_make(struct estimate *ret, struct estimator *s, const struct queue_change *change, const char *claim) {
    json_int_t shortest;
    size_t cut;
    int k;

    *ret = (struct estimate){.basis = json_array()};
    if (!ret->basis || begin(s, change, claim) < 0)
        return -ENOMEM;
    shortest = find_bases(s, ret);
    if (shortest <= 0)
        return (int) shortest;
    k = find_starts(s, change, claim);
    if (k < 0)
        return k;
    if (s->starts[0] < 0) {
        snprintf(ret->why, sizeof(ret->why), "nothing that is known lets it start");
        return 0;
    }
    cut = cut_of(shortest);
    ret->low_ms = (json_int_t) s->starts[cut - 1];
    ret->mid_ms = (json_int_t) s->starts[ESTIMATE_SAMPLES / 2];
    ret->high_ms = (json_int_t) (s->starts[ESTIMATE_SAMPLES - cut] + 0.999);
    ret->is_known = true;
    return 0;
}
