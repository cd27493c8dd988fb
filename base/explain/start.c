/* SPDX-License-Identifier: MIT */
#include "base/explain/start.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json/format.h"

/* --- holders --- */

static json_t *json_usual(const struct usual *u, double age) {
    json_t *q = json_array();
    int k = 0;

    for (size_t i = 0; i < RUN_TIMES_QUANTILES; i++)
        k |= json_array_append_new(q, json_integer((json_int_t) u->q_msec[i]));
    if (k == 0)
        return json_pack("{s:I, s:o, s:b}", "runs", u->runs, "q", q, "overdue",
                         age >= u->q_msec[RUN_TIMES_QUANTILES - 1]);
    json_decref(q);
    return NULL;
}

static json_t *holder_with_usual(const json_t *holder, const struct usuals *usuals, usec_t now) {
    const struct usual *u =
        usuals_find(usuals, format_get_text(holder, "host"), format_get_text(holder, "name"));
    json_t *copy = json_copy((json_t *) holder);

    if (copy &&
        json_object_set_new(copy, "usual", u ? json_usual(u, estimate_age(holder, now)) : json_null()) == 0)
        return copy;
    json_decref(copy);
    return NULL;
}

int start_add_usual(const struct listed *listed, const struct usuals *usuals, usec_t now) {
    json_t *holder;
    size_t n;
    int k = 0;

    for (size_t i = 0; i < listed_count(listed); i++) {
        struct listed_pool *p = listed_at(listed, i);

        p->holders = json_array();
        json_array_foreach (json_object_get(p->json, "holders"), n, holder)
            k |= json_array_append_new(p->holders, holder_with_usual(holder, usuals, now));
        k |= p->holders ? 0 : -1;
    }
    return k == 0 ? 0 : -ENOMEM;
}

/* --- the estimate --- */

static const json_t *override_of(const struct listed *listed, const char *pool, const char *claim) {
    const struct listed_pool *p = listed_find(listed, pool, claim);

    return p ? json_object_get(p->json, "override") : NULL;
}

/* Returns whether the limit of a pool keeps the run waiting forever; stores its name and reason. */
static bool is_shut(const json_t *explained, const struct listed *listed, char why[static ESTIMATE_WHY_SIZE]) {
    json_t *item;
    size_t i;

    json_array_foreach (json_object_get(explained, "pools"), i, item) {
        const json_t *reason = json_object_get(item, "why"),
                     *override = override_of(listed, format_get_text(item, "pool"), format_get_text(explained, "run"));
        const char *code = format_get_text(reason, "code");

        if ((strcmp(code, "paused") != 0 && strcmp(code, "limit-below") != 0) ||
            json_is_string(json_object_get(override, "until")))
            continue;
        snprintf(why, ESTIMATE_WHY_SIZE, "%.64s: %.120s", format_get_text(item, "pool"),
                 format_get_text(reason, "text"));
        return true;
    }
    return false;
}

static int set_estimate(json_t *explained, struct estimate *e) {
    int k = json_object_set_new(
        explained, "estimate",
        e->is_known ? json_pack("{s:I, s:I, s:I, s:b, s:f, s:i, s:O}", "low_ms", e->low_ms, "mid_ms",
                                e->mid_ms, "high_ms", e->high_ms, "open", e->is_open, "chance",
                                ESTIMATE_CHANCE, "samples", ESTIMATE_SAMPLES, "basis", e->basis)
                    : json_null());

    return k | json_object_set_new(explained, "no_estimate",
                                   e->is_known || !e->why[0] ? json_null() : json_string(e->why));
}

int start_add_estimate(json_t *explained, struct estimator *s, const struct listed *listed, const char *why) {
    _cleanup_(estimate_done) struct estimate e = {};
    int k = 0;

    if (why || strcmp(format_get_text(explained, "state"), "waiting") != 0)
        snprintf(e.why, sizeof(e.why), "%.190s", why ? why : "");
    else if (!is_shut(explained, listed, e.why))
        k = estimate_make(&e, s, NULL, format_get_text(explained, "run"));
    return k < 0 || set_estimate(explained, &e) < 0 ? -ENOMEM : 0;
}

/* --- for people --- */

/* Returns the step to which a time is rounded. */
static json_int_t step_of(json_int_t msec) {
    static const struct {
        json_int_t below, step; /* s */
    } steps[] = {{10, 0}, {60, 1}, {600, 10}, {3600, 60}, {36000, 600}, {86400, 3600}};

    if (msec < 1000)
        return msec < 100 ? 1 : 10;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        if (msec < 1000 * steps[i].below)
            return steps[i].step > 0 ? 1000 * steps[i].step : 100;
    return (json_int_t) 12 * 3600 * 1000;
}

const char *start_format_span(json_int_t low_ms, json_int_t high_ms, char buffer[static START_SPAN_SIZE]) {
    json_int_t low = low_ms / step_of(low_ms) * step_of(low_ms), step = step_of(high_ms);
    json_int_t high = (high_ms + step - 1) / step * step;
    char from[FORMAT_SIZE], to[FORMAT_SIZE];

    if (high_ms == 0)
        snprintf(buffer, START_SPAN_SIZE, "at once");
    else
        snprintf(buffer, START_SPAN_SIZE, "in %.32s to %.32s", format_msec(low, from),
                 format_msec(high, to));
    return buffer;
}
