/* SPDX-License-Identifier: MIT */

/* Which due times are begun and which are missed. The schedule is a fake: a list of seconds, or an
 * arithmetic series. */

#include "daemon/jobs/due.h"

#include <stdlib.h>

#include "tests/harness/test.h"

#define S USEC_PER_SEC
#define LIST_MAX 60

static struct {
    int64_t times[LIST_MAX]; /* ascending */
    size_t n;
    int64_t every; /* > 0: due times at its multiples instead */
    size_t n_calls;
} fake;

bool schedule_next(_unused_ const struct schedule *schedule, _unused_ const struct zone *zone, int64_t after,
                   struct schedule_due *ret) {
    fake.n_calls++;
    if (fake.every > 0) {
        *ret = (struct schedule_due){.at = (after / fake.every + 1) * fake.every};
        return true;
    }
    for (size_t i = 0; i < fake.n; i++)
        if (fake.times[i] > after) {
            *ret = (struct schedule_due){.at = fake.times[i], .entry = i};
            return true;
        }
    return false;
}

static struct due_terms terms_with(usec_t catch_up, uint32_t backlog) {
    return (struct due_terms){.catch_up_usec = catch_up, .backlog = backlog};
}

static struct due_plan plan(struct due_terms terms, int64_t mark, usec_t now) {
    struct due_plan ret = {};

    TEST_INT(due_plan(&terms, mark, now, &ret), 0);
    return ret;
}

static void every(int64_t seconds) {
    fake.every = seconds;
    fake.n = fake.n_calls = 0;
}

static void test_on_time(void) {
    struct due_plan p;

    every(60);
    p = plan(terms_with(600 * S, 1), 600, 659 * S);
    TEST_INT(p.n_begun, 0);
    TEST_INT(p.mark, 600);
    TEST_INT(p.next, 660 * S);
    p = plan(terms_with(600 * S, 1), 600, 660 * S);
    TEST_INT(p.n_begun, 1);
    TEST_INT(p.begun[0].at, 660);
    TEST_INT(p.missed.count, 0);
    TEST_INT(p.mark, 660);
    TEST_INT(p.next, 720 * S);
    due_plan_done(&p);
}

/* The age counts from the begin, splay included; catch-up = "0s" leaves two seconds. */
static void test_age(void) {
    struct due_terms terms = terms_with(600 * S, 1);
    struct due_plan p;

    every(7200);
    p = plan(terms, 1, 7800 * S);
    TEST_INT(p.n_begun, 1);
    due_plan_done(&p);
    p = plan(terms, 1, 7800 * S + 1);
    TEST_INT(p.n_begun, 0);
    TEST_INT(p.missed.count, 1);
    TEST_INT(p.mark, 7200);
    terms.splay_usec = 100 * S + 500;
    p = plan(terms, 1, 7300 * S + 499);
    TEST_INT(p.n_begun + p.missed.count, 0);
    TEST_INT(p.next, 7300 * S + 500);
    p = plan(terms, 1, 7900 * S + 500);
    TEST_INT(p.n_begun, 1);
    due_plan_done(&p);
    terms = terms_with(0, 1);
    p = plan(terms, 1, 7202 * S);
    TEST_INT(p.n_begun, 1);
    due_plan_done(&p);
    p = plan(terms, 1, 7202 * S + 1);
    TEST_INT(p.missed.count, 1);
}

static void test_backlog(void) {
    struct due_plan p;

    every(3600);
    p = plan(terms_with(86400 * S, 24), 36000, 72000 * S);
    TEST_INT(p.n_begun, 10);
    TEST_INT(p.begun[0].at, 39600);
    TEST_INT(p.begun[9].at, 72000);
    due_plan_done(&p);
    p = plan(terms_with(86400 * S, 1), 36000, 72000 * S);
    TEST_INT(p.n_begun, 1);
    TEST_INT(p.begun[0].at, 72000);
    TEST_INT(p.missed.count, 0);
    TEST_INT(p.surplus.count, 9);
    TEST_INT(p.surplus.first, 39600);
    TEST_INT(p.surplus.last, 68400);
    due_plan_done(&p);
}

static void test_clock_set_back(void) {
    struct due_plan p;

    every(60);
    p = plan(terms_with(600 * S, 1), 36000, 36000 * S - 10800 * S);
    TEST_INT(p.clock_was_set, 0);
    TEST_INT(p.mark, 36000);
    TEST_INT(p.next, 36060 * S);
    p = plan(terms_with(600 * S, 1), 36000, 36000 * S - 10801 * S);
    TEST_INT(p.clock_was_set, 1);
    TEST_INT(p.mark, 25199);
    TEST_INT(p.n_begun + p.missed.count, 0);
    TEST_INT(p.next, 25200 * S);
}

/* Ten years of minutes are five million due times; due_plan() looks at few of them. */
static void test_ten_years(void) {
    const int64_t from = 1700000040, until = from + 3653 * INT64_C(86400);
    struct due_plan p;

    every(60);
    p = plan(terms_with(600 * S, 1000), from, (usec_t) until * S);
    TEST_INT(p.n_begun, 11);
    TEST_INT(p.missed.count, DUE_COUNT_MAX);
    TEST_INT(p.missed.first, from + 60);
    TEST_INT(p.missed.last, until - 660);
    TEST_INT(p.mark, until);
    due_plan_done(&p);
    CU_ASSERT(fake.n_calls < 20000);
    every(60);
    p = plan(terms_with(20 * UINT64_C(31557600) * S, 1000), from, (usec_t) until * S);
    TEST_INT(p.n_begun, 1000);
    TEST_INT(p.begun[0].at, until - 999 * 60);
    due_plan_done(&p);
    CU_ASSERT(fake.n_calls < 20000);
}

static void test_never(void) {
    struct due_plan p;

    every(0);
    p = plan(terms_with(600 * S, 1), 5, 100 * S);
    TEST_INT(p.next == USEC_INFINITY, 1);
    TEST_INT(p.mark, 5);
}

/* --- by the definition --- */

static void expect(const struct due_terms *terms, int64_t mark, usec_t now, struct due_plan *ret) {
    int64_t due[LIST_MAX] = {}, now_seconds = (int64_t) (now / S);
    usec_t age = terms->catch_up_usec > 2 * S ? terms->catch_up_usec : 2 * S;
    size_t n = 0, n_begun = 0, n_fresh = 0;

    *ret = (struct due_plan){.mark = mark, .next = USEC_INFINITY};
    if (now_seconds < mark - 3 * 3600) {
        ret->clock_was_set = true;
        ret->mark = now_seconds;
    }
    for (size_t i = 0; i < fake.n; i++) {
        usec_t begin = (usec_t) fake.times[i] * S + terms->splay_usec;

        if (fake.times[i] > ret->mark && begin <= now)
            due[n++] = fake.times[i];
        else if (fake.times[i] > ret->mark && ret->next == USEC_INFINITY)
            ret->next = begin;
    }
    while (n_fresh < n && now - ((usec_t) due[n - 1 - n_fresh] * S + terms->splay_usec) <= age)
        n_fresh++;
    n_begun = n_fresh < terms->backlog ? n_fresh : terms->backlog;
    ret->n_begun = n_begun;
    ret->missed = (struct due_missed){.count = n - n_fresh};
    if (n > n_fresh) {
        ret->missed.first = due[0];
        ret->missed.last = due[n - n_fresh - 1];
    }
    ret->surplus = (struct due_missed){.count = n_fresh - n_begun};
    if (n_fresh > n_begun) {
        ret->surplus.first = due[n - n_fresh];
        ret->surplus.last = due[n - n_begun - 1];
    }
    if (n > 0)
        ret->mark = due[n - 1];
}

static int64_t random_up_to(int64_t max) {
    return random() % (max + 1);
}

static bool is_random_case_right(void) {
    const int64_t span = 1 + random_up_to(random() % 2 ? 200000 : 300);
    struct due_terms terms = {
        .splay_usec = random() % 2 ? (usec_t) random_up_to(span) * S / 2 : 0,
        .catch_up_usec = (usec_t) random_up_to(span) * S,
        .backlog = 1 + (uint32_t) random_up_to(random() % 2 ? 3 : 70),
    };
    int64_t mark = random_up_to(span);
    usec_t now = (usec_t) random_up_to(span) * S + (random() % 2 ? (usec_t) random_up_to(999999) : 0);
    struct due_plan got, expected;
    bool is_right;

    fake.every = 0;
    fake.n = 0;
    for (int64_t at = random_up_to(10); fake.n < LIST_MAX && at <= span;
         at += 1 + random_up_to(1 + span / 20))
        fake.times[fake.n++] = at;
    expect(&terms, mark, now, &expected);
    got = plan(terms, mark, now);
    is_right = got.mark == expected.mark && got.n_begun == expected.n_begun && got.next == expected.next &&
               got.missed.count == expected.missed.count && got.missed.first == expected.missed.first &&
               got.missed.last == expected.missed.last && got.surplus.count == expected.surplus.count &&
               got.surplus.first == expected.surplus.first && got.surplus.last == expected.surplus.last && got.clock_was_set == expected.clock_was_set;
    for (size_t i = 1; i < got.n_begun; i++)
        is_right = is_right && got.begun[i].at > got.begun[i - 1].at;
    if (got.n_begun > 0)
        is_right = is_right && got.begun[got.n_begun - 1].at == got.mark &&
                   (got.surplus.count == 0 || got.begun[0].at > got.surplus.last);
    due_plan_done(&got);
    return is_right;
}

static void test_as_defined(void) {
    unsigned n_wrong = 0;

    srandom(1);
    for (unsigned i = 0; i < 100000; i++)
        n_wrong += !is_random_case_right();
    TEST_INT(n_wrong, 0);
}

static CU_TestInfo tests[] = {
    {"on-time", test_on_time},       {"age", test_age},
    {"backlog", test_backlog},       {"clock-set-back", test_clock_set_back},
    {"ten-years", test_ten_years},   {"never", test_never},
    {"as-defined", test_as_defined}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "due", .pTests = tests});
