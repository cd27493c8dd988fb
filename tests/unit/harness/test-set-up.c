/* SPDX-License-Identifier: MIT */

/* A fatal check in a set-up ends the program: neither the rest of the set-up nor its test runs. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/child.h"
#include "tests/harness/test.h"

static void fail_facounters(void) {
    CU_ASSERT_FATAL(!"the bed is broken");
    puts("went on");
}

static void say_that_it_runs(void) {
    puts("runs");
}

static int main_of_child(char **argv) {
    CU_TestInfo tests[] = {{"first", say_that_it_runs}, {"second", say_that_it_runs}, CU_TEST_INFO_NULL};
    CU_SuiteInfo suites[] = {
        {.pName = "child", .pSetUpFunc = fail_facounters, .pTearDownFunc = say_that_it_runs, .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(1, argv, suites);
}

static void test_fatal(void) {
    char self[] = "/proc/self/exe", word[] = "child", *argv[] = {self, word, NULL};
    struct child *c = child_start(argv, NULL);

    CU_ASSERT_FATAL(c && child_await(c, 20 * USEC_PER_SEC));
    TEST_INT(c->exit_code, 1);
    CU_ASSERT(strstr(child_text(c, 1), "FAIL: child / first: tests/unit/harness/test-set-up.c:") != NULL);
    CU_ASSERT(!strstr(child_text(c, 1), "went on") && !strstr(child_text(c, 1), "runs"));
    child_free(c);
}

int main(int argc, char **argv) {
    CU_TestInfo tests[] = {{"fatal", test_fatal}, CU_TEST_INFO_NULL};
    CU_SuiteInfo suites[] = {{.pName = "set-up", .pTests = tests}, CU_SUITE_INFO_NULL};

    return argc > 1 && strcmp(argv[1], "child") == 0 ? main_of_child(argv) : test_main(argc, argv, suites);
}
