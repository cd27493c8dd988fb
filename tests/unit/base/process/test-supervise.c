/* SPDX-License-Identifier: MIT */
/* base/process/supervise: how a command begins, ends and is stopped. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/runner/supervise-scene.h"
#include "tests/harness/test.h"

static void exits(const char *script, int code, int status) {
    struct scene scene;

    scene_init(&scene, script);
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.n_started, 1);
    TEST_INT(scene.n_stopping, 0);
    TEST_INT(scene.result.exec_errno, 0);
    TEST_INT(scene.result.code, code);
    TEST_INT(scene.result.status, status);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_NONE);
    CU_ASSERT(scene.result.started > 0 && scene.result.started <= scene.result.ended);
    CU_ASSERT(scene.result.deadline == USEC_INFINITY);
}

static void test_exit(void) {
    exits("exit 0", CLD_EXITED, 0);
    exits("exit 7", CLD_EXITED, 7);
    exits("exit 255", CLD_EXITED, 255);
    exits("ulimit -c 0; kill -KILL $$", CLD_KILLED, SIGKILL);
    exits("kill -TERM $$", CLD_KILLED, SIGTERM);
}

static int exec_nothing(_unused_ void *userdata, const char **ret_stage) {
    *ret_stage = "exec";
    execl("/nonexistent/command", "command", (char *) NULL);
    return errno;
}

static int fail_in_stage(_unused_ void *userdata, const char **ret_stage) {
    *ret_stage = "a stage with a long name";
    return EPERM;
}

static void test_exec_failure(void) {
    struct scene scene;

    scene_init(&scene, NULL);
    scene_run(&scene, exec_nothing);
    TEST_INT(scene.n_started, 0);
    TEST_INT(scene.result.exec_errno, ENOENT);
    TEST_STRING(scene.result.stage, "exec");
    TEST_INT(scene.result.status, 127);
    scene_init(&scene, NULL);
    scene_run(&scene, fail_in_stage);
    TEST_INT(scene.n_started, 0);
    TEST_INT(scene.result.exec_errno, EPERM);
    TEST_STRING(scene.result.stage, "a stage with a ");
    TEST_INT(scene.result.status, 126);
}

static void test_stop(void) {
    struct scene scene;

    scene_init(&scene, "trap 'exit 3' TERM; echo ready; sleep 1000 & wait");
    scene.on_line = scene_stop;
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.result.code, CLD_EXITED);
    TEST_INT(scene.result.status, 3);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_STOPPED);
    TEST_INT(scene.n_stopping, 1);
}

static void test_stop_suspended(void) {
    struct scene scene;

    /* The command suspends itself, and can handle the signal only if it is continued. */
    scene_init(&scene, "trap 'exit 4' TERM; kill -STOP $$; exit 5");
    scene.stops_when_suspended = true;
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.result.status, 4);
}

static void test_ignores_term(void) {
    struct scene scene;

    scene_init(&scene, WAITS(DEAF, ""));
    scene.options.stop_timeout = 60 * USEC_PER_MSEC;
    scene.on_line = scene_stop;
    scene_step(&scene, STEPS({T + 58 * USEC_PER_MSEC, 1}, {T + 62 * USEC_PER_MSEC, 1}));
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.result.code, CLD_KILLED);
    TEST_INT(scene.result.status, SIGKILL);
}

static usec_t stuck_since;
static unsigned n_stuck;

static void stop_without_effect(struct scene *scene) {
    clock_file_lose_kills(&own_clock, true);
    stuck_since = clock_boottime();
    scene_stop(scene);
    clock_file_jump(&own_clock, 9800 * USEC_PER_MSEC);
}

/* Called some ten seconds after the kill, then an hour later. */
static void on_stuck(struct scene *scene, const char *what) {
    usec_t took = clock_boottime() - stuck_since;
    char begin[64];

    (void) snprintf(begin, sizeof(begin), "process %d (sh), state S", (int) scene->pid);
    CU_ASSERT(strncmp(what, begin, strlen(begin)) == 0);
    stuck_since += took;
    if (++n_stuck == 1) {
        CU_ASSERT(took >= 10 * USEC_PER_SEC);
        clock_file_jump(&own_clock, 3599 * USEC_PER_SEC + 800 * USEC_PER_MSEC);
        return;
    }
    CU_ASSERT(took >= 3600 * USEC_PER_SEC);
    clock_file_lose_kills(&own_clock, false);
}

static void test_stuck(void) {
    struct scene scene;

    scene_init(&scene, WAITS(DEAF, ""));
    scene.options.stop_timeout = 0;
    scene.on_line = stop_without_effect;
    scene.on_stuck = on_stuck;
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.result.status, SIGKILL);
    TEST_INT(n_stuck, 2);
}

static void test_whole_tree(void) {
    struct scene scene;

    scene_init(&scene, HIDDEN "echo ready; wait");
    scene.options.stop_timeout = 60 * USEC_PER_MSEC;
    scene.on_line = scene_stop;
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_STOPPED);
}

static void test_outlives_command(void) {
    struct scene scene;

    /* The command ends before its grandchild: the run goes on, and keeps the exit status. */
    scene_init(&scene, "setsid sh -c 'setsid sh -c \"sleep 0.1; echo last\" &' & exit 5");
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.result.code, CLD_EXITED);
    TEST_INT(scene.result.status, 5);
    TEST_INT(scene.n_lines, 1);
}

static void test_zombie(void) {
    struct scene scene;

    /* A zombie that its parent never waits for, and orphans: neither keeps the run from its end. */
    scene_init(&scene, "sh -c 'sleep 0 & exec sleep 0.1' & (sleep 0.02 &) & exit 2");
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.result.status, 2);
}

static void test_suspended(void) {
    struct scene scene;

    scene_init(&scene, "kill -STOP $$; exit 8");
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.n_suspended, 1);
    TEST_INT(scene.result.status, 8);
}

static void send_usr1(struct scene *scene) {
    TEST_INT(supervise_signal(scene->supervise, SIGUSR1), 0);
}

static void test_signal(void) {
    struct scene scene;

    scene_init(&scene, "trap 'exit 11' USR1; echo a; while :; do sleep 0.02; done");
    scene.on_line = send_usr1;
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.result.status, 11);
}

static void test_usage(void) {
    struct scene scene;

    scene_init(&scene, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");
    scene_run(&scene, scene_run_script);
    CU_ASSERT(scene.result.usage.ru_utime.tv_sec + scene.result.usage.ru_utime.tv_usec > 0);
    CU_ASSERT(scene.result.usage.ru_maxrss > 0);
}

static void test_die_with_parent(void) {
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) /* as if the parent had gone already */
        _exit(supervise_child_die_with_parent(getpid()));
    CU_ASSERT_FATAL(waitpid(pid, &status, 0) == pid);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void test_reason_names(void) {
    enum supervise_reason reason = SUPERVISE_REASON_NONE;

    TEST_STRING(supervise_reason_name(SUPERVISE_REASON_LEASE_LOST), "lease-lost");
    TEST_INT(supervise_reason_parse("shutdown", &reason), 0);
    TEST_INT(reason, SUPERVISE_REASON_SHUTDOWN);
    TEST_INT(supervise_reason_parse("", &reason), -EINVAL);
    TEST_INT(supervise_reason_parse("Stopped", &reason), -EINVAL);
    TEST_INT(reason, SUPERVISE_REASON_SHUTDOWN);
}

static CU_TestInfo tests[] = {
    {"exit", test_exit},
    {"exec failure", test_exec_failure},
    {"stop", test_stop},
    {"stop a suspended command", test_stop_suspended},
    {"ignores TERM", test_ignores_term},
    {"outlives its kill", test_stuck},
    {"whole tree", test_whole_tree},
    {"outlives its command", test_outlives_command},
    {"zombie", test_zombie},
    {"suspended", test_suspended},
    {"signal", test_signal},
    {"usage", test_usage},
    {"die with parent", test_die_with_parent},
    {"reason names", test_reason_names},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "supervise", .pTests = tests}, CU_SUITE_INFO_NULL};

    clock_file_own(argv);
    return test_main(argc, argv, suites);
}
