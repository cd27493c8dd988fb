/* SPDX-License-Identifier: MIT */
#include "base/explain/usual.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/json/format.h"

static const unsigned char percents[] = RUN_TIMES_PERCENTS;

static double share_of(size_t quantile) {
    return percents[quantile] / 100.0;
}

/* --- usual times --- */

static bool read_usual(struct usual *u, const json_t *json) {
    const json_t *q = json_object_get(json, "q_ms"), *cap = json_object_get(json, "cap_ms");

    *u = (struct usual){.host = format_get_text(json, "host"),
                        .name = format_get_text(json, "name"),
                        .runs = format_get_number(json, "runs"),
                        .cap_msec = json_is_integer(cap) ? (double) json_integer_value(cap) : INFINITY};
    for (size_t i = 0; i < RUN_TIMES_QUANTILES; i++) {
        u->q_msec[i] = (double) json_integer_value(json_array_get(q, i));
        if (u->q_msec[i] < 0 || (i > 0 && u->q_msec[i] < u->q_msec[i - 1]))
            return false;
    }
    return u->runs > 0;
}

int usuals_make(struct usuals *ret, const json_t *list) {
    struct usual *items = calloc(json_array_size(list) + 1, sizeof(*items));
    json_t *json;
    size_t i, n = 0;

    if (!items)
        return -ENOMEM;
    json_array_foreach (list, i, json)
        n += read_usual(&items[n], json);
    *ret = (struct usuals){.items = items, .n = n};
    return 0;
}

void usuals_done(struct usuals *u) {
    free(u->items);
}

const struct usual *usuals_find(const struct usuals *u, const char *host, const char *name) {
    for (size_t i = 0; i < u->n; i++)
        if (strcmp(u->items[i].name, name) == 0 && strcmp(u->items[i].host, host) == 0)
            return &u->items[i];
    return NULL;
}

/* --- the runs that a claim is compared with --- */

static void add_usual(struct basis *b, const struct usual *u) {
    for (size_t i = 0; i < b->n; i++)
        if (b->of[i] == u)
            return;
    b->of[b->n++] = u;
    b->runs += u->runs;
}

static void add_list(struct basis *b, const struct usuals *u, const json_t *list) {
    const struct usual *usual;
    json_t *claim;
    size_t i;

    json_array_foreach (list, i, claim) {
        usual = usuals_find(u, format_get_text(claim, "host"), format_get_text(claim, "name"));
        if (usual)
            add_usual(b, usual);
    }
}

/* --- chance --- */

/* SplitMix64 of Sebastiano Vigna. */
double chance_draw(struct chance *c) {
    uint64_t z = c->state += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (double) ((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

/* Returns a value between two quantiles. Few runs are near the longer one, so halfway is the middle of the
 * arithmetic and the harmonic mean, which is close to the geometric mean. */
static double between(double low, double high, double share) {
    double straight = low + (high - low) * share;

    return low > 0 ? (straight + low * high / (low * share + high * (1 - share))) / 2 : straight;
}

/* Returns the share of runs that take at most this time. */
static double share_within(const struct usual *u, double msec) {
    double from = 0, to = 1;
    size_t i = RUN_TIMES_QUANTILES - 1;

    if (msec >= u->q_msec[i])
        return 1;
    while (i > 0 && msec < u->q_msec[i])
        i--;
    if (msec < u->q_msec[i])
        return 0;
    for (int n = 0; n < 20; n++) {
        double middle = (from + to) / 2;

        if (between(u->q_msec[i], u->q_msec[i + 1], middle) <= msec)
            from = middle;
        else
            to = middle;
    }
    return share_of(i) + (share_of(i + 1) - share_of(i)) * from;
}

static double time_of(const struct usual *u, double share) {
    size_t i = RUN_TIMES_QUANTILES - 2;

    while (i > 0 && share_of(i) > share)
        i--;
    return between(u->q_msec[i], u->q_msec[i + 1], (share - share_of(i)) / (share_of(i + 1) - share_of(i)));
}

/* --- the basis of a claim --- */

/* Looks up the age once, because each sample draws. */
static int add_age(struct basis *b, double age_msec) {
    b->age_msec = age_msec;
    b->within = calloc(b->n + 1, sizeof(*b->within));
    if (!b->within)
        return -ENOMEM;
    for (size_t i = 0; i < b->n; i++)
        b->within[i] = share_within(b->of[i], age_msec);
    return 0;
}

int basis_make_of_pool(struct basis *ret, const struct usuals *u, const json_t *pool) {
    *ret = (struct basis){.of = calloc(u->n + 1, sizeof(struct usual *)), .is_pool = true};
    if (!ret->of)
        return -ENOMEM;
    add_list(ret, u, json_object_get(pool, "holders"));
    add_list(ret, u, json_object_get(pool, "queue"));
    if (ret->runs < USUAL_POOL_ENOUGH)
        ret->n = 0;
    return 0;
}

int basis_make(struct basis *ret, const struct usuals *u, const json_t *claim, const struct basis *of_pool,
               double age_msec) {
    const struct usual *own = usuals_find(u, format_get_text(claim, "host"), format_get_text(claim, "name"));
    bool is_pool = !own || own->runs < RUN_TIMES_ENOUGH;

    *ret = (struct basis){.of = calloc((is_pool ? of_pool->n : 0) + 1, sizeof(struct usual *)), .is_pool = is_pool};
    if (!ret->of)
        return -ENOMEM;
    if (!is_pool)
        add_usual(ret, own);
    for (size_t i = 0; is_pool && i < of_pool->n; i++)
        add_usual(ret, of_pool->of[i]);
    return add_age(ret, age_msec);
}

void basis_done(struct basis *b) {
    free(b->of);
    free(b->within);
}

static double weight_of(const struct basis *b, size_t i) {
    return (double) b->of[i]->runs * (1 - b->within[i]);
}

bool basis_is_overdue(const struct basis *b) {
    for (size_t i = 0; i < b->n; i++)
        if (weight_of(b, i) > 0)
            return false;
    return true;
}

static double draw_overdue(const struct basis *b, struct chance *c) {
    double rest = chance_draw(c) * b->age_msec, longest = 0;

    for (size_t i = 0; i < b->n; i++)
        longest = MAX(longest, b->of[i]->cap_msec);
    return MIN(rest, MAX(longest - b->age_msec, 0));
}

double basis_draw(const struct basis *b, struct chance *c) {
    double all = 0, at, msec;
    size_t drawn = 0;

    for (size_t i = 0; i < b->n; i++)
        all += weight_of(b, i);
    if (all <= 0)
        return draw_overdue(b, c);
    at = chance_draw(c) * all;
    for (size_t i = 0; i < b->n && at >= 0; i++)
        if (weight_of(b, i) > 0) {
            drawn = i;
            at -= weight_of(b, i);
        }
    msec = time_of(b->of[drawn], b->within[drawn] + chance_draw(c) * (1 - b->within[drawn]));
    return MAX(MIN(msec, b->of[drawn]->cap_msec) - b->age_msec, 0);
}
