/* SPDX-License-Identifier: MIT */

/* `berth watch --cluster`: what one host sees of another by comparing pictures. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/client/client.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 4 }\npool \"net\" { limit = 4 }\npool \"tenant/*\" { limit = 4 }\n"

static struct host *ant, *bee;

static void hosts_up(void) {
    ant = host_up("ant", POOLS);
    bee = host_up("bee", POOLS "pool \"theirs\" { limit = 4 }\n");
}

/* Awaits the text behind the first bytes of the output. */
static void await_text_behind(const struct child *c, size_t from, const char *text) {
    usec_t until = usec_add(clock_boottime(), HOST_PATIENCE);

    while (!strstr(child_text(c, 1) + from, text)) {
        TEST_FATAL(clock_boottime() < until, text);
        child_turn(until);
    }
}

static void await_text(const struct child *c, const char *text) {
    await_text_behind(c, 0, text);
}

/* Starts `berth watch --cluster` of ant, and changes a limit until it sees that: from then on it compares.
 */
static struct child *watch_start(const char *options, const char *pool) {
    struct child *c = berth_start(ant, "watch --cluster --events seen-limit,%s", options);
    usec_t until = usec_add(clock_boottime(), HOST_PATIENCE);

    for (int limit = 5; !strstr(child_text(c, 1), "seen-limit"); limit++) {
        TEST_FATAL(clock_boottime() < until, "a changed limit is not seen");
        TEST_INT(berth(bee, "limit %s %d", pool, limit), 0);
    }
    TEST_INT(berth(bee, "limit %s --clear", pool), 0);
    return c;
}

/* Interrupts a `berth watch`. Its output is in berth_out then. */
static void watch_end(struct child *c) {
    child_kill(c, SIGINT);
    TEST_INT(berth_end(c), 128 + SIGINT);
}

/* Returns the first line of the last output of --json with this event of this job, to be json_decref'ed. */
static json_t *line_of(const char *event, const char *job) {
    for (const char *at = berth_out; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        json_t *line = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);
        const char *name = json_string_value(berth_at(line, "job"));

        if (strcmp(json_string_value(berth_at(line, "event")), event) == 0 &&
            strcmp(name ? name : "", job) == 0)
            return line;
        json_decref(line);
    }
    TEST_FATAL(false, event);
    return NULL;
}

/* Begins and ends a run of bee. */
static void come_and_go(const struct child *watch, const char *pools, const char *name) {
    size_t from = strlen(child_text(watch, 1));
    struct child *run;
    char text[64];

    host_mark(bee);
    run = berth_at_gate(bee, pools, name, "started");
    (void) snprintf(text, sizeof(text), "bee:%s holds permits", name);
    await_text_behind(watch, from, text);
    child_kill(run, SIGTERM);
    TEST_INT(berth_end(run), 128 + SIGTERM);
    (void) snprintf(text, sizeof(text), "bee:%s no longer holds its permits", name);
    await_text_behind(watch, from, text);
}

/* --- lines --- */

static void test_claims(void) {
    struct child *watch, *holder, *waiter;
    json_t *line;

    hosts_up();
    watch = watch_start("seen-held,seen-freed,seen-waiting,seen-gone,granted --json", "db");
    holder = berth_at_gate(bee, "-p db:4 -p net", "dump", "started");
    await_text(watch, "bee:dump holds permits");
    waiter = berth_at_gate(bee, "-p db", "report", "queued");
    await_text(watch, "bee:report waits for permits");
    child_kill(waiter, SIGTERM);
    TEST_INT(berth_end(waiter), 128 + SIGTERM);
    await_text(watch, "bee:report no longer waits");
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
    await_text(watch, "bee:dump no longer holds its permits");
    TEST_INT(berth(ant, "run -p db --name own -- true"), 0);
    await_text(watch, "\"granted\"");
    watch_end(watch);
    line = line_of("seen-held", "dump");
    AT_STRING(line, "host", "bee");
    AT_INT(line, "pools.db", 4);
    AT_INT(line, "pools.net", 1);
    CU_ASSERT(json_is_true(berth_at(line, "sampled")));
    CU_ASSERT(strlen(json_string_value(berth_at(line, "run"))) == 32);
    CU_ASSERT(json_string_value(berth_at(line, "at"))[8] == ':');
    json_decref(line);
    json_decref(line_of("seen-freed", "dump"));
    json_decref(line_of("seen-waiting", "report"));
    json_decref(line_of("seen-gone", "report"));
    line = line_of("granted", "own"); /* events of this host, as without --cluster */
    CU_ASSERT_PTR_NULL(berth_at(line, "sampled"));
    json_decref(line);
}

static void test_hosts(void) {
    struct child *watch;
    json_t *line;

    hosts_up();
    watch = watch_start("seen-host,seen-host-gone --json", "db");
    host_stop(bee);
    await_text(watch, "bee has gone");
    host_mark(bee);
    host_start(bee);
    await_text(watch, "bee has joined");
    watch_end(watch);
    line = line_of("seen-limit", "");
    AT_NULL(line, "pools.db");
    CU_ASSERT(berth_number_at(line, "limit") >= 5);
    json_decref(line);
    line = line_of("seen-host-gone", "");
    AT_STRING(line, "host", "bee");
    json_decref(line);
}

/* --pool and --job filter these lines too; a key is there only while it has claims. */
static void test_filters(void) {
    usec_t until = usec_add(clock_boottime(), HOST_PATIENCE);
    struct child *db, *keys, *job;

    hosts_up();
    db = watch_start("seen-held,seen-freed --pool db --json", "db");
    keys = watch_start("seen-held,seen-freed --pool tenant/acme --json", "tenant/acme");
    job = berth_start(ant, "watch --cluster --job two --json");
    come_and_go(keys, "-p tenant/acme -p net", "one");
    while (!strstr(child_text(job, 1),
                   "bee:two no longer holds its permits")) { /* again, if it did not compare yet */
        TEST_FATAL(clock_boottime() < until, "a run is not seen");
        come_and_go(db, "-p db -p net", "two");
        child_turn(usec_add(clock_boottime(), USEC_PER_SEC));
    }
    TEST_STRING(strstr(child_text(db, 1), "bee:one") ? "one" : "", "");
    TEST_STRING(strstr(child_text(keys, 1), "bee:two") ? "two" : "", "");
    TEST_STRING(strstr(child_text(job, 1), "bee:one") ? "one" : "", "");
    watch_end(db);
    watch_end(keys);
    watch_end(job);
}

/* The example of berth(1). The second watch shows when a picture had the holder. */
static void test_example(void) {
    usec_t until = usec_add(clock_boottime(), HOST_PATIENCE);
    struct child *watch, *free;

    hosts_up();
    free = berth_start(ant, "watch --cluster --pool db --events seen-freed -n 1 --timeout 10m");
    watch = watch_start("seen-held,seen-freed --json", "db");
    while (!child_await(free, 0)) { /* again, if it did not compare yet */
        TEST_FATAL(clock_boottime() < until, "no permit is seen as free");
        come_and_go(watch, "-p db:2", "dump");
        (void) child_await(free, USEC_PER_SEC);
    }
    TEST_INT(berth_end(free), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, " seen-freed    bee:dump "));
    TEST_STRING(strstr(berth_out, " db:2"), " db:2\n");
    watch_end(watch);
}

/* --- faults --- */

/* Awaits three pictures without Redis. All who look get them at the same moments, so that the watch had one.
 */
static void await_stale(void) {
    _cleanup_(client_freep) struct client *c = NULL;
    unsigned n = 0;

    client_set_socket(ant->socket);
    TEST_INT(client_connect(&c), 0);
    TEST_INT(client_send(c, "io.berth.Look", NULL, CLIENT_MORE), 0);
    while (n < 3) { /* the first one comes at once */
        _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;

        TEST_FATAL(client_receive_until(c, &reply, usec_add(clock_boottime(), HOST_PATIENCE)) == 0,
                   "no picture");
        n += json_is_true(berth_at(reply.params, "stale"));
    }
}

/* The permits that a host holds are not free while Redis is away or empty. A pool of another host's config
 * is known again later. */
static void test_redis(void) {
    struct child *watch, *holder;

    hosts_up();
    watch = watch_start("seen-held,seen-freed,seen-host-gone --pool theirs", "theirs");
    holder = berth_at_gate(bee, "-p theirs", "dump", "started");
    await_text(watch, "seen-held     bee:dump");
    host_mark(ant);
    host_mark(bee);
    redis_server_kill(&cluster.redis);
    host_await(ant, "redis-lost", " ");
    await_stale();
    TEST_INT(redis_server_resume(&cluster.redis), 0);
    host_await(ant, "redis-connected", " ");
    host_await(bee, "redis-connected", " ");
    host_end_grace(ant);
    test_gate_open(&cluster.gate);
    CU_ASSERT_PTR_NULL(strstr(child_text(watch, 1), "seen-freed"));
    TEST_INT(berth_end(holder), 0);
    await_text(watch, "seen-freed    bee:dump");
    watch_end(watch);
}

/* berthd restarts: what changed meanwhile is seen afterwards. */
static void test_restart(void) {
    struct child *watch, *holder;

    hosts_up();
    watch = watch_start("seen-held,seen-freed", "db");
    holder = berth_at_gate(bee, "-p db", "dump", "started");
    await_text(watch, "seen-held     bee:dump");
    host_stop(ant);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
    host_mark(ant);
    host_start(ant);
    await_text(watch, "reconnected");
    await_text(watch, "seen-freed    bee:dump");
    watch_end(watch);
}

static void test_refused(void) {
    ant = host_up("ant", POOLS);
    TEST_INT(berth(ant, "watch --events granted,seen-freed"), 64);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "--events seen-freed: needs --cluster\n"));
    TEST_INT(berth(ant, "watch --cluster --events seen-nothing"), 64);
    TEST_INT(berth(ant, "watch --cluster --pool dbb"), 65);
    TEST_INT(berth(ant, "watch --cluster --timeout 50ms"), 75);
    TEST_STRING(berth_out, "");
}

static CU_TestInfo tests[] = {
    {"claims of another host", test_claims},
    {"limits and hosts", test_hosts},
    {"the wanted pools and jobs", test_filters},
    {"the example of the manual", test_example},
    {"Redis restarts", test_redis},
    {"berthd restarts", test_restart},
    {"wrong options", test_refused},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "watch-cluster", .pSetUpFunc = cluster_up_patient, .pTearDownFunc = cluster_down,
             .pTests = tests});
