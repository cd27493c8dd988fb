/* SPDX-License-Identifier: MIT */
/* berth-runner with the rights that its unit leaves it finds the processes of other users' `berth run`. Its
 * jobs do not have that right. */

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/protocol.h"
#include "tests/harness/runner/runner.h"
#include "tests/harness/test.h"

#define UNIT "units/berth-runner.service.in"
#define DENIED "CapabilityBoundingSet=~"

static struct test_runner t;
static struct message m; /* large */

/* Returns whether the unit takes this capability from berth-runner. */
static bool unit_denies(const char *capability) {
    _cleanup_free_ char *text = NULL;
    size_t size;
    char *rest, *line;

    CU_ASSERT_FATAL(file_read(UNIT, 65536, &text, &size) == 0);
    rest = text;
    while ((line = strsep(&rest, "\n")))
        if (strncmp(line, DENIED, strlen(DENIED)) == 0 && strstr(line, capability))
            return true;
    return false;
}

/* Limits what exec(2) gives a runner that root starts. On newer kernels (6.18) CAP_SYS_ADMIN and CAP_PERFMON
 * suffice to read an environment, on those of Debian 12 and 13 only CAP_SYS_PTRACE does. */
static void limit_rights(void) {
    TEST_INT(prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0), 0);
    TEST_INT(prctl(PR_CAPBSET_DROP, CAP_PERFMON, 0, 0, 0), 0);
    if (unit_denies("CAP_SYS_PTRACE"))
        TEST_INT(prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE, 0, 0, 0), 0);
}

static void of_another_user(void) {
    pid_t pid;
    int status;

    TEST_NEEDS_ROOT();
    test_runner_prepare(&t, 0);
    test_runner_configure(&t, "");
    t.before_exec = limit_rights;
    test_runner_start(&t);
    test_runner_join(&t);
    pid = test_runner_start_adhoc('7', "1", NOBODY);
    test_say(t.fd, PROTOCOL_REAP, "run", test_runner_id('7'));
    test_await(t.fd, &m, PROTOCOL_REAPED);
    if (waitpid(pid, &status, WNOHANG) != pid) {
        CU_FAIL("the process of another user was not killed");
        test_kill_and_wait(pid);
    }
    test_runner_done(&t);
}

/* Not even a job of root has CAP_SYS_PTRACE, which is number 19. */
static void not_of_jobs(void) {
    TEST_NEEDS_ROOT();
    test_runner_begin(&t,
                      TEST_OUT("rights",
                               "for set in CapPrm CapEff CapBnd; do"
                               " x=0x$(grep ^$set: /proc/self/status | cut -f 2); echo $(((x >> 19) & 1));"
                               " done",
                               "user = root"),
                      0);
    test_runner_prints(&t, &m, "rights", "0\n0\n0\n");
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"of another user", of_another_user},
    {"not of jobs", not_of_jobs},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "reap-rights", .pTests = tests});
