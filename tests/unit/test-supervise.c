/* SPDX-License-Identifier: MIT */
#include "base/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/process-tree.h"
#include "tests/harness/test.h"

/* One command under supervision, and what was told about it. The command writes to a pipe what the test waits for. */
struct scene {
    sd_event *event;
    struct supervise *supervise;
    struct supervise_options options;
    const char *script;          /* for sh */
    int reader, writer;          /* the command's standard output; the writer is closed after the fork */
    char *cgroup;
    void (*on_line)(struct scene *scene);
    bool stops_when_suspended;
    unsigned n_started, n_stopping, n_suspended, n_done;
    struct supervise_result result;
};

static int run_script(void *userdata, _unused_ const char **ret_stage) {
    struct scene *scene = userdata;
    char *argv[] = {(char *) "sh", (char *) "-c", (char *) scene->script, NULL};

    if (dup2(scene->writer, STDOUT_FILENO) < 0)
        return errno;
    execv("/bin/sh", argv);
    return errno;
}

static void on_started(_unused_ struct supervise *s, pid_t pid, void *userdata) {
    struct scene *scene = userdata;

    CU_ASSERT(pid > 0);
    scene->n_started++;
}

static void on_stopping(_unused_ struct supervise *s, _unused_ enum supervise_reason reason, void *userdata) {
    ((struct scene *) userdata)->n_stopping++;
}

static void on_suspended(struct supervise *s, void *userdata) {
    struct scene *scene = userdata;

    scene->n_suspended++;
    if (scene->stops_when_suspended)
        supervise_stop(s, SUPERVISE_REASON_STOPPED);
    else
        TEST_INT(supervise_signal(s, SIGCONT), 0);
}

static void on_done(struct supervise *s, const struct supervise_result *result, void *userdata) {
    struct scene *scene = userdata;

    scene->n_done++;
    scene->result = *result;
    scene->supervise = supervise_free(s); /* it may be freed here */
    (void) sd_event_exit(scene->event, 0);
}

static int on_readable(sd_event_source *source, int fd, _unused_ uint32_t revents, void *userdata) {
    struct scene *scene = userdata;
    char text[64];

    if (read(fd, text, sizeof(text)) <= 0)
        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
    else if (scene->on_line)
        scene->on_line(scene);
    return 0;
}

static int on_hang(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
    CU_FAIL("nothing happened for 10 s");
    (void) sd_event_exit(((struct scene *) userdata)->event, 1);
    return 0;
}

static void scene_init(struct scene *scene, const char *script) {
    int fds[2];

    *scene = (struct scene) {.script = script, .options = {.stop_signal = SIGTERM, .stop_timeout = 5 * USEC_PER_SEC,
                                                            .timeout = USEC_INFINITY, .deadline = USEC_INFINITY}};
    CU_ASSERT_FATAL(sd_event_new(&scene->event) >= 0);
    CU_ASSERT_FATAL(pipe2(fds, O_CLOEXEC) == 0);
    scene->reader = fds[0];
    scene->writer = fds[1];
}

static void scene_run(struct scene *scene, supervise_child_fn child) {
    struct supervise_handler handler = {.on_started = on_started, .on_stopping = on_stopping, .on_suspended = on_suspended,
                                        .on_done = on_done, .userdata = scene};

    CU_ASSERT_FATAL(sd_event_add_io(scene->event, NULL, scene->reader, EPOLLIN, on_readable, scene) >= 0);
    CU_ASSERT_FATAL(sd_event_add_time_relative(scene->event, NULL, CLOCK_MONOTONIC, 10 * USEC_PER_SEC, 0, on_hang, scene) >= 0);
    CU_ASSERT_FATAL(supervise_new(&scene->supervise, scene->event, &scene->options, &handler) == 0);
    CU_ASSERT_FATAL(supervise_start(scene->supervise, child, scene) == 0);
    scene->writer = close_fd(scene->writer);
    (void) sd_event_loop(scene->event);
    TEST_INT(scene->n_done, 1);
    TEST_INT(process_tree_count(getpid()), 0);
    TEST_INT(waitpid(-1, NULL, WNOHANG), -1); /* no zombie either */
    supervise_free(scene->supervise);
    close_fd(scene->reader);
    sd_event_unref(scene->event);
    free(scene->cgroup);
}

static void exits(const char *script, int code, int status) {
    struct scene scene;

    scene_init(&scene, script);
    scene_run(&scene, run_script);
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

static void stop_it(struct scene *scene) {
    supervise_stop(scene->supervise, SUPERVISE_REASON_STOPPED);
    supervise_stop(scene->supervise, SUPERVISE_REASON_SHUTDOWN); /* the first reason stays */
    TEST_INT(scene->n_stopping, 1);
}

static void test_stop(void) {
    struct scene scene;

    scene_init(&scene, "trap 'exit 3' TERM; echo ready; sleep 1000 & wait");
    scene.on_line = stop_it;
    scene_run(&scene, run_script);
    TEST_INT(scene.result.code, CLD_EXITED);
    TEST_INT(scene.result.status, 3);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_STOPPED);
    TEST_INT(scene.n_stopping, 1);
}

static void test_stop_suspended(void) {
    struct scene scene;

    /* It stops itself and could not take the signal if it were not continued. */
    scene_init(&scene, "trap 'exit 4' TERM; kill -STOP $$; exit 5");
    scene.stops_when_suspended = true;
    scene_run(&scene, run_script);
    TEST_INT(scene.result.status, 4);
}

static void test_ignores_term(void) {
    struct scene scene;

    scene_init(&scene, "trap '' TERM; echo ready; while :; do sleep 1000; done");
    scene.options.stop_timeout = 60 * USEC_PER_MSEC;
    scene.on_line = stop_it;
    scene_run(&scene, run_script);
    TEST_INT(scene.result.code, CLD_KILLED);
    TEST_INT(scene.result.status, SIGKILL);
    CU_ASSERT(scene.result.ended - scene.result.started >= 60 * USEC_PER_MSEC);
    CU_ASSERT(scene.result.ended - scene.result.started < 2 * USEC_PER_SEC);
}

/* Processes that hid: another session, orphaned, deaf to the stop signal. */
#define HIDDEN "trap '' TERM; setsid sh -c 'setsid sleep 1000 & setsid sleep 1000 &' & setsid sleep 1000 & "

static void test_whole_tree(void) {
    struct scene scene;

    scene_init(&scene, HIDDEN "echo ready; wait");
    scene.options.stop_timeout = 60 * USEC_PER_MSEC;
    scene.on_line = stop_it;
    scene_run(&scene, run_script);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_STOPPED);
}

static void test_outlives_command(void) {
    struct scene scene;

    /* The command is over, its grandchild is not: so the run goes on, and its exit status is kept. */
    scene_init(&scene, "setsid sh -c 'setsid sleep 0.1 &' & exit 5");
    scene_run(&scene, run_script);
    TEST_INT(scene.result.code, CLD_EXITED);
    TEST_INT(scene.result.status, 5);
    CU_ASSERT(scene.result.ended - scene.result.started >= 100 * USEC_PER_MSEC);
}

/* The kill is sent 100 ms before the deadline. On a busy machine the last process may be seen to be gone some time after it; R8 has a
 * margin of 500 ms for that. */
#define BUSY (400 * USEC_PER_MSEC)

static void near_deadline(struct scene *scene) {
    supervise_set_deadline(scene->supervise, clock_boottime() + 400 * USEC_PER_MSEC);
}

static void test_deadline(void) {
    struct scene scene;

    scene_init(&scene, HIDDEN "echo deaf; while :; do sleep 1000; done");
    scene.options.deadline = clock_boottime() + 100 * USEC_PER_SEC;
    scene.options.stop_timeout = 100 * USEC_PER_MSEC;
    scene.on_line = near_deadline; /* it is deaf by now, however busy the machine is */
    scene_run(&scene, run_script);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_LEASE_LOST);
    TEST_INT(scene.result.status, SIGKILL);
    TEST_INT(scene.n_stopping, 1);
    CU_ASSERT(scene.result.ended < scene.result.deadline + BUSY);
    CU_ASSERT(scene.result.ended + 200 * USEC_PER_MSEC > scene.result.deadline); /* the stop timeout was given */
}

static void test_deadline_stop_signal(void) {
    struct scene scene;
    usec_t deadline = clock_boottime() + 5 * USEC_PER_SEC;

    /* Its stop signal comes a whole stop timeout earlier, and it takes it. */
    scene_init(&scene, "trap 'exit 6' TERM; sleep 1000 & wait");
    scene.options.deadline = deadline;
    scene.options.stop_timeout = 4800 * USEC_PER_MSEC;
    scene_run(&scene, run_script);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_LEASE_LOST);
    TEST_INT(scene.result.status, 6);
    CU_ASSERT(scene.result.ended + 4 * USEC_PER_SEC < deadline);
}

static void push_deadline(struct scene *scene) {
    supervise_set_deadline(scene->supervise, clock_boottime() + USEC_PER_SEC);
}

static void test_deadline_pushed(void) {
    struct scene scene;

    scene_init(&scene, "echo a; sleep 0.2; echo b; sleep 0.4; exit 9");
    scene.options.deadline = clock_boottime() + 500 * USEC_PER_MSEC;
    scene.options.stop_timeout = 0;
    scene.on_line = push_deadline;
    scene_run(&scene, run_script);
    TEST_INT(scene.result.status, 9);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_NONE);
    CU_ASSERT(scene.result.ended < scene.result.deadline);
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
    scene_run(&scene, run_script);
    TEST_INT(scene.result.code, CLD_KILLED);
    TEST_INT(scene.result.status, SIGKILL);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_LEASE_LOST);
}

static void test_deadline_during_stop(void) {
    struct scene scene;
    usec_t deadline = clock_boottime() + 400 * USEC_PER_MSEC;

    /* A stop with a long timeout must not reach beyond the deadline. */
    scene_init(&scene, "trap '' TERM; echo a; while :; do sleep 1000; done");
    scene.options.deadline = deadline;
    scene.options.stop_timeout = 250 * USEC_PER_MSEC;
    scene.on_line = stop_it;
    scene_run(&scene, run_script);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_STOPPED);
    CU_ASSERT(scene.result.ended < deadline + BUSY);
}

static void test_deadline_before_exec(void) {
    struct scene scene;

    scene_init(&scene, "exit 0");
    scene.options.deadline = clock_boottime();
    scene_run(&scene, run_script);
    TEST_INT(scene.n_started, 0);
    TEST_INT(scene.result.exec_errno, ETIME);
    TEST_STRING(scene.result.stage, "deadline");
}

static void test_timeout(void) {
    struct scene scene;

    scene_init(&scene, "sleep 1000");
    scene.options.timeout = 50 * USEC_PER_MSEC;
    scene_run(&scene, run_script);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_TIMEOUT);
    TEST_INT(scene.result.status, SIGTERM);
    CU_ASSERT(scene.result.ended - scene.result.started >= 50 * USEC_PER_MSEC);
}

static void test_zombie(void) {
    struct scene scene;

    /* A zombie that its parent never waits for, and orphans: neither keeps the run from its end. */
    scene_init(&scene, "sh -c 'sleep 0 & exec sleep 0.1' & (sleep 0.02 &) & exit 2");
    scene_run(&scene, run_script);
    TEST_INT(scene.result.status, 2);
}

static void test_suspended(void) {
    struct scene scene;

    scene_init(&scene, "kill -STOP $$; exit 8");
    scene_run(&scene, run_script);
    TEST_INT(scene.n_suspended, 1);
    TEST_INT(scene.result.status, 8);
}

static void send_usr1(struct scene *scene) {
    TEST_INT(supervise_signal(scene->supervise, SIGUSR1), 0);
    CU_ASSERT(supervise_pid(scene->supervise) > 0);
}

static void test_signal(void) {
    struct scene scene;

    scene_init(&scene, "trap 'exit 11' USR1; echo a; while :; do sleep 0.02; done");
    scene.on_line = send_usr1;
    scene_run(&scene, run_script);
    TEST_INT(scene.result.status, 11);
}

static void test_usage(void) {
    struct scene scene;

    scene_init(&scene, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");
    scene_run(&scene, run_script);
    CU_ASSERT(scene.result.usage.ru_utime.tv_sec + scene.result.usage.ru_utime.tv_usec > 0);
    CU_ASSERT(scene.result.usage.ru_maxrss > 0);
}

static void test_die_with_parent(void) {
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) /* "parent" that is not: it has gone already */
        _exit(supervise_child_die_with_parent(getpid()));
    CU_ASSERT_FATAL(waitpid(pid, &status, 0) == pid);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* What went wrong elsewhere: hashicorp/nomad#6823. */
static void test_cgroup(void) {
    _cleanup_free_ char *own = NULL;
    struct scene scene;
    char *path = NULL;

    if (cgroup_find_own(&own) < 0)
        TEST_SKIP("no cgroup v2 that this process may write to");
    CU_ASSERT_FATAL(asprintf(&path, "%s/berth-test-%d", own, (int) getpid()) > 0);
    CU_ASSERT_FATAL(cgroup_make(path) == 0);
    TEST_INT(cgroup_is_populated(path), 0);
    scene_init(&scene, HIDDEN "echo ready; wait");
    scene.cgroup = path;
    scene.options.cgroup = path;
    scene.options.stop_timeout = 60 * USEC_PER_MSEC;
    scene.on_line = stop_it;
    CU_ASSERT(access(path, F_OK) == 0);
    path = strdup(path);
    scene_run(&scene, run_script);
    CU_ASSERT(access(path, F_OK) < 0); /* and nothing is left */
    TEST_INT(cgroup_kill(path), 0);
    TEST_INT(cgroup_is_populated(path), 0);
    TEST_INT(cgroup_remove(path), 0);
    free(path);
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
    {"whole tree", test_whole_tree},
    {"outlives its command", test_outlives_command},
    {"deadline", test_deadline},
    {"deadline: stop signal first", test_deadline_stop_signal},
    {"deadline pushed", test_deadline_pushed},
    {"deadline pulled", test_deadline_pulled},
    {"deadline during stop", test_deadline_during_stop},
    {"deadline before exec", test_deadline_before_exec},
    {"timeout", test_timeout},
    {"zombie", test_zombie},
    {"suspended", test_suspended},
    {"signal", test_signal},
    {"usage", test_usage},
    {"die with parent", test_die_with_parent},
    {"cgroup", test_cgroup},
    {"reason names", test_reason_names},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "supervise", .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
