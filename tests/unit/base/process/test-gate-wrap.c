/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=pidfd_send_signal */

/* A child that may be stopped at its gate is continued before the gate opens: a command does not receive that signal. It
 * could have stopped itself, or be about to stop for a debugger. */

#include <signal.h>
#include <sys/pidfd.h>

#include "base/process/gate.h"
#include "tests/harness/runner/supervise-scene.h"
#include "tests/harness/test.h"

static struct gate gate;
static unsigned n_continued;

int __real_pidfd_send_signal(int pidfd, int signal, siginfo_t *info, unsigned flags);
int __wrap_pidfd_send_signal(int pidfd, int signal, siginfo_t *info, unsigned flags);
int __wrap_pidfd_send_signal(int pidfd, int signal, siginfo_t *info, unsigned flags) {
    if (signal == SIGCONT) {
        n_continued++;
        CU_ASSERT(gate.parent >= 0); /* closed */
    }
    return __real_pidfd_send_signal(pidfd, signal, info, flags);
}

static int child(void *userdata, const char **ret_stage) {
    int r;

    *ret_stage = "gate";
    r = gate_wait(&gate);
    return r == 0 ? scene_run_script(userdata, ret_stage) : r;
}

static void continued_before(void) {
    struct scene scene;

    scene_init(&scene, "exit 3");
    gate = GATE_OPEN();
    scene.gate = &gate;
    scene_run(&scene, child);
    TEST_INT(scene.result.status, 3);
    TEST_INT(n_continued, 1);
}

static CU_TestInfo tests[] = {
    {"continued before it opens", continued_before},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "gate-wrap", .pTests = tests}, CU_SUITE_INFO_NULL};

    clock_file_own(argv);
    return test_main(argc, argv, suites);
}
