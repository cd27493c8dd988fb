/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=readdir,--wrap=readdir64,--wrap=closedir,--wrap=access */

/* A child replaces its parent while the tree is walked. The parent is listed and gone when it is read; the
 * child is on no list. One call must still reach the last child, with and without the kernel's lists of
 * children. */
#include "base/process/process-tree.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/harness/test.h"

#define REPLACED 5 /* times; a call gives up after many more walks than that */
#define PATIENCE 10000 /* ms */

enum moment { MOMENT_NONE, MOMENT_LISTED /* and not read yet */, MOMENT_READ /* and not signalled yet */ };

static enum moment moment;
static bool has_no_children_files;
static int n_replaced, orders[2], news[2];
static pid_t racer; /* the newest */

static bool receive_pid(void) {
    struct pollfd p = {.fd = news[0], .events = POLLIN};

    return poll(&p, 1, PATIENCE) == 1 && read(news[0], &racer, sizeof(racer)) == sizeof(racer);
}

/* Writes its pid. On each order it forks a child and exits; the child goes on once its parent is gone. */
static _Noreturn void race(void) {
    (void) close(orders[1]); /* a process that the test leaves behind ends with the test */
    for (;;) {
        pid_t pid = getpid();
        struct pollfd parent = {.events = POLLIN};
        char order;

        if (write(news[1], &pid, sizeof(pid)) != sizeof(pid) || read(orders[0], &order, 1) != 1)
            _exit(1);
        parent.fd = pidfd_open(pid, 0);
        if (parent.fd < 0 || fork() != 0)
            _exit(0);
        (void) poll(&parent, 1, PATIENCE);
        close_fd(parent.fd);
    }
}

static void replace(enum moment now) {
    if (moment != now || n_replaced == REPLACED)
        return;
    n_replaced++;
    CU_ASSERT_FATAL(write(orders[1], "x", 1) == 1);
    CU_ASSERT_FATAL(receive_pid());
}

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode) {
    if (has_no_children_files && strstr(path, "/children")) {
        errno = ENOENT;
        return -1;
    }
    return __real_access(path, mode);
}

struct dirent *__real_readdir(DIR *directory);
struct dirent *__wrap_readdir(DIR *directory);
struct dirent64 *__real_readdir64(DIR *directory);
struct dirent64 *__wrap_readdir64(DIR *directory);
int __real_closedir(DIR *directory);
int __wrap_closedir(DIR *directory);

struct dirent *__wrap_readdir(DIR *directory) {
    struct dirent *entry = __real_readdir(directory);

    if (entry && racer > 0 && atoi(entry->d_name) == racer)
        replace(MOMENT_LISTED);
    return entry;
}
struct dirent64 *__wrap_readdir64(DIR *directory) {
    struct dirent64 *entry = __real_readdir64(directory);

    if (entry && racer > 0 && atoi(entry->d_name) == racer)
        replace(MOMENT_LISTED);
    return entry;
}
int __wrap_closedir(DIR *directory) {
    int r = __real_closedir(directory);

    replace(MOMENT_READ);
    return r;
}

static void check(enum moment when) {
    struct pollfd last = {.events = POLLIN};

    moment = MOMENT_NONE;
    n_replaced = 0;
    CU_ASSERT_FATAL(pipe(orders) == 0 && pipe(news) == 0);
    if (fork() == 0)
        race();
    CU_ASSERT_FATAL(receive_pid());
    moment = when;
    CU_ASSERT(process_tree_signal(getpid(), SIGKILL, NULL, 0) >= 0);
    moment = MOMENT_NONE;
    TEST_INT(n_replaced, REPLACED);
    last.fd = pidfd_open(racer, 0); /* not waited for yet: the pid is still its own */
    TEST_INT(poll(&last, 1, PATIENCE), 1);
    close_fd(last.fd);
    TEST_INT(process_tree_list(getpid(), NULL, 0, NULL, 0), 0);
    racer = 0;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    for (int i = 0; i < 2; i++) {
        (void) close(orders[i]);
        (void) close(news[i]);
    }
}

static void test_after_listing(void) {
    check(MOMENT_LISTED);
}
static void test_after_reading(void) {
    check(MOMENT_READ);
}

static void test_without_children_files(void) {
    has_no_children_files = true;
    check(MOMENT_LISTED);
    check(MOMENT_READ);
    has_no_children_files = false;
}

static CU_TestInfo tests[] = {
    {"replaced when listed", test_after_listing},
    {"replaced when read", test_after_reading},
    {"without children files", test_without_children_files},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "process tree, raced", .pTests = tests}, CU_SUITE_INFO_NULL};

    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return 1;
    return test_main(argc, argv, suites);
}
