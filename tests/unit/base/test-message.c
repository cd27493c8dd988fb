/* SPDX-License-Identifier: MIT */
#include "base/message.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "tests/harness/slow-close.h"
#include "tests/harness/test.h"

static struct message m; /* large */
static struct message_writer w;

static void connected(int fds[2]) {
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
}

static void refused(const char *text, size_t size) {
    TEST_INT(message_parse(&m, text, size), -EBADMSG);
}
#define REFUSED(text) refused(text, sizeof(text) - 1)

static void test_parse(void) {
    static const char text[] = "start\nrun=0123456789abcdef0123456789abcdef\njob=pg-dump\nempty=\nhas=a=b c~\nn=18446744073709551615\n";
    char id[ID_TEXT_SIZE] = "?", name[NAME_MAX_LENGTH + 1] = "?";
    uint64_t n = 7;

    TEST_INT(message_parse(&m, text, sizeof(text) - 1), 0);
    CU_ASSERT(message_is(&m, "start"));
    CU_ASSERT(!message_is(&m, "star"));
    TEST_INT(m.n_fields, 5);
    TEST_STRING(message_get(&m, "empty"), "");
    TEST_STRING(message_get(&m, "has"), "a=b c~");
    CU_ASSERT_PTR_NULL(message_get(&m, "start"));
    TEST_INT(message_get_id(&m, "run", id), 0);
    TEST_STRING(id, "0123456789abcdef0123456789abcdef");
    TEST_INT(message_get_name(&m, "job", name), 0);
    TEST_STRING(name, "pg-dump");
    TEST_INT(message_get_u64(&m, "n", &n), 0);
    CU_ASSERT(n == UINT64_MAX);
    TEST_INT(message_parse(&m, "hello\n", 6), 0);
    TEST_INT(m.n_fields, 0);
}

static void test_kinds(void) {
    static const char text[] = "x\nrun=0123456789ABCDEF0123456789abcdef\njob=../etc\nn=010\nbig=18446744073709551616\nempty=\n";
    char id[ID_TEXT_SIZE] = "?", name[NAME_MAX_LENGTH + 1] = "?";
    uint64_t n = 7;

    TEST_INT(message_parse(&m, text, sizeof(text) - 1), 0);
    TEST_INT(message_get_id(&m, "run", id), -EBADMSG);
    TEST_INT(message_get_id(&m, "empty", id), -EBADMSG);
    TEST_INT(message_get_id(&m, "none", id), -ENODATA);
    TEST_INT(message_get_name(&m, "job", name), -EBADMSG);
    TEST_INT(message_get_name(&m, "empty", name), -EBADMSG);
    TEST_INT(message_get_name(&m, "none", name), -ENODATA);
    TEST_INT(message_get_u64(&m, "n", &n), -EBADMSG);
    TEST_INT(message_get_u64(&m, "big", &n), -EBADMSG);
    TEST_INT(message_get_u64(&m, "empty", &n), -EBADMSG);
    TEST_INT(message_get_u64(&m, "none", &n), -ENODATA);
    TEST_STRING(id, "?");
    TEST_STRING(name, "?");
    TEST_INT(n, 7);
}

static void test_refuse(void) {
    static char large[MESSAGE_SIZE_MAX + 2];

    REFUSED("");
    REFUSED("\n");
    REFUSED("hello");
    REFUSED("hello\n\n");
    REFUSED("hello\nrun");
    REFUSED("hello\nrun=1");
    REFUSED("hello\nrun\n");
    REFUSED("hello\n=1\n");
    REFUSED("hello\nrun=1\nrun=1\n");
    REFUSED("hello\nRun=1\n");
    REFUSED("hello\nru n=1\n");
    REFUSED("hello\nrun=\t\n");
    REFUSED("hello\nrun=a\r\n");
    REFUSED("hello\nrun=\x7f\n");
    REFUSED("hello\nrun=\xc3\xa9\n");
    REFUSED("hello\nrun=1\0\n");
    REFUSED("hello\0\nrun=1\n");
    REFUSED("hel lo\n");
    REFUSED("HELLO\n");
    REFUSED("hello=1\n");
    memset(large, 'a', sizeof(large));
    large[MESSAGE_SIZE_MAX] = '\n';
    refused(large, MESSAGE_SIZE_MAX + 1);
    memcpy(large, "x\nk=", 4);
    large[MESSAGE_SIZE_MAX - 1] = '\n';
    TEST_INT(message_parse(&m, large, MESSAGE_SIZE_MAX), 0);
}

static void test_many_fields(void) {
    char text[1024] = "x\n";
    size_t size = 2;

    for (int i = 0; i < MESSAGE_FIELDS_MAX; i++)
        size += (size_t) snprintf(text + size, sizeof(text) - size, "k%d=\n", i);
    TEST_INT(message_parse(&m, text, size), 0);
    TEST_INT(m.n_fields, MESSAGE_FIELDS_MAX);
    size += (size_t) snprintf(text + size, sizeof(text) - size, "more=\n");
    refused(text, size);
}

static void test_round_trip(void) {
    _cleanup_close_ int a = -1, b = -1;
    int fds[2];

    connected(fds);
    a = fds[0], b = fds[1];
    TEST_INT(message_receive(b, &m), -EAGAIN);
    message_begin(&w, "report");
    message_put(&w, "job", "a");
    message_put_u64(&w, "token", UINT64_MAX);
    message_put_text(&w, "text", "no such\tthing\n\xc3\xa9");
    TEST_INT(message_send(a, &w), 0);
    TEST_INT(message_receive(b, &m), 0);
    CU_ASSERT(message_is(&m, "report"));
    TEST_STRING(message_get(&m, "token"), "18446744073709551615");
    TEST_STRING(message_get(&m, "text"), "no such?thing???");
}

static void test_writer_refuses(void) {
    char large[MESSAGE_SIZE_MAX + 1];

    memset(large, 'a', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    message_begin(&w, "x");
    message_put(&w, "k", large);
    message_put(&w, "j", "1"); /* the first error stays */
    TEST_INT(message_send(-1, &w), -EMSGSIZE);
    message_begin(&w, "x");
    message_put(&w, "k", "two\nlines");
    TEST_INT(message_send(-1, &w), -EINVAL);
    message_begin(&w, "x");
    message_put(&w, "a key", "1");
    TEST_INT(message_send(-1, &w), -EINVAL);
    message_begin(&w, "");
    TEST_INT(message_send(-1, &w), -EINVAL);
    message_begin(&w, "x");
    message_put_text(&w, "k", large);
    TEST_INT(w.error, 0);
    TEST_INT(w.size, 2 + 2 + 512 + 1);
}

static void test_too_long(void) {
    _cleanup_close_ int a = -1, b = -1;
    char large[MESSAGE_SIZE_MAX + 1];
    int fds[2];

    connected(fds);
    a = fds[0], b = fds[1];
    memset(large, 'a', sizeof(large));
    memcpy(large, "x\nk=", 4);
    large[MESSAGE_SIZE_MAX - 1] = '\n'; /* the cut must be noticed even if the rest is a message */
    TEST_INT(send(a, large, sizeof(large), 0), sizeof(large));
    TEST_INT(message_receive(b, &m), -EBADMSG);
    TEST_INT(message_receive(b, &m), -EBADMSG);
}

/* test-discard.c tests how such a connection is closed. */
static void test_descriptors(void) {
    _cleanup_close_ int a = -1, b = -1;
    int fds[2];

    connected(fds);
    a = fds[0], b = fds[1];
    TEST_INT(slow_close_send(a, "hello\n", 6, a, 0), 6);
    TEST_INT(message_receive(b, &m), -EBADMSG);
    TEST_INT(message_receive(b, &m), -EBADMSG);
}

static void test_end(void) {
    _cleanup_close_ int a = -1, b = -1;
    int fds[2];

    connected(fds);
    a = fds[0], b = fds[1];
    message_begin(&w, "deadline");
    TEST_INT(message_send(b, &w), 0); /* never read: the end is an ECONNRESET in front of the last message */
    message_begin(&w, "report");
    TEST_INT(message_send(a, &w), 0);
    a = close_fd(a);
    TEST_INT(message_receive(b, &m), 0);
    CU_ASSERT(message_is(&m, "report"));
    TEST_INT(message_receive(b, &m), -ENOTCONN);
    TEST_INT(message_send(b, &w), -EPIPE);
}

static void test_full(void) {
    _cleanup_close_ int a = -1, b = -1;
    int fds[2], r = 0;

    connected(fds);
    a = fds[0], b = fds[1];
    message_begin(&w, "x");
    for (int i = 0; i < 100000 && r == 0; i++)
        r = message_send(a, &w);
    TEST_INT(r, -EAGAIN);
}

static CU_TestInfo tests[] = {
    {"parse", test_parse},
    {"kinds", test_kinds},
    {"refuse", test_refuse},
    {"many fields", test_many_fields},
    {"round trip", test_round_trip},
    {"writer refuses", test_writer_refuses},
    {"too long", test_too_long},
    {"descriptors", test_descriptors},
    {"end", test_end},
    {"full", test_full},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "message", .pTests = tests});
