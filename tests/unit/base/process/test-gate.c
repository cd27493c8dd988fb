/* SPDX-License-Identifier: MIT */
/* base/process/gate.h: a child that is forked ahead waits at its gate until it may go on, or is
 * withdrawn. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/gate.h"
#include "base/process/process-tree.h"
#include "tests/harness/runner/supervise-scene.h"
#include "tests/harness/test.h"

static struct {
    char token[24], tail[2000];
} facts;
static int passed;      /* the descriptor */
static int arrivals[2]; /* the child writes here when it comes to its gate */
static struct gate gate;

static int child(void *userdata, const char **ret_stage) {
    struct scene *scene = userdata;
    int r;

    *ret_stage = "gate";
    if (write(arrivals[1], "g", 1) != 1)
        return errno;
    r = gate_wait(&gate);
    if (r != 0)
        return r;
    *ret_stage = "deadline";
    r = supervise_child_check_deadline(supervise_get_term(scene->supervise));
    if (r != 0)
        return r;
    *ret_stage = "facts";
    if (setenv("TOKEN", facts.token, 1) < 0 || setenv("TAIL", facts.tail, 1) < 0)
        return errno;
    if (passed >= 0 && dup2(passed, 7) < 0)
        return errno;
    return scene_run_script(scene, ret_stage);
}

static void await_arrival(void) {
    struct pollfd p = {.fd = arrivals[0], .events = POLLIN};
    char byte;

    CU_ASSERT_FATAL(poll(&p, 1, 30000) == 1 && read(arrivals[0], &byte, 1) == 1);
}

static pid_t waiting_child(void) {
    pid_t pid = 0;

    TEST_INT(process_tree_list(getpid(), NULL, 0, &pid, 1), 1);
    return pid;
}

static void begin(struct scene *scene, const char *script, void (*ahead)(struct scene *scene)) {
    scene_init(scene, script);
    CU_ASSERT_FATAL(pipe2(arrivals, O_CLOEXEC) == 0);
    memset(&facts, 0, sizeof(facts));
    passed = -1;
    gate = GATE_OPEN(.facts = &facts, .size = sizeof(facts), .fd = &passed);
    scene->gate = &gate;
    scene->ahead = ahead;
}

static void end(void) {
    close_fd(arrivals[0]);
    close_fd(arrivals[1]);
    passed = close_fd(passed);
}

static void check_runs(const struct scene *scene) {
    TEST_INT(scene->result.exec_errno, 0);
    TEST_INT(scene->n_started, 1);
    TEST_INT(scene->result.status, 3);
}

static void set_facts(struct scene *scene) {
    await_arrival();
    CU_ASSERT(supervise_is_prepared(scene->supervise));
    snprintf(facts.token, sizeof(facts.token), "4711");
    memset(facts.tail, 'x', sizeof(facts.tail) - 1);
    passed = open("/dev/null", O_WRONLY | O_CLOEXEC);
}

/* The facts and the descriptor of the grant pass the gate. */
static void test_facts(void) {
    struct scene scene;

    begin(&scene, "test \"$TOKEN\" = 4711 && test ${#TAIL} = 1999 && test -w /proc/self/fd/7 && exit 3", set_facts);
    scene_run(&scene, child);
    check_runs(&scene);
    end();
}

/* The same function without a gate. */
static void test_open(void) {
    struct scene scene;

    begin(&scene, "test \"$TOKEN\" = 4711 && exit 3", NULL);
    scene.gate = NULL;
    snprintf(facts.token, sizeof(facts.token), "4711");
    scene_run(&scene, child);
    check_runs(&scene);
    end();
}

static void withdraw(struct scene *scene) {
    await_arrival();
    supervise_withdraw(scene->supervise);
    CU_ASSERT(!supervise_is_prepared(scene->supervise));
    TEST_INT(process_tree_list(getpid(), NULL, 0, NULL, 0), 0);
    TEST_INT(waitpid(-1, NULL, WNOHANG), -1);
    TEST_INT(scene->n_done, 0);
    supervise_withdraw(scene->supervise); /* no effect */
}

/* A withdrawn child leaves nothing behind, and the next one can start. */
static void test_withdrawn(void) {
    struct scene scene;

    begin(&scene, "exit 3", withdraw);
    scene_run(&scene, child);
    check_runs(&scene);
    await_arrival(); /* of the second child */
    end();
}

static void kill_there(_unused_ struct scene *scene) {
    struct pollfd p = {.events = POLLIN};

    await_arrival();
    p.fd = pidfd_open(waiting_child(), 0);
    TEST_INT(pidfd_send_signal(p.fd, SIGKILL, NULL, 0), 0);
    TEST_INT(poll(&p, 1, 30000), 1);
    close_fd(p.fd);
}

/* The child was killed at its gate, and the parent has not noticed: the start forks another one. */
static void test_killed(void) {
    struct scene scene;

    begin(&scene, "exit 3", kill_there);
    scene_run(&scene, child);
    check_runs(&scene);
    end();
}

static void kill_and_notice(struct scene *scene) {
    kill_there(scene);
    while (supervise_is_prepared(scene->supervise))
        CU_ASSERT_FATAL(sd_event_run(scene->event, 30 * USEC_PER_SEC) > 0);
    TEST_INT(waitpid(-1, NULL, WNOHANG), -1);
    TEST_INT(scene->n_done, 0);
}

static void test_killed_and_noticed(void) {
    struct scene scene;

    begin(&scene, "exit 3", kill_and_notice);
    scene_run(&scene, child);
    check_runs(&scene);
    end();
}

static void stop_there(_unused_ struct scene *scene) {
    await_arrival();
    TEST_INT(kill(waiting_child(), SIGSTOP), 0);
}

/* A terminal's Ctrl-Z stopped the whole group, and the parent alone was continued. */
static void test_stopped(void) {
    struct scene scene;

    begin(&scene, "exit 3", stop_there);
    scene_run(&scene, child);
    check_runs(&scene);
    end();
}

static int fail_early(_unused_ void *userdata, const char **ret_stage) {
    *ret_stage = "early";
    return EPERM;
}

static void await_forgotten(struct scene *scene) {
    while (supervise_is_prepared(scene->supervise))
        CU_ASSERT_FATAL(sd_event_run(scene->event, 30 * USEC_PER_SEC) > 0);
    TEST_INT(scene->n_done, 0);
}

/* A failure before the gate is not reported; the start tries again, and reports it then. */
static void test_fails_before(void) {
    struct scene scene;

    begin(&scene, NULL, await_forgotten);
    scene_run(&scene, fail_early);
    TEST_INT(scene.result.exec_errno, EPERM);
    TEST_STRING(scene.result.stage, "early");
    TEST_INT(scene.n_started, 0);
    end();
}

static void come_too_late(struct scene *scene) {
    await_arrival();
    supervise_set_deadline(scene->supervise, clock_boottime() + USEC_PER_SEC);
}

/* The child checks the deadline of the grant after the gate. */
static void test_deadline(void) {
    struct scene scene;

    begin(&scene, "exit 3", come_too_late);
    scene_run(&scene, child);
    TEST_INT(scene.result.exec_errno, ETIME);
    TEST_STRING(scene.result.stage, "deadline");
    TEST_INT(scene.n_started, 0);
    end();
}

/* The parent is killed while the child waits. Only the end of file at the gate ends the child, which does not pass it. */
static void test_parent_killed(void) {
    struct pollfd p = {.events = POLLIN};
    int fds[2];
    pid_t parent, grandchild;
    char byte;

    CU_ASSERT_FATAL(pipe2(fds, O_CLOEXEC) == 0);
    gate = GATE_OPEN(.facts = &facts, .size = sizeof(facts), .fd = &passed);
    parent = fork();
    if (parent == 0) {
        if (gate_close(&gate) < 0)
            _exit(1);
        grandchild = fork();
        if (grandchild == 0)
            _exit(gate_wait(&gate) == 0 && write(fds[1], "passed", 6) == 6);
        if (write(fds[1], &grandchild, sizeof(grandchild)) < 0)
            _exit(1);
        for (;;)
            (void) pause();
    }
    CU_ASSERT_FATAL(read(fds[0], &grandchild, sizeof(grandchild)) == sizeof(grandchild));
    p.fd = pidfd_open(grandchild, 0);
    CU_ASSERT_FATAL(p.fd >= 0);
    TEST_INT(poll(&p, 1, 0), 0);
    TEST_INT(kill(parent, SIGKILL), 0);
    TEST_INT(waitpid(parent, NULL, 0), parent);
    TEST_INT(poll(&p, 1, 30000), 1);
    close_fd(p.fd);
    close_fd(fds[1]);
    TEST_INT(read(fds[0], &byte, 1), 0);
    close_fd(fds[0]);
}

static void test_too_large(void) {
    struct gate large = GATE_OPEN(.facts = &facts, .size = GATE_FACTS_MAX + 1);

    TEST_INT(gate_close(&large), -EMSGSIZE);
}

static CU_TestInfo tests[] = {
    {"facts and a descriptor pass", test_facts},
    {"open from the start", test_open},
    {"withdrawn: nothing is left", test_withdrawn},
    {"killed at the gate", test_killed},
    {"killed at the gate, noticed before the start", test_killed_and_noticed},
    {"stopped at the gate", test_stopped},
    {"fails before the gate", test_fails_before},
    {"the deadline is checked after the gate", test_deadline},
    {"parent killed", test_parent_killed},
    {"too large", test_too_large},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "gate", .pTests = tests}, CU_SUITE_INFO_NULL};

    clock_file_own(argv);
    return test_main(argc, argv, suites);
}
