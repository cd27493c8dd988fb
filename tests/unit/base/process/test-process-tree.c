/* SPDX-License-Identifier: MIT */
#include "base/process/process-tree.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/harness/test.h"

/* A tree below this process: a child, its child, and an orphan that was reparented to this process. Each
 * reports its pid, then waits to be killed. */
struct tree {
    int reader;
    pid_t child;
};

static void say(int fd) {
    pid_t pid = getpid();

    if (write(fd, &pid, sizeof(pid)) != sizeof(pid))
        _exit(1);
    for (;;)
        pause();
}

static pid_t receive_pid(struct tree *tree) {
    pid_t pid = 0;

    CU_ASSERT_FATAL(read(tree->reader, &pid, sizeof(pid)) == sizeof(pid));
    return pid;
}

static void tree_child(int fd) {
    pid_t pid = fork();

    if (pid == 0) {
        (void) setsid();
        if (fork() == 0)
            say(fd); /* an orphan in a session of its own: its parent ends here */
        _exit(0);
    }
    (void) waitpid(pid, NULL, 0);
    if (fork() == 0)
        say(fd);
    say(fd);
}

static void tree_init(struct tree *tree, pid_t pids[3]) {
    int fds[2];

    CU_ASSERT_FATAL(pipe(fds) == 0);
    tree->reader = fds[0];
    tree->child = fork();
    if (tree->child == 0)
        tree_child(fds[1]);
    (void) close(fds[1]);
    for (int i = 0; i < 3; i++)
        pids[i] = receive_pid(tree);
}

/* Checks that the signal killed all three, and that no other process is below this one. */
static void tree_done(struct tree *tree, int signal) {
    for (int i = 0; i < 3; i++) {
        int status = 0;

        CU_ASSERT(waitpid(-1, &status, 0) > 0);
        TEST_INT(WIFSIGNALED(status) ? WTERMSIG(status) : -1, signal);
    }
    TEST_INT(waitpid(-1, NULL, WNOHANG), -1);
    close_fd(tree->reader);
}

static void test_signal(void) {
    struct tree tree;
    pid_t pids[3];

    tree_init(&tree, pids);
    TEST_INT(process_tree_list(getpid(), NULL, 0, NULL, 0), 3);
    for (int i = 0; i < 3; i++)
        TEST_INT(process_tree_contains(getpid(), NULL, 0, pids[i]), 1);
    CU_ASSERT(process_tree_signal(getpid(), SIGTERM, NULL, 0) >= 0);
    tree_done(&tree, SIGTERM);
    TEST_INT(process_tree_list(getpid(), NULL, 0, NULL, 0), 0);
    TEST_INT(process_tree_signal(getpid(), SIGTERM, NULL, 0), 0);
}

static void test_zombies(void) {
    siginfo_t info;
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    CU_ASSERT_FATAL(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT) == 0);
    TEST_INT(process_tree_list(getpid(), NULL, 0, NULL, 0), 0);
    TEST_INT(process_tree_signal(getpid(), SIGKILL, NULL, 0), 0);
    TEST_INT(waitpid(pid, NULL, 0), pid);
}

static void test_except(void) {
    struct tree tree;
    siginfo_t info;
    pid_t pids[3];
    int orphans = 0;

    /* The child and its descendants are spared. The orphan, a child of this process now, is not. */
    tree_init(&tree, pids);
    CU_ASSERT(process_tree_signal(getpid(), SIGKILL, &tree.child, 1) >= 0);
    CU_ASSERT(waitpid(-1, NULL, 0) != tree.child);
    TEST_INT(process_tree_list(getpid(), NULL, 0, NULL, 0), 2);
    for (int i = 0; i < 3; i++)
        orphans += process_tree_contains(tree.child, NULL, 0, pids[i]) == 0;
    TEST_INT(orphans, 1);
    TEST_INT(kill(tree.child, 0), 0);
    CU_ASSERT(process_tree_signal(getpid(), SIGKILL, NULL, 0) >= 0);
    /* A killed process exists a little longer. When the child is dead, its descendants are reparented to
     * this process. */
    TEST_INT(waitid(P_PID, (id_t) tree.child, &info, WEXITED | WNOWAIT), 0);
    TEST_INT(process_tree_signal(tree.child, SIGKILL, NULL, 0), 0);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    close_fd(tree.reader);
}

static void test_contains(void) {
    TEST_INT(process_tree_contains(getpid(), NULL, 0, getpid()), 1);
    TEST_INT(process_tree_contains(getpid(), NULL, 0, getppid()), 0);
    TEST_INT(process_tree_contains(getpid(), NULL, 0, 1), 0);
    TEST_INT(process_tree_contains(getppid(), NULL, 0, getpid()), 1);
    TEST_INT(process_tree_contains(getpid(), NULL, 0, 0), 0);
    TEST_INT(process_tree_contains(getpid(), NULL, 0, -1), 0);
    TEST_INT(process_tree_contains(getpid(), NULL, 0, 0x7ffffff0), 0);
}

static void test_start_time(void) {
    uint64_t mine = 0, child = 4711;
    pid_t pid;

    /* A process name that looks like the fields after it. */
    CU_ASSERT(prctl(PR_SET_NAME, "a) Z 1 (b", 0, 0, 0) == 0);
    TEST_INT(process_start_time(getpid(), &mine), 0);
    CU_ASSERT(mine > 0);
    TEST_INT(process_tree_contains(getppid(), NULL, 0, getpid()), 1);
    pid = fork();
    if (pid == 0)
        _exit(pause());
    TEST_INT(process_start_time(pid, &child), 0);
    CU_ASSERT(child >= mine);
    TEST_INT(process_signal(pid, child + 1, SIGKILL), -ESRCH); /* another one with the same pid is left alone */
    TEST_INT(process_signal(pid, child, SIGTERM), 0);
    TEST_INT(waitpid(pid, NULL, 0), pid);
    child = 4711;
    TEST_INT(process_start_time(pid, &child), -ESRCH);
    TEST_INT(process_signal(pid, child, SIGTERM), -ESRCH);
    TEST_INT(child, 4711);
}

static void test_has_execed(void) {
    siginfo_t info;
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    CU_ASSERT_FATAL(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT) == 0);
    TEST_INT(process_has_execed(pid), 0);
    TEST_INT(waitpid(pid, NULL, 0), pid);
    TEST_INT(process_has_execed(pid), -ESRCH);
    pid = fork();
    if (pid == 0)
        _exit(execl("/bin/true", "true", (char *) NULL));
    CU_ASSERT_FATAL(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT) == 0);
    TEST_INT(process_has_execed(pid), 1);
    TEST_INT(waitpid(pid, NULL, 0), pid);
}

/* A process of a container has a pid here, and another one there. */
static void test_namespace(void) {
    pid_t outer, inner = 0;
    int pids[2];

    CU_ASSERT(process_is_in_own_namespace(getpid()));
    CU_ASSERT(!process_is_in_own_namespace(0));
    TEST_NEEDS_ROOT();
    CU_ASSERT_FATAL(pipe(pids) == 0);
    outer = fork();
    if (outer == 0) {
        if (unshare(CLONE_NEWPID) < 0)
            _exit(1);
        inner = fork();
        if (inner == 0) {
            close(pids[1]);
            for (;;)
                pause();
        }
        _exit(write(pids[1], &inner, sizeof(inner)) != sizeof(inner));
    }
    close(pids[1]);
    CU_ASSERT_FATAL(read(pids[0], &inner, sizeof(inner)) == sizeof(inner) && inner > 0);
    CU_ASSERT(!process_is_in_own_namespace(inner));
    CU_ASSERT(process_is_in_own_namespace(outer));
    TEST_INT(kill(inner, SIGKILL), 0);
    TEST_INT(waitpid(outer, NULL, 0), outer);
    TEST_INT(waitpid(inner, NULL, 0), inner); /* an orphan; this process is its subreaper */
    close(pids[0]);
}

static CU_TestInfo tests[] = {
    {"signal", test_signal},
    {"zombies", test_zombies},
    {"except", test_except},
    {"contains", test_contains},
    {"start time", test_start_time},
    {"has execed", test_has_execed},
    {"namespace", test_namespace},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "process tree", .pTests = tests}, CU_SUITE_INFO_NULL};

    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return 1;
    return test_main(argc, argv, suites);
}
