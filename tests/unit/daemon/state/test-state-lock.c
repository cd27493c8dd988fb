/* SPDX-License-Identifier: MIT */

/* One berthd in a runtime directory: the lock ends with its process, whatever its children have open. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/state/state.h"
#include "tests/harness/test.h"

static struct journal *journal;
static char directory[] = "/tmp/berth-lock-XXXXXX";

/* Takes the lock, and leaves a child with all its descriptors, as between fork and exec. */
static _Noreturn void hold(int ready) {
    struct state state;
    pid_t child;

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (state_open(&state, directory, journal, NULL) < 0)
        _exit(1);
    child = fork();
    if (child == 0)
        for (;;)
            (void) pause();
    if (write(ready, &child, sizeof(child)) != sizeof(child))
        _exit(1);
    for (;;)
        (void) pause();
}

static void test_killed(void) {
    struct state state;
    pid_t holder, child = 0;
    int ready[2];

    CU_ASSERT_FATAL(pipe(ready) == 0);
    holder = fork();
    if (holder == 0)
        hold(ready[1]);
    close(ready[1]);
    TEST_INT(read(ready[0], &child, sizeof(child)), sizeof(child));
    close(ready[0]);
    TEST_INT(state_open(&state, directory, journal, NULL), -EWOULDBLOCK);
    (void) kill(holder, SIGKILL);
    (void) waitpid(holder, NULL, 0);
    TEST_INT(state_open(&state, directory, journal, NULL), 0);
    state_close(&state);
    if (child > 0)
        (void) kill(child, SIGKILL);
}

static CU_TestInfo tests[] = {
    {"a killed berthd has left a child", test_killed},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "state-lock", .pTests = tests}, CU_SUITE_INFO_NULL};
    char command[64];
    int r;

    if (journal_new(&journal, "test") < 0 || !mkdtemp(directory))
        return 1;
    r = test_main(argc, argv, suites);
    (void) snprintf(command, sizeof(command), "rm -r %s", directory);
    if (system(command) != 0)
        r = 1;
    journal_free(journal);
    return r;
}
