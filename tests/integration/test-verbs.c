/* SPDX-License-Identifier: MIT */
/* The verbs against a real berthd with its runner and a Redis: what `berth` prints and exits with, and what clients of the socket
 * that are not `berth` hear. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/socket.h"
#include "tests/harness/host.h"
#include "tests/harness/test.h"

#define CONFIG                                                                                                  \
    "pool \"db\" { limit = 2 }\n"                                                                               \
    "pool \"here\" { limit = 1 scope = \"host\" description = \"of this host\" }\n"                             \
    "job \"three\" { command = {\"/bin/sh\", \"-c\", \"exit 3\"} pools = {\"db\"} stop-timeout = \"1s\" }\n"    \
    "job \"slow\" { command = {\"/bin/sleep\", \"1000\"} pools = {\"here\"} stop-timeout = \"1s\" }\n"          \
    "job \"limited\" { command = {\"/bin/sleep\", \"1000\"} timeout = \"100ms\" stop-timeout = \"1s\" }\n"      \
    "job \"impatient\" { command = {\"/bin/true\"} pools = {\"here\"} queue-timeout = \"100ms\" }\n"            \
    "job \"missing\" { command = {\"/nonexistent\"} }\n"                                                        \
    "job \"again\" { command = {\"/bin/sh\", \"-c\", \"exit 4\"} pools = {\"here\"} overlap = \"queue\" }\n"

static struct host *ant;

static void up(void) {
    cluster_up();
    ant = host_up("ant", CONFIG);
}

static json_t *pool_of(json_t *pools, const char *name) {
    json_t *item;
    size_t i;

    json_array_foreach(json_object_get(pools, "pools"), i, item)
        if (strcmp(json_string_value(json_object_get(item, "name")), name) == 0)
            return item;
    TEST_FATAL(false, "there is no such pool");
    return NULL;
}

/* Path through objects and arrays: "holders.0.name". */
static json_t *at(json_t *json, const char *path) {
    char copy[128], *rest = copy, *key;

    snprintf(copy, sizeof(copy), "%s", path);
    while (json && (key = strsep(&rest, ".")))
        json = json_is_array(json) ? json_array_get(json, strtoul(key, NULL, 10)) : json_object_get(json, key);
    return json;
}

#define AT_STRING(json, path, expected) TEST_STRING(json_string_value(at(json, path)), expected)
#define AT_INT(json, path, expected) TEST_INT(json_integer_value(at(json, path)), expected)
#define AT_NULL(json, path) CU_ASSERT(json_is_null(at(json, path)))

/* --- what is shown --- */

static void test_pools(void) {
    struct child *holder, *waiter;
    json_t *json, *db;

    host_mark(ant);
    holder = berth_start(ant, "run -p db:2 --name first -- sleep 1000");
    host_await(ant, "started", "job=first");
    waiter = berth_start(ant, "run -p db --name second -- true");
    host_await(ant, "queued", "job=second");
    json = berth_json(ant, "pools");
    AT_STRING(json, "host", "ant");
    AT_STRING(json, "redis.state", "connected");
    AT_INT(json, "redis.grace_ms", 0);
    CU_ASSERT(json_is_false(at(json, "stale")));
    TEST_INT(json_array_size(at(json, "pools")), 2);
    db = pool_of(json, "db");
    AT_STRING(db, "scope", "cluster");
    AT_INT(db, "limit", 2);
    AT_INT(db, "configured", 2);
    AT_NULL(db, "override");
    AT_INT(db, "used", 2);
    AT_INT(db, "waiting", 1);
    CU_ASSERT(json_is_false(at(db, "limits_differ")));
    TEST_INT(json_array_size(at(db, "holders")), 1);
    AT_STRING(db, "holders.0.host", "ant");
    AT_STRING(db, "holders.0.name", "first");
    AT_INT(db, "holders.0.permits", 2);
    CU_ASSERT(json_integer_value(at(db, "holders.0.token")) > 0);
    CU_ASSERT(json_integer_value(at(db, "holders.0.pid")) > 0);
    CU_ASSERT(json_integer_value(at(db, "holders.0.seen_ms")) <= 5000);
    TEST_INT(strlen(json_string_value(at(db, "holders.0.since"))), strlen("2026-11-20T11:01:19.123456Z"));
    TEST_INT(json_array_size(at(db, "queue")), 1);
    AT_STRING(db, "queue.0.name", "second");
    AT_INT(db, "queue.0.position", 1);
    AT_INT(db, "queue.0.permits", 1);
    AT_STRING(pool_of(json, "here"), "scope", "host");
    AT_STRING(pool_of(json, "here"), "description", "of this host");
    json_decref(json);
    TEST_INT(berth(ant, "pools db"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "ant:first x2"));
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "second"));
    TEST_INT(berth(ant, "pools here db --json"), 0);
    TEST_INT(berth(ant, "pools dbb"), 65);
    TEST_STRING(berth_err, "berth: no such pool: dbb (did you mean \"db\"? known: db, here)\n");
    child_kill(holder, 15);
    TEST_INT(berth_end(holder), 143);
    TEST_INT(berth_end(waiter), 0);
}

static void test_stale(void) {
    json_t *json;

    host_mark(ant);
    redis_server_kill(&cluster.redis);
    host_await(ant, "redis-lost", " ");
    json = berth_json(ant, "pools");
    CU_ASSERT(json_is_true(at(json, "stale")));
    AT_STRING(json, "redis.state", "away");
    AT_INT(pool_of(json, "db"), "limit", 2);
    json_decref(json);
    json = berth_json(ant, "hosts");
    CU_ASSERT(json_is_true(at(json, "stale")));
    AT_STRING(json, "hosts.0.host", "ant");
    json_decref(json);
    TEST_INT(berth(ant, "pools"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "Redis is away"));
    TEST_INT(berth(ant, "limit db 1"), 69);
    TEST_STRING(berth_err, "berth: Redis is away: nothing was changed\n");
    TEST_INT(berth(ant, "limit here 3"), 0); /* of this host alone: needs no Redis */
    TEST_INT(redis_server_resume(&cluster.redis), 0);
    host_await(ant, "redis-connected", " ");
    json = berth_json(ant, "pools");
    CU_ASSERT(json_is_false(at(json, "stale")));
    CU_ASSERT(json_integer_value(at(json, "redis.grace_ms")) > 0); /* it has lost its data */
    AT_INT(pool_of(json, "here"), "limit", 3);
    json_decref(json);
    TEST_INT(berth(ant, "grace --end"), 0);
}

static void test_hosts(void) {
    struct host *bee = host_up("bee", "pool \"db\" { limit = 3 }\n");
    json_t *json = berth_json(bee, "hosts");
    size_t n = 0;

    TEST_FATAL(json_array_size(at(json, "hosts")) == 2, "there are two hosts");
    for (size_t i = 0; i < 2; i++) {
        json_t *h = json_array_get(at(json, "hosts"), i);

        AT_STRING(h, "version", VERSION);
        TEST_INT(strlen(json_string_value(at(h, "session"))), 32);
        if (strcmp(json_string_value(at(h, "host")), "bee") == 0) { /* the lowest is in force */
            AT_STRING(h, "limits.0.pool", "db");
            AT_INT(h, "limits.0.limit", 3);
            n++;
        } else {
            TEST_INT(json_array_size(at(h, "limits")), 0);
        }
    }
    TEST_INT(n, 1);
    json_decref(json);
    json = berth_json(bee, "pools");
    CU_ASSERT(json_is_true(at(pool_of(json, "db"), "limits_differ")));
    AT_INT(pool_of(json, "db"), "limit", 2);
    AT_INT(pool_of(json, "db"), "configured", 3);
    json_decref(json);
    TEST_INT(berth(bee, "hosts"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "db 3"));
}

static void test_runs_and_jobs(void) {
    struct child *waiter, *next;
    char words[64];
    json_t *json;

    TEST_INT(berth(ant, "runs"), 0);
    TEST_STRING(berth_out, "");
    host_mark(ant);
    TEST_INT(berth(ant, "start slow"), 0);
    host_await(ant, "started", "job=slow");
    waiter = berth_start(ant, "run -p here --name w -- true");
    host_await(ant, "queued", "job=w");
    next = berth_start(ant, "run -p here --name x -- true");
    host_await(ant, "queued", "job=x");
    json = berth_json(ant, "runs");
    TEST_INT(json_array_size(at(json, "runs")), 3);
    AT_INT(json, "runs.2.position.here", 2);
    AT_STRING(json, "runs.0.name", "slow");
    AT_STRING(json, "runs.0.kind", "job");
    AT_STRING(json, "runs.0.state", "running");
    AT_INT(json, "runs.0.pools.here", 1);
    CU_ASSERT(json_integer_value(at(json, "runs.0.pid")) > 0);
    AT_NULL(json, "runs.0.position");
    AT_NULL(json, "runs.0.blocked_by");
    AT_NULL(json, "runs.0.result");
    AT_NULL(json, "runs.0.ended");
    AT_STRING(json, "runs.1.name", "w");
    AT_STRING(json, "runs.1.kind", "adhoc");
    AT_STRING(json, "runs.1.state", "waiting");
    AT_INT(json, "runs.1.position.here", 1);
    AT_STRING(json, "runs.1.blocked_by", "pool full: here");
    AT_NULL(json, "runs.1.token");
    AT_NULL(json, "runs.1.started");
    AT_NULL(json, "runs.1.run_ms");
    snprintf(words, sizeof(words), "stop %s", json_string_value(at(json, "runs.1.run")));
    json_decref(json);
    TEST_INT(berth(ant, "%s", words), 0);
    TEST_INT(berth_end(waiter), 75);
    child_kill(next, 15);
    TEST_INT(berth_end(next), 143);
    json = berth_json(ant, "jobs");
    AT_STRING(json, "jobs.4.name", "slow"); /* sorted */
    AT_STRING(json, "jobs.4.state", "running");
    AT_INT(json, "jobs.4.runs", 1);
    AT_NULL(json, "jobs.4.last_result");
    json_decref(json);
    TEST_INT(berth(ant, "stop slow"), 0);
    host_await(ant, "released", "job=slow");
    TEST_INT(berth(ant, "stop slow"), 0);
    TEST_STRING(berth_err, "berth: slow: nothing to stop\n");
    json = berth_json(ant, "jobs");
    AT_STRING(json, "jobs.4.state", "idle");
    AT_STRING(json, "jobs.4.last_result", "stopped");
    AT_INT(json, "jobs.4.last_signal", 15);
    json_decref(json);
    json = berth_json(ant, "runs --all");
    TEST_INT(json_array_size(at(json, "runs")), 3);
    json_decref(json);
    TEST_INT(berth(ant, "stop slwo"), 65);
    TEST_INT(berth(ant, "stop 0123456789abcdef0123456789abcdef"), 65);
    TEST_STRING(berth_err, "berth: no such run: 0123456789abcdef0123456789abcdef\n");
}

/* --- what is done --- */

static void test_start_wait(void) {
    struct child *a, *b;

    TEST_INT(berth(ant, "start three --wait"), 3);
    TEST_STRING(berth_err, "berth: three: failure (exit 3)\n");
    TEST_INT(strlen(berth_out), 33); /* the run's id */
    TEST_INT(berth(ant, "start --wait limited"), 124);
    TEST_INT(berth(ant, "start --wait missing"), 125);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "not-started"));
    TEST_INT(berth(ant, "start nope"), 65);
    host_mark(ant);
    a = berth_start(ant, "start slow --wait");
    host_await(ant, "started", "job=slow");
    TEST_INT(berth(ant, "start slow"), 75); /* overlap = "skip" */
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "skipped"));
    TEST_INT(berth(ant, "start --wait impatient"), 75);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "queue-timeout"));
    b = berth_start(ant, "start --wait again");
    host_await(ant, "queued", "job=again");
    TEST_INT(berth(ant, "stop slow"), 0);
    TEST_INT(berth_end(a), 143);
    TEST_INT(berth_end(b), 4);
    TEST_INT(berth(ant, "start three limited --wait"), 3); /* the first that failed */
}

/* overlap = "queue": the one who waits waits for the run that his own start began. */
static void test_start_behind(void) {
    struct child *a, *b;

    TEST_INT(berth(ant, "pause here"), 0);
    host_mark(ant);
    a = berth_start(ant, "start --wait again");
    host_await(ant, "parked", "job=again");
    b = berth_start(ant, "start --wait again");
    for (usec_t until = clock_boottime() + HOST_PATIENCE; !child_text(b, 1)[0] && clock_boottime() < until;)
        child_turn(until); /* it has printed a run's id: it was heard */
    TEST_INT(berth(ant, "start again"), 75); /* one is kept back at most */
    TEST_INT(berth(ant, "resume here"), 0);
    TEST_INT(berth_end(a), 4);
    TEST_INT(berth_end(b), 4);
    TEST_INT(host_count(ant, "exited", "job=again"), 2);
}

static void test_limits(void) {
    struct child *waiter;
    json_t *json;

    TEST_INT(berth(ant, "limit db 1 --for 10m --reason 'slow disk'"), 0);
    json = berth_json(ant, "pools db");
    AT_INT(json, "pools.0.limit", 1);
    AT_INT(json, "pools.0.configured", 2);
    AT_INT(json, "pools.0.override.limit", 1);
    AT_STRING(json, "pools.0.override.reason", "slow disk");
    CU_ASSERT(json_is_string(at(json, "pools.0.override.until")));
    json_decref(json);
    host_mark(ant);
    TEST_INT(berth(ant, "pause db"), 0);
    waiter = berth_start(ant, "run -p db --name w -- true");
    host_await(ant, "parked", "job=w");
    json = berth_json(ant, "runs");
    AT_STRING(json, "runs.0.blocked_by", "paused: db");
    json_decref(json);
    TEST_INT(berth(ant, "resume db"), 0);
    TEST_INT(berth_end(waiter), 0);
    TEST_INT(host_pool(ant, "db", "limit"), 1); /* what the pause replaced */
    TEST_INT(berth(ant, "limit db --clear"), 0);
    TEST_INT(host_pool(ant, "db", "limit"), 2);
    TEST_INT(berth(ant, "limit here 5"), 0);
    TEST_INT(host_pool(ant, "here", "limit"), 5);
    TEST_INT(berth(ant, "limit here --clear"), 0);
    TEST_INT(berth(ant, "limit nope 5"), 65);
    TEST_INT(berth(ant, "pause nope"), 65);
    TEST_INT(berth(ant, "resume nope"), 65);
    TEST_INT(berth(ant, "limit db 5 --reason 'a\nb'"), 64);
    TEST_STRING(berth_err, "berth: the reason has a control character; it is one line of text\n");
}

static void revokes(const char *pool) {
    struct child *holder;
    char claim[40];
    json_t *json;

    host_mark(ant);
    holder = berth_start(ant, "run -p %s --name h -- sleep 1000", pool);
    host_await(ant, "started", "job=h");
    json = berth_json(ant, "pools %s", pool);
    snprintf(claim, sizeof(claim), "%s", json_string_value(at(json, "pools.0.holders.0.claim")));
    json_decref(json);
    TEST_INT(berth(ant, "revoke %s --reason test", claim), 0);
    TEST_INT(berth_end(holder), 143);
    host_await(ant, "revoked", "job=h");
    host_await_pool(ant, pool, "used", 0);
    TEST_INT(berth(ant, "revoke %s", claim), 65);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "no such claim"));
}

static void test_revoke(void) {
    revokes("db");
    revokes("here");
}

static void test_reload(void) {
    TEST_INT(berth(ant, "reload"), 0);
    host_set_config(ant, "pool \"db\" { limit = 2 \n limti = 3 }\npool \"here\" { limit = x }\n");
    TEST_INT(berth(ant, "reload"), 78);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "limti"));
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "nothing was changed"));
    TEST_INT(host_pool(ant, "db", "limit"), 2);
    host_set_config(ant, "pool \"db\" { limit = 1 }\n");
    TEST_INT(berth(ant, "reload"), 0);
    host_await_pool(ant, "db", "limit", 1);
    cluster.lease = "4s"; /* of what runs already */
    host_set_config(ant, "pool \"db\" { limit = 2 }\n");
    TEST_INT(berth(ant, "reload"), 78);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "lease has changed, which a reload cannot do: restart berthd"));
    TEST_INT(host_pool(ant, "db", "limit"), 1);
    TEST_INT(berth(ant, "version"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "berthd " VERSION " on ant, namespace test, process "));
}

/* --- the socket itself --- */

/* One call on a new connection, its first answer; '...' for "...". */
static const char *ask(const char *call) {
    static char text[65536];
    _cleanup_free_ char *message = strdup(call);
    _cleanup_close_ int fd = socket_connect(ant->socket, SOCK_STREAM);
    size_t size = 0;

    TEST_FATAL(fd >= 0 && message, "cannot connect");
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

static void test_parameters(void) {
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
         BAD("the job or run's name has a character that is not one of A-Z a-z 0-9 . _ -")},
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

/* Nobody can tell of a run that is not his. */
static void test_foreign_run(void) {
    struct child *holder;
    char call[256];
    json_t *json;

    host_mark(ant);
    holder = berth_start(ant, "run -p here --name h -- sleep 1000");
    host_await(ant, "started", "job=h");
    json = berth_json(ant, "runs");
    snprintf(call, sizeof(call), "{'method':'io.berth.Ended','parameters':{'run':'%s','code':0}}",
             json_string_value(at(json, "runs.0.run")));
    CU_ASSERT_PTR_NOT_NULL(strstr(ask(call), "NoSuchRun"));
    json_decref(json);
    TEST_INT(host_pool(ant, "here", "used"), 1);
    child_kill(holder, 15);
    TEST_INT(berth_end(holder), 143);
}

/* A service manager's restart: nobody who waits loses his place, and nobody notices. */
static void test_restart(void) {
    struct child *holder, *waiter;
    uint64_t ticket;
    struct host *bee;

    TEST_INT(setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1), 0);
    bee = host_up("bee", "pool \"one\" { limit = 1 scope = \"host\" }\n");
    host_mark(bee);
    holder = berth_start(bee, "run -p one --name h -- sleep 1000");
    host_await(bee, "started", "job=h");
    waiter = berth_start(bee, "run -p one --name w -- true");
    ticket = event_get_u64(host_await(bee, "queued", "job=w"), "ticket");
    host_stop(bee);
    TEST_INT(host_count(bee, "withdrawn", " "), 0);
    TEST_INT(host_count(bee, "stopping", " "), 0);
    host_start(bee);
    TEST_INT(unsetenv("NOTIFY_SOCKET"), 0);
    host_await(bee, "ready", " ");
    TEST_INT(host_pool(bee, "one", "used"), 1);
    TEST_INT(host_pool(bee, "one", "waiting"), 1);
    child_kill(holder, 15);
    TEST_INT(berth_end(holder), 143);
    TEST_INT(event_get_u64(host_await(bee, "granted", "job=w"), "ticket"), ticket);
    TEST_INT(berth_end(waiter), 0);
    bee->abandoned = true; /* it leaves its records for the one after it */
}

/* berthd serves thousands of clients; what it starts has the limits that it was started with. */
static void test_file_limit(void) {
    struct rlimit before, low = {512, 2048};
    struct host *bee;
    char path[96], text[16] = "";
    _cleanup_fclose_ FILE *f = NULL;
    struct rlimit raised;

    TEST_INT(getrlimit(RLIMIT_NOFILE, &before), 0);
    low.rlim_max = before.rlim_max;
    TEST_INT(setrlimit(RLIMIT_NOFILE, &low), 0);
    snprintf(path, sizeof(path), "%s/limit", cluster.folder);
    bee = host_up("bee", "job \"limit\" { command = {\"/bin/sh\", \"-c\", \"ulimit -Sn\"} output = \"%s\" }\n", path);
    TEST_INT(setrlimit(RLIMIT_NOFILE, &before), 0);
    TEST_INT(prlimit(bee->berthd->pid, RLIMIT_NOFILE, NULL, &raised), 0);
    CU_ASSERT(raised.rlim_cur > 512);
    TEST_INT(berth(bee, "start limit --wait"), 0);
    f = fopen(path, "re");
    CU_ASSERT(f && fgets(text, sizeof(text), f));
    TEST_STRING(text, "512\n");
}

static CU_TestInfo tests[] = {
    {"pools", test_pools},
    {"stale", test_stale},
    {"hosts", test_hosts},
    {"runs-and-jobs", test_runs_and_jobs},
    {"start-wait", test_start_wait},
    {"start-behind", test_start_behind},
    {"limits", test_limits},
    {"revoke", test_revoke},
    {"reload", test_reload},
    {"parameters", test_parameters},
    {"foreign-run", test_foreign_run},
    {"restart", test_restart},
    {"file-limit", test_file_limit},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "verbs", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests},
                             CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
