/* SPDX-License-Identifier: MIT */
#include "base/explain/estimate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/format.h"

#define INT "%" JSON_INTEGER_FORMAT

struct estimator {
    const struct estimate_view *view;
    size_t n;            /* claims */
    struct basis *bases; /* of each claim that matters */
    struct basis *of_pools; /* of each pool */
    size_t n_pools;
    double *msec;        /* of each claim: how long it will hold in this sample */
    bool *needs;
    struct queue_later *later;
    size_t n_later;
    double starts[ESTIMATE_SAMPLES];
};

static void estimator_done(struct estimator *s) {
    for (size_t i = 0; s->bases && i < s->n; i++)
        basis_done(&s->bases[i]);
    for (size_t i = 0; i < s->n_pools; i++)
        basis_done(&s->of_pools[i]);
    free(s->of_pools);
    free(s->bases);
    free(s->msec);
    free(s->needs);
    free(s->later);
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
    const json_t *pools = s->view->pools;
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
                        (double) s->view->now / (double) USEC_PER_MSEC};
    }
    qsort(s->later, s->n_later, sizeof(*s->later), compare_later);
    return 0;
}

/* --- claims that matter --- */

static int find_bases_of_pools(struct estimator *s) {
    json_t *pool;
    size_t i;

    s->of_pools = calloc(json_array_size(s->view->pools) + 1, sizeof(*s->of_pools));
    if (!s->of_pools)
        return -ENOMEM;
    json_array_foreach (s->view->pools, i, pool)
        if (basis_make_of_pool(&s->of_pools[s->n_pools++], s->view->usuals, pool) < 0)
            return -ENOMEM;
    return 0;
}

static int begin(struct estimator *s, const struct queue_change *change, const char *claim) {
    s->n = queue_count(s->view->q);
    s->bases = calloc(s->n + 1, sizeof(*s->bases));
    s->msec = calloc(s->n + 1, sizeof(*s->msec));
    s->needs = calloc(s->n + 1, sizeof(*s->needs));
    if (!s->bases || !s->msec || !s->needs || find_later(s) < 0 || find_bases_of_pools(s) < 0)
        return -ENOMEM;
    return queue_needs(s->view->q, change, claim,
                       &(struct queue_times){.later = s->later, .n_later = s->n_later}, s->needs);
}

static int add_basis(json_t *list, const json_t *claim, const struct basis *b) {
    const char *host = format_get_text(claim, "host"), *name = format_get_text(claim, "name");
    json_t *item;
    size_t i;

    json_array_foreach (list, i, item)
        if (strcmp(format_get_text(item, "host"), host) == 0 &&
            strcmp(format_get_text(item, "name"), name) == 0)
            return 0;
    return json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:s}", "host", host, "name", name, "runs",
                                                 b->runs, "basis", b->is_pool ? "pool" : "own"));
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
    bool is_held;

    for (size_t i = 0; i < s->n; i++) {
        const json_t *claim = queue_claim(s->view->q, i, &is_held);
        struct basis *b = &s->bases[i];

        if (!s->needs[i])
            continue;
        if (basis_make(b, s->view->usuals, claim, &s->of_pools[queue_pool_of(s->view->q, i)],
                       is_held ? estimate_age(claim, s->view->now) : 0) < 0)
            return -ENOMEM;
        if (b->n == 0) {
            explain_too_few(e, s->view->usuals, claim);
            return 0;
        }
        e->is_open |= is_held && basis_is_overdue(b);
        shortest = b->runs < shortest ? b->runs : shortest;
        if (add_basis(e->basis, claim, b) < 0)
            return -ENOMEM;
    }
    return shortest;
}

/* --- samples --- */

static uint64_t seed_of(const char *claim) { /* FNV-1a */
    uint64_t seed = 0xcbf29ce484222325;

    for (; *claim; claim++)
        seed = (seed ^ (unsigned char) *claim) * 0x100000001b3;
    return seed;
}

static int compare_starts(const void *a, const void *b) {
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

/* Large odd numbers, so that claims and samples draw independently. */
static const uint64_t apart[] = {0xd1342543de82ef95, 0xaf251af3b0f025b5};

/* Plays all samples. A claim draws the same time in the same sample whatever else changes, so two estimates
 * differ by the change alone. Returns false if the claim does not start in some sample. */
static bool play_samples(struct estimator *s, const struct queue_change *change, const char *claim) {
    const struct queue_times times = {.msec = s->msec, .later = s->later, .n_later = s->n_later};
    uint64_t seed = seed_of(claim);

    for (size_t k = 0; k < ESTIMATE_SAMPLES; k++) {
        for (size_t i = 0; i < s->n; i++) {
            struct chance chance = {.state = (seed + k) * apart[0] + i * apart[1]};

            s->msec[i] = s->needs[i] ? basis_draw(&s->bases[i], &chance) : 0;
        }
        s->starts[k] = queue_start_time(s->view->q, change, claim, &times);
        if (s->starts[k] < 0)
            return false;
    }
    qsort(s->starts, ESTIMATE_SAMPLES, sizeof(*s->starts), compare_starts);
    return true;
}

/* Returns how many samples are cut off at each end. Draws from a short history vary too little, so fewer are
 * cut. */
static size_t cut_of(json_int_t shortest) {
    return shortest >= RUN_TIMES_MAX ? 20 : shortest >= 20 ? 15 : 10;
}

int estimate_make(struct estimate *ret, const struct estimate_view *view, const struct queue_change *change,
                  const char *claim) {
    _cleanup_(estimator_done) struct estimator s = {.view = view};
    json_int_t shortest;
    size_t cut;

    *ret = (struct estimate){.basis = json_array()};
    if (!ret->basis || begin(&s, change, claim) < 0)
        return -ENOMEM;
    shortest = find_bases(&s, ret);
    if (shortest < 0)
        return -ENOMEM;
    if (shortest == 0)
        return 0;
    if (!play_samples(&s, change, claim)) {
        snprintf(ret->why, sizeof(ret->why), "nothing that is known lets it start");
        return 0;
    }
    cut = cut_of(shortest);
    ret->low_ms = (json_int_t) s.starts[cut - 1];
    ret->mid_ms = (json_int_t) s.starts[ESTIMATE_SAMPLES / 2];
    ret->high_ms = (json_int_t) (s.starts[ESTIMATE_SAMPLES - cut] + 0.999);
    ret->is_known = true;
    return 0;
}
