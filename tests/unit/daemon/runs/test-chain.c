/* SPDX-License-Identifier: MIT */

/* Attempts: which ends are retried, when, and why not. */

#include "daemon/runs/chain.h"

#include <stdlib.h>
#include <string.h>

#include "tests/harness/draw.h"
#include "tests/harness/test.h"

#define SEC USEC_PER_SEC
#define RUN "00000000000000000000000000000000"
#define NOW (2000000000 * SEC)

static const struct retry_rule default_rules[] = {{.kind = RETRY_FAILURE},
                                                  {.kind = RETRY_TIMEOUT},
                                                  {.kind = RETRY_LEASE_LOST},
                                                  {.kind = RETRY_GUARD_DIED},
                                                  {.kind = RETRY_HOST_LOST}};

static struct job_retry make_retry(void) {
    return (struct job_retry){
        .retries = 3,
        .on = {(struct retry_rule *) default_rules, ELEMENTSOF(default_rules)},
        .delay_usec = 30 * SEC,
        .delay_max_usec = 900 * SEC,
        .within_usec = USEC_INFINITY,
        .success = {{1}},
    };
}

static struct run_end make_end(enum run_result result, int exit_code, int signal) {
    return (struct run_end){.result = result, .exit_code = exit_code, .signal = signal};
}

static struct chain make_chain(uint32_t attempt) {
    return (struct chain){.first_run = RUN, .queued_realtime = NOW, .attempt = attempt};
}

/* ---- ends ---- */

static void test_ends(void) {
    static const struct {
        enum run_result result;
        enum chain_end end;
    } rows[] = {
        {RUN_RESULT_SUCCESS, CHAIN_END_GOOD},    {RUN_RESULT_FAILURE, CHAIN_END_BAD},
        {RUN_RESULT_TIMEOUT, CHAIN_END_BAD},     {RUN_RESULT_STOPPED, CHAIN_END_NEUTRAL},
        {RUN_RESULT_LEASE_LOST, CHAIN_END_BAD},  {RUN_RESULT_QUEUE_TIMEOUT, CHAIN_END_BAD},
        {RUN_RESULT_NOT_STARTED, CHAIN_END_BAD}, {RUN_RESULT_GUARD_DIED, CHAIN_END_BAD},
        {RUN_RESULT_HOST_LOST, CHAIN_END_BAD},
    };

    for (size_t i = 0; i < ELEMENTSOF(rows); i++)
        TEST_INT(chain_judge(rows[i].result), rows[i].end);
}

static void test_success_on(void) {
    struct job_retry retry = make_retry();

    TEST_INT(chain_result(&retry, RUN_RESULT_SUCCESS, 0), RUN_RESULT_SUCCESS);
    TEST_INT(chain_result(&retry, RUN_RESULT_FAILURE, 24), RUN_RESULT_FAILURE);
    retry.success = (struct exit_statuses){{1 << 24, 0, 0, UINT64_C(1) << 63}}; /* 24 and 255, not 0 */
    TEST_INT(chain_result(&retry, RUN_RESULT_FAILURE, 24), RUN_RESULT_SUCCESS);
    TEST_INT(chain_result(&retry, RUN_RESULT_FAILURE, 255), RUN_RESULT_SUCCESS);
    TEST_INT(chain_result(&retry, RUN_RESULT_FAILURE, 23), RUN_RESULT_FAILURE);
    TEST_INT(chain_result(&retry, RUN_RESULT_SUCCESS, 0), RUN_RESULT_FAILURE);
    TEST_INT(chain_result(&retry, RUN_RESULT_FAILURE, -1), RUN_RESULT_FAILURE); /* by a signal */
    TEST_INT(chain_result(&retry, RUN_RESULT_TIMEOUT, 24), RUN_RESULT_TIMEOUT);
    TEST_INT(chain_result(&retry, RUN_RESULT_STOPPED, 24), RUN_RESULT_STOPPED);
}

/* ---- what is retried ---- */

static enum chain_next next_of(const struct job_retry *retry, uint32_t attempt, struct run_end end) {
    struct chain chain = make_chain(attempt);

    return chain_decide(retry, &chain, &end, NOW).next;
}

static const char *reason_of(const struct job_retry *retry, uint32_t attempt, struct run_end end,
                             usec_t now) {
    struct chain chain = make_chain(attempt);
    struct chain_decision decision = chain_decide(retry, &chain, &end, now);

    switch (decision.next) {
    case CHAIN_NEXT_NOTHING:
        return "nothing";
    case CHAIN_NEXT_RETRY:
        return "retry";
    case CHAIN_NEXT_GIVE_UP:
        break;
    }
    return chain_reason_name(decision.reason);
}

static void test_reasons(void) {
    struct job_retry retry = make_retry();
    const struct run_end failure = make_end(RUN_RESULT_FAILURE, 1, -1);

    TEST_STRING(reason_of(&retry, 1, failure, NOW), "retry");
    TEST_STRING(reason_of(&retry, 3, failure, NOW), "retry");
    TEST_STRING(reason_of(&retry, 4, failure, NOW), "attempts"); /* 1 + retry */
    TEST_STRING(reason_of(&retry, 5, failure, NOW), "attempts"); /* a reload lowered retry */
    TEST_STRING(reason_of(&retry, 4, make_end(RUN_RESULT_SUCCESS, 0, -1), NOW), "nothing");
    TEST_STRING(reason_of(&retry, 1, make_end(RUN_RESULT_STOPPED, -1, 15), NOW), "stopped");
    TEST_STRING(reason_of(&retry, 1, make_end(RUN_RESULT_NOT_STARTED, -1, -1), NOW), "not-retried");
    TEST_STRING(reason_of(&retry, 1, make_end(RUN_RESULT_QUEUE_TIMEOUT, -1, -1), NOW), "not-retried");
    retry.retries = 0;
    TEST_STRING(reason_of(&retry, 1, failure, NOW), "nothing");
    TEST_STRING(reason_of(&retry, 1, make_end(RUN_RESULT_STOPPED, -1, 15), NOW), "nothing");
}

/* An attempt may begin up to the last microsecond of retry-within. */
static void test_within(void) {
    struct job_retry retry = make_retry();
    const struct run_end failure = make_end(RUN_RESULT_FAILURE, 1, -1);
    struct chain chain = make_chain(1);
    usec_t delay = chain_decide(&retry, &chain, &failure, NOW).delay_usec;

    retry.within_usec = 3600 * SEC;
    TEST_STRING(reason_of(&retry, 1, failure, NOW + 3600 * SEC - delay), "retry");
    TEST_STRING(reason_of(&retry, 1, failure, NOW + 3600 * SEC - delay + 1), "within");
    TEST_STRING(reason_of(&retry, 4, failure, NOW + 7200 * SEC), "attempts");
    CU_ASSERT(!chain_is_late(&retry, &chain, NOW + 3600 * SEC));
    CU_ASSERT(chain_is_late(&retry, &chain, NOW + 3600 * SEC + 1));
    CU_ASSERT(!chain_is_late(&retry, &chain, NOW - 3600 * SEC)); /* the clock was set back */
    retry.within_usec = USEC_INFINITY;
    CU_ASSERT(!chain_is_late(&retry, &chain, USEC_INFINITY - 1));
}

/* Each word of retry-on matches its own ends and no others. */
static void test_rules(void) {
    static const struct run_end ends[] = {
        {.result = RUN_RESULT_FAILURE, .exit_code = 1, .signal = -1},
        {.result = RUN_RESULT_FAILURE, .exit_code = 7, .signal = -1},
        {.result = RUN_RESULT_FAILURE, .exit_code = -1, .signal = 9},
        {.result = RUN_RESULT_TIMEOUT, .exit_code = -1, .signal = 15},
        {.result = RUN_RESULT_LEASE_LOST, .exit_code = -1, .signal = 9},
        {.result = RUN_RESULT_GUARD_DIED, .exit_code = -1, .signal = -1},
        {.result = RUN_RESULT_HOST_LOST, .exit_code = -1, .signal = -1},
        {.result = RUN_RESULT_NOT_STARTED, .exit_code = -1, .signal = -1},
        {.result = RUN_RESULT_QUEUE_TIMEOUT, .exit_code = -1, .signal = -1},
        {.result = RUN_RESULT_TIMEOUT, .exit_code = 7, .signal = -1},
    };
    static const struct {
        struct retry_rule rule;
        const char *matched; /* one character for each end */
    } rows[] = {
        {{RETRY_FAILURE, false, 0, 0}, "yyy       "},       {{RETRY_EXIT, false, 7, 7}, " y        "},
        {{RETRY_EXIT, false, 0, 255}, "yy        "},        {{RETRY_EXIT, false, 2, 6}, "          "},
        {{RETRY_EXIT, false, 1, 7}, "yy        "},          {{RETRY_SIGNAL, false, 9, 9}, "  y       "},
        {{RETRY_SIGNAL, false, 15, 15}, "          "},      {{RETRY_TIMEOUT, false, 0, 0}, "   y     y"},
        {{RETRY_LEASE_LOST, false, 0, 0}, "    y     "},    {{RETRY_GUARD_DIED, false, 0, 0}, "     y    "},
        {{RETRY_HOST_LOST, false, 0, 0}, "      y   "},     {{RETRY_NOT_STARTED, false, 0, 0}, "       y  "},
        {{RETRY_QUEUE_TIMEOUT, false, 0, 0}, "        y "},
    };
    struct job_retry retry = make_retry();

    for (size_t i = 0; i < ELEMENTSOF(rows); i++)
        for (size_t k = 0; k < ELEMENTSOF(ends); k++) {
            retry.on = (struct retry_rules){(struct retry_rule *) &rows[i].rule, 1};
            TEST_INT(next_of(&retry, 1, ends[k]) == CHAIN_NEXT_RETRY, rows[i].matched[k] == 'y');
        }
}

/* test_rules() checks each rule alone. In a random list the last rule that matches decides. */
static void test_last_rule_counts(void) {
    struct job_retry retry = make_retry(), alone = make_retry();
    struct retry_rule rules[5], one;
    uint64_t seed = 7;

    for (int round = 0; round < 20000; round++) {
        struct run_end end =
            make_end((enum run_result)(RUN_RESULT_FAILURE + draw_below(&seed, 8)), (int) draw_below(&seed, 4), -1);
        size_t n = (size_t) draw_below(&seed, ELEMENTSOF(rules) + 1), i;
        bool expected;

        if (end.result == RUN_RESULT_STOPPED)
            continue;
        for (i = 0; i < n; i++) {
            int first = (int) draw_below(&seed, 3);

            rules[i] = (struct retry_rule){(enum retry_kind) draw_below(&seed, RETRY_QUEUE_TIMEOUT + 1),
                                           draw_below(&seed, 2) == 1, first, first + (int) draw_below(&seed, 2)};
        }
        for (i = n, expected = false; i > 0; i--) {
            one = rules[i - 1];
            one.is_negated = false;
            alone.on = (struct retry_rules){&one, 1};
            if (next_of(&alone, 1, end) == CHAIN_NEXT_RETRY) {
                expected = !rules[i - 1].is_negated;
                break;
            }
        }
        retry.on = (struct retry_rules){rules, n};
        if ((next_of(&retry, 1, end) == CHAIN_NEXT_RETRY) != expected)
            CU_FAIL_FATAL("a rule before the last matching one decided");
    }
}

/* ---- delays ---- */

/* Half to all of min(retry-delay * 2^(k-1), retry-delay-max), in whole ms beyond the half. */
static void test_delays(void) {
    static const usec_t bounds[] = {30, 60, 120, 240, 480, 900, 900, 900};
    struct job_retry retry = make_retry();
    usec_t low[ELEMENTSOF(bounds)], high[ELEMENTSOF(bounds)] = {};
    char run[ID_TEXT_SIZE];

    memset(low, 0xff, sizeof(low));
    for (int i = 0; i < 1000; i++) {
        snprintf(run, sizeof(run), "%032x", i);
        for (uint32_t k = 1; k <= ELEMENTSOF(bounds); k++) {
            usec_t delay = chain_delay(&retry, run, k), bound = bounds[k - 1] * SEC;

            CU_ASSERT(delay >= bound / 2 && delay < bound);
            TEST_INT(delay, chain_delay(&retry, run, k));
            TEST_INT(delay % USEC_PER_MSEC, 0);
            low[k - 1] = delay < low[k - 1] ? delay : low[k - 1];
            high[k - 1] = delay > high[k - 1] ? delay : high[k - 1];
        }
    }
    for (size_t k = 0; k < ELEMENTSOF(bounds); k++) { /* the delays cover the whole range */
        CU_ASSERT(low[k] < bounds[k] * SEC * 51 / 100);
        CU_ASSERT(high[k] > bounds[k] * SEC * 99 / 100);
    }
}

static void test_delays_at_the_ends(void) {
    struct job_retry retry = make_retry();

    CU_ASSERT(chain_delay(&retry, RUN, UINT32_MAX) <= retry.delay_max_usec);
    retry.delay_usec = retry.delay_max_usec = USEC_PER_MSEC;
    TEST_INT(chain_delay(&retry, RUN, 1), 500);
    retry.delay_usec = INT64_C(3650) * 86400 * 1000000 - 1;
    retry.delay_max_usec = INT64_C(3650) * 86400 * 1000000;
    CU_ASSERT(chain_delay(&retry, RUN, 1001) >= retry.delay_max_usec / 2);
    CU_ASSERT(chain_delay(&retry, RUN, 1001) <= retry.delay_max_usec);
}

/* ---- restarts ---- */

static void test_restarts(void) {
    struct job_retry retry = make_retry();

    CU_ASSERT(!chain_restarts(&retry, RUN_RESULT_FAILURE));
    retry.restart = JOB_RESTART_ON_FAILURE;
    CU_ASSERT(chain_restarts(&retry, RUN_RESULT_FAILURE));
    CU_ASSERT(chain_restarts(&retry, RUN_RESULT_HOST_LOST));
    CU_ASSERT(!chain_restarts(&retry, RUN_RESULT_SUCCESS));
    CU_ASSERT(!chain_restarts(&retry, RUN_RESULT_STOPPED));
    retry.restart = JOB_RESTART_ALWAYS;
    CU_ASSERT(chain_restarts(&retry, RUN_RESULT_SUCCESS));
    CU_ASSERT(!chain_restarts(&retry, RUN_RESULT_STOPPED));
}

/* restart = "always" and a command that ends at once: at most 12 starts in an hour. */
static void test_restarts_of_an_hour(void) {
    struct job_retry retry = make_retry();
    unsigned most = 0, least = 1000;

    for (int job = 0; job < 1000; job++) {
        usec_t t = 0;
        uint32_t n_quick = 0;
        unsigned n = 0;

        for (; t < 3600 * SEC && n <= 12; n++) {
            char run[ID_TEXT_SIZE];

            snprintf(run, sizeof(run), "%016x%016x", job, n);
            n_quick = chain_count_quick(&retry, n_quick, USEC_PER_MSEC);
            t += USEC_PER_MSEC + chain_restart_delay(&retry, run, n_quick);
        }
        most = n > most ? n : most;
        least = n < least ? n : least;
    }
    CU_ASSERT(most <= 12);
    CU_ASSERT(least >= 8);
}

static void test_quick_ends(void) {
    struct job_retry retry = make_retry();

    TEST_INT(chain_count_quick(&retry, 0, 0), 1);
    TEST_INT(chain_count_quick(&retry, 6, 899 * SEC), 7);
    TEST_INT(chain_count_quick(&retry, 6, 900 * SEC), 0);
    TEST_INT(chain_count_quick(&retry, UINT32_MAX, 0), UINT32_MAX);
    CU_ASSERT(chain_restart_delay(&retry, RUN, 0) <=
              30 * SEC); /* after a run that was not quick: as after the first end */
    TEST_INT(chain_restart_delay(&retry, RUN, 0), chain_restart_delay(&retry, RUN, 1));
    CU_ASSERT(chain_restart_delay(&retry, RUN, 6) >= 450 * SEC);
}

static CU_TestInfo tests[] = {
    {"ends", test_ends},
    {"success-on", test_success_on},
    {"reasons", test_reasons},
    {"within", test_within},
    {"rules", test_rules},
    {"last-rule-counts", test_last_rule_counts},
    {"delays", test_delays},
    {"delays-at-the-ends", test_delays_at_the_ends},
    {"restarts", test_restarts},
    {"restarts-of-an-hour", test_restarts_of_an_hour},
    {"quick-ends", test_quick_ends},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "chain", .pTests = tests});
