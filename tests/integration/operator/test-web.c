/* SPDX-License-Identifier: MIT */

/* berth-web over real sockets: refused requests change nothing, each user acts under their name, browsers
 * may be many or slow. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file-limit.h"
#include "base/socket.h"
#include "tests/harness/host/web.h"
#include "tests/harness/memory.h"
#include "tests/harness/stall.h"
#include "tests/harness/test.h"
#include "web/stream.h"

#define PAGE "Host: localhost\r\nOrigin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n"
#define JSON "Content-Type: application/json\r\nX-Berth: 1\r\n"
#define PAUSE "{\"method\":\"io.berth.Pause\",\"parameters\":{\"pool\":\"db\"}}"
#define FORGED_ROUNDS 100
#if defined(__SANITIZE_ADDRESS__)
#define RSS_MAX_KB (1024 * 1024) /* no bound */
#define ANSWER_MAX (2000 * USEC_PER_MSEC)
#else
#define RSS_MAX_KB (48 * 1024)
#define ANSWER_MAX (500 * USEC_PER_MSEC) /* an idle machine needs 100 ms */
#endif

static struct host *ant;
static struct web web;

static unsigned ask(bool is_unix, const char *method, const char *path, const char *headers, const char *body, const char **ret) {
    int fd = is_unix ? socket_connect(web.unix_path, SOCK_STREAM) : web_connect(web.port);

    return web_ask(fd, method, path, headers, body, ret);
}

static void set_up(void) {
    cluster_up_without_redis();
    file_limit_raise();
    ant = host_add_alone("ant", "pool \"db\" { limit = 4 scope = \"host\" }\n");
    host_start(ant);
    web_up(&web, ant);
}

static void tear_down(void) {
    web_down(&web);
    cluster_down();
}

/* --- refused and allowed requests --- */

/* All actions of the page. */
static const char *const actions[] = {
    PAUSE,
    "{\"method\":\"io.berth.Resume\",\"parameters\":{\"pool\":\"db\"}}",
    "{\"method\":\"io.berth.SetLimit\",\"parameters\":{\"pool\":\"db\",\"limit\":1}}",
    "{\"method\":\"io.berth.ClearLimit\",\"parameters\":{\"pool\":\"db\"}}",
    "{\"method\":\"io.berth.Revoke\",\"parameters\":{\"claim\":\"ant:holder\"}}",
    "{\"method\":\"io.berth.Stop\",\"parameters\":{\"target\":\"holder\"}}",
    "{\"method\":\"io.berth.Move\",\"parameters\":{\"claim\":\"ant:waiter\",\"kind\":\"first\"}}",
};

static char too_long[5000];
static const struct {
    const char *what, *method, *path, *headers, *body; /* body: NULL: an action */
    unsigned status;
} forged[] = {
    {"another Origin", "POST", "/api/1/do", "Host: localhost\r\nOrigin: https://evil.example\r\n" JSON, NULL, 403},
    {"another site", "POST", "/api/1/do", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n" JSON, NULL, 403},
    {"no Origin", "POST", "/api/1/do", "Host: localhost\r\n" JSON, NULL, 403},
    {"a form", "POST", "/api/1/do", PAGE "X-Berth: 1\r\nContent-Type: application/x-www-form-urlencoded\r\n", "pool=db", 415},
    {"no X-Berth", "POST", "/api/1/do", PAGE "Content-Type: application/json\r\n", NULL, 403},
    {"another Host", "POST", "/api/1/do", "Host: evil.example\r\nOrigin: http://evil.example\r\n" JSON, NULL, 421},
    {"by GET", "GET", "/api/1/do", PAGE JSON, "", 405},
    {"GET with a body", "GET", "/api/1/overview", PAGE JSON, NULL, 415},
    {"nobody", "POST", "/api/1/do", PAGE JSON, NULL, 401},
    {"a user over TCP", "POST", "/api/1/do", PAGE JSON "X-Remote-User: alice\r\n", NULL, 401},
    {"a cookie that berth-web did not set", "POST", "/api/1/do", PAGE JSON "Cookie: berth-session=0123\r\n", NULL, 401},
    {"an empty cookie", "POST", "/api/1/do", PAGE JSON "Cookie: berth-session=\r\n", NULL, 401},
    {"a wrong token", "POST", "/api/1/login", PAGE JSON, "{\"token\":\"0123456789abcdef0123456789abcdeF\"}", 403},
    {"an Origin of a file", "POST", "/api/1/do", "Host: localhost\r\nOrigin: null\r\n" JSON, NULL, 403},
    {"another port", "POST", "/api/1/do", "Host: localhost:9737\r\nOrigin: http://localhost:9738\r\n" JSON, NULL, 403},
    {"a site of the same domain", "POST", "/api/1/do", "Host: localhost\r\nOrigin: http://localhost\r\nSec-Fetch-Site: same-site\r\n" JSON, NULL, 403},
    {"JSON as text/plain", "POST", "/api/1/do", PAGE "X-Berth: 1\r\nContent-Type: text/plain\r\n", NULL, 415},
    {"a form with files", "POST", "/api/1/do", PAGE "X-Berth: 1\r\nContent-Type: multipart/form-data; boundary=x\r\n", "--x", 415},
    {"a preflight", "OPTIONS", "/api/1/do", "Host: localhost\r\nOrigin: https://evil.example\r\n", "", 405},
    {"by PUT", "PUT", "/api/1/do", PAGE JSON, NULL, 405},
    {"a Host that begins like a right one", "POST", "/api/1/do", "Host: localhost.evil.example\r\nOrigin: http://localhost.evil.example\r\n" JSON, NULL, 421},
    {"X-Forwarded-Host", "GET", "/", "Host: evil.example\r\nX-Forwarded-Host: localhost\r\n", "", 421},
    {"no JSON", "POST", "/api/1/do", PAGE JSON, "pool=db", 400},
    {"a body that is too long", "POST", "/api/1/do", PAGE JSON "X-Remote-User: alice\r\n", too_long, 413},
};

/* Each forged request a hundred times, with each action in turn. This is the last test: a token blocks all others after five wrong ones. */
static void test_forged(void) {
    unsigned n_refused = 0;
    usec_t begun = clock_boottime();
    const char *answer;

    memset(too_long, 'x', sizeof(too_long) - 1);
    host_mark(ant);
    for (unsigned round = 0; round < FORGED_ROUNDS && n_refused == round * ELEMENTSOF(forged); round++)
        for (size_t i = 0; i < ELEMENTSOF(forged); i++) {
            const char *body = forged[i].body ? forged[i].body : actions[round % ELEMENTSOF(actions)];
            unsigned status = ask(false, forged[i].method, forged[i].path, forged[i].headers, body, &answer);

            if (status == forged[i].status || (status == 429 && strcmp(forged[i].path, "/api/1/login") == 0))
                n_refused++;
            else
                fprintf(stderr, "%s: %u, not %u: %.300s\n", forged[i].what, status, forged[i].status, answer);
        }
    TEST_INT(n_refused, FORGED_ROUNDS * ELEMENTSOF(forged));
    TEST_INT(host_pool(ant, "db", "limit"), 4);
    TEST_INT(host_count(ant, "operated", "%s", ""), 0);
    printf("%u forged requests refused in %u ms\n", n_refused, (unsigned) ((clock_boottime() - begun) / USEC_PER_MSEC));
}

static void test_users(void) {
    char cookie[256] = "", headers[1024];
    const char *answer, *at;

    TEST_INT(ask(true, "POST", "/api/1/do", PAGE JSON "X-Remote-User: alice\r\n", PAUSE, &answer), 200);
    TEST_INT(host_pool(ant, "db", "limit"), 0);
    TEST_INT(ask(true, "POST", "/api/1/do", PAGE JSON "X-Remote-User: alice\r\n",
                 "{\"method\":\"io.berth.Reload\",\"parameters\":{}}", &answer), 400);
    TEST_INT(ask(true, "POST", "/api/1/do", PAGE JSON "X-Remote-User: a\tb\r\n", PAUSE, &answer), 401);
    host_await(ant, "operated", "on_behalf=alice");
    TEST_INT(ask(false, "POST", "/api/1/login", PAGE JSON, "{\"token\":\"" WEB_TOKEN "\"}", &answer), 200);
    at = strstr(answer, "Set-Cookie: ");
    TEST_FATAL(at != NULL, "no cookie");
    CU_ASSERT(strstr(at, "HttpOnly") && strstr(at, "SameSite=Strict"));
    (void) sscanf(at, "Set-Cookie: %200[^;]", cookie);
    snprintf(headers, sizeof(headers), PAGE JSON "Cookie: %s\r\n", cookie);
    TEST_INT(ask(false, "POST", "/api/1/do", headers, "{\"method\":\"io.berth.Resume\",\"parameters\":{\"pool\":\"db\"}}", &answer), 200);
    TEST_INT(host_pool(ant, "db", "limit"), 4);
    TEST_INT(ask(false, "GET", "/api/1/user", headers, "", &answer), 200);
    CU_ASSERT_PTR_NOT_NULL(strstr(answer, "{\"user\":\"token\"}"));
    TEST_INT(ask(false, "POST", "/api/1/logout", headers, "", &answer), 200);
    TEST_INT(ask(false, "GET", "/api/1/user", headers, "", &answer), 200);
    CU_ASSERT_PTR_NOT_NULL(strstr(answer, "{\"user\":null}"));
    TEST_INT(ask(false, "POST", "/api/1/do", headers, PAUSE, &answer), 401);
    TEST_INT(host_pool(ant, "db", "limit"), 4);
}

/* Requests as nginx forwards them with web/proxy/nginx.conf: TLS ends at nginx, Host is the browser's, and
 * the user is always set. */
static void test_proxy(void) {
    static const struct {
        const char *what, *headers;
        unsigned status;
    } passed[] = {
        {"a user by https", "Host: " WEB_SITE "\r\nOrigin: https://" WEB_SITE "\r\nSec-Fetch-Site: same-origin\r\nX-Remote-User: bob\r\n", 200},
        {"another port", "Host: " WEB_SITE ":8443\r\nOrigin: https://" WEB_SITE ":8443\r\nX-Remote-User: bob\r\n", 200},
        {"nobody", "Host: " WEB_SITE "\r\nOrigin: https://" WEB_SITE "\r\nX-Remote-User: \r\n", 401},
        {"another page", "Host: " WEB_SITE "\r\nOrigin: https://evil.example\r\nX-Remote-User: bob\r\n", 403},
        {"a proxy that names itself as Host", "Host: localhost\r\nX-Forwarded-Host: " WEB_SITE "\r\nOrigin: https://" WEB_SITE "\r\nX-Remote-User: bob\r\n", 403},
        {"a host that --host does not name", "Host: other.example.net\r\nOrigin: https://other.example.net\r\nX-Remote-User: bob\r\n", 421},
    };
    char headers[512];
    const char *answer;

    for (size_t i = 0; i < ELEMENTSOF(passed); i++) {
        unsigned status;

        snprintf(headers, sizeof(headers), "%s" JSON, passed[i].headers);
        status = ask(true, "POST", "/api/1/do", headers, PAUSE, &answer);
        if (status != passed[i].status)
            fprintf(stderr, "%s: %u, not %u: %.300s\n", passed[i].what, status, passed[i].status, answer);
        CU_ASSERT(status == passed[i].status);
        if (status == 200)
            TEST_INT(berth(ant, "resume db"), 0);
        TEST_INT(host_pool(ant, "db", "limit"), 4);
    }
    host_await(ant, "operated", "on_behalf=bob");
}

static void test_answers(void) {
    static char large[12000];
    const char *answer;

    TEST_INT(ask(false, "GET", "/", "Host: localhost\r\n", "", &answer), 200);
    CU_ASSERT(strstr(answer, "Content-Security-Policy: default-src 'none'") && strstr(answer, "X-Content-Type-Options: nosniff"));
    CU_ASSERT(!strstr(answer, "Set-Cookie") && !strstr(answer, "Access-Control"));
    TEST_INT(ask(false, "GET", "/api/1/pools/db", "Host: localhost\r\n", "", &answer), 200);
    CU_ASSERT(strstr(answer, "\"limit\":4") != NULL);
    TEST_INT(ask(false, "GET", "/api/1/pools/dbb", "Host: localhost\r\n", "", &answer), 404);
    TEST_INT(ask(false, "GET", "/api/1/timeline?pool=%ff", "Host: localhost\r\n", "", &answer), 400);
    TEST_INT(ask(false, "GET", "/metrics", "Host: localhost\r\n", "", &answer), 200);
    CU_ASSERT(strstr(answer, "\nberth_up 1\n") != NULL);
    TEST_INT(ask(false, "GET", "/plain", "Host: localhost\r\n", "", &answer), 200);
    CU_ASSERT(strstr(answer, "<th scope=row>db<td>0<td>4<td>0") != NULL);
    memset(large, 'x', sizeof(large) - 1);
    memcpy(large, "Host: localhost\r\nX-Long: ", strlen("Host: localhost\r\nX-Long: "));
    memcpy(large + sizeof(large) - 3, "\r\n", 3);
    TEST_INT(ask(false, "GET", "/", large, "", &answer), 431);
}

/* berth-web explains a run that waits, with an estimate: the holder has held longer than ever. An unknown
 * run is 404. */
static void test_explain(void) {
    struct child *holder, *waiter;
    usec_t until = clock_boottime() + HOST_PATIENCE;
    json_t *json = NULL;
    const char *answer;
    char path[96] = "";

    for (int i = 0; i < 10; i++)
        TEST_INT(berth(ant, "run -p db --name holder -- true"), 0);
    host_mark(ant);
    holder = berth_at_gate(ant, "-p db:4", "holder", "started");
    waiter = berth_start(ant, "run -p db --name waiter -- true");
    host_await(ant, "queued", "job=waiter");
    json = berth_json(ant, "runs");
    for (size_t i = 0; i < json_array_size(berth_at(json, "runs")); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(berth_at(json, "runs"), i), "name")), "waiter") == 0)
            snprintf(path, sizeof(path), "/api/1/explain/%s",
                     json_string_value(json_object_get(json_array_get(berth_at(json, "runs"), i), "run")));
    json_decref(json);
    while ((ask(false, "GET", path, "Host: localhost\r\n", "", &answer) != 200 || !strstr(answer, "\"open\":true")) &&
           clock_boottime() < until) /* until the holder has held longer than all before */
        child_turn(clock_boottime() + 50 * USEC_PER_MSEC);
    CU_ASSERT(strstr(answer, "\"code\":\"full\"") && strstr(answer, "4 of 4 used"));
    CU_ASSERT(strstr(answer, "\"open\":true") && strstr(answer, "[\"berth\",\"limit\",\"db\",\"5\"]"));
    TEST_INT(ask(false, "GET", "/api/1/explain/0123456789abcdef0123456789abcdef", "Host: localhost\r\n", "", &answer), 404);
    TEST_INT(ask(false, "POST", path, PAGE JSON, "{}", &answer), 405);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
    TEST_INT(berth_end(waiter), 0);
}

/* --- many --- */

static void close_all(int *fds, size_t n) {
    for (size_t i = 0; i < n; i++)
        fds[i] = close_fd(fds[i]);
}

/* Reads what has arrived, and returns how many streams had data. */
static unsigned drain(const int *fds, size_t n) {
    char buffer[64 * 1024];
    unsigned n_read = 0;

    for (size_t i = 0; i < n; i++) {
        ssize_t size, all = 0;

        while ((size = recv(fds[i], buffer, sizeof(buffer), MSG_DONTWAIT)) > 0)
            all += size;
        n_read += all > 0;
    }
    return n_read;
}

/* A browser that reads gets a frame each second although the others do not read. */
static void test_streams(void) {
    static int fds[STREAM_READERS_MAX];
    static const char call[] = "GET /api/1/stream?pool=db HTTP/1.1\r\nHost: localhost\r\n\r\n";
    unsigned long reading, idle;
    const char *answer;
    usec_t until;
    unsigned n = 0, frames = 0;

    if (file_limit_get() < STREAM_READERS_MAX + 200)
        TEST_SKIP("too few descriptors");
    for (size_t i = 0; i < ELEMENTSOF(fds); i++) {
        fds[i] = web_connect(web.port);
        CU_ASSERT(fds[i] >= 0 && send(fds[i], call, strlen(call), MSG_NOSIGNAL) == (ssize_t) strlen(call));
    }
    until = clock_boottime() + HOST_PATIENCE;
    while (n < ELEMENTSOF(fds) && clock_boottime() < until) {
        n = drain(fds, ELEMENTSOF(fds));
        child_turn(clock_boottime() + 900 * USEC_PER_MSEC);
    }
    TEST_INT(n, ELEMENTSOF(fds));
    reading = memory_kib(web.child->pid, "VmRSS");
    TEST_INT(ask(false, "GET", "/api/1/stream", "Host: localhost\r\n", "", &answer), 503);
    until = clock_boottime() + 8 * USEC_PER_SEC; /* from now on only one of them reads */
    while (clock_boottime() < until) {
        child_turn(clock_boottime() + 200 * USEC_PER_MSEC);
        frames += drain(fds, 1);
    }
    idle = memory_kib(web.child->pid, "VmRSS");
    printf("1000 streams: %lu KiB while all read, %lu KiB when one reads\n", reading, idle);
    CU_ASSERT(reading <= RSS_MAX_KB);
    CU_ASSERT(idle <= RSS_MAX_KB);
    CU_ASSERT(frames >= 4);
    close_all(fds, ELEMENTSOF(fds));
}

/* Clients that send a byte now and then do not delay others. berth-web closes their connections after ten
 * seconds. */
static void test_slow(void) {
    static int fds[900];
    usec_t worst = 0, begun = clock_boottime();
    const char *answer;
    unsigned n_open = 0;

    stall_start();
    for (size_t i = 0; i < ELEMENTSOF(fds); i++)
        fds[i] = web_connect(web.port);
    for (unsigned round = 0; clock_boottime() < begun + 14 * USEC_PER_SEC; round++) {
        usec_t before, took;

        for (size_t i = 0; i < ELEMENTSOF(fds); i++)
            (void) send(fds[i], &"GET / HTTP/1.1\r\nHost: local"[round % 27], 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        before = clock_boottime();
        TEST_INT(ask(false, "GET", "/api/1/overview", "Host: localhost\r\n", "", &answer), 200);
        took = clock_boottime() - before;
        took = usec_sub(took, stall_between(before, before + took));
        if (took > worst)
            worst = took;
        child_turn(clock_boottime() + 500 * USEC_PER_MSEC);
    }
    stall_stop();
    printf("900 slow clients: others wait %u ms at most\n", (unsigned) (worst / USEC_PER_MSEC));
    CU_ASSERT(worst < ANSWER_MAX);
    begun = clock_boottime();
    do { /* the ten seconds of a connection that waited in the backlog began later */
        child_turn(clock_boottime() + 100 * USEC_PER_MSEC);
        n_open = 0;
        for (size_t i = 0; i < ELEMENTSOF(fds); i++) {
            char byte;

            n_open += recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
        }
    } while (n_open > 0 && clock_boottime() < begun + 2 * 10 * USEC_PER_SEC);
    TEST_INT(n_open, 0);
    close_all(fds, ELEMENTSOF(fds));
}

static CU_TestInfo tests[] = {{"users", test_users}, {"answers", test_answers},
                              {"behind a proxy", test_proxy}, {"why a run waits", test_explain},
                              {"streams", test_streams}, {"slow", test_slow}, {"forged", test_forged}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "web", .pSetUpFunc = set_up, .pTearDownFunc = tear_down, .pTests = tests});
