/* SPDX-License-Identifier: MIT */

/* Clients of a control server that are slow, half closed, gone, too many, or of another user. */

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/socket.h"
#include "daemon/control/control-internal.h"
#include "tests/harness/host/control-server.h"
#include "tests/harness/test.h"

#define NOBODY 65534

/* The server stops reading while a call is unanswered and the input buffer is full. After the reply it
 * serves all calls behind it. */
static void test_full(void) {
    struct control_limits limits = server_small;
    char text[128];
    int fd;

    limits.message_usec = SERVER_PATIENCE; /* its answers may take long here */
    server_up(&limits);
    fd = server_client();
    peer_send(fd, "{\"method\":\"io.test.Keep\"}");
    for (int i = 0; i < 200; i++) {
        snprintf(text, sizeof(text), "{\"method\":\"io.test.Echo\",\"parameters\":{\"i\":%d}}", i);
        peer_send(fd, text);
    }
    TEST_STRING(peer_answer(fd), "(nothing)");
    TEST_INT(control_call_done(server.kept[0]), 0);
    TEST_STRING(peer_answer(fd), "{\"parameters\":{}}");
    for (int i = 0; i < 200; i++) {
        snprintf(text, sizeof(text), "{\"parameters\":{\"i\":%d}}", i);
        TEST_STRING(peer_answer(fd), text);
    }
    close(fd);
    /* The client hangs up while the buffer is full. */
    fd = server_client();
    server.n_kept = 0;
    peer_send(fd, "{\"method\":\"io.test.Keep\"}");
    for (int i = 0; i < 200; i++)
        peer_send(fd, "{\"method\":\"io.test.Echo\",\"parameters\":{}}");
    close(fd);
    server_turn();
    TEST_INT(server.n_gone, 1);
    server_down();
}

static void test_unfinished(void) {
    int fd, other, idle;
    usec_t begin;

    server_up(&server_small);
    fd = server_client();
    other = server_client();
    idle = server_client();
    peer_send(other, "{\"method\":\"io.test.Keep\"}");
    peer_put(other, ECHO, 5);
    begin = clock_boottime();
    peer_put(fd, ECHO, 10);
    TEST_STRING(peer_late_answer(fd),
                "{\"error\":\"io.berth.BadRequest\",\"parameters\":{\"text\":\"the message was not finished in time\"}}");
    CU_ASSERT(clock_boottime() - begin >= server_small.message_usec);
    TEST_STRING(peer_answer(fd), "");
    TEST_STRING(peer_late_answer(other), ""); /* a reply is owed: no error, only the end of the connection */
    TEST_INT(server.n_gone, 1);
    peer_expect_ok(idle); /* between messages there is no limit */
    close(fd);
    close(other);
    close(idle);
    server_down();
}

/* Bytes that keep coming do not prolong the time limit of a message. */
static void test_trickle(void) {
    struct control_limits limits = server_small;
    usec_t begin;
    int fd, n = 0;

    limits.message_bytes = CONTROL_MESSAGE_MAX;
    server_up(&limits);
    fd = server_client();
    begin = clock_boottime();
    peer_put(fd, "{", 1);
    while (clock_boottime() < begin + SERVER_PATIENCE) {
        char byte;

        (void) sd_event_run(server.event, 5 * USEC_PER_MSEC);
        if (recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) > 0)
            break;
        peer_put(fd, " ", 1);
        n++;
    }
    CU_ASSERT(n > 3);
    CU_ASSERT(clock_boottime() - begin < 2 * USEC_PER_SEC);
    TEST_STRING(peer_answer(fd), "{\"error\":\"io.berth.BadRequest\",\"parameters\":{\"text\":\"the message was not finished in time\"}}");
    close(fd);
    server_down();
}

static void test_half_closed(void) {
    int fd;

    server_up(NULL);
    fd = server_client();
    peer_put(fd, ECHO, sizeof(ECHO));
    shutdown(fd, SHUT_WR);
    TEST_STRING(peer_answer(fd), ECHOED);
    TEST_STRING(peer_answer(fd), "");
    close(fd);

    fd = server_client(); /* a later reply, and the calls behind it */
    peer_put(fd, "{\"method\":\"io.test.Keep\",\"more\":true}", sizeof("{\"method\":\"io.test.Keep\",\"more\":true}"));
    peer_put(fd, ECHO, sizeof(ECHO));
    shutdown(fd, SHUT_WR);
    TEST_STRING(peer_answer(fd), "(nothing)");
    TEST_INT(server.n_gone, 0);
    TEST_INT(control_call_notify(server.kept[0], json_object(), -1), 0);
    TEST_STRING(peer_answer(fd), "{\"continues\":true,\"parameters\":{}}");
    TEST_INT(control_call_done(server.kept[0]), 0);
    TEST_STRING(peer_answer(fd), "{\"parameters\":{}}");
    TEST_STRING(peer_answer(fd), ECHOED);
    TEST_STRING(peer_answer(fd), "");
    close(fd);

    fd = server_client(); /* in the middle of a message, which will never be complete */
    peer_put(fd, ECHO, 10);
    shutdown(fd, SHUT_WR);
    TEST_STRING(peer_answer(fd), "");
    close(fd);
    server_down();
}

/* The server runs the calls that a client sent before it hung up. */
static void test_gone(void) {
    static const char note[] = "{\"method\":\"io.test.Note\",\"oneway\":true}";
    int fd;

    server_up(NULL);
    fd = server_client();
    peer_send(fd, "{\"method\":\"io.test.Keep\",\"more\":true}");
    TEST_INT(control_call_notify(server.kept[0], json_pack("{s:i}", "n", 1), -1), 0);
    peer_put(fd, "{\"method\":\"io.test.Note\",\"oneway\":true}", sizeof("{\"method\":\"io.test.Note\",\"oneway\":true}"));
    close(fd);
    TEST_INT(control_call_notify(server.kept[0], json_pack("{s:i}", "n", 2), -1), 0); /* no reader: EPIPE */
    TEST_INT(server.n_gone, 0);
    server_turn();
    TEST_INT(server.n_notes, 1);
    TEST_INT(server.n_gone, 1);
    /* Many calls at once. */
    server.n_notes = 0;
    fd = server_client();
    for (int i = 0; i < 1000; i++)
        memcpy(peer_received.text + i * sizeof(note), note, sizeof(note));
    peer_put(fd, peer_received.text, 1000 * sizeof(note));
    close(fd);
    server_turn();
    TEST_INT(server.n_notes, 1000);
    server.n_notes = 1;
    /* The client hangs up without reading. */
    fd = server_client();
    peer_put(fd, "{\"method\":\"io.test.Note\"}", sizeof("{\"method\":\"io.test.Note\"}"));
    peer_put(fd, "{\"method\":\"io.test.Keep\"}", sizeof("{\"method\":\"io.test.Keep\"}"));
    close(fd);
    server_turn();
    TEST_INT(server.n_notes, 2);
    TEST_INT(server.n_gone, 2);
    server_down();
}

static void test_freed(void) {
    int fd, other;

    server_up(NULL);
    fd = server_client();
    other = server_client();
    peer_send(fd, "{\"method\":\"io.test.Keep\",\"more\":true}");
    peer_send(other, "{\"method\":\"io.test.Keep\"}");
    peer_send(other, "{\"method\":\"io.test.Keep\",\"oneway\":true}");
    peer_send(other, "{\"method\":\"io.test.Echo\"}");
    peer_put(fd, ECHO, 10);
    TEST_INT(server.n_kept, 3);
    server_down();
    TEST_INT(server.n_gone, 3);
    TEST_STRING(peer_answer(fd), "");
    TEST_STRING(peer_answer(other), "");
    close(fd);
    close(other);
}

static void test_many_clients(void) {
    int fds[17];

    server_up(&server_small);
    for (size_t i = 0; i < 16; i++)
        fds[i] = server_client();
    fds[16] = server_client();
    CU_ASSERT_PTR_NOT_NULL(strstr(peer_answer(fds[16]), "\"io.berth.Away\",\"parameters\":{\"text\":\"berthd has 16 connections"));
    TEST_STRING(peer_answer(fds[16]), "");
    close(fds[16]);
    for (size_t i = 0; i < 16; i++)
        peer_expect_ok(fds[i]);
    close(fds[3]);
    server_turn();
    fds[3] = server_client();
    peer_expect_ok(fds[3]);
    for (size_t i = 0; i < 16; i++)
        close(fds[i]);
    server_down();
}

/* Silent clients hold no buffer, whatever they sent before. */
static void test_silent(void) {
    static char big[3000];
    int fds[3];

    server_up(&server_small);
    for (size_t i = 0; i < ELEMENTSOF(fds); i++) {
        fds[i] = server_client();
        peer_expect_ok(fds[i]);
    }
    snprintf(big, sizeof(big), "{\"method\":\"io.test.Note\",\"parameters\":{}%*s}", 2900, "");
    peer_send(fds[0], big);
    TEST_STRING(peer_answer(fds[0]), "{\"parameters\":{}}");
    peer_send(fds[1], "{\"method\":\"io.test.Keep\"}");
    list_foreach(c, &server.control->clients, struct control_client, link) {
        CU_ASSERT_PTR_NULL(c->in.data);
        TEST_INT(c->in.allocated, 0);
    }
    for (size_t i = 0; i < ELEMENTSOF(fds); i++)
        close(fds[i]);
    server_down();
}

/* Makes two calls as nobody. Returns 0 if the replies are right. */
static int be_nobody(void) {
    static const char secret[] = "{\"method\":\"io.test.Secret\"}", echo[] = "{\"method\":\"io.test.Echo\"}";
    char text[512];
    size_t size = 0, ends = 0;
    int fd;

    if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
        return 1;
    fd = socket_connect(server.path, SOCK_STREAM);
    if (fd < 0 || send(fd, secret, sizeof(secret), 0) < 0 || send(fd, echo, sizeof(echo), 0) < 0)
        return 2;
    while (ends < 2) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t n;

        if (poll(&p, 1, 5000) <= 0 || (n = recv(fd, text + size, sizeof(text) - size - 1, 0)) <= 0)
            return 3;
        for (ssize_t i = 0; i < n; i++)
            ends += text[size + (size_t) i] == '\0';
        size += (size_t) n;
    }
    if (!strstr(text, "\"io.berth.NotAllowed\""))
        return 4;
    return strcmp(text + strlen(text) + 1, "{\"parameters\":{}}") == 0 ? 0 : 5;
}

static void test_not_allowed(void) {
    int status = -1, fd;
    pid_t pid;

    server_up(NULL);
    fd = server_client();
    peer_send(fd, "{\"method\":\"io.test.Secret\"}");
    TEST_STRING(peer_answer(fd), "{\"parameters\":{}}"); /* its own user may */
    close(fd);
    if (geteuid() != 0) {
        server_down();
        TEST_NEEDS_ROOT();
    }
    TEST_INT(chmod(server.path, 0666), 0);
    TEST_INT(chmod(server.directory, 0755), 0);
    pid = fork();
    if (pid == 0)
        _exit(be_nobody());
    while (waitpid(pid, &status, WNOHANG) == 0)
        (void) sd_event_run(server.event, 10 * USEC_PER_MSEC);
    CU_ASSERT(WIFEXITED(status));
    TEST_INT(WEXITSTATUS(status), 0);
    server_down();
}

static void test_mode(void) {
    struct stat st;

    server_up(NULL);
    TEST_INT(stat(server.path, &st), 0);
    TEST_INT(st.st_mode & 07777, 0660);
    server_down();
}

/* The calls of many clients take long together. The loop does other work after a slice of them, and goes on with the
 * clients that had to wait. */
static void test_slice(void) {
    enum { CLIENTS = 8 };
    static const char call[] = "{\"method\":\"io.test.Slow\"}";
    int fds[CLIENTS];

    server_up(&server_small);
    for (size_t i = 0; i < CLIENTS; i++)
        fds[i] = server_client();
    for (size_t i = 0; i < CLIENTS; i++)
        TEST_INT(send(fds[i], call, sizeof(call), 0), sizeof(call));
    while (server.n_notes < CLIENTS) {
        unsigned before = server.n_notes;

        CU_ASSERT_FATAL(sd_event_run(server.event, SERVER_PATIENCE) > 0);
        CU_ASSERT(server.n_notes - before <= 2);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        TEST_STRING(peer_answer(fds[i]), "{\"parameters\":{}}");
        close(fds[i]);
    }
    server_down();
}

/* As above, with calls that wait behind another one. */
static void test_slice_of_woken(void) {
    enum { CLIENTS = 8 };
    int fds[CLIENTS];

    server_up(&server_small);
    for (size_t i = 0; i < CLIENTS; i++) {
        fds[i] = server_client();
        peer_send(fds[i], "{\"method\":\"io.test.Keep\"}");
        peer_send(fds[i], "{\"method\":\"io.test.Slow\"}");
    }
    for (size_t i = 0; i < CLIENTS; i++)
        TEST_INT(control_call_done(server.kept[i]), 0);
    while (server.n_notes < CLIENTS) {
        unsigned before = server.n_notes;

        CU_ASSERT_FATAL(sd_event_run(server.event, SERVER_PATIENCE) > 0);
        CU_ASSERT(server.n_notes - before <= 2);
    }
    for (size_t i = 0; i < CLIENTS; i++)
        close(fds[i]);
    server_turn();
    server_down();
}

static CU_TestInfo tests[] = {
    {"full", test_full},
    {"unfinished", test_unfinished},
    {"trickle", test_trickle},
    {"half-closed", test_half_closed},
    {"gone", test_gone},
    {"freed", test_freed},
    {"many-clients", test_many_clients},
    {"silent", test_silent},
    {"not-allowed", test_not_allowed},
    {"mode", test_mode},
    {"slice", test_slice},
    {"slice-of-woken", test_slice_of_woken},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "control-clients", .pInitFunc = server_make, .pCleanupFunc = server_remove,
             .pTests = tests});
