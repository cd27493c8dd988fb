/* SPDX-License-Identifier: MIT */

/* Replies of a control server: large ones, clients that do not read, and descriptors. */

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/harness/host/control-server.h"
#include "tests/harness/slow-close.h"
#include "tests/harness/test.h"

#define BIG(size) "{\"method\":\"io.test.Big\",\"parameters\":{\"size\":" size "}}"

/* The server disconnects a client that does not read, and goes on serving others. */
static void test_slow_reader(void) {
    struct control_limits patient = server_small; /* on a busy machine the time limit would strike before the size limit */
    int slow, other;
    size_t n = 0;

    patient.message_usec = 60 * USEC_PER_SEC;
    server_up(&patient);
    slow = server_client();
    other = server_client();
    peer_send(slow, "{\"method\":\"io.test.Keep\",\"more\":true}");
    while (server.kept[0] && n < 10000) {
        char text[1000] = {};

        memset(text, 'y', sizeof(text) - 1);
        TEST_INT(control_call_notify(server.kept[0], json_pack("{s:s}", "text", text), -1), 0);
        if (n++ % 64 == 0)
            server_turn();
    }
    server_turn();
    TEST_INT(server.n_gone, 1);
    CU_ASSERT(n > 1000 && n < 3000); /* a MiB, and the socket's own buffer */
    peer_expect_ok(other);
    close(slow);
    close(other);
    server_down();
}

/* The server stops reading from a client that never reads its replies, and disconnects it in time. */
static void test_never_reads(void) {
    int slow, other;

    server_up(&server_small);
    slow = server_client();
    other = server_client();
    for (int i = 0; i < 100; i++)
        if (send(slow, BIG("100000"), sizeof(BIG("100000")), MSG_NOSIGNAL) > 0)
            server_turn();
    peer_expect_ok(other);
    usec_t begin = clock_boottime();
    while (send(slow, " ", 1, MSG_NOSIGNAL) > 0 || errno == EAGAIN) {
        CU_ASSERT_FATAL(clock_boottime() < begin + SERVER_PATIENCE);
        (void) sd_event_run(server.event, 10 * USEC_PER_MSEC);
    }
    TEST_INT(errno, EPIPE);
    peer_expect_ok(other);
    close(slow);
    close(other);
    server_down();
}

/* Large replies arrive whole when they are read. */
static void test_large_answers(void) {
    usec_t until = clock_boottime() + SERVER_PATIENCE;
    size_t sum = 0, ends = 0;
    char data[65536];
    int fd, ignored = -1;

    server_up(NULL);
    fd = server_client();
    for (int i = 0; i < 20; i++)
        peer_put(fd, BIG("300000"), sizeof(BIG("300000")));
    while (ends < 20 && clock_boottime() < until) {
        ssize_t n = peer_receive(fd, data, sizeof(data), &ignored);

        server_turn();
        for (ssize_t i = 0; i < n; i++)
            ends += data[i] == '\0';
        sum += n > 0 ? (size_t) n : 0;
    }
    TEST_INT(sum, 20 * (300000 + strlen("{\"parameters\":{\"text\":\"\"}}") + 1));
    close(fd);
    server_down();
}

static struct control_text *text_of(bool continues, const char *members) {
    FILE *f = NULL;
    struct control_text *t = control_text_new(continues, &f);

    CU_ASSERT_FATAL(t && fputs(members, f) >= 0);
    TEST_INT(control_text_finish(t), 0);
    return t;
}

/* Clients share a text, also with one that has gone. */
static void test_text(void) {
    _cleanup_(control_text_freep) struct control_text *first = text_of(true, "\"state\":\"first\",\"list\":[1]"),
                                                       *last = text_of(false, "");
    int gone, fd;

    server_up(NULL);
    gone = server_client();
    fd = server_client();
    peer_send(gone, "{\"method\":\"io.test.Keep\",\"more\":true}");
    peer_send(fd, "{\"method\":\"io.test.Keep\",\"more\":true}");
    CU_ASSERT_FATAL(server.kept[0] && server.kept[1]);
    for (unsigned i = 0; i < 2; i++)
        TEST_INT(control_call_notify_text(server.kept[i], first), 0);
    TEST_STRING(peer_answer(gone), "{\"parameters\":{\"state\":\"first\",\"list\":[1]},\"continues\":true}");
    close(gone);
    server_turn();
    first = control_text_free(first);
    TEST_STRING(peer_answer(fd), "{\"parameters\":{\"state\":\"first\",\"list\":[1]},\"continues\":true}");
    TEST_INT(control_call_answer_text(server.kept[1], last), 0);
    TEST_STRING(peer_answer(fd), "{\"parameters\":{}}");
    close(fd);
    server_down();
}

#define LARGE 1000000 /* more than a socket takes */

/* Returns how many bytes this process has allocated. With a sanitizer: 0. */
static size_t allocated(void) {
    struct mallinfo2 all = mallinfo2();

    return all.uordblks + all.hblkhd;
}

/* The slow clients keep the text when its maker has dropped it, but no more of it than the socket has not taken. */
static void test_text_unread(void) {
    static char members[LARGE];
    struct control_text *text;
    usec_t until = clock_boottime() + SERVER_PATIENCE;
    bool is_right = true;
    int fds[2], ignored = -1;
    size_t begin = strlen("{\"parameters\":{"), size = 0, before, between = 0;
    char data[65536];

    for (size_t i = 0; i < sizeof(members) - 1; i++)
        members[i] = (char) ('a' + i % 23);
    text = text_of(true, members);
    server_up(NULL);
    for (unsigned i = 0; i < 2; i++) {
        fds[i] = server_client();
        peer_send(fds[i], "{\"method\":\"io.test.Keep\",\"more\":true}");
        CU_ASSERT_FATAL(server.kept[i] != NULL);
        TEST_INT(control_call_notify_text(server.kept[i], text), 0);
    }
    control_text_free(text);
    close(fds[0]);
    server_turn();
    before = allocated();
    for (bool is_whole = false; !is_whole && clock_boottime() < until;) {
        ssize_t n = peer_receive(fds[1], data, sizeof(data), &ignored);

        server_turn();
        for (ssize_t i = 0; i < n; i++, size++)
            is_right &= size < begin || size - begin >= sizeof(members) - 1 || data[i] == members[size - begin];
        is_whole = n > 0 && data[n - 1] == '\0';
        if (size > LARGE / 2 && between == 0)
            between = allocated();
    }
    CU_ASSERT(clock_boottime() < until);
    CU_ASSERT(is_right);
    CU_ASSERT(before == 0 || between < before - LARGE / 4);
    TEST_INT(size, begin + sizeof(members) - 1 + sizeof("},\"continues\":true}"));
    close(fds[1]);
    server_down();
}

static void test_fd(void) {
    int pipe_fds[2], fd, given;
    char byte = 0;

    CU_ASSERT_FATAL(pipe2(pipe_fds, O_CLOEXEC) == 0);
    server.pass_fd = pipe_fds[1];
    server_up(NULL);
    fd = server_client();
    peer_send(fd, "{\"method\":\"io.test.Pass\",\"more\":true}");
    TEST_STRING(peer_answer(fd), "{\"continues\":true,\"parameters\":{\"state\":\"first\"}}");
    TEST_INT(peer_received.fd, -1);
    TEST_STRING(peer_answer(fd), "{\"continues\":true,\"parameters\":{\"state\":\"granted\"}}");
    given = peer_received.fd;
    CU_ASSERT(given >= 0);
    TEST_STRING(peer_answer(fd), "{\"parameters\":{\"state\":\"over\"}}");
    TEST_INT(peer_received.fd, -1);
    TEST_INT(write(given, "z", 1), 1);
    TEST_INT(read(pipe_fds[0], &byte, 1), 1);
    TEST_INT(byte, 'z');
    close(given);
    /* Without "more" only the last reply is sent. */
    peer_send(fd, "{\"method\":\"io.test.Pass\"}");
    TEST_STRING(peer_answer(fd), "{\"parameters\":{\"state\":\"over\"}}");
    TEST_INT(peer_received.fd, -1);
    /* A descriptor that was sent but never read is closed with the client: the pipe ends. */
    peer_send(fd, "{\"method\":\"io.test.Pass\",\"more\":true}");
    close(fd);
    server_turn();
    close(pipe_fds[1]);
    TEST_INT(read(pipe_fds[0], &byte, 1), 0);
    close(pipe_fds[0]);
    server_down();
}

/* The descriptor of a message that is sent in parts arrives once. */
static void test_fd_in_parts(void) {
    usec_t until = clock_boottime() + SERVER_PATIENCE;
    size_t ends = 0, n_fds = 0;
    char data[65536];
    int fd;

    server.pass_fd = STDERR_FILENO;
    server_up(NULL);
    fd = server_client();
    peer_send(fd, "{\"method\":\"io.test.PassBig\",\"more\":true}");
    while (ends < 2 && clock_boottime() < until) {
        int given = -1;
        ssize_t n = peer_receive(fd, data, sizeof(data), &given);

        server_turn();
        for (ssize_t i = 0; i < n; i++)
            ends += data[i] == '\0';
        n_fds += given >= 0;
        close_fd(given);
    }
    TEST_INT(ends, 2);
    TEST_INT(n_fds, 1);
    close(fd);
    server_down();
}

/* The server does not receive a client's descriptor; the kernel closes it with the connection. */
static void test_unasked_fd(void) {
    usec_t until = clock_boottime() + SERVER_PATIENCE;
    int pipe_fds[2], fd;
    ssize_t n = -1;
    char byte;

    CU_ASSERT_FATAL(pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) == 0);
    server_up(NULL);
    fd = server_client();
    TEST_INT(slow_close_send(fd, ECHO, sizeof(ECHO), pipe_fds[1], 0), sizeof(ECHO));
    close(pipe_fds[1]);
    TEST_STRING(peer_answer(fd),
                "{\"error\":\"io.berth.BadRequest\",\"parameters\":{\"text\":\"the call has a descriptor attached; berthd accepts none\"}}");
    TEST_STRING(peer_answer(fd), "");
    while (n < 0 && clock_boottime() < until) {
        (void) sd_event_run(server.event, 10 * USEC_PER_MSEC);
        n = read(pipe_fds[0], &byte, 1);
    }
    TEST_INT(n, 0); /* end of file: no process has the write end open */
    close(pipe_fds[0]);
    close(fd);
    server_down();
}

static CU_TestInfo tests[] = {
    {"slow-reader", test_slow_reader},
    {"never-reads", test_never_reads},
    {"large-answers", test_large_answers},
    {"text", test_text},
    {"text unread", test_text_unread},
    {"descriptor", test_fd},
    {"descriptor-in-parts", test_fd_in_parts},
    {"unwanted-descriptor", test_unasked_fd},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "control-answers", .pInitFunc = server_make, .pCleanupFunc = server_remove,
             .pTests = tests});
