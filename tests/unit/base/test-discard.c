/* SPDX-License-Identifier: MIT */

/* A peer attaches descriptors whose close() sleeps. This process never closes them, whatever the peer
 * does. */

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/connection.h"
#include "base/discard.h"
#include "base/clock.h"
#include "tests/harness/slow-close.h"
#include "tests/harness/test.h"

#define SOON (8 * USEC_PER_SEC) /* much less than what one close would take */
#define TURN_MAX (5 * USEC_PER_SEC)

static sd_event *event;
static struct discard *discard;
static usec_t begin;

static void up(void) {
    TEST_INT(sd_event_new(&event), 0);
    TEST_INT(discard_new(&discard, event), 0);
    begin = clock_boottime();
}

static void down(void) {
    discard = discard_free(discard);
    event = sd_event_unref(event);
    CU_ASSERT(clock_boottime() - begin < SOON);
    slow_close_end();
    while (waitpid(-1, NULL, 0) > 0) /* the children that had the descriptors end, too, and without lingering */
        ;
    CU_ASSERT(clock_boottime() - begin < SOON);
}

static void make_pair(int type, int *ret_ours, int *ret_theirs) {
    int fds[2];

    TEST_INT(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds), 0);
    TEST_INT(connection_prepare(fds[0]), 0);
    *ret_ours = fds[0];
    *ret_theirs = fds[1];
}

/* Waits until all children have ended. */
static void settle(void) {
    siginfo_t info;
    usec_t until = clock_boottime() + TURN_MAX;

    for (;;) {
        info.si_pid = 0;
        (void) sd_event_run(event, 200 * USEC_PER_MSEC);
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || clock_boottime() >= until)
            return;
    }
}

/* The attack works: a plain close() sleeps. */
static void test_attack_works(void) {
    int ours, theirs, state;
    char byte;
    pid_t pid;

    make_pair(SOCK_STREAM, &ours, &theirs);
    TEST_INT(slow_close_attack(theirs, "x", 1, 0), 1);
    pid = fork();
    if (pid == 0) {
        close(theirs);
        (void) recv(ours, &byte, 1, 0); /* sleeps on its way back */
        _exit(0);
    }
    close(ours);
    close(theirs);
    TEST_INT(poll(NULL, 0, 500), 0);
    TEST_INT(waitpid(pid, &state, WNOHANG), 0);
    (void) kill(pid, SIGKILL);
}

static void attacked(int type, int flags) {
    int ours, theirs;
    char bytes[64];

    make_pair(type, &ours, &theirs);
    TEST_INT(send(theirs, "abc", 3, MSG_NOSIGNAL), 3);
    TEST_INT(slow_close_attack(theirs, "def", 3, flags), 3);
    if (type == SOCK_SEQPACKET)
        TEST_INT(connection_receive(ours, bytes, sizeof(bytes)), 3);
    for (int i = 0; i < 3; i++)
        TEST_INT(connection_receive(ours, bytes, sizeof(bytes)), -EBADMSG);
    discard_connection(discard, ours);
    TEST_INT(send(theirs, "x", 1, MSG_NOSIGNAL), -1);
    settle();
    close(theirs);
}

static void test_stream(void) {
    attacked(SOCK_STREAM, 0);
}

static void test_packets(void) {
    attacked(SOCK_SEQPACKET, 0);
}

/* Urgent data are read in their turn. */
static void test_urgent(void) {
    char bytes[64];
    int ours, theirs;

    attacked(SOCK_STREAM, MSG_OOB);
    make_pair(SOCK_STREAM, &ours, &theirs);
    TEST_INT(send(theirs, "abc", 3, MSG_OOB | MSG_NOSIGNAL), 3);
    TEST_INT(send(theirs, "d", 1, MSG_NOSIGNAL), 1);
    memset(bytes, 0, sizeof(bytes));
    for (size_t n = 0; n < 4;) {
        ssize_t k = connection_receive(ours, bytes + n, sizeof(bytes) - n);

        CU_ASSERT_FATAL(k > 0);
        n += (size_t) k;
    }
    TEST_STRING(bytes, "abcd");
    discard_connection(discard, ours);
    close(theirs);
}

/* Bytes without descriptors arrive unchanged, however they were sent. */
static void test_honest(void) {
    char bytes[8];
    int ours, theirs;

    make_pair(SOCK_STREAM, &ours, &theirs);
    TEST_INT(connection_receive(ours, bytes, sizeof(bytes)), -EAGAIN);
    TEST_INT(send(theirs, "abc", 3, MSG_NOSIGNAL), 3);
    TEST_INT(send(theirs, "defghijk", 8, MSG_NOSIGNAL), 8);
    TEST_INT(connection_receive(ours, bytes, sizeof(bytes)), 8);
    CU_ASSERT_NSTRING_EQUAL(bytes, "abcdefgh", 8);
    TEST_INT(connection_receive(ours, bytes, sizeof(bytes)), 3);
    close(theirs);
    TEST_INT(connection_receive(ours, bytes, sizeof(bytes)), 0);
    CU_ASSERT(connection_end(ours));
    close(ours);
    make_pair(SOCK_SEQPACKET, &ours, &theirs);
    TEST_INT(send(theirs, "abcdefghi", 9, MSG_NOSIGNAL), 9);
    TEST_INT(connection_receive(ours, bytes, sizeof(bytes)), -EMSGSIZE);
    CU_ASSERT(connection_end(ours));
    close(ours);
    close(theirs);
}

/* The descriptor is still unread when the connection is discarded: alone, behind much data, or behind
 * empty packets, which look like the end. */
static void unread(int type, size_t before, size_t each) {
    static const char much[1000];
    int ours, theirs;

    make_pair(type, &ours, &theirs);
    for (size_t i = 0; i < before; i++)
        TEST_INT(send(theirs, much, each, MSG_NOSIGNAL), (ssize_t) each);
    CU_ASSERT(slow_close_attack(theirs, "x", 1, 0) > 0);
    discard_connection(discard, ours);
    settle();
    close(theirs);
}

static void test_unread(void) {
    unread(SOCK_STREAM, 0, 0);
    unread(SOCK_STREAM, 50, 1000);
    unread(SOCK_SEQPACKET, 0, 0);
    unread(SOCK_SEQPACKET, 100, 0);
    unread(SOCK_SEQPACKET, 20, 1000);
}

/* One child serves many, and nothing stays open. */
static void test_many(void) {
    int ours[64], theirs[64];

    for (size_t i = 0; i < ELEMENTSOF(ours); i++) {
        make_pair(SOCK_STREAM, &ours[i], &theirs[i]);
        CU_ASSERT(slow_close_attack(theirs[i], "x", 1, 0) > 0);
    }
    for (size_t i = 0; i < ELEMENTSOF(ours); i++)
        discard_connection(discard, ours[i]);
    settle();
    for (size_t i = 0; i < ELEMENTSOF(ours); i++) {
        TEST_INT(fcntl(ours[i], F_GETFD), -1);
        close(theirs[i]);
    }
}

/* A program ends while a connection is still to be discarded. */
static void test_freed(void) {
    int ours, theirs;

    make_pair(SOCK_STREAM, &ours, &theirs);
    CU_ASSERT(slow_close_attack(theirs, "x", 1, 0) > 0);
    discard_connection(discard, ours);
    discard = discard_free(discard);
    TEST_INT(fcntl(ours, F_GETFD), -1);
    close(theirs);
}

static CU_TestInfo tests[] = {
    {"attack works", test_attack_works}, {"stream", test_stream}, {"packets", test_packets}, {"urgent", test_urgent},
    {"honest", test_honest},             {"unread", test_unread}, {"many", test_many},       {"freed", test_freed},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "discard", .pSetUpFunc = up, .pTearDownFunc = down, .pTests = tests});
