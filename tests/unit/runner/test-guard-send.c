/* SPDX-License-Identifier: MIT */

/* close() may sleep on a descriptor that a peer attached to a message, so the guard leaves such a
 * connection open. */

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/connection.h"
#include "runner/guard-internal.h"
#include "tests/harness/slow-close.h"
#include "tests/harness/test.h"

static int ours, theirs;

static void begin(void) {
    int fds[2];

    TEST_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    TEST_INT(connection_prepare(fds[0]), 0);
    ours = fds[0];
    theirs = fds[1];
}

static void end(void) {
    close(theirs);
    slow_close_end();
}

static bool is_open(int fd) {
    return fcntl(fd, F_GETFD) >= 0;
}

static void test_nothing_attached(void) {
    TEST_INT(send(theirs, "x", 1, 0), 1);
    guard_give_up(ours);
    CU_ASSERT(!is_open(ours));
}

/* The last close would sleep as long as the attached socket lingers, and a deadline may pass meanwhile. */
static void test_attached(void) {
    TEST_INT(slow_close_attack(theirs, "x", 1, 0), 1);
    guard_give_up(ours);
    CU_ASSERT(is_open(ours));
    slow_close_end(); /* now nothing lingers */
    close(ours);
}

static CU_TestInfo tests[] = {
    {"a connection with nothing attached is closed", test_nothing_attached},
    {"one with something attached is not", test_attached},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "guard-send", .pSetUpFunc = begin, .pTearDownFunc = end, .pTests = tests});
