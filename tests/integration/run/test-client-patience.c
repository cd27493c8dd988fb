/* SPDX-License-Identifier: MIT */

/* A daemon accepts and never replies. The verb reports this and exits with 69. It waits for a slow
 * daemon. */
#include "cli/client.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/socket.h"
#include "tests/harness/host/fake-berthd.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define QUIET (100 * USEC_PER_MSEC)
#define ANSWER (400 * USEC_PER_MSEC)
#define MANY 64

static void ask(_unused_ struct fake *f) {
    client_set_patience(QUIET, ANSWER);
    _exit(client_call("io.berth.Stop", json_pack("{s:s}", "target", "nightly"), NULL));
}

static void begin(struct fake *f) {
    fake_init(f);
    fake_in_child = ask;
    fake_run(f, "", NULL);
}

static void begin_heard(struct fake *f) {
    begin(f);
    fake_accept(f);
    json_decref(fake_expect(f, "io.berth.Stop"));
}

static void end(struct fake *f, int status, const char *before, const char *after) {
    char text[512] = "";

    TEST_INT(fake_await_exit(f), status);
    if (before)
        snprintf(text, sizeof(text), "berth: %s%s%s\n", before, f->socket, after);
    TEST_STRING(fake_errors(f), text);
    fake_done(f);
}

static void end_silent(struct fake *f) {
    end(f, 69, "berthd does not answer on ",
        ": it hangs, or another program listens there (systemctl status berthd)");
}

static void test_never_accepts(void) {
    struct fake f;

    begin(&f);
    end_silent(&f);
}

static void test_never_answers(void) {
    struct fake f;

    begin_heard(&f);
    end_silent(&f);
}

static void test_half_an_answer(void) {
    struct fake f;

    begin_heard(&f);
    TEST_INT(send(f.connection, "{\"parameters\": {", 16, MSG_NOSIGNAL), 16);
    end_silent(&f);
}

static void test_closes_half_way(void) {
    struct fake f;

    begin_heard(&f);
    TEST_INT(send(f.connection, "{\"parameters\": {", 16, MSG_NOSIGNAL), 16);
    fake_hang_up(&f);
    end(&f, 69, "berthd closed the connection on ", "");
}

static void test_garbage(void) {
    struct fake f;

    begin_heard(&f);
    fake_reply(&f, "SSH-2.0-OpenSSH_9.2");
    end(&f, 70, "", ": the listening process does not speak Varlink");
}

/* The daemon sends byte after byte, but never the last one. */
static void test_trickles(void) {
    struct fake f;
    struct pollfd child;

    begin_heard(&f);
    child = (struct pollfd) {.fd = f.pidfd, .events = POLLIN};
    for (unsigned i = 0; poll(&child, 1, 20) == 0; i++) {
        CU_ASSERT_FATAL(i < 500);
        (void) send(f.connection, " ", 1, MSG_NOSIGNAL);
    }
    end_silent(&f);
}

static void test_full(void) {
    int others[MANY], n = 0;
    struct fake f;

    fake_init(&f);
    TEST_INT(listen(f.listener, 0), 0);
    while (n < MANY && (others[n] = socket_connect(f.socket, SOCK_STREAM)) >= 0)
        n++;
    CU_ASSERT(n < MANY);
    fake_in_child = ask;
    fake_run(&f, "", NULL);
    end(&f, 69, "berthd accepts no more connections on ", ": it hangs or is overloaded (systemctl status berthd)");
    while (n > 0)
        close_fd(others[--n]);
}

static void answer_probe(struct fake *f) {
    struct fake probe = {.listener = f->listener, .connection = -1};

    fake_accept(&probe);
    json_decref(fake_expect(&probe, "org.varlink.service.GetInfo"));
    fake_reply(&probe, "{'parameters': {}}");
    fake_expect_end(&probe);
    fake_hang_up(&probe);
    free(probe.input);
}

/* The daemon is busy, as with a long reload. */
static void test_slow_and_alive(void) {
    struct fake f;

    begin_heard(&f);
    for (unsigned i = 0; i < 3; i++)
        answer_probe(&f);
    fake_reply(&f, "{'parameters': {}}");
    end(&f, 0, NULL, "");
}

/* The reply comes while a probe waits. The probe gets none. */
static void test_reply_beside_a_probe(void) {
    struct fake f, probe;

    begin_heard(&f);
    probe = (struct fake){.listener = f.listener, .connection = -1};
    fake_accept(&probe);
    json_decref(fake_expect(&probe, "org.varlink.service.GetInfo"));
    fake_reply(&f, "{'parameters': {}}");
    end(&f, 0, NULL, "");
    fake_hang_up(&probe);
    free(probe.input);
}

static void test_alive_and_then_not(void) {
    struct fake f;

    begin_heard(&f);
    answer_probe(&f);
    end_silent(&f);
}

/* --- a real berthd, frozen --- */

static void await_text(struct child *c, int which, const char *text) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    while (!strstr(child_text(c, which), text) && !c->ended && clock_boottime() < until)
        child_turn(until);
    TEST_FATAL(strstr(child_text(c, which), text) != NULL, text);
}

static void test_frozen(void) {
    static const char *const words[] = {"runs",         "pools",               "stop long",             "reload",
                                        "drain --wait", "run -p slot -- true", "run -n -p slot -- true"};
    static const int statuses[] = {69, 69, 69, 69, 69, 69, 75};
    struct child *verbs[ELEMENTSOF(words)], *waiting, *held;
    struct host *ant = host_add_alone("ant", "pool \"slot\" { limit = 1 scope = \"host\" }\n");
    usec_t begun;

    host_start(ant);
    held = berth_start(ant, "run -p slot --name held -- sleep 60");
    host_await(ant, "started", "job=held");
    waiting = berth_start(ant, "run -v -p slot -- true");
    await_text(waiting, 2, "waiting");
    host_signal(ant, SIGSTOP);
    begun = clock_boottime();
    for (size_t i = 0; i < ELEMENTSOF(words); i++)
        verbs[i] = berth_start(ant, "%s", words[i]);
    child_kill(waiting, SIGINT);
    TEST_INT(berth_end(waiting), 130);
    CU_ASSERT(clock_boottime() - begun < 5 * USEC_PER_SEC); /* the signal ends the client at once */
    for (size_t i = 0; i < ELEMENTSOF(words); i++)
        TEST_INT(berth_end(verbs[i]), statuses[i]);
    CU_ASSERT(clock_boottime() - begun >= CLIENT_QUIET_TIME);
    host_signal(ant, SIGCONT);
    child_kill(held, SIGTERM);
    TEST_INT(berth_end(held), 143);
    TEST_INT(berth(ant, "undrain"), 0); /* berthd has carried out the earlier call */
    TEST_INT(berth(ant, "run -n -p slot -- true"), 0);
}

static CU_TestInfo tests[] = {
    {"nobody accepts", test_never_accepts},
    {"nobody answers", test_never_answers},
    {"half an answer", test_half_an_answer},
    {"half an answer, then closed", test_closes_half_way},
    {"garbage", test_garbage},
    {"single bytes", test_trickles},
    {"too many callers", test_full},
    {"slow, and alive", test_slow_and_alive},
    {"a reply beside a probe", test_reply_beside_a_probe},
    {"slow, and alive no longer", test_alive_and_then_not},
    CU_TEST_INFO_NULL,
};
static CU_TestInfo real[] = {
    {"a frozen berthd", test_frozen},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "patience", .pTests = tests},
            {.pName = "patience, real", .pSetUpFunc = cluster_up_without_redis,
             .pTearDownFunc = cluster_down, .pTests = real});
