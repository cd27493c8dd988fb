/* SPDX-License-Identifier: MIT */

/* Runs start within the interval that `berth explain` names. The situations are random, and the estimate
 * does not know their true times: 2 pools, 8 names, up to 30 claims ahead. BERTH_TEST_SITUATIONS is the
 * number of situations of each kind. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/explain/estimate.h"
#include "base/json/format.h"
#include "cli/verbs.h"
#include "daemon/times-table.h"
#include "tests/harness/test.h"

#define NAMES 8
#define NOW (1800000000 * USEC_PER_SEC)
#define CANDIDATES 16 /* of which one is drawn: a run that is seen is more often a long one */

static struct chance chance;

static double uniform(void) {
    return chance_draw(&chance);
}

static double normal(void) {
    return sqrt(-2 * log(1 - uniform())) * cos(2 * M_PI * uniform());
}

static unsigned pick(unsigned n) {
    return (unsigned) (uniform() * n);
}

/* --- how long runs take --- */

struct kind {
    const char *name;
    unsigned seed; /* of its situations; each kind has its own */
    double sigma;  /* of the logarithm */
    double growth; /* of the time, over 64 runs */
    double second; /* factor of the time of each fourth run */
};

static const struct kind even = {"even", 2, 0.2, 1, 1}, uneven = {"uneven", 6, 0.6, 1, 1},
                         wild = {"wild", 10, 1, 1, 1}, drift = {"drift", 3, 0.3, 2, 1},
                         two_kinds = {"two kinds", 4, 0.3, 1, 8};

static double medians[NAMES];

/* Draws the time of the run that was so many runs ago. */
static double draw_time(const struct kind *kind, unsigned name, unsigned ago) {
    double msec = medians[name] * exp(kind->sigma * normal()) * pow(kind->growth, -(double) ago / 64);

    return uniform() < 0.25 ? msec * kind->second : msec;
}

/* Draws the time of a run that is seen while it holds permits: long runs are seen more often. */
static double draw_seen(const struct kind *kind, unsigned name) {
    double msec[CANDIDATES], all = 0, at;

    for (size_t i = 0; i < CANDIDATES; i++)
        all += msec[i] = draw_time(kind, name, 0);
    at = uniform() * all;
    for (size_t i = 0; i < CANDIDATES; i++)
        if ((at -= msec[i]) < 0)
            return msec[i];
    return msec[0];
}

/* --- a situation --- */

struct situation {
    json_t *pools, *usual;
    double truth[64]; /* of each claim, in the order of their ids */
    unsigned n;
};

static void add_holder(struct situation *s, const struct kind *kind, unsigned pool, unsigned permits) {
    unsigned name = pick(NAMES);
    double all = draw_seen(kind, name), age = floor(uniform() * all);
    char since[CLOCK_TEXT_SIZE];

    clock_format(NOW - (usec_t) age * USEC_PER_MSEC, since);
    s->truth[s->n] = all - age;
    json_array_append_new(json_object_get(json_array_get(s->pools, pool), "holders"),
                          json_pack("{s:o, s:s, s:o, s:i, s:s}", "claim", json_sprintf("%04x", s->n), "host",
                                    "ant", "name", json_sprintf("job%u", name), "permits", (int) permits,
                                    "since", since));
    s->n++;
}

static void add_waiter(struct situation *s, const struct kind *kind) {
    unsigned name = pick(NAMES), first = pick(2), n = uniform() < 0.3 ? 2 : 1;

    s->truth[s->n] = draw_time(kind, name, 0);
    for (unsigned i = 0; i < n; i++) {
        json_t *queue = json_object_get(json_array_get(s->pools, (first + i) % 2), "queue");

        json_array_append_new(queue,
                              json_pack("{s:o, s:s, s:o, s:i, s:i}", "claim", json_sprintf("%04x", s->n),
                                        "host", "ant", "name", json_sprintf("job%u", name), "permits",
                                        (int) (1 + pick(2)), "position", (int) json_array_size(queue) + 1));
    }
    s->n++;
}

static void add_usual(struct situation *s, const struct kind *kind, unsigned runs) {
    static struct times times;
    struct times_summary summary;

    memset(&times, 0, sizeof(times));
    for (unsigned name = 0; name < NAMES; name++) {
        char text[16];
        json_t *q = json_array();

        snprintf(text, sizeof(text), "job%u", name);
        for (unsigned ago = runs; ago > 0; ago--)
            times_add(&times, text, (usec_t) (draw_time(kind, name, ago) * 1000));
        times_summarize(&times.names[name], &summary);
        for (size_t i = 0; i < RUN_TIMES_QUANTILES; i++)
            json_array_append_new(q, json_integer(summary.q_msec[i]));
        json_array_append_new(s->usual, json_pack("{s:s, s:s, s:i, s:o}", "host", "ant", "name", text,
                                                  "runs", (int) runs, "q_ms", q));
    }
}

static void count(json_t *pool) {
    const json_t *holders = json_object_get(pool, "holders");
    json_int_t used = 0;
    json_t *holder;
    size_t i;

    json_array_foreach (holders, i, holder)
        used += format_get_number(holder, "permits");
    json_object_set_new(pool, "used", json_integer(used));
    json_object_set_new(pool, "waiting",
                        json_integer((json_int_t) json_array_size(json_object_get(pool, "queue"))));
}

static void make(struct situation *s, const struct kind *kind, unsigned runs) {
    unsigned ahead = 1 + pick(30);

    for (unsigned i = 0; i < NAMES; i++)
        medians[i] = 5000 * exp(uniform() * 4);
    *s = (struct situation){.usual = json_array(),
                            .pools = json_pack("[{s:s, s:i, s:[], s:[]}, {s:s, s:i, s:[], s:[]}]", "name",
                                               "db", "limit", 4, "holders", "queue", "name", "net", "limit",
                                               3, "holders", "queue")};
    for (unsigned pool = 0; pool < 2; pool++)
        for (unsigned left = 4 - pool, permits; left > 0; left -= permits) {
            permits = 1 + pick(left > 1 ? 2 : 1);
            add_holder(s, kind, pool, permits);
        }
    for (unsigned i = 0; i <= ahead; i++)
        add_waiter(s, kind);
    count(json_array_get(s->pools, 0));
    count(json_array_get(s->pools, 1));
    add_usual(s, kind, runs);
}

static void situation_done(struct situation *s) {
    json_decref(s->pools);
    json_decref(s->usual);
}

/* --- the estimate beside what comes true --- */

struct score {
    unsigned n, inside, below, above;
};

static double true_start(const struct situation *s, const struct queue *q, const char *claim) {
    double msec[64];
    bool is_held;

    for (size_t i = 0; i < queue_count(q); i++)
        msec[i] = s->truth[strtoul(format_get_text(queue_claim(q, i, &is_held), "claim"), NULL, 16)];
    return queue_start_time(q, &(struct queue_change){}, claim, &(struct queue_times){.msec = msec});
}

static void score_one(struct score *score, const struct kind *kind, unsigned runs) {
    _cleanup_(situation_done) struct situation s = {};
    _cleanup_(queue_freep) struct queue *q = NULL;
    _cleanup_(usuals_done) struct usuals usuals = {};
    _cleanup_(estimator_freep) struct estimator *estimator = NULL;
    _cleanup_(estimate_done) struct estimate e = {};
    char claim[16];
    double start;

    make(&s, kind, runs);
    snprintf(claim, sizeof(claim), "%04x", s.n - 1);
    TEST_INT(queue_new(&q, s.pools), 0);
    TEST_INT(usuals_make(&usuals, s.usual), 0);
    estimator = estimator_new(&(struct estimate_view){.q = q, .pools = s.pools, .usuals = &usuals, .now = NOW});
    CU_ASSERT_PTR_NOT_NULL_FATAL(estimator);
    TEST_INT(estimate_make(&e, estimator, NULL, claim), 0);
    CU_ASSERT_FATAL(e.is_known);
    start = true_start(&s, q, claim);
    score->n++;
    if (start < (double) e.low_ms)
        score->below++;
    else if (start > (double) e.high_ms)
        score->above++;
    else
        score->inside++;
}

static unsigned situations(void) {
    return (unsigned) test_count("BERTH_TEST_SITUATIONS", 400);
}

static const unsigned histories[] = {10, 20, 40, 64};

/* Adds the score of estimates from so many runs of history. */
static void add_score(struct score *all, const struct kind *kind, unsigned runs) {
    struct score s = {};

    chance.state = 1003 * runs + kind->seed;
    for (unsigned i = 0; i < situations(); i++)
        score_one(&s, kind, runs);
    if (getenv("BERTH_TEST_SITUATIONS"))
        printf("%s, %u runs: %.1f of 100 inside, %.1f before, %.1f after (%u)\n", kind->name, runs,
               100.0 * s.inside / s.n, 100.0 * s.below / s.n, 100.0 * s.above / s.n, s.n);
    all->n += s.n;
    all->inside += s.inside;
    all->below += s.below;
    all->above += s.above;
}

/* Expects 75 to 88 of 100 starts inside the interval. */
static void expect_honest(const struct score *s) {
    if (100 * s->inside < 75 * s->n || 100 * s->inside > 88 * s->n)
        printf("%u of %u inside, %u before, %u after\n", s->inside, s->n, s->below, s->above);
    CU_ASSERT(100 * s->inside >= 75 * s->n && 100 * s->inside <= 88 * s->n);
}

/* Expects at least a quarter of the starts outside on each side. */
static void expect_balanced(const struct score *s) {
    CU_ASSERT(4 * s->below >= s->n - s->inside && 4 * s->above >= s->n - s->inside);
}

/* Short histories are as reliable as long ones, because their intervals are wider. */
static void test_histories(void) {
    static const struct kind *const kinds[] = {&even, &uneven, &wild};

    for (size_t i = 0; i < ELEMENTSOF(histories); i++) {
        struct score all = {};

        for (size_t k = 0; k < ELEMENTSOF(kinds); k++)
            add_score(&all, kinds[k], histories[i]);
        expect_honest(&all);
        expect_balanced(&all);
    }
}

/* Runs that take longer and longer, and names with two kinds of runs. */
static void test_odd(void) {
    static const struct kind *const kinds[] = {&drift, &two_kinds};

    for (size_t k = 0; k < ELEMENTSOF(kinds); k++) {
        struct score all = {};

        for (size_t i = 0; i < ELEMENTSOF(histories); i++)
            add_score(&all, kinds[k], histories[i]);
        expect_honest(&all);
    }
}

/* --- too few runs, and runs that last longer than any before --- */

static struct estimate ask(const char *pools, const char *usual, const char *claim) {
    _cleanup_json_ json_t *json = json_loads(pools, 0, NULL), *times = json_loads(usual, 0, NULL);
    _cleanup_(queue_freep) struct queue *q = NULL;
    _cleanup_(usuals_done) struct usuals usuals = {};
    _cleanup_(estimator_freep) struct estimator *estimator = NULL;
    struct estimate e;

    CU_ASSERT_FATAL(json && times && queue_new(&q, json) == 0 && usuals_make(&usuals, times) == 0);
    estimator = estimator_new(&(struct estimate_view){.q = q, .pools = json, .usuals = &usuals, .now = NOW});
    CU_ASSERT_PTR_NOT_NULL_FATAL(estimator);
    TEST_INT(estimate_make(&e, estimator, NULL, claim), 0);
    estimate_done(&e);
    e.basis = NULL;
    return e;
}

#define USUAL(name, runs, msec)                                                                             \
    "{\"host\": \"ant\", \"name\": \"" name "\", \"runs\": " runs ", \"q_ms\": [" msec ", " msec ", " msec  \
    ", " msec ", " msec ", " msec ", " msec ", " msec "]}"
#define DB(holder, since)                                                                                   \
    "{\"name\": \"db\", \"limit\": 1, \"used\": 1, \"waiting\": 1, \"configured\": 1, \"holders\": "        \
    "[{\"claim\": \"h\", "                                                                                  \
    "\"host\": \"ant\", \"name\": \"" holder "\", \"permits\": 1, \"since\": \"" since                      \
    "\"}], \"queue\": [{\"claim\": \"w\", "                                                                 \
    "\"host\": \"ant\", \"name\": \"x\", \"permits\": 1, \"position\": 1, \"waiting_ms\": 0}]"

static void test_edges(void) {
    struct estimate e = ask("[" DB("a", "2027-01-15T07:59:58Z") "}]", "[" USUAL("a", "10", "5000") "]", "w");

    CU_ASSERT(e.is_known && !e.is_open); /* 1800000000 is 2027-01-15T08:00:00Z: 3 s are left */
    TEST_INT(e.low_ms, 3000);
    TEST_INT(e.high_ms, 3000);
    e = ask("[" DB("a", "2027-01-15T07:59:50Z") "}]", "[" USUAL("a", "10", "5000") "]", "w");
    CU_ASSERT(e.is_known && e.is_open && e.high_ms <= 10000);
    e = ask("[" DB("a", "2027-01-15T07:59:58Z") "}]", "[" USUAL("a", "9", "5000") "]", "w");
    CU_ASSERT(!e.is_known);
    TEST_STRING(e.why, "ant:a has run only 9 times");
    e = ask("[" DB("a", "2027-01-15T07:59:58Z") "}]",
            "[" USUAL("a", "9", "5000") ", " USUAL("x", "11", "5000") "]", "w");
    CU_ASSERT(e.is_known && e.low_ms == 3000); /* the pool's names together */
    e = ask("[" DB("a", "2027-01-15T07:59:58Z") "}]", "[]", "w");
    TEST_STRING(e.why, "no run of ant:a is known");
    /* The limit rises before the holder ends. */
    e = ask(
        "[" DB(
            "a",
            "2027-01-15T07:59:58Z") ", \"override\": {\"limit\": 1, \"until\": \"2027-01-15T08:00:01Z\"}, "
                                    "\"lowest\": {\"limit\": 2}}]",
        "[" USUAL("a", "10", "5000") ", " USUAL("x", "64", "1") "]", "w");
    CU_ASSERT(e.is_known && e.low_ms == 1000 && e.high_ms == 1000);
}

static CU_TestInfo tests[] = {
    {"histories", test_histories}, {"odd", test_odd}, {"edges", test_edges}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "explain-estimate", .pTests = tests});
