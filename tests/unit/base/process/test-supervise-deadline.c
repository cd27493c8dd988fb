/* SPDX-License-Identifier: MIT */
/* base/process/supervise: stops that are due at a time. The clock stands still, and advances in steps. */
#include <signal.h>
#include <sys/wait.h>

#include "tests/harness/runner/supervise-scene.h"
#include "tests/harness/test.h"

#define DEADLINE (T + 100 * USEC_PER_SEC)
#define BEFORE(msec) (DEADLINE - (msec) * USEC_PER_MSEC)

/* The kill is sent 100 ms before the deadline, so that the last process is gone by then (R8). The stop
 * signal is sent a whole stop timeout before the kill. */
static void test_deadline(void) {
    struct scene scene;

    scene_init(&scene, WAITS(HIDDEN, ""));
    scene.options.deadline = DEADLINE;
    scene.options.stop_timeout = 100 * USEC_PER_MSEC;
    scene_step(&scene, STEPS({BEFORE(202), 0}, {BEFORE(198), 1}, {BEFORE(102), 1}, {BEFORE(98), 1}));
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_LEASE_LOST);
    TEST_INT(scene.result.status, SIGKILL);
    CU_ASSERT(scene.result.deadline == DEADLINE);
}

static void test_deadline_stop_signal(void) {
    struct scene scene;

    scene_init(&scene, WAITS("", "trap 'exit 6' TERM; "));
    scene.options.deadline = DEADLINE;
    scene_step(&scene, STEPS({BEFORE(5102), 0}, {BEFORE(5098), 1}));
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_LEASE_LOST);
    TEST_INT(scene.result.status, 6);
}

static void set_deadline(struct scene *scene) {
    supervise_set_deadline(scene->supervise, DEADLINE);
}

static void test_deadline_pushed(void) {
    struct scene scene;

    scene_init(&scene, WAITS("", ""));
    scene.options.deadline = T + 10 * USEC_PER_SEC;
    scene.on_line = set_deadline;
    scene_step(&scene, STEPS({T + 11 * USEC_PER_SEC, 0}, {BEFORE(5102), 0}, {BEFORE(5098), 1}));
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.result.status, SIGTERM);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_LEASE_LOST);
    CU_ASSERT(scene.result.deadline == DEADLINE);
}

static void pull_deadline(struct scene *scene) {
    supervise_set_deadline(scene->supervise, clock_boottime());
}

static void test_deadline_pulled(void) {
    struct scene scene;

    /* Late already (this machine slept): there is no time for a stop signal. */
    scene_init(&scene, "trap 'exit 6' TERM; echo a; sleep 1000 & wait");
    scene.options.deadline = clock_boottime() + 100 * USEC_PER_SEC;
    scene.on_line = pull_deadline;
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.result.code, CLD_KILLED);
    TEST_INT(scene.result.status, SIGKILL);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_LEASE_LOST);
}

static void stop_before_deadline(struct scene *scene) {
    scene_stop(scene);
    set_deadline(scene);
}

static void test_deadline_during_stop(void) {
    struct scene scene;

    /* A stop with a long timeout must not last beyond the deadline, even if the deadline is pulled. */
    scene_init(&scene, WAITS(DEAF, ""));
    scene.options.deadline = DEADLINE + 1000 * USEC_PER_SEC;
    scene.options.stop_timeout = 500 * USEC_PER_SEC;
    scene.on_line = stop_before_deadline;
    scene_step(&scene, STEPS({BEFORE(102), 1}, {BEFORE(98), 1}));
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_STOPPED);
    TEST_INT(scene.result.status, SIGKILL);
}

static void test_deadline_before_exec(void) {
    struct scene scene;

    scene_init(&scene, "exit 0");
    scene.options.deadline = clock_boottime();
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.n_started, 0);
    TEST_INT(scene.result.exec_errno, ETIME);
    TEST_STRING(scene.result.stage, "deadline");
}

/* The command ends while this process stands still until after the time of the stop: the command is not
 * stopped any more. */
static void end_and_sleep(struct scene *scene) {
    siginfo_t info;

    TEST_INT(supervise_signal(scene->supervise, SIGUSR1), 0);
    TEST_INT(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
    clock_file_stand(&own_clock, BEFORE(50));
}

static void end_and_stop(struct scene *scene) {
    end_and_sleep(scene);
    supervise_stop(scene->supervise, SUPERVISE_REASON_LEASE_LOST);
}

static void expect_own_end(void (*on_line)(struct scene *scene)) {
    struct scene scene;

    scene_init(&scene, "trap 'exit 5' USR1; echo ready; while :; do sleep 0.01; done");
    clock_file_stand(&own_clock, T);
    scene.options.deadline = DEADLINE;
    scene.on_line = on_line;
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_NONE);
    TEST_INT(scene.result.status, 5);
    TEST_INT(scene.n_stopping, 0);
}

static void test_ended_before_deadline_was_seen(void) {
    expect_own_end(end_and_sleep);
}

static void test_ended_before_stop_was_read(void) {
    expect_own_end(end_and_stop);
}

static void test_timeout(void) {
    struct scene scene;

    scene_init(&scene, "sleep 1000");
    scene.options.timeout = 50 * USEC_PER_MSEC;
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_TIMEOUT);
    TEST_INT(scene.result.status, SIGTERM);
    CU_ASSERT(scene.result.ended - scene.result.started >= 50 * USEC_PER_MSEC);
}

static CU_TestInfo tests[] = {
    {"deadline", test_deadline},
    {"deadline: stop signal first", test_deadline_stop_signal},
    {"deadline pushed", test_deadline_pushed},
    {"deadline pulled", test_deadline_pulled},
    {"deadline during stop", test_deadline_during_stop},
    {"deadline before exec", test_deadline_before_exec},
    {"ended before its deadline was seen", test_ended_before_deadline_was_seen},
    {"ended before its stop was read", test_ended_before_stop_was_read},
    {"timeout", test_timeout},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "supervise-deadline", .pTests = tests}, CU_SUITE_INFO_NULL};

    clock_file_own(argv);
    return test_main(argc, argv, suites);
}
