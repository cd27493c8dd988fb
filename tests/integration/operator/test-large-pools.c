/* SPDX-License-Identifier: MIT */

/* Questions about pools with thousands of claims: why the last one of a queue waits, and what fifty such
 * pools have. What that costs Redis, and how long it takes. Another client writes what a host with so many
 * claims would. */

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/client/client.h"
#include "base/socket.h"
#include "tests/harness/host/host.h"
#include "tests/harness/memory.h"
#include "tests/harness/redis/redis-look.h"
#include "tests/harness/test.h"

#define HELD 1000
#define POOLS 50
#define EMPTY_RUNS 2000
#define CALLS_MAX 80
#define CALLS_OF_A_POOL 8          /* pool, held, queue, their records, and some more of a scan */
#define CPU_MAX USEC_PER_SEC       /* of `berth explain`: 0.1 s, more with sanitizers */
#if defined(__SANITIZE_ADDRESS__)
#define KEPT_KIB (1024 * 1024) /* no bound */
#define WATCHED_KIB (1024 * 1024)
#define UNREAD_KIB (1024 * 1024)
#else
#define KEPT_KIB 1024
#define WATCHED_KIB 1280 /* 540 to 750, and 2300 with texts of their own */
#define UNREAD_KIB 3400 /* 4200 if a picture is kept until all of it is sent */
#endif
#define WATCHING 20
#define UNREAD 5
#define SLICE_MAX 110              /* claims in one call: 100, and those that a scan of a set adds */

/* bee has 1000 claims of each pool and more behind them, of the jobs a, b, c and d. Each has 64 known runs.
 */
#define FILL                                                                                                \
    "local at, s, t = 'berth:{test}:', string.format('5%%031d', 1), redis.call('TIME')[1] - 60 "            \
    "local function number(i) return t .. string.format('%%06d', i) end "                                   \
    "local function put(p, pool, kind, i) local id = string.format('%%s%%03x%%028d', kind, i, p) "          \
    "redis.call('HSET', at .. 'claims', id, (kind == 'a' and 'H ' or 'W ') .. number(i) .. ' ' .. s .. "    \
    "' ' .. pool .. ':1 ' .. number(i) .. ' ' .. number(i) .. ' 0 77 ' .. id .. ' ' .. "                    \
    "string.char(97 + i %% 4) .. ' ') return id end "                                                       \
    "local p = %u local pool = p == 1 and 'db' or 'p' .. p local lists = at .. 'pool:' .. pool "            \
    "for i = 1, %d do redis.call('SADD', lists .. ':held', put(p, pool, 'a', i) .. '#1') end "              \
    "for i = 1, %u do redis.call('ZADD', lists .. ':queue', number(i), put(p, pool, 'b', i)) end "          \
    "redis.call('HSET', at .. 'sessions', s, 'bee m 1 db=1000') "                                           \
    "redis.call('HSET', at .. 'meta', 'h:bee', s, 'c:' .. s, '1 0') "                                       \
    "redis.call('ZADD', at .. 'heartbeats', 1000000, s) "                                                   \
    "local told = '' for i = 0, 3 do told = told .. string.char(97 + i) .. ' 64 0 40000 50000 60000 70000 " \
    "80000 90000 95000 99000\\n' end redis.call('HSET', at .. 'times', s, told)"

#define WAITING 10000 /* before a move */
#define MOVES 200
#define MOVE_MAX 250 /* empty scripts: twice what it takes; 100 µs is the goal */
#define DB "pool \"db\" { limit = 1000 queue-limit = 20000 }\n"

static struct host *ant;
static struct child *waiter;

static void fill(unsigned pools, unsigned waiting) {
    char script[2048];

    for (unsigned i = 1; i <= pools; i++) { /* one call for all would keep Redis from its hosts */
        snprintf(script, sizeof(script), FILL, i, HELD, waiting);
        _cleanup_reply_ redisReply *reply = redis_command(&cluster.redis, "EVAL %s 0", script);
        TEST_FATAL(reply && reply->type != REDIS_REPLY_ERROR, "bee is not written");
    }
}

static void up(void) {
    static const char *const log[] = {"--slowlog-log-slower-than", "0", "--slowlog-max-len", "20000", NULL};

    cluster.redis_extra = log;
    cluster_up_patient();
}

static void begin(unsigned waiting) {
    ant = host_up("ant", DB);
    fill(1, waiting);
    waiter = berth_at_gate(ant, "-p db", "report", "queued");
}

/* What bee had goes with all other data. */
static void lose(void) {
    host_mark(ant);
    freeReplyObject(redis_command(&cluster.redis, "FLUSHALL"));
    host_await(ant, "grace-begun", " ");
    host_end_grace(ant);
}

static void end(void) {
    TEST_INT(berth(ant, "stop report"), 0);
    (void) berth_end(waiter);
    lose();
}

/* --- what it costs --- */

struct cost {
    long long n, usec, longest, claims; /* µs of all calls, and of the longest; claims: the most that a call reads */
};

static double empty_script(void) {
    _cleanup_reply_ redisReply *sha = redis_command(&cluster.redis, "SCRIPT LOAD %s", "return 1"), *stats = NULL;
    double usec = 0;

    freeReplyObject(redis_command(&cluster.redis, "CONFIG RESETSTAT"));
    for (int i = 0; i < EMPTY_RUNS; i++)
        freeReplyObject(redis_command(&cluster.redis, "EVALSHA %s 0", sha->str));
    stats = redis_command(&cluster.redis, "INFO commandstats");
    (void) sscanf(strstr(stats->str, "cmdstat_evalsha:"), "cmdstat_evalsha:calls=%*d,usec=%lf", &usec);
    return usec / EMPTY_RUNS;
}

/* Returns how many claims a logged call asks for. */
static long long claims_of(redisReply *const *words, size_t n) {
    long long more = 0;

    if (strcasecmp(words[0]->str, "HMGET") != 0)
        return 0;
    if (sscanf(words[n - 1]->str, "... (%lld more", &more) == 1)
        more--;
    return (long long) n - 2 + more;
}

static struct cost cost_so_far(void) {
    _cleanup_reply_ redisReply *log = redis_command(&cluster.redis, "SLOWLOG GET 20000");
    struct cost c = {};

    for (size_t i = 0; log && i < log->elements; i++) {
        long long usec = log->element[i]->element[2]->integer, claims;
        redisReply *const *words;
        size_t n;

        if (!(words = redis_look_words(log->element[i], &n)))
            continue;
        claims = claims_of(words, n);
        c.n++;
        c.usec += usec;
        c.longest = usec > c.longest ? usec : c.longest;
        c.claims = claims > c.claims ? claims : c.claims;
    }
    return c;
}

static usec_t cpu_of_children(void) {
    struct rusage u;

    CU_ASSERT_FATAL(getrusage(RUSAGE_CHILDREN, &u) == 0);
    return (usec_t) u.ru_utime.tv_sec * USEC_PER_SEC + (usec_t) u.ru_utime.tv_usec;
}

/* Other load delays each of these, so the times are printed, and the sizes of the calls are checked. */
static json_t *ask(const char *words, struct cost *ret) {
    double empty = empty_script();
    usec_t took, cpu = cpu_of_children();
    json_t *answer;

    freeReplyObject(redis_command(&cluster.redis, "SLOWLOG RESET"));
    took = clock_boottime();
    answer = berth_json(ant, "%s", words);
    took = clock_boottime() - took;
    cpu = cpu_of_children() - cpu;
    *ret = cost_so_far();
    printf("%s: %" PRIu64 " ms, %" PRIu64
           " ms of a processor; %lld calls of %.1f ms in all, %.0f empty scripts, the longest of %.0f\n",
           words, took / 1000, cpu / 1000, ret->n,
           (double) ret->usec / 1000, (double) ret->usec / empty, (double) ret->longest / empty);
    CU_ASSERT(ret->claims > SLICE_MAX / 2 && ret->claims <= SLICE_MAX);
    CU_ASSERT(cpu < CPU_MAX);
    return answer;
}

static void test_last(void) {
    struct cost c;
    json_t *answer;

    begin(999);
    answer = ask("explain report", &c);
    AT_INT(answer, "explained.0.pools.0.place", 1000);
    AT_INT(answer, "explained.0.pools.0.used", 1000);
    AT_STRING(answer, "explained.0.pools.0.why.code", "full");
    AT_INT(answer, "explained.0.estimate.samples", 200);
    CU_ASSERT(berth_number_at(answer, "explained.0.estimate.low_ms") > 0);
    CU_ASSERT(c.n > 2 * HELD / SLICE_MAX && c.n < CALLS_MAX);
    json_decref(answer);
    end();
}

/* berthd gives back what a picture took, once nobody has looked for ten seconds. */
static void await_memory(unsigned long before) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    unsigned long now;

    while ((now = memory_kib(ant->berthd->pid, "VmRSS")) > before + KEPT_KIB && clock_boottime() < until)
        child_turn(clock_boottime() + 100 * USEC_PER_MSEC);
    printf("berthd: %lu KiB before the picture, %lu KiB after it\n", before, now);
    CU_ASSERT(now <= before + KEPT_KIB);
}

/* Each list has its first hundred claims. */
static void test_pools(void) {
    char config[8192] = "", path[64];
    unsigned long before;
    size_t n = 0;
    struct cost c;
    json_t *answer;

    for (unsigned i = 2; i <= POOLS; i++)
        n += (size_t) snprintf(config + n, sizeof(config) - n,
                               "pool \"p%u\" { limit = 1000 queue-limit = 5000 }\n", i);
    ant = host_up("ant", DB "%s", config);
    fill(POOLS, 1000);
    before = memory_kib(ant->berthd->pid, "VmRSS");
    answer = ask("pools", &c);
    TEST_INT(json_array_size(json_object_get(answer, "pools")), POOLS);
    for (unsigned i = 2; i <= POOLS; i++) {
        snprintf(path, sizeof(path), "pools.name=p%u", i);
        AT_INT(berth_at(answer, path), "used", 1000);
        AT_INT(berth_at(answer, path), "waiting", 1000);
        TEST_INT(json_array_size(json_object_get(berth_at(answer, path), "queue")), 100);
        TEST_INT(json_array_size(json_object_get(berth_at(answer, path), "holders")), 100);
    }
    CU_ASSERT(c.n < CALLS_OF_A_POOL * POOLS);
    json_decref(answer);
    await_memory(before);
    lose();
}

static json_t *reply_of(struct client *c) {
    _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;

    CU_ASSERT_FATAL(client_receive_until(c, &reply, clock_boottime() + HOST_PATIENCE) == 0);
    TEST_STRING(reply.error, NULL);
    return json_incref(reply.params);
}

/* Twenty clients that asked at the same moment have not read a picture of 2000 claims yet. They share its text, which a
 * socket does not take. */
static void test_watched(void) {
    static const char call[] = "{\"method\":\"io.berth.Look\",\"parameters\":{\"pools\":[\"db\"]}}";
    struct pollfd clients[WATCHING];
    unsigned long before;

    begin(999);
    client_set_socket(ant->socket);
    for (unsigned i = 0; i < WATCHING; i++)
        clients[i] = (struct pollfd){.fd = socket_connect(ant->socket, SOCK_STREAM), .events = POLLIN};
    before = memory_kib(ant->berthd->pid, "VmRSS");
    host_signal(ant, SIGSTOP);
    for (unsigned i = 0; i < WATCHING; i++)
        TEST_INT(send(clients[i].fd, call, sizeof(call), MSG_NOSIGNAL), sizeof(call));
    host_signal(ant, SIGCONT);
    for (unsigned i = 0; i < WATCHING; i++) /* a client that has nothing to read may have no text yet */
        TEST_INT(poll(&clients[i], 1, HOST_PATIENCE / USEC_PER_MSEC), 1);
    before = memory_kib(ant->berthd->pid, "VmRSS") - before;
    printf("%d clients that have not read their pictures: %lu KiB more\n", WATCHING, before);
    CU_ASSERT(before <= WATCHED_KIB);
    for (unsigned i = 0; i < WATCHING; i++)
        close(clients[i].fd);
    end();
}

#define FROZEN (300 * USEC_PER_MSEC)

static struct client *look(void) {
    struct client *c = NULL;

    TEST_INT(client_connect(&c), 0);
    TEST_INT(client_send(c, "io.berth.Look", NULL, CLIENT_MORE), 0);
    return c;
}

/* A stream that begins while Redis answers another one gets the same picture. */
static void test_joined(void) {
    _cleanup_(client_freep) struct client *first = NULL, *second = NULL, *other = NULL;
    json_t *of_first, *of_second;

    ant = host_up("ant", DB);
    client_set_socket(ant->socket);
    TEST_INT(kill(cluster.redis.pid, SIGSTOP), 0);
    first = look();
    child_turn(clock_boottime() + FROZEN);
    second = look();
    TEST_INT(client_connect(&other), 0);
    TEST_INT(client_send(other, "io.berth.Version", NULL, 0), 0);
    json_decref(reply_of(other)); /* so berthd has the second call, too */
    TEST_INT(kill(cluster.redis.pid, SIGCONT), 0);
    of_first = reply_of(first);
    of_second = reply_of(second);
    CU_ASSERT(berth_number_at(of_first, "age_ms") >= 0);
    CU_ASSERT(json_equal(of_first, of_second));
    json_decref(of_first);
    json_decref(of_second);
    lose();
}

/* Clients ask for 4000 claims, each when the one before has the begin of its picture, and read no more of it. What a
 * socket has taken is not kept. */
static void test_unread(void) {
    static const char call[] = "{\"method\":\"io.berth.Look\",\"parameters\":{\"pools\":[\"db\",\"p2\"]}}";
    struct pollfd clients[UNREAD];
    unsigned long before, peak;

    ant = host_up("ant", DB "pool \"p2\" { limit = 1000 queue-limit = 5000 }\n");
    fill(2, 1000);
    before = memory_kib(ant->berthd->pid, "VmRSS");
    memory_reset_peak(ant->berthd->pid);
    for (unsigned i = 0; i < UNREAD; i++) {
        clients[i] = (struct pollfd){.fd = socket_connect(ant->socket, SOCK_STREAM), .events = POLLIN};
        TEST_INT(send(clients[i].fd, call, sizeof(call), MSG_NOSIGNAL), sizeof(call));
        TEST_INT(poll(&clients[i], 1, HOST_PATIENCE / USEC_PER_MSEC), 1);
    }
    peak = memory_kib(ant->berthd->pid, "VmHWM") - before;
    printf("%d clients that have not read pictures of 4000 claims: at most %lu KiB more\n", UNREAD, peak);
    CU_ASSERT(peak <= UNREAD_KIB);
    for (unsigned i = 0; i < UNREAD; i++)
        close(clients[i].fd);
    lose();
}

/* Claims of bee are found by their first digits. berthd sends the first hundred of each list, and a thousand
 * if it is asked again. */
static void test_far(void) {
    json_t *answer;

    begin(998);
    answer = berth_json(ant, "explain b1f4");
    AT_STRING(answer, "explained.0.host", "bee");
    AT_INT(answer, "explained.0.pools.0.place", 500);
    json_decref(answer);
    TEST_INT(berth(ant, "move a1f4 --by 1ms"), 64);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, " holds its permits already"));
    TEST_INT(berth(ant, "move report --first"), 0);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(berth_out, " (ant:report) is now first of db, 998 were passed: bee:b, bee:c, "));
    TEST_INT(berth(ant, "revoke b1f4"), 0);
    end();
}

/* The list of a queue ends before it, so nothing is estimated. */
static void test_too_many(void) {
    json_t *answer;

    begin(1100);
    answer = berth_json(ant, "explain report");
    AT_INT(answer, "explained.0.pools.0.place", 1101);
    AT_NULL(answer, "explained.0.estimate");
    AT_STRING(answer, "explained.0.no_estimate", "not all claims of these pools are listed");
    json_decref(answer);
    TEST_INT(berth(ant, "explain b44c"), 65);
    TEST_STRING(
        berth_err,
        "berth: no run b44c on this host, nor among the first 1000 claims of a pool; ask its host\n");
    end();
}

/* Returns for how many µs the fastest logged move to the front kept Redis busy. */
static long long least_of_moves(void) {
    _cleanup_reply_ redisReply *log = redis_command(&cluster.redis, "SLOWLOG GET 20000");
    long long least = 0;
    unsigned n = 0;

    for (size_t i = 0; log && i < log->elements; i++) {
        const redisReply *words = log->element[i]->element[3];
        long long usec = log->element[i]->element[2]->integer;

        for (size_t k = 3; k < words->elements; k++)
            if (strcmp(words->element[k]->str, "first") == 0 && (n++ == 0 || usec < least))
                least = usec;
    }
    TEST_INT(n, MOVES);
    return least;
}

static json_t *move(struct client *c, const char *claim, const char *kind, json_int_t by_ms) {
    json_t *params = json_pack("{s:s, s:s}", "claim", claim, "kind", kind);

    if (by_ms != 0)
        (void) json_object_set_new(params, "by_ms", json_integer(by_ms));
    TEST_INT(client_send(c, "io.berth.Move", params, 0), 0);
    return reply_of(c);
}

/* The last of a queue of ten thousand moves to its front, and back. */
static void test_move(void) {
    _cleanup_(client_freep) struct client *c = NULL;
    double empty = empty_script();
    long long least;
    json_t *answer;
    char id[33];

    begin(WAITING - 1);
    snprintf(id, sizeof(id), "%s", event_get(ant->event, "run"));
    client_set_socket(ant->socket);
    TEST_INT(client_connect(&c), 0);
    freeReplyObject(redis_command(&cluster.redis, "SLOWLOG RESET"));
    for (unsigned i = 0; i < MOVES; i++) {
        child_turn(clock_boottime()); /* reads what berthd logs */
        answer = move(c, id, "first", 0);
        AT_INT(answer, "places.0.place", 1);
        AT_INT(answer, "places.0.passed", WAITING - 1);
        json_decref(answer);
        answer = move(c, id, "by", -3650 * INT64_C(86400000));
        AT_INT(answer, "places.0.place", WAITING);
        json_decref(answer);
    }
    least = least_of_moves();
    printf("a move past %d claims: %lld µs, %.0f empty scripts\n", WAITING - 1, least, (double) least / empty);
    CU_ASSERT((double) least <= MOVE_MAX * empty);
    end();
}

static CU_TestInfo tests[] = {{"the last of a thousand", test_last},
                       {"fifty pools", test_pools},
                       {"watched", test_watched},
                       {"joined", test_joined},
                       {"unread", test_unread},
                       {"claims far behind", test_far},
                       {"too many", test_too_many},
                       {"a move past ten thousand", test_move},
                       CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "large-pools", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
