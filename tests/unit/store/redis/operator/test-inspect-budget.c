/* SPDX-License-Identifier: MIT */
#include "store/redis/operator/inspect-budget.h"
#include "tests/harness/test.h"

#define T0 (1000 * USEC_PER_SEC)
#define MSEC USEC_PER_MSEC

static void test_credit(void) {
    struct inspect_budget b = {0};

    TEST_INT(inspect_budget_wait(&b, T0), 0);
    inspect_budget_begin(&b, T0);
    inspect_budget_spend(&b, T0, 50 * MSEC);
    TEST_INT(inspect_budget_wait(&b, T0), 0); /* no more, but no less either */
    inspect_budget_spend(&b, T0, MSEC);
    TEST_INT(inspect_budget_wait(&b, T0), 500 * MSEC);
    TEST_INT(inspect_budget_wait(&b, T0 + 200 * MSEC), 300 * MSEC);
    TEST_INT(inspect_budget_wait(&b, T0 + 500 * MSEC), 0);
}

/* The budget is 2 ms a second, however long the calls go on. */
static void test_rate(void) {
    struct inspect_budget b = {0};
    usec_t now = T0, spent = 0;

    while (now < T0 + 1000 * USEC_PER_SEC) {
        usec_t wait = inspect_budget_wait(&b, now);

        if (wait > 0) {
            now += wait;
            continue;
        }
        inspect_budget_begin(&b, now);
        inspect_budget_spend(&b, now, 700);
        spent += 700;
        now += MSEC;
    }
    CU_ASSERT(spent >= 2000 * MSEC && spent <= 2100 * MSEC);
    CU_ASSERT(b.all_usec == spent && b.n_calls == spent / 700);
}

/* A call beyond the budget delays the next one by two seconds at most; a pause clears the debt. */
static void test_bounds(void) {
    struct inspect_budget b = {0};

    for (unsigned i = 0; i < 10; i++) {
        inspect_budget_begin(&b, T0);
        inspect_budget_spend(&b, T0, USEC_PER_SEC);
    }
    TEST_INT(inspect_budget_wait(&b, T0), 2 * USEC_PER_SEC);
    TEST_INT(inspect_budget_wait(&b, T0 + 2 * USEC_PER_SEC), 0);
    inspect_budget_begin(&b, T0 + 2 * USEC_PER_SEC);
    TEST_INT(inspect_budget_wait(&b, T0 + 30 * USEC_PER_SEC), 0);
    inspect_budget_spend(&b, T0 + 30 * USEC_PER_SEC, 48 * MSEC); /* all but 2 of the credit are back after 25 s */
    TEST_INT(inspect_budget_wait(&b, T0 + 30 * USEC_PER_SEC), 0);
}

static CU_TestInfo tests[] = {{"credit", test_credit}, {"rate", test_rate}, {"bounds", test_bounds}, CU_TEST_INFO_NULL};

TEST_SUITES({"inspect-budget", NULL, NULL, NULL, NULL, tests});
