/* SPDX-License-Identifier: MIT */

/* Each allocation of a reply fails once: the client receives the whole reply, an error, or the end of the
 * connection. It never gets an empty reply for the whole, and never waits forever. */

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/socket.h"
#include "daemon/api/verbs.h"
#include "tests/harness/runner/manager-bed.h"
#include "tests/harness/test.h"

static int n_allocations, failing; /* number of the allocation that fails; 0: none */

static void *failing_malloc(size_t size) {
    if (++n_allocations != failing || failing == 0)
        return malloc(size);
    errno = ENOMEM;
    return NULL;
}

/* Begins to count after the allocations that parse the call, because jansson 2.14 itself aborts there. */
static void count_from(const char *call) {
    failing = n_allocations = 0;
    json_decref(json_loads(call, JSON_REJECT_DUPLICATES, NULL));
    n_allocations = -n_allocations;
}

static int n_heard; /* allocations until the reply */
static struct control *control;
static char path[64];
static struct {
    int fd;
    char text[65536];
    size_t size;
    bool ended;
} client;

static void up(void) {
    failing = 0;
    json_set_alloc_funcs(failing_malloc, free);
    manager_bed_up_recovered();
    snprintf(path, sizeof(path), "%s/control.sock", manager_bed.directory);
    TEST_INT(verbs_new_control(&control, manager_bed.event, manager_bed.manager, path, -1), 0);
}

static void up_with_redis(void) {
    manager_bed.has_redis = true;
    up();
}

static void down(void) {
    failing = 0;
    control = control_free(control);
    manager_bed_down();
    manager_bed.has_redis = false;
    json_set_alloc_funcs(malloc, free);
}

static bool has_heard(_unused_ void *userdata) {
    ssize_t n = recv(client.fd, client.text + client.size, sizeof(client.text) - client.size, MSG_DONTWAIT);

    if (n > 0)
        client.size += (size_t) n;
    client.ended |= n == 0 || (n < 0 && errno != EAGAIN);
    return client.ended || memchr(client.text, '\0', client.size);
}

/* Sends one call and receives a reply or the end of the connection. Returns true for a whole reply or an
 * error. */
static bool ask(const char *call, const char *key) {
    json_t *answer;
    bool is_good;

    client.fd = socket_connect(path, SOCK_STREAM);
    client.size = 0;
    client.ended = false;
    CU_ASSERT_FATAL(client.fd >= 0);
    CU_ASSERT(send(client.fd, call, strlen(call) + 1, MSG_NOSIGNAL) > 0);
    CU_ASSERT_FATAL(manager_bed_await(has_heard, NULL));
    failing = 0;
    n_heard = n_allocations;
    close_fd(client.fd);
    manager_bed_turn();
    if (client.ended)
        return false;
    answer = json_loads(client.text, 0, NULL);
    is_good = json_object_get(answer, "error") || json_object_get(json_object_get(answer, "parameters"), key);
    if (!is_good)
        printf("%s\n  %s\n", call, client.text);
    CU_ASSERT(is_good);
    json_decref(answer);
    return true;
}

static void ask_each(const char *call, const char *key) {
    unsigned n_ended = 0;
    int nth;

    n_heard = 0;
    for (nth = 1; n_heard >= nth - 1; nth++) {
        count_from(call);
        failing = nth;
        n_ended += !ask(call, key);
    }
    CU_ASSERT(nth > 5);
    CU_ASSERT(n_ended > 0);
}

static void test_verbs(void) {
    struct run *r = manager_bed_run("one");
    char call[256];

    (void) manager_bed_begin("one");
    ask_each("{\"method\":\"io.berth.Version\"}", "version");
    ask_each("{\"method\":\"io.berth.Jobs\"}", "jobs");
    ask_each("{\"method\":\"io.berth.Runs\",\"parameters\":{\"all\":true}}", "runs");
    ask_each("{\"method\":\"io.berth.Pools\"}", "pools");
    ask_each("{\"method\":\"io.berth.Hosts\"}", "hosts");
    ask_each("{\"method\":\"io.berth.Metrics\"}", "metrics");
    ask_each("{\"method\":\"io.berth.Events\",\"more\":true,\"parameters\":{\"since\":\"00000000:1\","
             "\"events\":[\"ready\"]}}",
             "missed");
    ask_each("{\"method\":\"io.berth.Stop\",\"parameters\":{\"target\":\"queued\"}}", "stopped");
    ask_each("{\"method\":\"io.berth.Start\",\"parameters\":{\"job\":\"queued\"}}", "run");
    ask_each("{\"method\":\"io.berth.Start\",\"more\":true,\"parameters\":{\"job\":\"skipped\",\"wait\":true}}", "run");
    snprintf(call, sizeof(call), "{\"method\":\"io.berth.Await\",\"more\":true,\"parameters\":{\"run\":\"%s\"}}", r->id);
    ask_each(call, "run");
    ask_each("{\"method\":\"org.varlink.service.GetInfo\"}", "version");
}

static void test_redis(void) {
    ask_each("{\"method\":\"io.berth.Redis\"}", "warnings");
}

enum { REFUSED = 5 };

/* Sends the call to a berthd in a child, whose nth allocation for it fails. Returns the child's exit status or the negative
 * number of its signal: 0 if it replied, REFUSED if it took the call for wrong. */
static int take_in_child(const char *call, int nth) {
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        up();
        client.fd = socket_connect(path, SOCK_STREAM);
        n_allocations = 0;
        failing = nth;
        if (send(client.fd, call, strlen(call) + 1, MSG_NOSIGNAL) < 0 || !manager_bed_await(has_heard, NULL))
            _exit(1);
        _exit(strstr(client.text, "BadRequest") ? REFUSED : 0);
    }
    CU_ASSERT_FATAL(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* A call that berthd cannot parse for lack of memory is not wrong: berthd exits, or jansson crashes. The client reports to
 * the next berthd. */
static void test_parsed(void) {
    static const char call[] = "{\"method\":\"io.berth.Version\",\"parameters\":{}}";
    int n_exited = 0, n;

    json_set_alloc_funcs(failing_malloc, free);
    count_from(call);
    json_set_alloc_funcs(malloc, free);
    n = -n_allocations;
    for (int nth = 1; nth <= n; nth++) {
        int status = take_in_child(call, nth);

        CU_ASSERT(status != REFUSED);
        n_exited += status == 70;
    }
    CU_ASSERT(n_exited > 3);
}

static void test_hold(void) {
    ask_each("{\"method\":\"io.berth.Hold\",\"more\":true,\"parameters\":{\"pools\":[\"wide\"],\"name\":\"label\"}}", "state");
}

/* Inside a run, whose guard is this process. */
static void test_nested(void) {
    char call[256];

    snprintf(call, sizeof(call),
             "{\"method\":\"io.berth.Hold\",\"more\":true,\"parameters\":{\"pools\":[\"slot\"],\"name\":\"label\",\"nested\":\"%s\"}}",
             manager_bed_run("one")->id);
    ask_each(call, "state");
    /* The nested one never became a run of its own. */
    CU_ASSERT_PTR_NULL(list_first(manager_runs(manager_bed.manager, RUN_STATE_DONE), struct run, link));
}

/* A waiting client is granted its permits, and the allocation with this number fails for the reply. */
static void check_grant(int nth, bool *ret_more) {
    static const char call[] = "{\"method\":\"io.berth.Hold\",\"more\":true,\"parameters\":{\"pools\":[\"slot\"],\"name\":\"label\"}}";
    struct run *r = manager_bed_run("one"), *w;

    client.fd = socket_connect(path, SOCK_STREAM);
    client.size = 0;
    client.ended = false;
    CU_ASSERT_FATAL(client.fd >= 0 && send(client.fd, call, sizeof(call), MSG_NOSIGNAL) > 0);
    CU_ASSERT_FATAL(manager_bed_await(has_heard, NULL));
    CU_ASSERT(strstr(client.text, "\"waiting\"") != NULL);
    w = list_first(manager_runs(manager_bed.manager, RUN_STATE_WAITING), struct run, link);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    CU_ASSERT(manager_bed_await_waiting(w));
    while (recv(client.fd, client.text, sizeof(client.text), MSG_DONTWAIT) > 0)
        ;
    client.size = 0;
    n_allocations = 0;
    failing = nth;
    manager_bed_guard_report(r, "code", 0, "none");
    CU_ASSERT_FATAL(manager_bed_await(has_heard, NULL));
    *ret_more = n_allocations >= nth;
    failing = 0;
    CU_ASSERT(client.ended || strstr(client.text, "\"granted\"") || strstr(client.text, "\"waiting\""));
    close_fd(client.fd);
    CU_ASSERT(manager_bed_await_released(w)); /* because no process has the hold open */
}

static void test_grant(void) {
    bool more = true;
    int nth;

    for (nth = 1; more; nth++)
        check_grant(nth, &more);
    CU_ASSERT(nth > 5);
}

static CU_TestInfo tests[] = {
    {"verbs", test_verbs},
    {"hold", test_hold},
    {"nested", test_nested},
    {"grant", test_grant},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo redis_tests[] = {
    {"redis", test_redis},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo parse_tests[] = {{"parsed", test_parsed}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "calls without memory", .pTests = parse_tests},
            {.pName = "with a Redis", .pSetUpFunc = up_with_redis, .pTearDownFunc = down,
             .pTests = redis_tests},
            {.pName = "verbs, failing", .pSetUpFunc = up, .pTearDownFunc = down, .pTests = tests});
