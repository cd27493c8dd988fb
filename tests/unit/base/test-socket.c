/* SPDX-License-Identifier: MIT */
#include "base/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "tests/harness/test.h"

static char directory[] = "/tmp/berth-socket-XXXXXX";
static char path[64];

static int suite_init(void) {
    if (!mkdtemp(directory))
        return -1;
    snprintf(path, sizeof(path), "%s/a.sock", directory);
    return 0;
}

static int suite_done(void) {
    return rmdir(directory);
}

static void test_listen(void) {
    _cleanup_close_ int listener = -1, client = -1, server = -1;
    mode_t before = umask(077);
    struct stat st;

    listener = socket_listen(path, SOCK_SEQPACKET, 0666);
    umask(before);
    CU_ASSERT(listener >= 0);
    CU_ASSERT(stat(path, &st) == 0 && (st.st_mode & 0777) == 0666);
    TEST_INT(fcntl(listener, F_GETFD), FD_CLOEXEC);
    CU_ASSERT(fcntl(listener, F_GETFL) & O_NONBLOCK);
    client = socket_connect(path, SOCK_SEQPACKET);
    CU_ASSERT(client >= 0);
    TEST_INT(fcntl(client, F_GETFD), FD_CLOEXEC);
    CU_ASSERT(fcntl(client, F_GETFL) & O_NONBLOCK);
    server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CU_ASSERT(server >= 0);
    TEST_INT(unlink(path), 0);
}

static void test_replace(void) {
    _cleanup_close_ int first = socket_listen(path, SOCK_SEQPACKET, 0600), second = -1;

    CU_ASSERT(first >= 0);
    TEST_INT(socket_listen(path, SOCK_SEQPACKET, 0600), -EADDRINUSE);
    TEST_INT(socket_listen(path, SOCK_STREAM, 0600), -EADDRINUSE);
    first = close_fd(first);
    TEST_INT(socket_connect(path, SOCK_SEQPACKET), -ECONNREFUSED);
    second = socket_listen(path, SOCK_SEQPACKET, 0600);
    CU_ASSERT(second >= 0);
    TEST_INT(unlink(path), 0);
}

static void test_not_a_socket(void) {
    _cleanup_close_ int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    CU_ASSERT(fd >= 0);
    TEST_INT(socket_listen(path, SOCK_SEQPACKET, 0600), -EADDRINUSE);
    TEST_INT(socket_remove(path), -EADDRINUSE);
    CU_ASSERT(access(path, F_OK) == 0);
    TEST_INT(unlink(path), 0);
    TEST_INT(socket_remove(path), 0);
}

static void test_paths(void) {
    char longest[109];

    TEST_INT(socket_connect(path, SOCK_SEQPACKET), -ENOENT);
    TEST_INT(socket_connect("", SOCK_SEQPACKET), -EINVAL);
    memset(longest, 'a', sizeof(longest) - 1);
    longest[108] = '\0';
    TEST_INT(socket_connect(longest, SOCK_SEQPACKET), -ENAMETOOLONG);
    TEST_INT(socket_listen(longest, SOCK_SEQPACKET, 0600), -ENAMETOOLONG);
    longest[107] = '\0';
    TEST_INT(socket_connect(longest, SOCK_SEQPACKET), -ENOENT);
    TEST_INT(socket_listen("/nonexistent/a.sock", SOCK_SEQPACKET, 0600), -ENOENT);
}

static void test_peer(void) {
    _cleanup_close_ int a = -1, b = -1, alone = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    gid_t groups[256], other = 4711;
    struct peer peer = {0};
    struct caller caller = {};
    int fds[2], n;

    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
    a = fds[0], b = fds[1];
    TEST_INT(socket_peer(a, &peer), 0);
    TEST_INT(peer.uid, getuid());
    TEST_INT(peer.gid, getgid());
    TEST_INT(peer.pid, getpid());
    TEST_INT(socket_caller(a, &caller), 0);
    TEST_INT(caller.peer.uid, getuid());
    CU_ASSERT(caller_has_group(&caller, getgid()));
    n = getgroups(256, groups);
    for (int i = 0; i < n; i++) {
        CU_ASSERT(caller_has_group(&caller, groups[i]));
        if (groups[i] == other)
            other++, i = -1;
    }
    CU_ASSERT(!caller_has_group(&caller, other));
    caller_done(&caller);
    TEST_INT(socket_caller(alone, &caller), -ENOTCONN);
    TEST_INT(socket_peer(alone, &peer), -ENOTCONN);
    TEST_INT(socket_peer(-1, &peer), -EBADF);
}

static void test_supplementary(void) {
    _cleanup_close_ int a = -1, b = -1;
    gid_t before[256], many[100];
    struct caller caller = {};
    int fds[2], n;

    TEST_NEEDS_ROOT();
    n = getgroups(256, before);
    CU_ASSERT_FATAL(n >= 0);
    for (size_t i = 0; i < ELEMENTSOF(many); i++)
        many[i] = (gid_t) (20000 + i);
    CU_ASSERT_FATAL(setgroups(ELEMENTSOF(many), many) == 0); /* more than fit at first */
    TEST_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    a = fds[0], b = fds[1];
    CU_ASSERT_FATAL(setgroups((size_t) n, before) == 0);
    TEST_INT(socket_caller(a, &caller), 0);
    TEST_INT(caller.n_groups, ELEMENTSOF(many));
    CU_ASSERT(caller_has_group(&caller, 20099));
    CU_ASSERT(!caller_has_group(&caller, 20100));
    caller_done(&caller);
}

static CU_TestInfo tests[] = {
    {"listen", test_listen},
    {"replace", test_replace},
    {"not a socket", test_not_a_socket},
    {"paths", test_paths},
    {"peer", test_peer},
    {"supplementary groups", test_supplementary},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "socket", .pTests = tests, .pInitFunc = suite_init, .pCleanupFunc = suite_done});
