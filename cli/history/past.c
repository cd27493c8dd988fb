/* SPDX-License-Identifier: MIT */
#include "cli/history/past.h"

#include <errno.h>
#include <string.h>
#include <sys/param.h>

#include "base/demand.h"

static int compare_entries(const void *a, const void *b) {
    const struct entry *x = *(struct entry *const *) a, *y = *(struct entry *const *) b;
    int c = strcmp(x->run, y->run);

    return c != 0 ? c : x->time != y->time ? (x->time < y->time ? -1 : 1) : (x < y ? -1 : x > y);
}

static int compare_pasts(const void *a, const void *b) {
    const struct past *x = a, *y = b;

    return x->first != y->first ? (x->first < y->first ? -1 : 1) : strcmp(x->run, y->run);
}

static void past_set_time(usec_t *time, const struct entry *e) {
    if (*time == 0)
        *time = e->time;
}

static void past_end(struct past *p, const struct entry *e, const char *result) {
    past_set_time(&p->ended, e);
    p->result = e->result ? e->result : result;
    p->exit_code = e->exit.code;
    p->signal = e->exit.signal;
    p->run_ms = e->took.run_ms >= 0 ? e->took.run_ms : p->run_ms;
}

/* Notes grant and release. If a grant was given back, only the next one counts. A claim that is renewed
 * after a lost lease keeps its first grant. */
static void past_add_hold(struct past *p, const struct entry *e) {
    if (entry_is(e, "granted") && p->hold.from == 0) {
        p->hold.from = e->time;
        p->hold.wait_ms = e->took.wait_ms;
    } else if (entry_is(e, "released")) {
        past_set_time(&p->hold.to, e);
        if (e->result && strcmp(e->result, "not-started") == 0) /* it waits again */
            p->hold.from = p->hold.to = 0;
    }
}

static void past_add_entry(struct past *p, const struct entry *e) {
    past_set_time(&p->first, e);
    p->name = e->job ? e->job : p->name;
    p->pools = e->pools ? e->pools : p->pools;
    p->host = e->host[0] ? e->host : p->host;
    p->due = e->origin.due ? e->origin.due : p->due;
    p->trigger = e->origin.trigger ? e->origin.trigger : p->trigger;
    /* `retry` and `gave-up` name another attempt than that of the run. */
    if (e->origin.attempt > 0 && !entry_is(e, "retry") && !entry_is(e, "gave-up")) {
        p->attempt = e->origin.attempt;
        p->first_run = e->origin.first_run;
    }
    p->token = e->token > 0 ? e->token : p->token;
    if (e->boot && !entry_is_of_another(e))
        p->boot = e->boot;
    past_add_hold(p, e);
    p->wait_ms = e->took.wait_ms >= 0 ? e->took.wait_ms : p->wait_ms;
    if (entry_is(e, "queued") || entry_is(e, "parked"))
        past_set_time(&p->queued, e);
    else if (entry_is(e, "granted"))
        past_set_time(&p->granted, e);
    else if (entry_is(e, "started"))
        past_set_time(&p->started, e);
    else if (entry_is(e, "exited") || entry_is(e, "withdrawn"))
        past_end(p, e, NULL);
    else if (entry_is(e, "refused"))
        past_end(p, e, "not-started");
    else if (entry_is(e, "reclaimed") && p->ended == 0)
        past_end(p, e, "reclaimed"); /* an entry of its own host, if it returns, is more exact */
}

/* entries: those of runs, sorted by run. */
static size_t make_pasts(struct entry **entries, size_t n, struct past *pasts) {
    size_t n_pasts = 0;

    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(entries[i]->run, entries[i - 1]->run) != 0)
            pasts[n_pasts++] = (struct past){.run = entries[i]->run,
                                             .name = "",
                                             .host = "",
                                             .pools = "",
                                             .hold.wait_ms = -1,
                                             .wait_ms = -1,
                                             .run_ms = -1,
                                             .exit_code = -1,
                                             .signal = -1};
        past_add_entry(&pasts[n_pasts - 1], entries[i]);
    }
    qsort(pasts, n_pasts, sizeof(*pasts), compare_pasts);
    return n_pasts;
}

int pasts_make(const struct entries *e, struct past **ret, size_t *ret_n) {
    _cleanup_free_ struct entry **with_run = calloc(e->n + 1, sizeof(*with_run));
    _cleanup_free_ struct past *pasts = calloc(e->n + 1, sizeof(*pasts));
    size_t n = 0;

    if (!with_run || !pasts)
        return -ENOMEM;
    for (size_t i = 0; i < e->n; i++)
        if (e->items[i].run)
            with_run[n++] = &e->items[i];
    qsort(with_run, n, sizeof(struct entry *), compare_entries);
    *ret_n = make_pasts(with_run, n, pasts);
    *ret = steal_pointer(&pasts);
    return 0;
}

/* --- runs from entries --- */

usec_t past_end_time(const struct past *p) {
    return p->ended > 0 ? p->ended : p->hold.to;
}

bool past_is_open(const struct past *p) {
    return past_end_time(p) == 0;
}

bool past_is_running(const struct past *p) {
    return past_is_open(p) && (p->hold.from > 0 || (p->granted == 0 && p->started > 0));
}

/* Prefers the wait that berthd measured with a monotonic clock to the difference of two times of the
 * journal. */
int64_t past_waited_ms(const struct past *p) {
    if (p->hold.from == 0 || p->hold.wait_ms >= 0)
        return p->hold.from == 0 ? -1 : p->hold.wait_ms;
    return p->queued > 0 && p->queued <= p->hold.from
               ? (int64_t) ((p->hold.from - p->queued) / USEC_PER_MSEC)
               : -1;
}

int64_t past_held_ms(const struct past *p) {
    usec_t to = p->hold.to > 0 ? p->hold.to : p->ended;

    if (p->hold.from == 0 || to < p->hold.from)
        return p->run_ms;
    return MAX((int64_t) ((to - p->hold.from) / USEC_PER_MSEC), p->run_ms);
}

bool past_uses(const struct past *p, const char *pool) {
    struct demands demands;

    if (demands_parse(p->pools, &demands) != 0)
        return false;
    for (size_t i = 0; i < demands.n; i++)
        if (strcmp(demands.items[i].pool, pool) == 0 || pool_name_matches(pool, demands.items[i].pool))
            return true;
    return false;
}
