/* SPDX-License-Identifier: MIT */

/* When hosts ask for the due times of a job that they share. */

#include "daemon/jobs/turns.h"
#include "tests/harness/test.h"

#define S USEC_PER_SEC

static usec_t wait_of(const char *host, char **prefer, int64_t due) {
    struct settings settings = {.namespace = "berth"};
    struct job_settings job = {.name = "j", .triggers.sharing = {.on = JOB_ON_ANY, .prefer = prefer}};

    (void) snprintf(settings.host, sizeof(settings.host), "%s", host);
    return turns_wait(&settings, &job, due);
}

/* The hosts ask within a second, and each is the first of some due times. */
static void test_spread(void) {
    static const char *const names[] = {"ant", "bee", "cat"};
    unsigned first[3] = {};

    for (int64_t due = 1735693200; due < 1735693200 + 600 * 60; due += 60) {
        usec_t best = USEC_INFINITY;
        size_t winner = 0;

        for (size_t i = 0; i < 3; i++) {
            usec_t wait = wait_of(names[i], NULL, due);

            CU_ASSERT(wait < S);
            TEST_INT(wait, wait_of(names[i], NULL, due));
            if (wait < best) {
                best = wait;
                winner = i;
            }
        }
        first[winner]++;
    }
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT(first[i] > 140 && first[i] < 260);
}

static void test_prefer(void) {
    char *prefer[] = {(char *) "cat", (char *) "ant", NULL};

    TEST_INT(wait_of("cat", prefer, 60), 0);
    TEST_INT(wait_of("ant", prefer, 60), 2 * S);
    CU_ASSERT(wait_of("bee", prefer, 60) >= 4 * S);
    CU_ASSERT(wait_of("bee", prefer, 60) < 5 * S);
}

static CU_TestInfo tests[] = {
    {"the hosts ask in another order at each due time", test_spread},
    {"preferred hosts ask first", test_prefer},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "turn-wait", .pTests = tests});
