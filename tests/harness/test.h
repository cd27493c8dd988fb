/* SPDX-License-Identifier: MIT */
#pragma once

/* The main of each test program, quiet unless something failed. A program prints a line "FAIL: SUITE / TEST:
 * PLACE: CONDITION" for each failure and "SKIP: TEST: WHY" for each skipped test, and ends with "N passed, N
 * failed, N skipped", which tests/run.sh adds up. Tests that are shell scripts do the same. */

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

/* Defines the suites and the main of a test program: TEST_SUITES({.pName = "duration", .pTests = tests}). */
#define TEST_SUITES(...) CU_SuiteInfo test_suites[] = {__VA_ARGS__, CU_SUITE_INFO_NULL}
extern CU_SuiteInfo test_suites[];
/* The same, where `run` runs them: TEST_MAIN(script_main(argc, argv, suites), {.pName = "keys", .pTests = tests}). */
#define TEST_MAIN(run, ...)                                          \
    int main(int argc, char **argv) {                                \
        CU_SuiteInfo suites[] = {__VA_ARGS__, CU_SUITE_INFO_NULL}; \
                                                                     \
        return run;                                                  \
    }

/* Runs the suites, which end with CU_SUITE_INFO_NULL. Returns main's exit status. With an argument only tests whose name
 * contains it are run. A fatal check in a set-up ends the program. */
int test_main(int argc, char **argv, CU_SuiteInfo *suites);

/* Leaves the test, counted as skipped; tests/run.sh shows each reason once. In CI (CI=true) a skip is a failure. */
void test_skip(const char *why);
#define TEST_SKIP(why)  \
    do {                \
        test_skip(why); \
        return;         \
    } while (0)

/* Skips a test that needs root if the user is another one. CI runs these tests as root; where it also runs
 * the suite as an ordinary user, BERTH_TEST_ROOT=elsewhere makes this skip legal. */
bool test_is_root(void);
/* Returns how often a test repeats something: the number in a variable of the environment, or by_default. Ends the test if that is
 * no number from 1 to 10 000 000. */
uint64_t test_count(const char *variable, uint64_t by_default);
#define TEST_NEEDS_ROOT()    \
    do {                     \
        if (!test_is_root()) \
            return;          \
    } while (0)

/* Ends the test. The line of the failure has this text. */
#define TEST_ABORT(...) test_abort(__FILE__, __LINE__, __VA_ARGS__)
void test_abort(const char *file, unsigned line, const char *text, ...) _printf_(3, 4);

/* Strings and numbers, shown when they differ. */
#define TEST_STRING(actual, expected) test_string(__FILE__, __LINE__, actual, expected)
#define TEST_INT(actual, expected) test_int(__FILE__, __LINE__, #actual, (long long) (actual), (long long) (expected))
void test_string(const char *file, unsigned line, const char *actual, const char *expected);
void test_int(const char *file, unsigned line, const char *what, long long actual, long long expected);
