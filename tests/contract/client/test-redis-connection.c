/* SPDX-License-Identifier: MIT */

/* One connection to a server that sends what the test wants: nothing, part of a reply, nonsense, or far too
 * much. Each time on_down is called once, with a reason, and nothing else happens. */

/* Bugs of other clients: redis/hiredis#396, redis/hiredis#1170. */

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "store/redis/client/connection.h"
#include "tests/harness/test.h"

#define OK "+OK\r\n"

struct setting {
    sd_event *event;
    char path[64];
    int listener, peer;
    const char *say;       /* reply to the client's first bytes */
    bool hang_up;
    size_t flood;          /* number of bytes sent after `say` */
    const char *again;     /* text that these bytes repeat; NULL: zeros */
    size_t poured;         /* position in `again` */
    unsigned n_up, n_down, n_replies, n_heard;
    enum redis_error error;
    char text[256];
    struct redis_settings settings;
    struct redis_connection_options options;
    struct redis_connection *connection;
    sd_event_source *accept, *read;
    bool free_on_up, free_on_reply, call_on_up, subscribe_on_up;
    unsigned n_writing; /* calls of on_writing since on_up */
};

static void on_reply(const struct redisReply *reply, void *userdata) {
    struct setting *s = userdata;

    CU_ASSERT_PTR_NOT_NULL(reply);
    s->n_replies++;
    if (s->free_on_reply)
        s->connection = redis_connection_free(s->connection);
}

static void on_writing(struct redis_connection *c, void *userdata) {
    struct setting *s = userdata;

    if (s->n_up == 0)
        return;
    s->n_writing++;
    if (s->n_writing == 1)
        TEST_INT(redis_connection_call(c, 1, (const char *[]) {"PING"}, on_reply, s), 0);
}

static void on_up(struct redis_connection *c, void *userdata) {
    struct setting *s = userdata;

    s->n_up++;
    if (s->call_on_up)
        TEST_INT(redis_connection_call(c, 1, (const char *[]) {"PING"}, on_reply, s), 0);
    if (s->subscribe_on_up)
        TEST_INT(redis_connection_subscribe(c, "channel", on_reply, s), 0);
    if (s->free_on_up)
        s->connection = redis_connection_free(c);
}

static void on_down(struct redis_connection *c, enum redis_error error, const char *text, void *userdata) {
    struct setting *s = userdata;

    s->n_down++;
    s->error = error;
    (void) snprintf(s->text, sizeof(s->text), "%s", text);
    TEST_INT(redis_connection_call(c, 1, (const char *[]) {"PING"}, on_reply, s), -ENOTCONN);
    s->connection = redis_connection_free(c);
}

static void pour(struct setting *s, int fd) {
    static char junk[65536];
    size_t length = s->again ? strlen(s->again) : 1, size;
    ssize_t sent;

    for (size_t i = 0; i < sizeof(junk); i++)
        junk[i] = s->again ? s->again[(s->poured + i) % length] : '\0';
    size = s->flood < sizeof(junk) ? s->flood : sizeof(junk);
    sent = send(fd, junk, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    s->poured = (s->poured + (sent > 0 ? (size_t) sent : 0)) % length;
    if (sent > 0)
        s->flood -= (size_t) sent;
    else if (errno != EAGAIN)
        s->flood = 0;
    if (s->flood == 0)
        (void) sd_event_source_set_io_events(s->read, EPOLLIN);
}

static int on_peer(sd_event_source *source, int fd, uint32_t events, void *userdata) {
    struct setting *s = userdata;
    char buffer[4096];

    if (events & EPOLLOUT)
        pour(s, fd);
    if (!(events & EPOLLIN))
        return 0;
    if (recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) <= 0) {
        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        return 0;
    }
    s->n_heard++;
    if (s->say)
        (void) send(fd, s->say, strlen(s->say), MSG_NOSIGNAL);
    s->say = NULL;
    if (s->flood > 0)
        CU_ASSERT(sd_event_source_set_io_events(source, EPOLLIN | EPOLLOUT) >= 0);
    if (s->hang_up)
        (void) shutdown(fd, SHUT_RDWR);
    return 0;
}

static int on_accept(sd_event_source *source _unused_, int fd, uint32_t events _unused_, void *userdata) {
    struct setting *s = userdata;

    s->peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    CU_ASSERT(s->peer >= 0);
    CU_ASSERT(sd_event_add_io(s->event, &s->read, s->peer, EPOLLIN, on_peer, s) >= 0);
    return 0;
}

static void begin(struct setting *s) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void) snprintf(s->path, sizeof(s->path), "/tmp/berth-connection-%d", (int) getpid());
    (void) unlink(s->path);
    (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s", s->path);
    s->peer = -1;
    s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_FATAL(bind(s->listener, (struct sockaddr *) &address, sizeof(address)) == 0 && listen(s->listener, 1) == 0);
    CU_ASSERT_FATAL(sd_event_new(&s->event) >= 0);
    CU_ASSERT_FATAL(sd_event_add_io(s->event, &s->accept, s->listener, EPOLLIN, on_accept, s) >= 0);
    s->settings = (struct redis_settings) {.timeout_usec = 200 * USEC_PER_MSEC};
    s->options = (struct redis_connection_options) {.settings = &s->settings, .client_name = "test", .on_up = on_up,
                                                    .on_down = on_down, .userdata = s};
    TEST_INT(redis_connection_new(&s->connection, s->event,
                                  &(struct redis_target) {.unix_path = s->path,
                                                          .deadline = clock_boottime() + s->settings.timeout_usec},
                                  &s->options), 0);
}

static void turn(struct setting *s, usec_t usec) {
    usec_t end = clock_boottime() + usec;

    while (clock_boottime() < end)
        (void) sd_event_run(s->event, end - clock_boottime());
}

static void until_down(struct setting *s) {
    usec_t end = clock_boottime() + 10 * USEC_PER_SEC;

    while (s->n_down == 0 && clock_boottime() < end)
        (void) sd_event_run(s->event, 100 * USEC_PER_MSEC);
    turn(s, 20 * USEC_PER_MSEC);
    TEST_INT(s->n_down, 1);
    CU_ASSERT(*s->text != '\0');
}

static void end(struct setting *s) {
    s->connection = redis_connection_free(s->connection);
    sd_event_source_disable_unref(s->accept);
    sd_event_source_disable_unref(s->read);
    (void) close_fd(s->peer);
    (void) close_fd(s->listener);
    (void) unlink(s->path);
    sd_event_unref(s->event);
}

static void expect_down(struct setting *s, enum redis_error error, const char *part) {
    begin(s);
    until_down(s);
    TEST_INT(s->error, error);
    if (!strstr(s->text, part))
        TEST_STRING(s->text, part);
    end(s);
}

static void test_silence(void) {
    expect_down(&(struct setting) {0}, REDIS_ERROR_BUSY, "cannot connect in time");
    expect_down(&(struct setting) {.say = "+O"}, REDIS_ERROR_BUSY, "cannot connect in time");
    struct setting s = {.say = OK, .call_on_up = true};
    expect_down(&s, REDIS_ERROR_RETRY, "no answer in time");
    TEST_INT(s.n_up, 1);
    TEST_INT(s.n_replies, 0);
}

static void test_hang_up(void) {
    expect_down(&(struct setting) {.hang_up = true}, REDIS_ERROR_RETRY, "");
    struct setting s = {.say = OK, .hang_up = true};
    expect_down(&s, REDIS_ERROR_RETRY, "");
    TEST_INT(s.n_up, 1);
}

/* A command of on_writing goes out in the write that follows, and asks for no other one. */
static void test_one_write(void) {
    struct setting s = {.say = OK, .call_on_up = true};
    usec_t end_of_wait = clock_boottime() + 10 * USEC_PER_SEC;

    begin(&s);
    s.options.on_writing = on_writing;
    s.settings.timeout_usec = 60 * USEC_PER_SEC;
    while (s.n_writing == 0 && clock_boottime() < end_of_wait)
        (void) sd_event_run(s.event, 100 * USEC_PER_MSEC);
    while (sd_event_run(s.event, 0) > 0)
        ;
    TEST_INT(s.n_writing, 1);
    end(&s);
}

/* Sizes as in CVE-2021-32765. */
static void test_nonsense(void) {
    static const char *const texts[] = {
        "*2147483647\r\n", "*1073741824\r\n", "*70000\r\n", "*-2\r\n", "$-2\r\n", "hello\r\n", "\r\n\r\n", ":12x\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
    };

    for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
        struct setting s = {.say = texts[i]};

        expect_down(&s, REDIS_ERROR_RETRY, "");
        TEST_INT(s.n_up, 0);
    }
}

static void test_flood(void) {
    struct setting s = {.say = OK "$200000000\r\n", .flood = 200000000, .call_on_up = true};

    begin(&s);
    s.settings.timeout_usec = 60 * USEC_PER_SEC;
    until_down(&s);
    TEST_STRING(s.text, "Redis answered more than 16384 KiB, closing the connection");
    end(&s);
}

/* Returns the peak memory of this process since reset_peak(), in KiB. */
static unsigned long peak(void) {
    _cleanup_fclose_ FILE *f = fopen("/proc/self/status", "re");
    unsigned long kib = 0;
    char line[128];

    while (f && fgets(line, sizeof(line), f) && sscanf(line, "VmHWM: %lu", &kib) != 1)
        ;
    return kib;
}

static unsigned long reset_peak(void) {
    _cleanup_fclose_ FILE *f = fopen("/proc/self/clear_refs", "we");

    CU_ASSERT(f && fputs("5", f) >= 0 && fflush(f) == 0);
    return peak();
}

/* Each piece is small and complete, but all together exceed the bound. Without a bound the client would read
 * as long as the peer sends. */
static void test_excess(void) {
    static char list[256], text[100016];
    const struct {
        const char *begin, *again;
        bool subscribe;
        const char *excess;
    } cases[] = {
        {OK, "*2\r\n", false, "lists more than 6 deep"},
        {OK "*60000\r\n", list, false, "more than 65536 elements"},
        {OK "*1000\r\n", text, false, "more than 16384 KiB"},
        {OK, "*1\r\n", true, "lists more than 2 deep"},
        {OK "*17\r\n", ":1\r\n", true, "more than 16 elements"},
        {OK "*3\r\n$9000000\r\n", "x", true, "more than 64 KiB"},
    };
    char expected[128];

    (void) snprintf(list, sizeof(list), "*50\r\n");
    for (size_t i = 0; i < 50; i++)
        (void) snprintf(list + strlen(list), sizeof(list) - strlen(list), ":1\r\n");
    memset(text, 'x', sizeof(text));
    memcpy(text, "$100000\r\n", 9);
    memcpy(text + 9 + 100000, "\r\n", 3);
    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        struct setting s = {.say = cases[i].begin, .again = cases[i].again, .flood = 200000000, .subscribe_on_up = cases[i].subscribe};
        unsigned long before;

        begin(&s);
        s.settings.timeout_usec = 60 * USEC_PER_SEC;
        before = reset_peak();
        until_down(&s);
        (void) snprintf(expected, sizeof(expected), "Redis answered %s, closing the connection", cases[i].excess);
        TEST_STRING(s.text, expected);
        CU_ASSERT(peak() < before + (cases[i].subscribe ? 2048 : 49152));
        TEST_INT(s.n_replies, 0);
        end(&s);
    }
}

static void test_errors(void) {
    expect_down(&(struct setting) {.say = "-NOAUTH Authentication required.\r\n"}, REDIS_ERROR_FATAL, "NOAUTH");
    expect_down(&(struct setting) {.say = "-DENIED Redis is running in protected mode\r\n"}, REDIS_ERROR_FATAL, "DENIED");
    expect_down(&(struct setting) {.say = "-LOADING Redis is loading\r\n"}, REDIS_ERROR_BUSY, "LOADING");
    struct setting s = {.say = "-NOPERM no CLIENT SETNAME for you\r\n", .free_on_up = true}; /* the name is for people only */
    begin(&s);
    turn(&s, 50 * USEC_PER_MSEC);
    TEST_INT(s.n_up, 1);
    TEST_INT(s.n_down, 0);
    end(&s);
}

/* The connection is freed inside its own callbacks, with more data to be read. */
static void test_freed_inside(void) {
    struct setting up = {.say = OK OK OK, .free_on_up = true, .call_on_up = true};
    begin(&up);
    turn(&up, 50 * USEC_PER_MSEC);
    TEST_INT(up.n_up, 1);
    TEST_INT(up.n_replies + up.n_down, 0);
    end(&up);
    struct setting reply = {.say = OK OK "nonsense\r\n", .free_on_reply = true, .call_on_up = true};
    begin(&reply);
    turn(&reply, 50 * USEC_PER_MSEC);
    TEST_INT(reply.n_replies, 1);
    TEST_INT(reply.n_down, 0);
    end(&reply);
}

static void test_nobody_there(void) {
    struct setting s = {.settings = {.timeout_usec = USEC_PER_SEC}};
    struct redis_target nowhere = {.unix_path = "/nonexistent/redis.sock", .deadline = USEC_INFINITY};
    struct redis_target refused = {.address = "127.0.0.1", .port = 1, .deadline = clock_boottime() + USEC_PER_SEC};
    struct redis_connection *c = NULL;

    CU_ASSERT_FATAL(sd_event_new(&s.event) >= 0);
    s.options = (struct redis_connection_options) {.settings = &s.settings, .client_name = "test", .on_up = on_up,
                                                   .on_down = on_down, .userdata = &s};
    CU_ASSERT(redis_connection_new(&c, s.event, &nowhere, &s.options) < 0);
    CU_ASSERT_PTR_NULL(c);
    if (redis_connection_new(&s.connection, s.event, &refused, &s.options) >= 0)
        until_down(&s);
    s.connection = redis_connection_free(s.connection);
    sd_event_unref(s.event);
}

static int on_other(sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_, void *userdata _unused_) {
    return 0;
}

/* This process did not run for a while (frozen, or a busy machine). Replies that arrived meanwhile are in
 * time, even if the loop handles the deadline before it handles the reply. */
static void test_late(void) {
    struct setting s = {.say = OK};
    usec_t limit = clock_boottime() + 10 * USEC_PER_SEC;
    _cleanup_close_ int ready = eventfd(1, EFD_CLOEXEC);
    sd_event_source *other = NULL;

    begin(&s);
    while (s.n_up == 0 && clock_boottime() < limit)
        (void) sd_event_run(s.event, 100 * USEC_PER_MSEC);
    TEST_INT(s.n_up, 1);
    s.n_heard = 0;
    TEST_INT(redis_connection_call(s.connection, 1, (const char *[]) {"PING"}, on_reply, &s), 0);
    while (s.n_heard == 0 && clock_boottime() < limit)
        (void) sd_event_run(s.event, 100 * USEC_PER_MSEC);
    CU_ASSERT(sd_event_add_io(s.event, &other, ready, EPOLLIN, on_other, NULL) >= 0);
    CU_ASSERT(sd_event_source_set_enabled(other, SD_EVENT_ONESHOT) >= 0);
    TEST_INT(send(s.peer, OK, strlen(OK), MSG_NOSIGNAL), strlen(OK));
    limit = clock_boottime() + s.settings.timeout_usec + USEC_PER_MSEC;
    while (clock_boottime() < limit)
        (void) poll(NULL, 0, 1);
    turn(&s, 20 * USEC_PER_MSEC);
    TEST_INT(s.n_replies, 1);
    TEST_INT(s.n_down, 0);
    sd_event_source_disable_unref(other);
    end(&s);
}

static CU_TestInfo tests[] = {
    {"silence", test_silence}, {"hang up", test_hang_up},           {"one write", test_one_write},
    {"nonsense", test_nonsense},         {"flood", test_flood},
    {"excess", test_excess},
    {"errors", test_errors},   {"freed inside", test_freed_inside}, {"nobody there", test_nobody_there},
    {"late", test_late},       CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "redis-connection", .pTests = tests});
