/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=open,--wrap=open64,--wrap=openat,--wrap=openat64,--wrap=fstatfs,--wrap=fstatfs64,--wrap=mkdirat,--wrap=write,--wrap=fchmod,--wrap=fchown */

/* The directory of a run's credentials, with each system call that makes it failing once: the failure is reported, and whatever was made can be
 * removed. */

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/protocol.h"
#include "runner/exec/credentials.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"
#include "tests/harness/wrap.h"

#define RUN "0123456789abcdef0123456789abcdef"
#define CALL FAULT_DESCRIPTOR /* any call here */
#define DEPTH 10000

int __real_open(const char *path, int flags, ...);
int __real_openat(int fd, const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);
int __wrap_openat(int fd, const char *path, int flags, mode_t mode);
int __wrap_openat64(int fd, const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode) {
    return fault_meets(CALL) ? -1 : __real_open(path, flags, mode);
}
int __wrap_open64(const char *path, int flags, mode_t mode) {
    return __wrap_open(path, flags, mode);
}
int __wrap_openat(int fd, const char *path, int flags, mode_t mode) {
    return fault_meets(CALL) ? -1 : __real_openat(fd, path, flags, mode);
}
int __wrap_openat64(int fd, const char *path, int flags, mode_t mode) {
    return __wrap_openat(fd, path, flags, mode);
}
WRAP(CALL, -1, int, fstatfs, (int fd, struct statfs *fs), (fd, fs))
WRAP(CALL, -1, int, fstatfs64, (int fd, struct statfs *fs), (fd, fs))
WRAP(CALL, -1, int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode))
WRAP(CALL, -1, ssize_t, write, (int fd, const void *bytes, size_t n), (fd, bytes, n))
WRAP(CALL, -1, int, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(CALL, -1, int, fchown, (int fd, uid_t uid, gid_t gid), (fd, uid, gid))

static char folder[] = "/dev/shm/berth-test-credentials-XXXXXX", runs[64], path[GUARD_FILE_PATH_SIZE];

static int make(uid_t uid) {
    _cleanup_close_ int fd = credentials_make(runs, RUN);
    int r = fd < 0 ? fd : credentials_add(fd, "token", "s3cret", 6, uid, uid);

    return r == 0 ? credentials_hand_over(fd, uid, uid) : r;
}

/* The user of the directory leaves a tree with more levels than a process may have descriptors. */
static void test_deep_tree(void) {
    int fd;

    TEST_INT(make(getuid()), 0);
    TEST_INT(chmod(path, 0700), 0);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DEPTH; i++) {
        int inner = mkdirat(fd, "d", 0700) == 0 ? openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

        CU_ASSERT_FATAL(inner >= 0);
        close(fd);
        fd = inner;
    }
    close(fd);
    credentials_remove(runs, RUN);
    CU_ASSERT(access(path, F_OK) < 0);
}

static void test_each_call_fails(void) {
    uid_t uid = getuid() == 0 ? 65534 : getuid();

    for (unsigned nth = 1;; nth++) {
        bool was_met;
        int r;

        fault_begin(CALL, nth, 1);
        r = make(uid);
        was_met = fault_end();
        if (r != (was_met ? -EMFILE : 0) && !(was_met && r == -EMEDIUMTYPE)) /* not examined: no tmpfs */
            TEST_INT(r, was_met ? -EMFILE : 0);
        credentials_remove(runs, RUN);
        CU_ASSERT(access(path, F_OK) < 0);
        if (!was_met) {
            CU_ASSERT(nth > 7);
            return;
        }
    }
}

static void test_names(void) {
    struct stat st;

    TEST_INT(make(getuid()), 0);
    CU_ASSERT(stat(path, &st) == 0 && (st.st_mode & 0777) == 0500 && st.st_uid == getuid());
    TEST_INT(make(getuid()), -EEXIST); /* never added to an existing directory */
    credentials_sweep(runs);
    CU_ASSERT(access(path, F_OK) < 0);
    credentials_remove(runs, RUN); /* there is none */
    credentials_sweep(runs);
}

static CU_TestInfo tests[] = {
    {"each-call-fails", test_each_call_fails},
    {"deep tree", test_deep_tree},
    {"names", test_names},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "credentials-files", .pTests = tests}, CU_SUITE_INFO_NULL};
    char credentials[64];
    int status;

    if (!mkdtemp(folder))
        return 1;
    snprintf(runs, sizeof(runs), "%s/runs", folder);
    snprintf(credentials, sizeof(credentials), "%s/credentials", folder);
    if (mkdir(runs, 0700) < 0 || mkdir(credentials, 0711) < 0)
        return 1;
    (void) credentials_path(path, runs, RUN);
    status = test_main(argc, argv, suites);
    place_remove(folder);
    return status;
}
