/* SPDX-License-Identifier: MIT */

/* Bad clients of the control socket: berthd answers nonsense with an error that names the problem, or closes
 * the connection. Slow, deaf and half-closed clients hurt no other client, and `berth` works while they are
 * connected and afterwards. */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/socket.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 2 }\npool \"here\" { limit = 1 scope = \"host\" }\n"

static struct host *ant;

static void up(void) {
    cluster_up_patient();
    ant = host_up("ant", POOLS);
}

static int client(void) {
    int fd = socket_connect(ant->socket, SOCK_STREAM);

    TEST_FATAL(fd >= 0, "no control socket");
    return fd;
}

static void others_work(void) {
    TEST_INT(berth(ant, "run --wait 10s -p db:2 -- true"), 0);
    host_await_pool(ant, "db", "used", 0);
}

/* Reads replies until a pause or the end of the connection. Returns whether it ended. */
static bool read_answer(int fd, char *answer, size_t size, int wait_msec) {
    size_t n = 0;
    ssize_t got;

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        if (poll(&p, 1, wait_msec) <= 0)
            break;
        got = read(fd, answer + n, size - 1 - n);
        if (got <= 0 && !(got < 0 && errno == EAGAIN)) {
            answer[n] = '\0';
            return true;
        }
        n += got > 0 ? (size_t) got : 0;
        if (n > 0 && answer[n - 1] == '\0')
            break;
    }
    answer[n] = '\0';
    return false;
}

/* Makes one call on a new connection. Returns the first reply. In the call, ' stands for ". */
static const char *ask(const char *call) {
    static char text[65536];
    _cleanup_free_ char *message = strdup(call);
    _cleanup_close_ int fd = client();
    size_t size = 0;

    TEST_FATAL(message != NULL, "no memory");
    for (char *c = message; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    TEST_INT(send(fd, message, strlen(message) + 1, MSG_NOSIGNAL), strlen(message) + 1);
    for (usec_t until = clock_boottime() + HOST_PATIENCE; clock_boottime() < until && size < sizeof(text);) {
        ssize_t n = recv(fd, text + size, sizeof(text) - size, MSG_DONTWAIT);

        if (n == 0)
            return "(closed)";
        if (n < 0)
            child_turn(clock_boottime() + USEC_PER_MSEC);
        else if (text[(size += (size_t) n) - 1] == '\0')
            return text;
    }
    return "(nothing)";
}

#define INVALID(name) "{\"error\":\"org.varlink.service.InvalidParameter\",\"parameters\":{\"parameter\":\"" name "\"}}"
#define BAD(why) "{\"error\":\"io.berth.BadRequest\",\"parameters\":{\"text\":\"" why "\"}}"

static void nonsense(void) {
    static const char *const calls[] = {
        "", "GET / HTTP/1.1\r\n\r\n", "{", "[]", "null", "{}", "{'method': 1}", "{'method': ''}", "{'method': 'io.berth'}",
        "{'method': 'io.berth.Nonsense'}", "{'method': 'io.berth.Start', 'parameters': []}",
        "{'method': 'io.berth.Start', 'parameters': {'job': 'a b'}}", "{'method': 'io.berth.Start', 'parameters': {'job': '\\u0000'}}",
        "{'method': 'io.berth.Hold', 'parameters': {'pools': ['d{b'], 'name': 'x'}, 'more': true}",
        "{'method': 'io.berth.Hold', 'parameters': {'pools': ['db:-1'], 'name': 'x'}, 'more': true}",
        "{'method': 'io.berth.Hold', 'parameters': {'pools': ['db'], 'name': 'a\\nb'}, 'more': true}",
        "{'method': 'io.berth.SetLimit', 'parameters': {'pool': 'db', 'limit': 1e99}}",
        "{'method': 'io.berth.Revoke', 'parameters': {'claim': '../../etc/passwd'}}", "\xff\xfe\xfd",
    };

    for (size_t i = 0; i < ELEMENTSOF(calls); i++) {
        const char *answer = ask(calls[i]);

        if (strcmp(answer, "(closed)") != 0 && strncmp(answer, "{\"error\":", 9) != 0) {
            printf("%s: %s\n", calls[i], answer);
            CU_FAIL("berthd accepts nonsense");
        }
    }
    others_work();
}

static void parameters(void) {
    static const struct {
        const char *call, *answer;
    } cases[] = {
        {"{'method':'io.berth.Pools','parameters':{'pool':['db']}}", INVALID("pool")},
        {"{'method':'io.berth.Pools','parameters':{'pools':'db'}}", INVALID("pools")},
        {"{'method':'io.berth.Pools','parameters':{'pools':[1]}}", INVALID("pools")},
        {"{'method':'io.berth.Runs','parameters':{'all':1}}", INVALID("all")},
        {"{'method':'io.berth.Version','parameters':{'x':1}}", INVALID("x")},
        {"{'method':'io.berth.Start'}", INVALID("job")},
        {"{'method':'io.berth.Start','parameters':{'job':null}}", INVALID("job")},
        {"{'method':'io.berth.SetLimit','parameters':{'pool':'db','limit':-1}}", INVALID("limit")},
        {"{'method':'io.berth.SetLimit','parameters':{'pool':'db','limit':1.5}}", INVALID("limit")},
        {"{'method':'io.berth.SetLimit','parameters':{'pool':'db','limit':1,'for_ms':0}}", INVALID("for_ms")},
        {"{'method':'io.berth.Pause','parameters':{'pool':'d b'}}", BAD("the pool's name has a space")},
        {"{'method':'io.berth.Stop','parameters':{'target':'{'}}",
         BAD("the job or run's name has a character that is not one of A-Z a-z 0-9 . _ -; use 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with '.' or '-'")},
        {"{'method':'io.berth.Hold','parameters':{}}", "{\"error\":\"org.varlink.service.ExpectedMore\",\"parameters\":{}}"},
        {"{'method':'io.berth.Hold','more':true,'parameters':{'name':'a'}}", INVALID("pools")},
        {"{'method':'io.berth.Hold','more':true,'parameters':{'name':'a','pools':[]}}", BAD("at least one pool is needed")},
        {"{'method':'io.berth.Hold','more':true,'parameters':{'name':'a','pools':['db:0']}}",
         BAD("pool \\\"db:0\\\": permits must be 1 to 1000, in all pools together")},
        {"{'method':'io.berth.Hold','more':true,'parameters':{'name':'a b','pools':['db']}}", BAD("the run's name has a space")},
        {"{'method':'io.berth.Hold','more':true,'parameters':{'name':'a','pools':['db'],'on_lease_lost':'x'}}",
         BAD("on_lease_lost is stop or continue")},
        {"{'method':'io.berth.Hold','more':true,'parameters':{'name':'a','pools':['db:3']}}",
         BAD("3 permits of pool \\\"db\\\" are more than its limit of 2")},
        {"{'method':'io.berth.Hold','more':true,'parameters':{'name':'a','pools':['dc']}}",
         "{\"error\":\"io.berth.NoSuchPool\",\"parameters\":{\"name\":\"dc\",\"known\":[\"db\",\"here\"]}}"},
        {"{'method':'io.berth.Hold','more':true,'parameters':{'name':'a','pools':['db'],'run':'x'}}",
         "{\"error\":\"io.berth.NoSuchRun\",\"parameters\":{\"name\":\"x\"}}"},
        {"{'method':'io.berth.Started','parameters':{'run':'x','pid':1}}",
         "{\"error\":\"io.berth.NoSuchRun\",\"parameters\":{\"name\":\"x\"}}"},
        {"{'method':'io.berth.Ended','parameters':{'run':'x'}}", BAD("a command ends with a code or by a signal, or it has a result")},
        {"{'method':'io.berth.Ended','parameters':{'run':'x','code':1,'signal':2}}",
         BAD("a command ends with a code or by a signal, or it has a result")},
        {"{'method':'io.berth.Ended','parameters':{'run':'x','code':1}}",
         "{\"error\":\"io.berth.NoSuchRun\",\"parameters\":{\"name\":\"x\"}}"},
    };

    for (size_t i = 0; i < ELEMENTSOF(cases); i++)
        TEST_STRING(ask(cases[i].call), cases[i].answer);
    CU_ASSERT_PTR_NOT_NULL(strstr(ask("{'method':'org.varlink.service.GetInterfaceDescription','parameters':{'interface':'io.berth'}}"),
                                  "method Hold("));
}

/* Each name of a call takes time, so their number has a bound. */
static void many_names(void) {
    char call[8192], *at = stpcpy(call, "{'method':'io.berth.Find','parameters':{'names':['0'");

    for (size_t i = 1; i < 1000; i++)
        at = stpcpy(at, ",'0'");
    strcpy(at, "]}}");
    TEST_STRING(ask(call), "{\"error\":\"io.berth.NoSuchJob\",\"parameters\":{\"name\":\"0\",\"known\":[]}}");
    strcpy(at, ",'0']}}");
    TEST_STRING(ask(call), BAD("names: 1001 in one call, 1000 are the most"));
}

/* A client cannot report about the run of another user. */
static void foreign_run(void) {
    struct child *holder;
    char call[256];
    json_t *json;

    host_mark(ant);
    holder = berth_start(ant, "run -p here --name h -- sleep 1000");
    host_await(ant, "started", "job=h");
    json = berth_json(ant, "runs");
    snprintf(call, sizeof(call), "{'method':'io.berth.Ended','parameters':{'run':'%s','code':0}}",
             json_string_value(berth_at(json, "runs.0.run")));
    CU_ASSERT_PTR_NOT_NULL(strstr(ask(call), "NoSuchRun"));
    json_decref(json);
    TEST_INT(host_pool(ant, "here", "used"), 1);
    child_kill(holder, 15);
    TEST_INT(berth_end(holder), 143);
}

static void oversized(void) {
    _cleanup_close_ int fd = client();
    static char much[65536];
    size_t sent = 0;
    char answer[4096];
    usec_t until = clock_boottime() + HOST_PATIENCE;

    memset(much, 'x', sizeof(much));
    while (clock_boottime() < until) {
        ssize_t n = send(fd, much, sizeof(much), MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno != EAGAIN)
            break;
        sent += n > 0 ? (size_t) n : 0;
        child_turn(clock_boottime() + USEC_PER_MSEC);
    }
    CU_ASSERT(clock_boottime() < until); /* cut off */
    CU_ASSERT(sent < 16 * 1024 * 1024);
    (void) read_answer(fd, answer, sizeof(answer), 0);
    others_work();
}

static void slow_and_half_closed(void) {
    _cleanup_close_ int slow = client(), half = client(), silent = client();
    static const char begin[] = "{\"method\": \"io.berth.Poo", hold[] =
        "{\"method\": \"io.berth.Hold\", \"parameters\": {\"pools\": [\"db\"], \"name\": \"half\"}, \"more\": true}";
    char answer[65536];

    CU_ASSERT_EQUAL(write(slow, begin, sizeof(begin) - 1), (ssize_t) sizeof(begin) - 1);
    CU_ASSERT_EQUAL(write(half, begin, sizeof(begin) - 1), (ssize_t) sizeof(begin) - 1);
    TEST_INT(shutdown(half, SHUT_WR), 0);
    others_work();
    CU_ASSERT(read_answer(half, answer, sizeof(answer), 2000));
    half = close_fd(half);
    half = client();
    CU_ASSERT_EQUAL(write(half, hold, sizeof(hold)), (ssize_t) sizeof(hold));
    host_await(ant, "granted", "job=half");
    half = close_fd(half); /* with the reply unread: no client has the hold */
    others_work();
    (void) silent;
}

/* A client that calls and never reads. */
static void deaf(void) {
    _cleanup_close_ int fd = client();
    static const char call[] = "{\"method\": \"io.berth.Pools\"}";
    unsigned n = 0;

    while (n < 20000 && send(fd, call, sizeof(call), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t) sizeof(call))
        n++;
    others_work();
    CU_ASSERT(n > 0);
}

static void many(void) {
    int fds[300];

    for (size_t i = 0; i < ELEMENTSOF(fds); i++)
        fds[i] = client();
    others_work();
    for (size_t i = 0; i < ELEMENTSOF(fds); i++)
        (void) close(fds[i]);
    others_work();
}

static CU_TestInfo tests[] = {
    {"nonsense", nonsense},
    {"parameters", parameters},
    {"many names", many_names},
    {"foreign run", foreign_run},
    {"oversized", oversized},
    {"slow and half-closed", slow_and_half_closed},
    {"deaf", deaf},
    {"many", many},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "bad clients", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
