/* SPDX-License-Identifier: MIT */

/* The text about a process that does not end: it says if this process may not kill it. */

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/process-describe.h"
#include "tests/harness/test.h"

#define NOBODY 65534

/* Returns 1 if a child with these ids says that it may not kill this process, 0 if not, -1 on an error. */
static int child_may_not_kill(uid_t real, uid_t effective) {
    char text[PROCESS_TEXT_SIZE];
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        if (setresuid(real, effective, effective) < 0)
            _exit(2);
        process_describe(getppid(), text);
        _exit(!text[0] ? 3 : strstr(text, PROCESS_OF_OTHERS) ? 1 : 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) > 1)
        return -1;
    return WEXITSTATUS(status);
}

static void test_own(void) {
    char text[PROCESS_TEXT_SIZE];

    process_describe(getpid(), text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "(test-process-de), state R"));
    CU_ASSERT_PTR_NULL(strstr(text, PROCESS_OF_OTHERS));
    process_describe(0, text);
    TEST_STRING(text, "");
}

static void test_others(void) {
    TEST_NEEDS_ROOT();
    TEST_INT(child_may_not_kill(NOBODY, NOBODY), 1);
    TEST_INT(child_may_not_kill(0, NOBODY), 0); /* the real id counts */
    TEST_INT(child_may_not_kill(NOBODY, 0), 0);
}

static void test_root(void) {
    char text[PROCESS_TEXT_SIZE];
    int ready[2], status = 0;
    pid_t child;

    TEST_NEEDS_ROOT();
    CU_ASSERT_FATAL(pipe(ready) == 0);
    child = fork();
    if (child == 0) {
        if (setresuid(NOBODY, NOBODY, NOBODY) < 0 || write(ready[1], "", 1) != 1)
            _exit(2);
        (void) pause();
        _exit(3);
    }
    CU_ASSERT_FATAL(child > 0);
    close(ready[1]);
    TEST_INT(read(ready[0], text, 1), 1);
    close(ready[0]);
    process_describe(child, text);
    CU_ASSERT(text[0] && !strstr(text, PROCESS_OF_OTHERS));
    (void) kill(child, SIGKILL);
    (void) waitpid(child, &status, 0);
}

static CU_TestInfo tests[] = {
    {"own", test_own},
    {"of another user", test_others},
    {"root may kill all", test_root},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "process-describe", .pTests = tests});
