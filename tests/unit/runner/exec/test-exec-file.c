/* SPDX-License-Identifier: MIT */

/* The output of a job may go through links that root made, never through one that another user could have
 * made. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "runner/exec/exec-internal.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

#define SOMEBODY 54321
#define OUTPUT (O_WRONLY | O_APPEND | O_CREAT)

static char folder[64];

static const char *path(const char *name) {
    static char text[2][128];
    static unsigned next;

    next = !next;
    snprintf(text[next], sizeof(text[next]), "%s/%s", folder, name);
    return text[next];
}

/* Opens the file. Returns 0 or a negative errno. */
static int opens(const char *name) {
    int fd = exec_open_file(path(name), OUTPUT);

    if (fd < 0)
        return fd;
    close_fd(fd);
    return 0;
}

static void make_folder(const char *name, uid_t owner, mode_t mode) {
    CU_ASSERT(mkdir(path(name), 0700) == 0 && chown(path(name), owner, (gid_t) -1) == 0 && chmod(path(name), mode) == 0);
}

/* Makes the folders, but not below /tmp, where every user may write. */
static bool begin(void) {
    snprintf(folder, sizeof(folder), "/run/berth-test-output-XXXXXX");
    if (!mkdtemp(folder))
        return false;
    make_folder("ours", 0, 0755);
    make_folder("bob", SOMEBODY, 0755);
    make_folder("group", 0, 0775);
    CU_ASSERT(symlink("../ours/file", path("ours/link")) == 0 && symlink("../ours/file", path("bob/link")) == 0);
    CU_ASSERT(symlink("../ours/file", path("group/link")) == 0);
    CU_ASSERT(symlink(path("ours"), path("bob/sub")) == 0 && symlink(path("bob"), path("ours/bob")) == 0);
    CU_ASSERT(symlink("link", path("ours/chain")) == 0 && symlink("../bob/link", path("ours/through")) == 0);
    CU_ASSERT(symlink("loop", path("ours/loop")) == 0);
    return true;
}

static void test_links(void) {
    struct stat st;

    TEST_NEEDS_ROOT();
    if (!begin())
        TEST_SKIP("takes a /run to write to");
    TEST_INT(opens("ours/file"), 0);
    TEST_INT(opens("ours/link"), 0);
    TEST_INT(opens("ours/chain"), 0);
    TEST_INT(opens("ours/../ours/./link"), 0);
    TEST_INT(opens("bob/file"), 0);
    TEST_INT(opens("bob/link"), -ELOOP);
    TEST_INT(opens("bob/sub/file"), -ELOOP);
    TEST_INT(opens("bob/../ours/link"), -ELOOP); /* bob may have replaced the folder before ".." */
    TEST_INT(opens("ours/bob/link"), -ELOOP);
    TEST_INT(opens("ours/through"), -ELOOP);
    TEST_INT(opens("group/link"), -ELOOP);
    TEST_INT(opens("ours/loop"), -ELOOP);
    TEST_INT(opens("none/file"), -ENOENT);
    CU_ASSERT(stat(path("bob/file"), &st) == 0 && S_ISREG(st.st_mode));
    place_remove(folder);
}

/* A link of the kernel's, to which `output = "/dev/stderr"` leads in the end. */
static void test_descriptor(void) {
    char name[64];
    int fds[2], fd;

    CU_ASSERT_FATAL(pipe(fds) == 0);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fds[1]);
    fd = exec_open_file(name, OUTPUT);
    CU_ASSERT(fd >= 0);
    TEST_INT(write(fd, "x", 1), 1);
    close_fd(fd);
    close_fd(fds[0]);
    close_fd(fds[1]);
}

static CU_TestInfo tests[] = {
    {"links", test_links},
    {"descriptor", test_descriptor},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "output", .pTests = tests});
