/* SPDX-License-Identifier: MIT */

/* One client of a control server: framing, errors, order, and arbitrary bytes. */

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/socket.h"
#include "tests/harness/host/control-server.h"
#include "tests/harness/test.h"

static void test_split(void) {
    server_up(NULL);
    for (size_t at = 1; at < sizeof(ECHO); at++) {
        int fd = server_client();

        peer_put(fd, ECHO, at);
        server_turn();
        TEST_STRING(peer_answer(fd), "(nothing)");
        peer_put(fd, &ECHO[at], sizeof(ECHO) - at);
        TEST_STRING(peer_answer(fd), ECHOED);
        close(fd);
    }
    int fd = server_client();
    for (size_t at = 0; at < sizeof(ECHO); at++) {
        peer_put(fd, &ECHO[at], 1);
        server_turn();
    }
    TEST_STRING(peer_answer(fd), ECHOED);
    close(fd);
    server_down();
}

static void test_pipelined(void) {
    char text[8192];
    size_t size = 0;
    int fd;

    server_up(NULL);
    fd = server_client();
    for (int i = 0; i < 100; i++)
        size += (size_t) snprintf(text + size, sizeof(text) - size, "{\"method\":\"io.test.Echo\",\"parameters\":{\"i\":%d}}", i) + 1;
    peer_put(fd, text, size);
    for (int i = 0; i < 100; i++) {
        char expected[64];

        snprintf(expected, sizeof(expected), "{\"parameters\":{\"i\":%d}}", i);
        TEST_STRING(peer_answer(fd), expected);
    }
    TEST_STRING(peer_answer(fd), "(nothing)");
    close(fd);
    server_down();
}

static void test_errors(void) {
    static const struct {
        const char *call, *answer;
    } cases[] = {
        {"{\"method\":\"io.test.Nope\"}",
         "{\"error\":\"org.varlink.service.MethodNotFound\",\"parameters\":{\"method\":\"io.test.Nope\"}}"},
        {"{\"method\":\"Nope\"}", "{\"error\":\"org.varlink.service.MethodNotFound\",\"parameters\":{\"method\":\"Nope\"}}"},
        {"{\"method\":\"io.other.Echo\"}",
         "{\"error\":\"org.varlink.service.InterfaceNotFound\",\"parameters\":{\"interface\":\"io.other\"}}"},
        {"{\"method\":\"io.test.Fail\"}", "{\"error\":\"io.berth.Internal\",\"parameters\":{\"text\":\"Input/output error\"}}"},
        {"{\"method\":\"io.test.Forget\"}", "{\"error\":\"io.berth.Internal\",\"parameters\":{\"text\":\"no answer\"}}"},
        {"{\"method\":\"org.varlink.service.GetInfo\",\"parameters\":{\"x\":1}}",
         "{\"error\":\"org.varlink.service.InvalidParameter\",\"parameters\":{\"parameter\":\"x\"}}"},
        {"{\"method\":\"org.varlink.service.GetInfo\"}",
         "{\"parameters\":{\"vendor\":\"berth\",\"product\":\"berth\",\"version\":\"" VERSION
         "\",\"url\":\"\",\"interfaces\":[\"org.varlink.service\",\"io.test\"]}}"},
        {"{\"method\":\"org.varlink.service.GetInterfaceDescription\",\"parameters\":{\"interface\":\"io.test\"}}",
         "{\"parameters\":{\"description\":\"interface io.test\\n\"}}"},
        {"{\"method\":\"org.varlink.service.GetInterfaceDescription\",\"parameters\":{\"interface\":\"io.tes\"}}",
         "{\"error\":\"org.varlink.service.InterfaceNotFound\",\"parameters\":{\"interface\":\"io.tes\"}}"},
        {"{\"method\":\"org.varlink.service.GetInterfaceDescription\"}",
         "{\"error\":\"org.varlink.service.InvalidParameter\",\"parameters\":{\"parameter\":\"interface\"}}"},
        {"{\"method\":\"io.test.Echo\",\"parameters\":null,\"more\":null}", "{\"parameters\":{}}"},
        {"{\"method\":\"io.test.Echo\"}", "{\"parameters\":{}}"},
    };
    int fd;

    server_up(NULL);
    fd = server_client(); /* one connection: none of these ends it */
    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        peer_send(fd, cases[i].call);
        TEST_STRING(peer_answer(fd), cases[i].answer);
    }
    peer_send(fd, "{\"method\":\"org.varlink.service.GetInterfaceDescription\",\"parameters\":{\"interface\":\"org.varlink.service\"}}");
    CU_ASSERT_PTR_NOT_NULL(strstr(peer_answer(fd), "interface org.varlink.service"));
    close(fd);
    server_down();
}

static void test_malformed(void) {
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "the message is not valid JSON"},
        {"hello", "the message is not valid JSON"},
        {"{\"method\":\"io.test.Echo\"", "the message is not valid JSON"},
        {"{\"method\":\"io.test.Echo\",\"method\":\"io.test.Echo\"}", "the message is not valid JSON"},
        {"{\"method\":\"io.test.Echo\"} {}", "the message is not valid JSON"},
        {"{\"method\":\"\xff\"}", "the message is not valid JSON"},
        {"[1]", "the message is not a JSON object"},
        {"{}", "the call names no method"},
        {"{\"method\":1}", "the call names no method"},
        {"{\"method\":\"io.test.Echo\",\"parameters\":[]}", "the parameters are not an object"},
        {"{\"method\":\"io.test.Echo\",\"more\":1}", "more, oneway and upgrade are true or false"},
        {"{\"method\":\"io.test.Echo\",\"oneway\":\"yes\"}", "more, oneway and upgrade are true or false"},
        {"{\"method\":\"io.test.Echo\",\"upgrade\":true}", "upgrade is not offered"},
        {"{\"method\":\"io.test.Echo\",\"oneway\":true,\"more\":true}", "more and oneway exclude each other"},
    };
    int other;

    server_up(NULL);
    other = server_client();
    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        char expected[256];
        int fd = server_client();

        peer_send(fd, cases[i].text);
        snprintf(expected, sizeof(expected), "{\"error\":\"io.berth.BadRequest\",\"parameters\":{\"text\":\"%s\"}}", cases[i].why);
        TEST_STRING(peer_answer(fd), expected);
        TEST_STRING(peer_answer(fd), "");
        close(fd);
        peer_expect_ok(other);
    }
    /* A reply is owed: the client would take an error for it. */
    int fd = server_client();
    peer_send(fd, "{\"method\":\"io.test.Keep\"}");
    peer_send(fd, "hello");
    TEST_STRING(peer_answer(fd), "");
    TEST_INT(server.n_gone, 1);
    close(fd);
    close(other);
    server_down();
}

static void test_deep(void) {
    static char text[200000];
    int fd;

    server_up(NULL);
    fd = server_client();
    memset(text, '[', sizeof(text) - 1);
    for (size_t at = 0; at < sizeof(text); at += 20000) {
        peer_put(fd, text + at, 20000);
        server_turn();
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(peer_answer(fd), "not valid JSON"));
    TEST_STRING(peer_answer(fd), "");
    close(fd);
    server_down();
}

static void test_oversized(void) {
    char text[4200];
    int fd;

    server_up(&server_small);
    fd = server_client();
    memset(text, ' ', sizeof(text));
    memcpy(text, ECHO, sizeof(ECHO) - 1);
    text[4095] = '\0'; /* the longest allowed */
    peer_put(fd, text, 4096);
    TEST_STRING(peer_answer(fd), ECHOED);
    text[4095] = ' ';
    peer_put(fd, text, sizeof(text));
    server_turn();
    TEST_STRING(peer_answer(fd), "{\"error\":\"io.berth.BadRequest\",\"parameters\":{\"text\":\"the message is too long\"}}");
    TEST_STRING(peer_answer(fd), "");
    close(fd);
    server_down();
}

/* A oneway call that changes nothing is not run, so unprivileged clients cannot pile up such calls. */
static void test_oneway_look(void) {
    int fd;

    server_up(NULL);
    fd = server_client();
    for (int i = 0; i < 8; i++) {
        peer_send(fd, "{\"method\":\"io.test.Await\",\"oneway\":true}");
        peer_send(fd, "{\"method\":\"io.test.Look\",\"oneway\":true}");
    }
    TEST_INT(server.n_kept, 0);
    TEST_INT(server.n_notes, 0);
    TEST_STRING(peer_answer(fd), "(nothing)");
    peer_send(fd, "{\"method\":\"io.test.Look\"}");
    TEST_STRING(peer_answer(fd), "{\"parameters\":{}}");
    TEST_INT(server.n_notes, 1);
    close(fd);
    server_down();
}

static void test_oneway(void) {
    int fd;

    server_up(NULL);
    fd = server_client();
    peer_send(fd, "{\"method\":\"io.test.Note\",\"oneway\":true}");
    TEST_INT(server.n_notes, 1);
    TEST_STRING(peer_answer(fd), "(nothing)");
    peer_send(fd, "{\"method\":\"io.test.Nope\",\"oneway\":true}");
    TEST_STRING(peer_answer(fd), "(nothing)");
    /* While a reply is owed, oneway calls run at once, others wait in order. */
    peer_send(fd, "{\"method\":\"io.test.Keep\"}");
    peer_send(fd, "{\"method\":\"io.test.Echo\",\"parameters\":{\"n\":1}}");
    peer_send(fd, "{\"method\":\"io.test.Note\",\"oneway\":true}");
    peer_send(fd, "{\"method\":\"io.test.Keep\"}");
    peer_send(fd, "{\"method\":\"io.test.Echo\",\"parameters\":{\"n\":2}}");
    peer_send(fd, "{\"method\":\"io.test.Note\",\"oneway\":true}");
    TEST_INT(server.n_notes, 3);
    TEST_INT(server.n_kept, 1);
    TEST_STRING(peer_answer(fd), "(nothing)");
    TEST_INT(control_call_answer(server.kept[0], json_pack("{s:i}", "kept", 0)), 0);
    TEST_STRING(peer_answer(fd), "{\"parameters\":{\"kept\":0}}");
    TEST_STRING(peer_answer(fd), "{\"parameters\":{\"n\":1}}");
    TEST_STRING(peer_answer(fd), "(nothing)");
    peer_send(fd, "{\"method\":\"io.test.Note\",\"oneway\":true}");
    TEST_INT(server.n_notes, 4);
    TEST_INT(server.n_kept, 2);
    TEST_INT(control_call_error(server.kept[1], "io.test.Error", NULL), 0);
    TEST_STRING(peer_answer(fd), "{\"error\":\"io.test.Error\",\"parameters\":{}}");
    TEST_STRING(peer_answer(fd), "{\"parameters\":{\"n\":2}}");
    close(fd);
    server_turn();
    TEST_INT(server.n_gone, 0);
    server_down();
}

/* Arbitrary bytes, the same in each run, do not affect other clients. */
static void test_noise(void) {
    static const char *const pieces[] = {ECHO, "{\"method\":\"io.test.Note\",\"oneway\":true}", "{\"method\":\"io.test.Pass\",\"more\":true}",
                                         "{", "[]", "\\", "\"", "\x80"};
    uint64_t state = 4711;
    int other;

    server.pass_fd = STDERR_FILENO;
    server_up(&server_small);
    other = server_client();
    for (int round = 0; round < 300; round++) {
        int fd = server_client();

        for (int i = 0; i < 8; i++) {
            const char *piece = pieces[(state = state * 6364136223846793005u + 1442695040888963407u) >> 61];
            char byte = (char) (state >> 40);

            (void) send(fd, piece, strlen(piece) + (state >> 33) % 2, MSG_NOSIGNAL);
            if ((state >> 35) % 8 == 0)
                (void) send(fd, &byte, 1, MSG_NOSIGNAL);
            if ((state >> 38) % 4 == 0)
                server_turn();
        }
        if (round % 3 == 0)
            shutdown(fd, SHUT_WR);
        server_turn();
        close(fd);
        server_turn();
        if (round % 50 == 0)
            peer_expect_ok(other);
    }
    peer_expect_ok(other);
    close(other);
    server_down();
}

/* A child of a killed berthd still has the listening socket. */
static void test_left_behind(void) {
    _cleanup_close_ int left = socket_listen(server.path, SOCK_STREAM, 0600);
    int fd;

    CU_ASSERT(left >= 0);
    server_up(NULL);
    fd = server_client();
    peer_expect_ok(fd);
    close(fd);
    server_down();
}

static CU_TestInfo tests[] = {
    {"left behind", test_left_behind},
    {"split", test_split},
    {"pipelined", test_pipelined},
    {"errors", test_errors},
    {"malformed", test_malformed},
    {"deep", test_deep},
    {"oversized", test_oversized},
    {"oneway", test_oneway},
    {"a oneway call that changes nothing", test_oneway_look},
    {"noise", test_noise},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "control", .pInitFunc = server_make, .pCleanupFunc = server_remove, .pTests = tests});
