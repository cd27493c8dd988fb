/* SPDX-License-Identifier: MIT */

/* A user's share of the control server: connections, memory, unanswered calls; root has more. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/socket.h"
#include "daemon/control/control-internal.h"
#include "tests/harness/host/control-server.h"
#include "tests/harness/slow-close.h"
#include "tests/harness/test.h"

#define NOBODY 65534
#define MEBIBYTE ((size_t) 1 << 20)

static void begin(const struct control_limits *limits) {
    server_up(limits);
    TEST_INT(chmod(server.path, 0666), 0);
    TEST_INT(chmod(server.directory, 0755), 0);
}
/* Only root can connect as another user. */
#define BEGIN(limits)  \
    TEST_NEEDS_ROOT(); \
    begin(limits)

static int client_of(uid_t uid) {
    int fd;

    TEST_INT(seteuid(uid), 0);
    fd = socket_connect(server.path, SOCK_STREAM);
    TEST_INT(seteuid(0), 0);
    CU_ASSERT_FATAL(fd >= 0);
    server_turn();
    return fd;
}

static void expect_refused(int fd, const char *words) {
    const char *answer = peer_answer(fd);

    if (!strstr(answer, words))
        TEST_STRING(answer, words);
    TEST_STRING(peer_answer(fd), "");
    close(fd);
    server_turn();
}

static void test_connections(void) {
    int fds[4];

    BEGIN(NULL);
    server.settings.user_connections = 3;
    for (size_t i = 0; i < 3; i++)
        peer_expect_ok(fds[i] = client_of(NOBODY));
    expect_refused(client_of(NOBODY), "your user has 3 connections to berthd, as many as user-connections = 3 allows");
    peer_expect_ok(fds[3] = client_of(NOBODY - 1)); /* another user has the same quota */
    close(fds[3]);
    for (size_t i = 0; i < 8; i++) { /* root has no such bound */
        int fd = client_of(0);

        peer_expect_ok(fd);
        close(fd);
    }
    close(fds[0]);
    server_turn();
    peer_expect_ok(fds[0] = client_of(NOBODY));
    for (size_t i = 0; i < 3; i++)
        close(fds[i]);
    server.settings.user_connections = 1024;
    server_turn();
    server_down();
}

/* Many users together leave room for root. */
static void test_room_for_root(void) {
    enum { ALL = 64 };
    int fds[ALL], n = 0, fd;

    BEGIN(NULL);
    server.settings.connections = ALL;
    while (n < ALL) {
        fds[n] = client_of((uid_t) (NOBODY - n));
        if (strcmp(peer_answer(fds[n++]), "(nothing)") != 0)
            break;
    }
    CU_ASSERT(n < ALL); /* the last one was refused */
    fd = client_of(0);
    peer_expect_ok(fd);
    close(fd);
    while (n > 0)
        close(fds[--n]);
    server.settings.connections = 4096;
    server_turn();
    server_down();
}

static size_t buffered(void) {
    size_t bytes = 0;

    list_foreach(c, &server.control->clients, struct control_client, link)
        bytes += c->in.allocated + c->out_bytes;
    return bytes;
}

/* Sends an unfinished call on each of up to `most` connections. Returns how many the server kept. */
static size_t say_halves(int *fds, uid_t uid, size_t most, const char *words) {
    static char half[100000];
    size_t n;

    memset(half, ' ', sizeof(half));
    for (n = 0; n < most; n++) {
        fds[n] = client_of(uid);
        for (size_t sent = 0; sent < sizeof(half); sent += 10000) {
            (void) !send(fds[n], half + sent, 10000, MSG_NOSIGNAL | MSG_DONTWAIT);
            server_turn();
        }
        if (strcmp(peer_answer(fds[n]), "(nothing)") == 0)
            continue;
        if (!strstr(peer_received.text, words))
            TEST_STRING(peer_received.text, words);
        close(fds[n]);
        break;
    }
    server_turn();
    return n;
}

static void test_halves(void) {
    int fds[5][64], fd;
    size_t n[5] = {0};

    BEGIN(NULL);
    server.settings.user_buffer = MEBIBYTE;
    n[0] = say_halves(fds[0], NOBODY, 64, "calls and answers of your user would take more than user-buffer = 1048576 bytes");
    CU_ASSERT(n[0] >= 4 && n[0] < 16);
    CU_ASSERT(buffered() <= MEBIBYTE);
    for (uid_t i = 1; i < 5; i++)
        n[i] = say_halves(fds[i], NOBODY - i, 64, "would take more than");
    CU_ASSERT(buffered() <= SETTINGS_BUFFERS * MEBIBYTE);
    TEST_INT(n[4], 0);
    fd = client_of(0);
    peer_expect_ok(fd);
    close(fd);
    for (size_t i = 0; i < 5; i++)
        while (n[i] > 0)
            close(fds[i][--n[i]]);
    server_turn();
    TEST_INT(buffered(), 0);
    fd = client_of(NOBODY); /* the server freed the user's whole share */
    peer_expect_ok(fd);
    close(fd);
    server_turn();
    TEST_INT(server.control->bytes, 0);
    server.settings.user_buffer = 16 * MEBIBYTE;
    server_down();
}

/* Unread replies count towards the buffer of their user. */
static void test_answers(void) {
    static const char big[] = "{\"method\":\"io.test.Big\",\"parameters\":{\"size\":700000}}";
    int fds[2];

    BEGIN(NULL);
    server.settings.user_buffer = MEBIBYTE;
    for (size_t i = 0; i < 2; i++) {
        fds[i] = client_of(NOBODY);
        peer_send(fds[i], big);
    }
    expect_refused(fds[1], "calls and answers of your user would take more than user-buffer = 1048576 bytes");
    close(fds[0]);
    server_turn();
    TEST_INT(server.control->bytes, 0);
    server.settings.user_buffer = 16 * MEBIBYTE;
    server_down();
}

/* Calls beyond the limit of unanswered ones wait, and none is lost. */
static void test_unanswered(void) {
    static const char keep[] = "{\"method\":\"io.test.Keep\",\"oneway\":true}", note[] = "{\"method\":\"io.test.Note\",\"oneway\":true}";
    usec_t until;
    int fd;

    server_up(&server_small); /* 8 calls */
    fd = server_client();
    for (int i = 0; i < 40; i++)
        peer_put(fd, i % 3 == 0 ? keep : note, i % 3 == 0 ? sizeof(keep) : sizeof(note));
    server_turn();
    TEST_INT(server.n_kept, 8);
    TEST_INT(server.n_notes, 14);
    until = clock_boottime() + 2 * server_small.message_usec; /* the time limit of a call does not run meanwhile */
    while (clock_boottime() < until)
        (void) sd_event_run(server.event, usec_sub(until, clock_boottime()));
    for (size_t i = 0; i < server.n_kept; i++) {
        CU_ASSERT_PTR_NOT_NULL_FATAL(server.kept[i]);
        TEST_INT(control_call_done(server.kept[i]), 0);
        server_turn();
    }
    TEST_INT(server.n_kept, 14);
    TEST_INT(server.n_notes, 26);
    close(fd);
    fd = server_client();
    for (int i = 0; i < 40; i++)
        peer_put(fd, note, sizeof(note));
    close(fd); /* calls of a client that hung up run, too */
    server_turn();
    TEST_INT(server.n_notes, 66);
    server_down();
}

/* The server disconnects a client that passes a descriptor, and refuses its user for a minute. Other
 * users are not affected. */
static void test_abuse(void) {
    int pipe_fds[2], fd;

    BEGIN(NULL);
    TEST_INT(pipe2(pipe_fds, O_CLOEXEC), 0);
    fd = client_of(NOBODY);
    TEST_INT(slow_close_send(fd, ECHO, sizeof(ECHO), pipe_fds[0], 0), sizeof(ECHO));
    expect_refused(fd, "the call has a descriptor attached; berthd accepts none");
    expect_refused(client_of(NOBODY), "your user passed a descriptor to berthd, which accepts none; berthd refuses its connections for a minute");
    fd = client_of(NOBODY - 1);
    peer_expect_ok(fd);
    close(fd);
    fd = client_of(0);
    TEST_INT(slow_close_send(fd, ECHO, sizeof(ECHO), pipe_fds[0], 0), sizeof(ECHO));
    expect_refused(fd, "the call has a descriptor attached; berthd accepts none");
    fd = client_of(0); /* a trusted user is not refused for a mistake */
    peer_expect_ok(fd);
    close(fd);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    server_turn();
    server_down();
}

static CU_TestInfo tests[] = {
    {"connections", test_connections}, {"room-for-root", test_room_for_root}, {"halves", test_halves}, {"answers", test_answers},
    {"unanswered", test_unanswered},   {"abuse", test_abuse},                 CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "control-quota", .pInitFunc = server_make, .pCleanupFunc = server_remove,
             .pTests = tests});
