/* SPDX-License-Identifier: MIT */
#include "tests/harness/test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"

#define TESTS_MAX 256 /* of one program */

static unsigned n_skipped;
static bool is_skipped; /* the current test */
static struct {
    CU_pTest test;
    CU_TestFunc run;
    CU_SetUpFunc set_up;
    CU_TearDownFunc tear_down;
} functions[TESTS_MAX];
static size_t n_functions, current;
static bool is_set_up; /* for the current test */

static bool is_set(const char *variable, const char *value) {
    const char *is = getenv(variable);

    return is && strcmp(is, value) == 0;
}

static void skip(const char *why, bool legal) {
    is_skipped = true;
    printf("SKIP: %s: %s\n", CU_get_current_test()->pName, why);
    if (is_set("CI", "true") && !legal)
        CU_FAIL("skipped in CI");
}

uint64_t test_count(const char *variable, uint64_t by_default) {
    const char *text = getenv(variable);
    uint64_t n = by_default;

    if (text && (number_parse(text, 10000000, &n) < 0 || n == 0)) {
        printf("%s is no number\n", variable);
        CU_FAIL_FATAL("a variable of the environment is no number");
    }
    return n;
}

/* A test that failed is not skipped as well: each test has one result. */
static void count_skipped(const CU_pTest test, const CU_pSuite suite, const CU_pFailureRecord failure) {
    (void) test;
    (void) suite;
    if (is_skipped && !failure)
        n_skipped++;
    is_skipped = false;
}

void test_skip(const char *why) {
    skip(why, false);
}

bool test_is_root(void) {
    if (geteuid() == 0)
        return true;
    skip("needs root", is_set("BERTH_TEST_ROOT", "elsewhere"));
    return false;
}

void test_string(const char *file, unsigned line, const char *actual, const char *expected) {
    char text[1024];
    bool equal = actual && expected ? strcmp(actual, expected) == 0 : actual == expected;

    snprintf(text, sizeof(text), "is \"%s\", expected \"%s\"", actual ? actual : "(null)", expected ? expected : "(null)");
    CU_assertImplementation(equal, line, text, file, "", CU_FALSE);
}

void test_int(const char *file, unsigned line, const char *what, long long actual, long long expected) {
    char text[512];

    snprintf(text, sizeof(text), "%s is %lld, expected %lld", what, actual, expected);
    CU_assertImplementation(actual == expected, line, text, file, "", CU_FALSE);
}

void test_abort(const char *file, unsigned line, const char *text, ...) {
    char said[512];
    va_list args;

    va_start(args, text);
    (void) vsnprintf(said, sizeof(said), text, args);
    va_end(args);
    CU_assertImplementation(CU_FALSE, line, said, file, "", CU_TRUE);
}

/* One line, which tests/failures.sh repeats; further lines of a text that differs are indented. */
static void show_failure(const CU_FailureRecord *f) {
    printf("FAIL: %s / %s: %s:%u: ", f->pSuite ? f->pSuite->pName : "?", f->pTest ? f->pTest->pName : "(suite)",
           f->strFileName ? f->strFileName : "?", f->uiLineNumber);
    for (const char *at = f->strCondition; at && *at; at++) {
        putchar(*at);
        if (*at == '\n')
            fputs("    ", stdout);
    }
    putchar('\n');
}

static void show_failures(void) {
    for (CU_pFailureRecord f = CU_get_failure_list(); f; f = f->pNext)
        show_failure(f);
}

/* CUnit calls a set-up where a fatal check cannot leave it: the set-up would go on, maybe for ever. So it is
 * a part of the test here. */
static void run_test(void) {
    is_set_up = false;
    for (current = 0; functions[current].test != CU_get_current_test();)
        current++;
    if (functions[current].set_up)
        functions[current].set_up();
    is_set_up = true;
    functions[current].run();
}

/* What a failed set-up left is not known, so the program ends there. */
static void end_test(void) {
    if (!is_set_up) {
        show_failures();
        exit(1);
    }
    if (functions[current].tear_down)
        functions[current].tear_down();
}

static void take_functions(void) {
    for (CU_pSuite s = CU_get_registry()->pSuite; s; s = s->pNext) {
        for (CU_pTest t = s->pTest; t; t = t->pNext) {
            if (n_functions == TESTS_MAX)
                abort();
            functions[n_functions].test = t;
            functions[n_functions].run = t->pTestFunc;
            functions[n_functions].set_up = s->pSetUpFunc;
            functions[n_functions++].tear_down = s->pTearDownFunc;
            t->pTestFunc = run_test;
        }
        s->pSetUpFunc = NULL;
        s->pTearDownFunc = end_test;
    }
}

static void choose(const char *part) {
    for (CU_pSuite s = CU_get_registry()->pSuite; s; s = s->pNext)
        for (CU_pTest t = s->pTest; t; t = t->pNext)
            (void) CU_set_test_active(t, strstr(t->pName, part) != NULL);
}

int test_main(int argc, char **argv, CU_SuiteInfo *suites) {
    unsigned run, failed;

    setvbuf(stdout, NULL, _IOLBF, 0);
    (void) unsetenv("NOTIFY_SOCKET"); /* the tests may run in a service; their berthds are none */
    if (CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS) {
        fprintf(stderr, "%s: %s\n", argv[0], CU_get_error_msg());
        return 1;
    }
    take_functions();
    CU_set_fail_on_inactive(CU_FALSE);
    CU_set_test_complete_handler(count_skipped);
    if (argc > 1)
        choose(argv[1]);
    (void) CU_run_all_tests();
    show_failures();
    run = CU_get_number_of_tests_run();
    failed = CU_get_number_of_tests_failed() + CU_get_number_of_suites_failed();
    printf("%u passed, %u failed, %u skipped\n", run - CU_get_number_of_tests_failed() - n_skipped, failed, n_skipped);
    CU_cleanup_registry();
    return run == 0 || failed > 0 ? 1 : 0;
}
