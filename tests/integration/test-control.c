/* SPDX-License-Identifier: MIT */
/* A real control server with a table of its own; its clients are sockets of the same process, so that every order of events can be
 * had. Nothing is waited for by time but the time limits themselves. */
#include "daemon/control.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/harness/test.h"

#define PATIENCE (5 * USEC_PER_SEC)
#define NOBODY 65534

static struct {
    char directory[64], path[96];
    sd_event *event;
    struct control *control;
    struct control_call *kept[16];
    size_t n_kept;
    unsigned n_notes, n_gone;
    int pass_fd;
} t;

/* --- the methods --- */

static int test_echo(struct control_call *call, json_t *params, _unused_ void *userdata) {
    return control_call_reply(call, json_incref(params));
}

static int test_note(struct control_call *call, _unused_ json_t *params, void *userdata) {
    CU_ASSERT_PTR_EQUAL(userdata, &t);
    t.n_notes++;
    return control_call_reply(call, NULL);
}

static void test_on_gone(struct control_call *call, _unused_ void *userdata) {
    t.n_gone++;
    for (size_t i = 0; i < t.n_kept; i++)
        if (t.kept[i] == call)
            t.kept[i] = NULL;
}

static int test_keep(struct control_call *call, _unused_ json_t *params, _unused_ void *userdata) {
    t.kept[t.n_kept++] = call;
    control_call_keep(call, test_on_gone, NULL);
    return 0;
}

static int test_fail(_unused_ struct control_call *call, _unused_ json_t *params, _unused_ void *userdata) {
    return -EIO;
}

static int test_forget(_unused_ struct control_call *call, _unused_ json_t *params, _unused_ void *userdata) {
    return 0;
}

static int test_big(struct control_call *call, json_t *params, _unused_ void *userdata) {
    size_t size = (size_t) json_integer_value(json_object_get(params, "size"));
    char *text = malloc(size);
    int r;

    memset(text, 'x', size);
    r = control_call_reply(call, json_pack("{s:s%}", "text", text, size));
    free(text);
    return r;
}

static int test_pass(struct control_call *call, _unused_ json_t *params, _unused_ void *userdata) {
    int r = control_call_notify(call, json_pack("{s:s}", "state", "first"), -1);

    if (r == 0)
        r = control_call_notify(call, json_pack("{s:s}", "state", "granted"), t.pass_fd);
    if (r == 0)
        r = control_call_reply(call, json_pack("{s:s}", "state", "over"));
    return r;
}

static int test_pass_big(struct control_call *call, _unused_ json_t *params, _unused_ void *userdata) {
    char *text = malloc(2000000);
    int r;

    memset(text, 'x', 2000000);
    r = control_call_notify(call, json_pack("{s:s%}", "text", text, (size_t) 2000000), t.pass_fd);
    free(text);
    return r < 0 ? r : control_call_reply(call, NULL);
}

static const struct control_method methods[] = {
    {"io.test.PassBig", test_pass_big, false},
    {"io.test.Echo", test_echo, false},     {"io.test.Note", test_note, false}, {"io.test.Keep", test_keep, false},
    {"io.test.Fail", test_fail, false},     {"io.test.Big", test_big, false},   {"io.test.Pass", test_pass, false},
    {"io.test.Forget", test_forget, false}, {"io.test.Secret", test_echo, true}, {NULL, NULL, false},
};

/* --- server and clients --- */

static int set_up(void) {
    snprintf(t.directory, sizeof(t.directory), "/tmp/berth-control-XXXXXX");
    if (!mkdtemp(t.directory) || sd_event_new(&t.event) < 0)
        return 1;
    snprintf(t.path, sizeof(t.path), "%s/control.sock", t.directory);
    return 0;
}

static int tear_down(void) {
    t.event = sd_event_unref(t.event);
    return rmdir(t.directory);
}

static void serve_with(const struct control_limits *limits) {
    t.n_kept = t.n_notes = t.n_gone = 0;
    TEST_INT(control_new(&t.control, t.event, t.path, -1, methods, "interface io.test\n", &t), 0);
    if (limits)
        control_set_limits(t.control, limits);
}

static void serve(void) {
    serve_with(NULL);
}

static void serve_no_more(void) {
    t.control = control_free(t.control);
    CU_ASSERT_NOT_EQUAL(access(t.path, F_OK), 0);
}

static const struct control_limits small_limits = {
    .message_bytes = 4096, .output_bytes = 1024 * 1024, .clients = 16, .message_usec = 100 * USEC_PER_MSEC};

/* Lets the server do all that it can do now. */
static void turn(void) {
    while (sd_event_run(t.event, 0) > 0)
        ;
}

static int client(void) {
    int fd = socket_connect(t.path, SOCK_STREAM);

    CU_ASSERT_FATAL(fd >= 0);
    turn();
    return fd;
}

static void put(int fd, const void *data, size_t size) {
    TEST_INT(send(fd, data, size, MSG_NOSIGNAL), (ssize_t) size);
}

/* With its NUL. */
static void say(int fd, const char *text) {
    put(fd, text, strlen(text) + 1);
    turn();
}

struct heard {
    char text[70000];
    size_t size;
    int fd;
};
static struct heard heard;

/* One recvmsg(). As recv(2). */
static ssize_t hear(int fd, void *data, size_t size, int *ret_fd) {
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {data, size};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;

    if (h && h->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(h), sizeof(int));
    return n;
}

/* The next message, or "" at the end of the connection, or "(nothing)" if none comes without one of us doing anything. */
static const char *answer(int fd) {
    usec_t until = clock_boottime() + PATIENCE;

    heard.size = 0;
    heard.fd = -1;
    while (clock_boottime() < until && heard.size < sizeof(heard.text)) {
        ssize_t n = hear(fd, heard.text + heard.size, 1, &heard.fd);

        if (n == 0 || (n < 0 && errno == ECONNRESET))
            return "";
        if (n < 0) {
            if (sd_event_run(t.event, 0) <= 0)
                return "(nothing)";
            continue;
        }
        if (heard.text[heard.size++] == '\0')
            return heard.text;
    }
    return "(too much)";
}

/* As answer(), but waits for the server's time limits. */
static const char *late_answer(int fd) {
    usec_t until = clock_boottime() + PATIENCE;

    while (clock_boottime() < until) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        if (poll(&p, 1, 0) > 0)
            return answer(fd);
        (void) sd_event_run(t.event, 20 * USEC_PER_MSEC);
    }
    return "(never)";
}

static void expect_ok(int fd) {
    say(fd, "{\"method\":\"io.test.Echo\",\"parameters\":{\"still\":\"here\"}}");
    TEST_STRING(answer(fd), "{\"parameters\":{\"still\":\"here\"}}");
}

/* --- tests --- */

#define ECHO "{\"method\":\"io.test.Echo\",\"parameters\":{\"a\":[1,\"\\u00e9\",null]}}"
#define BIG(size) "{\"method\":\"io.test.Big\",\"parameters\":{\"size\":" size "}}"
#define ECHOED "{\"parameters\":{\"a\":[1,\"é\",null]}}"

static void test_split(void) {
    serve();
    for (size_t at = 1; at < sizeof(ECHO); at++) {
        int fd = client();

        put(fd, ECHO, at);
        turn();
        TEST_STRING(answer(fd), "(nothing)");
        put(fd, &ECHO[at], sizeof(ECHO) - at);
        TEST_STRING(answer(fd), ECHOED);
        close(fd);
    }
    int fd = client();
    for (size_t at = 0; at < sizeof(ECHO); at++) {
        put(fd, &ECHO[at], 1);
        turn();
    }
    TEST_STRING(answer(fd), ECHOED);
    close(fd);
    serve_no_more();
}

static void test_pipelined(void) {
    char text[8192];
    size_t size = 0;
    int fd;

    serve();
    fd = client();
    for (int i = 0; i < 100; i++)
        size += (size_t) snprintf(text + size, sizeof(text) - size, "{\"method\":\"io.test.Echo\",\"parameters\":{\"i\":%d}}", i) + 1;
    put(fd, text, size);
    for (int i = 0; i < 100; i++) {
        char expected[64];

        snprintf(expected, sizeof(expected), "{\"parameters\":{\"i\":%d}}", i);
        TEST_STRING(answer(fd), expected);
    }
    TEST_STRING(answer(fd), "(nothing)");
    close(fd);
    serve_no_more();
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

    serve();
    fd = client(); /* one connection: none of these ends it */
    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        say(fd, cases[i].call);
        TEST_STRING(answer(fd), cases[i].answer);
    }
    say(fd, "{\"method\":\"org.varlink.service.GetInterfaceDescription\",\"parameters\":{\"interface\":\"org.varlink.service\"}}");
    CU_ASSERT_PTR_NOT_NULL(strstr(answer(fd), "interface org.varlink.service"));
    close(fd);
    serve_no_more();
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

    serve();
    other = client();
    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        char expected[256];
        int fd = client();

        say(fd, cases[i].text);
        snprintf(expected, sizeof(expected), "{\"error\":\"io.berth.BadRequest\",\"parameters\":{\"text\":\"%s\"}}", cases[i].why);
        TEST_STRING(answer(fd), expected);
        TEST_STRING(answer(fd), "");
        close(fd);
        expect_ok(other);
    }
    /* An answer is owed: an error would be taken for it. */
    int fd = client();
    say(fd, "{\"method\":\"io.test.Keep\"}");
    say(fd, "hello");
    TEST_STRING(answer(fd), "");
    TEST_INT(t.n_gone, 1);
    close(fd);
    close(other);
    serve_no_more();
}

static void test_deep(void) {
    static char text[200000];
    int fd;

    serve();
    fd = client();
    memset(text, '[', sizeof(text) - 1);
    for (size_t at = 0; at < sizeof(text); at += 20000) {
        put(fd, text + at, 20000);
        turn();
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(answer(fd), "not valid JSON"));
    TEST_STRING(answer(fd), "");
    close(fd);
    serve_no_more();
}

static void test_oneway(void) {
    int fd;

    serve();
    fd = client();
    say(fd, "{\"method\":\"io.test.Note\",\"oneway\":true}");
    TEST_INT(t.n_notes, 1);
    TEST_STRING(answer(fd), "(nothing)");
    say(fd, "{\"method\":\"io.test.Nope\",\"oneway\":true}");
    TEST_STRING(answer(fd), "(nothing)");
    /* While an answer is owed, oneway calls are run at once, others wait in order. */
    say(fd, "{\"method\":\"io.test.Keep\"}");
    say(fd, "{\"method\":\"io.test.Echo\",\"parameters\":{\"n\":1}}");
    say(fd, "{\"method\":\"io.test.Note\",\"oneway\":true}");
    say(fd, "{\"method\":\"io.test.Keep\"}");
    say(fd, "{\"method\":\"io.test.Echo\",\"parameters\":{\"n\":2}}");
    say(fd, "{\"method\":\"io.test.Note\",\"oneway\":true}");
    TEST_INT(t.n_notes, 3);
    TEST_INT(t.n_kept, 1);
    TEST_STRING(answer(fd), "(nothing)");
    TEST_INT(control_call_reply(t.kept[0], json_pack("{s:i}", "kept", 0)), 0);
    TEST_STRING(answer(fd), "{\"parameters\":{\"kept\":0}}");
    TEST_STRING(answer(fd), "{\"parameters\":{\"n\":1}}");
    TEST_STRING(answer(fd), "(nothing)");
    say(fd, "{\"method\":\"io.test.Note\",\"oneway\":true}");
    TEST_INT(t.n_notes, 4);
    TEST_INT(t.n_kept, 2);
    TEST_INT(control_call_error(t.kept[1], "io.test.Error", NULL), 0);
    TEST_STRING(answer(fd), "{\"error\":\"io.test.Error\",\"parameters\":{}}");
    TEST_STRING(answer(fd), "{\"parameters\":{\"n\":2}}");
    close(fd);
    turn();
    TEST_INT(t.n_gone, 0);
    serve_no_more();
}

static void test_oversized(void) {
    char text[4200];
    int fd;

    serve_with(&small_limits);
    fd = client();
    memset(text, ' ', sizeof(text));
    memcpy(text, ECHO, sizeof(ECHO) - 1);
    text[4095] = '\0'; /* the longest that is taken */
    put(fd, text, 4096);
    TEST_STRING(answer(fd), ECHOED);
    text[4095] = ' ';
    put(fd, text, sizeof(text));
    turn();
    TEST_STRING(answer(fd), "{\"error\":\"io.berth.BadRequest\",\"parameters\":{\"text\":\"the message is too long\"}}");
    TEST_STRING(answer(fd), "");
    close(fd);
    serve_no_more();
}

/* So much waits behind a kept call that no more is read: nothing is lost, and it goes on. */
static void test_full(void) {
    char text[128];
    int fd;

    serve_with(&small_limits);
    fd = client();
    say(fd, "{\"method\":\"io.test.Keep\"}");
    for (int i = 0; i < 200; i++) {
        snprintf(text, sizeof(text), "{\"method\":\"io.test.Echo\",\"parameters\":{\"i\":%d}}", i);
        say(fd, text);
    }
    TEST_STRING(answer(fd), "(nothing)");
    TEST_INT(control_call_reply(t.kept[0], NULL), 0);
    TEST_STRING(answer(fd), "{\"parameters\":{}}");
    for (int i = 0; i < 200; i++) {
        snprintf(text, sizeof(text), "{\"parameters\":{\"i\":%d}}", i);
        TEST_STRING(answer(fd), text);
    }
    close(fd);
    /* Gone while full. */
    fd = client();
    t.n_kept = 0;
    say(fd, "{\"method\":\"io.test.Keep\"}");
    for (int i = 0; i < 200; i++)
        say(fd, "{\"method\":\"io.test.Echo\",\"parameters\":{}}");
    close(fd);
    turn();
    TEST_INT(t.n_gone, 1);
    serve_no_more();
}

static void test_unfinished(void) {
    int fd, other, idle;
    usec_t begin;

    serve_with(&small_limits);
    fd = client();
    other = client();
    idle = client();
    say(other, "{\"method\":\"io.test.Keep\"}");
    put(other, ECHO, 5);
    begin = clock_boottime();
    put(fd, ECHO, 10);
    TEST_STRING(late_answer(fd), "{\"error\":\"io.berth.BadRequest\",\"parameters\":{\"text\":\"the message was not finished in time\"}}");
    CU_ASSERT(clock_boottime() - begin >= small_limits.message_usec);
    TEST_STRING(answer(fd), "");
    TEST_STRING(late_answer(other), ""); /* an answer is owed: just the end */
    TEST_INT(t.n_gone, 1);
    expect_ok(idle); /* between messages there is no limit */
    close(fd);
    close(other);
    close(idle);
    serve_no_more();
}

/* Bytes that keep coming do not make an unfinished message live on. */
static void test_trickle(void) {
    struct control_limits limits = small_limits;
    usec_t begin;
    int fd, n = 0;

    limits.message_bytes = CONTROL_MESSAGE_MAX;
    serve_with(&limits);
    fd = client();
    begin = clock_boottime();
    put(fd, "{", 1);
    while (clock_boottime() < begin + PATIENCE) {
        char byte;

        (void) sd_event_run(t.event, 5 * USEC_PER_MSEC);
        if (recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) > 0)
            break;
        put(fd, " ", 1);
        n++;
    }
    CU_ASSERT(n > 3);
    CU_ASSERT(clock_boottime() - begin < 2 * USEC_PER_SEC);
    TEST_STRING(answer(fd), "{\"error\":\"io.berth.BadRequest\",\"parameters\":{\"text\":\"the message was not finished in time\"}}");
    close(fd);
    serve_no_more();
}

static void test_half_closed(void) {
    int fd;

    serve();
    fd = client();
    put(fd, ECHO, sizeof(ECHO));
    shutdown(fd, SHUT_WR);
    TEST_STRING(answer(fd), ECHOED);
    TEST_STRING(answer(fd), "");
    close(fd);

    fd = client(); /* an answer that comes later, and what waits behind it */
    put(fd, "{\"method\":\"io.test.Keep\",\"more\":true}", sizeof("{\"method\":\"io.test.Keep\",\"more\":true}"));
    put(fd, ECHO, sizeof(ECHO));
    shutdown(fd, SHUT_WR);
    TEST_STRING(answer(fd), "(nothing)");
    TEST_INT(t.n_gone, 0);
    TEST_INT(control_call_notify(t.kept[0], NULL, -1), 0);
    TEST_STRING(answer(fd), "{\"continues\":true,\"parameters\":{}}");
    TEST_INT(control_call_reply(t.kept[0], NULL), 0);
    TEST_STRING(answer(fd), "{\"parameters\":{}}");
    TEST_STRING(answer(fd), ECHOED);
    TEST_STRING(answer(fd), "");
    close(fd);

    fd = client(); /* in the middle of a message: nothing will come of it */
    put(fd, ECHO, 10);
    shutdown(fd, SHUT_WR);
    TEST_STRING(answer(fd), "");
    close(fd);
    serve_no_more();
}

/* What it said before it went is done; then its calls are gone. */
static void test_gone(void) {
    static const char note[] = "{\"method\":\"io.test.Note\",\"oneway\":true}";
    int fd;

    serve();
    fd = client();
    say(fd, "{\"method\":\"io.test.Keep\",\"more\":true}");
    TEST_INT(control_call_notify(t.kept[0], json_pack("{s:i}", "n", 1), -1), 0);
    put(fd, "{\"method\":\"io.test.Note\",\"oneway\":true}", sizeof("{\"method\":\"io.test.Note\",\"oneway\":true}"));
    close(fd);
    TEST_INT(control_call_notify(t.kept[0], json_pack("{s:i}", "n", 2), -1), 0); /* nobody reads it: EPIPE */
    TEST_INT(t.n_gone, 0);
    turn();
    TEST_INT(t.n_notes, 1);
    TEST_INT(t.n_gone, 1);
    /* A lot of it. */
    t.n_notes = 0;
    fd = client();
    for (int i = 0; i < 1000; i++)
        memcpy(heard.text + i * sizeof(note), note, sizeof(note));
    put(fd, heard.text, 1000 * sizeof(note));
    close(fd);
    turn();
    TEST_INT(t.n_notes, 1000);
    t.n_notes = 1;
    /* Never read, then gone. */
    fd = client();
    put(fd, "{\"method\":\"io.test.Note\"}", sizeof("{\"method\":\"io.test.Note\"}"));
    put(fd, "{\"method\":\"io.test.Keep\"}", sizeof("{\"method\":\"io.test.Keep\"}"));
    close(fd);
    turn();
    TEST_INT(t.n_notes, 2);
    TEST_INT(t.n_gone, 2);
    serve_no_more();
}

static void test_freed(void) {
    int fd, other;

    serve();
    fd = client();
    other = client();
    say(fd, "{\"method\":\"io.test.Keep\",\"more\":true}");
    say(other, "{\"method\":\"io.test.Keep\"}");
    say(other, "{\"method\":\"io.test.Keep\",\"oneway\":true}");
    say(other, "{\"method\":\"io.test.Echo\"}");
    put(fd, ECHO, 10);
    TEST_INT(t.n_kept, 3);
    serve_no_more();
    TEST_INT(t.n_gone, 3);
    TEST_STRING(answer(fd), "");
    TEST_STRING(answer(other), "");
    close(fd);
    close(other);
}

/* One that does not read is disconnected; others do not notice. */
static void test_slow_reader(void) {
    int slow, other;
    size_t n = 0;

    serve_with(&small_limits);
    slow = client();
    other = client();
    say(slow, "{\"method\":\"io.test.Keep\",\"more\":true}");
    while (t.kept[0] && n < 10000) {
        char text[1000] = {};

        memset(text, 'y', sizeof(text) - 1);
        TEST_INT(control_call_notify(t.kept[0], json_pack("{s:s}", "text", text), -1), 0);
        if (n++ % 64 == 0)
            turn();
    }
    turn();
    TEST_INT(t.n_gone, 1);
    CU_ASSERT(n > 1000 && n < 3000); /* a MiB, and what the socket itself takes */
    expect_ok(other);
    close(slow);
    /* One that asks and asks and never reads is not even read any more; in time it is disconnected. */
    slow = client();
    for (int i = 0; i < 100; i++)
        if (send(slow, BIG("100000"), sizeof(BIG("100000")), MSG_NOSIGNAL) > 0)
            turn();
    expect_ok(other);
    usec_t begin = clock_boottime();
    while (send(slow, " ", 1, MSG_NOSIGNAL) > 0 || errno == EAGAIN) {
        CU_ASSERT_FATAL(clock_boottime() < begin + PATIENCE);
        (void) sd_event_run(t.event, 10 * USEC_PER_MSEC);
    }
    TEST_INT(errno, EPIPE);
    expect_ok(other);
    close(slow);
    close(other);
    serve_no_more();
}

/* Large answers come through whole when they are read. */
static void test_large_answers(void) {
    usec_t until = clock_boottime() + PATIENCE;
    size_t sum = 0, ends = 0;
    char data[65536];
    int fd, ignored = -1;

    serve();
    fd = client();
    for (int i = 0; i < 20; i++)
        put(fd, BIG("300000"), sizeof(BIG("300000")));
    while (ends < 20 && clock_boottime() < until) {
        ssize_t n = hear(fd, data, sizeof(data), &ignored);

        turn();
        for (ssize_t i = 0; i < n; i++)
            ends += data[i] == '\0';
        sum += n > 0 ? (size_t) n : 0;
    }
    TEST_INT(sum, 20 * (300000 + strlen("{\"parameters\":{\"text\":\"\"}}") + 1));
    close(fd);
    serve_no_more();
}

static void test_fd(void) {
    int pipe_fds[2], fd, given;
    char byte = 0;

    CU_ASSERT_FATAL(pipe2(pipe_fds, O_CLOEXEC) == 0);
    t.pass_fd = pipe_fds[1];
    serve();
    fd = client();
    say(fd, "{\"method\":\"io.test.Pass\",\"more\":true}");
    TEST_STRING(answer(fd), "{\"continues\":true,\"parameters\":{\"state\":\"first\"}}");
    TEST_INT(heard.fd, -1);
    TEST_STRING(answer(fd), "{\"continues\":true,\"parameters\":{\"state\":\"granted\"}}");
    given = heard.fd;
    CU_ASSERT(given >= 0);
    TEST_STRING(answer(fd), "{\"parameters\":{\"state\":\"over\"}}");
    TEST_INT(heard.fd, -1);
    TEST_INT(write(given, "z", 1), 1);
    TEST_INT(read(pipe_fds[0], &byte, 1), 1);
    TEST_INT(byte, 'z');
    close(given);
    /* Without "more" there is the last answer alone. */
    say(fd, "{\"method\":\"io.test.Pass\"}");
    TEST_STRING(answer(fd), "{\"parameters\":{\"state\":\"over\"}}");
    TEST_INT(heard.fd, -1);
    /* One that was sent but never read is closed with the client: the pipe ends. */
    say(fd, "{\"method\":\"io.test.Pass\",\"more\":true}");
    close(fd);
    turn();
    close(pipe_fds[1]);
    TEST_INT(read(pipe_fds[0], &byte, 1), 0);
    close(pipe_fds[0]);
    serve_no_more();
}

/* With a message that goes out in parts: the descriptor comes once. */
static void test_fd_in_parts(void) {
    usec_t until = clock_boottime() + PATIENCE;
    size_t ends = 0, n_fds = 0;
    char data[65536];
    int fd;

    t.pass_fd = STDERR_FILENO;
    serve();
    fd = client();
    say(fd, "{\"method\":\"io.test.PassBig\",\"more\":true}");
    while (ends < 2 && clock_boottime() < until) {
        int given = -1;
        ssize_t n = hear(fd, data, sizeof(data), &given);

        turn();
        for (ssize_t i = 0; i < n; i++)
            ends += data[i] == '\0';
        n_fds += given >= 0;
        close_fd(given);
    }
    TEST_INT(ends, 2);
    TEST_INT(n_fds, 1);
    close(fd);
    serve_no_more();
}

/* Descriptors that a client sends are closed, not kept. */
static void test_unasked_fd(void) {
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {};
    struct iovec iov = {(char *) ECHO, sizeof(ECHO)};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    struct cmsghdr *h = CMSG_FIRSTHDR(&message);
    int pipe_fds[2], fd;
    char byte;

    CU_ASSERT_FATAL(pipe2(pipe_fds, O_CLOEXEC) == 0);
    *h = (struct cmsghdr) {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(h), &pipe_fds[1], sizeof(int));
    serve();
    fd = client();
    TEST_INT(sendmsg(fd, &message, 0), sizeof(ECHO));
    close(pipe_fds[1]);
    TEST_STRING(answer(fd), ECHOED);
    TEST_INT(read(pipe_fds[0], &byte, 1), 0);
    close(pipe_fds[0]);
    close(fd);
    serve_no_more();
}

static void test_many_clients(void) {
    int fds[17];

    serve_with(&small_limits);
    for (size_t i = 0; i < 16; i++)
        fds[i] = client();
    fds[16] = client();
    TEST_STRING(answer(fds[16]), "{\"error\":\"io.berth.Away\",\"parameters\":{\"text\":\"berthd has too many clients\"}}");
    TEST_STRING(answer(fds[16]), "");
    close(fds[16]);
    for (size_t i = 0; i < 16; i++)
        expect_ok(fds[i]);
    close(fds[3]);
    turn();
    fds[3] = client();
    expect_ok(fds[3]);
    for (size_t i = 0; i < 16; i++)
        close(fds[i]);
    serve_no_more();
}

/* As another user: 0 if the answers are as they should be. */
static int be_nobody(void) {
    static const char secret[] = "{\"method\":\"io.test.Secret\"}", echo[] = "{\"method\":\"io.test.Echo\"}";
    char text[512];
    size_t size = 0, ends = 0;
    int fd;

    if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
        return 1;
    fd = socket_connect(t.path, SOCK_STREAM);
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

    serve();
    fd = client();
    say(fd, "{\"method\":\"io.test.Secret\"}");
    TEST_STRING(answer(fd), "{\"parameters\":{}}"); /* its own user may */
    close(fd);
    if (geteuid() != 0) {
        serve_no_more();
        TEST_SKIP("another user's connection needs root");
    }
    TEST_INT(chmod(t.path, 0666), 0);
    TEST_INT(chmod(t.directory, 0755), 0);
    pid = fork();
    if (pid == 0)
        _exit(be_nobody());
    while (waitpid(pid, &status, WNOHANG) == 0)
        (void) sd_event_run(t.event, 10 * USEC_PER_MSEC);
    CU_ASSERT(WIFEXITED(status));
    TEST_INT(WEXITSTATUS(status), 0);
    serve_no_more();
}

static void test_mode(void) {
    struct stat st;

    serve();
    TEST_INT(stat(t.path, &st), 0);
    TEST_INT(st.st_mode & 07777, 0660);
    serve_no_more();
}

/* Whatever bytes come: nobody else is hurt. The same ones in each run. */
static void test_noise(void) {
    static const char *const pieces[] = {ECHO, "{\"method\":\"io.test.Note\",\"oneway\":true}", "{\"method\":\"io.test.Pass\",\"more\":true}",
                                         "{", "[]", "\\", "\"", "\x80"};
    uint64_t state = 4711;
    int other;

    t.pass_fd = STDERR_FILENO;
    serve_with(&small_limits);
    other = client();
    for (int round = 0; round < 300; round++) {
        int fd = client();

        for (int i = 0; i < 8; i++) {
            const char *piece = pieces[(state = state * 6364136223846793005u + 1442695040888963407u) >> 61];
            char byte = (char) (state >> 40);

            (void) send(fd, piece, strlen(piece) + (state >> 33) % 2, MSG_NOSIGNAL);
            if ((state >> 35) % 8 == 0)
                (void) send(fd, &byte, 1, MSG_NOSIGNAL);
            if ((state >> 38) % 4 == 0)
                turn();
        }
        if (round % 3 == 0)
            shutdown(fd, SHUT_WR);
        turn();
        close(fd);
        turn();
        if (round % 50 == 0)
            expect_ok(other);
    }
    expect_ok(other);
    close(other);
    serve_no_more();
}

static CU_TestInfo tests[] = {
    {"split", test_split},
    {"pipelined", test_pipelined},
    {"errors", test_errors},
    {"malformed", test_malformed},
    {"deep", test_deep},
    {"oneway", test_oneway},
    {"oversized", test_oversized},
    {"full", test_full},
    {"unfinished", test_unfinished},
    {"trickle", test_trickle},
    {"half-closed", test_half_closed},
    {"gone", test_gone},
    {"freed", test_freed},
    {"slow-reader", test_slow_reader},
    {"large-answers", test_large_answers},
    {"descriptor", test_fd},
    {"descriptor-in-parts", test_fd_in_parts},
    {"unasked-descriptor", test_unasked_fd},
    {"many-clients", test_many_clients},
    {"not-allowed", test_not_allowed},
    {"mode", test_mode},
    {"noise", test_noise},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "control", .pInitFunc = set_up, .pCleanupFunc = tear_down, .pTests = tests},
                             CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
