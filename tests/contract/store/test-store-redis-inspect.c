/* SPDX-License-Identifier: MIT */

/* Snapshots of pools with many claims are collected in slices, one call after the other, however many callers ask. */

#include <stdlib.h>
#include <string.h>

#include "store/redis/store-redis.h"
#include "tests/harness/redis/redis-bed.h"

#define HELD 250     /* claims, of three permits each */
#define WAITING 230
#define PARKED 120
#define SESSIONS 70  /* other than this host's */
#define KEYS 90
#define ASKERS 50

#define FILL \
    "local function id(kind, i) return string.format('%%s%%031d', kind, i) end " \
    "local function put(i, kind, letter) redis.call('HSET', 'berth:{test}:claims', id(kind, i), letter .. ' 5 ' .. id('5', 1) .. " \
    "' other:9,db:3 7 ' .. 1000 + i .. ' 0 77 r job ') return id(kind, i) end " \
    "for i = 1, %d do local c = put(i, 'a', 'H') for k = 1, 3 do redis.call('SADD', 'berth:{test}:pool:db:held', c .. '#' .. k) end end " \
    "for i = 1, %d do redis.call('ZADD', 'berth:{test}:pool:db:queue', i, put(i, 'b', 'W')) end " \
    "for i = 1, %d do redis.call('ZADD', 'berth:{test}:pool:db:parked', i, put(i, 'c', 'P')) end " \
    "for i = 1, %d do redis.call('HSET', 'berth:{test}:sessions', id('5', i), 'host' .. i .. ' m 1 db=4') " \
    "redis.call('ZADD', 'berth:{test}:heartbeats', 1000000 + i, id('5', i)) end " \
    "for i = 1, %d do redis.call('SADD', 'berth:{test}:pool:t/*:keys', 't/' .. i) redis.call('SADD', 'berth:{test}:pool:t/' .. i .. ':held', 'x') end"

static const struct store_pool pools[] = {{.name = "db", .limit = 1000, .queue_limit = 1000}, {.name = "t/*", .limit = 2, .queue_limit = 1000}};

/* Returns the number of calls that are no heartbeats. One that comes meanwhile may count. */
static long long n_calls(void) {
    _cleanup_reply_ redisReply *stats = redis_command(&redis_bed.server, "INFO commandstats");
    const char *at = stats && stats->str ? strstr(stats->str, "cmdstat_evalsha:calls=") : NULL;

    return (at ? strtoll(at + strlen("cmdstat_evalsha:calls="), NULL, 10) : 0) -
           redis_number(&redis_bed.server, "HGET berth:{test}:meta heartbeat_count");
}

/* Another client writes what many hosts would. */
static bool begin(struct bed *b) {
    char script[2048];

    CU_ASSERT_FATAL(bed_init(b, redis_bed_fixture(1), pools, ELEMENTSOF(pools)));
    if (!bed_start(b))
        return false;
    snprintf(script, sizeof(script), FILL, HELD, WAITING, PARKED, SESSIONS, KEYS);
    _cleanup_reply_ redisReply *reply = redis_command(&redis_bed.server, "EVAL %s 0", script);
    CU_ASSERT(reply && reply->type != REDIS_REPLY_ERROR);
    return true;
}

static void end(struct bed *b) {
    bed_die(b, 0);
    redis_bed_command("FLUSHALL");
    bed_come_back(b, 0);
    CU_ASSERT(bed_start(b));
    bed_done(b);
}

struct answer {
    int r;
    struct snapshot *snapshot;
};

static void on_inspected(int r, struct snapshot *snapshot, void *userdata) {
    struct answer *answer = userdata;

    answer->r = r;
    answer->snapshot = snapshot;
}

static struct snapshot *ask(struct bed *b, const char *name) {
    struct answer answer = {.r = 1};

    TEST_INT(store_inspect(b->stores[0], &(struct store_question) {.pools = &name, .n_pools = name != NULL, .keys = true}, on_inspected, &answer), 0);
    BED_UNTIL(b, answer.r <= 0);
    TEST_INT(answer.r, 0);
    return answer.snapshot;
}

static void check_named(const struct snapshot_pool *db) {
    TEST_INT(db->n_holders, HELD);
    TEST_INT(db->n_queue, WAITING + PARKED);
    for (size_t i = 0; i < db->n_holders; i++) {
        TEST_INT(db->holders[i].permits, 3);
        TEST_STRING(db->holders[i].host, "host1");
        for (size_t k = 0; k < i; k++)
            CU_ASSERT(strcmp(db->holders[i].claim, db->holders[k].claim) != 0);
    }
    for (size_t i = 0; i < db->n_queue; i++) {
        TEST_INT(db->queue[i].position, i < WAITING ? i + 1 : 0);
        TEST_INT(strtol(db->queue[i].claim + 1, NULL, 10), i < WAITING ? i + 1 : i - WAITING + 1);
    }
}

static void test_slices(void) {
    struct bed b;

    if (!begin(&b))
        return;
    _cleanup_(snapshot_freep) struct snapshot *named = ask(&b, "db"), *brief = ask(&b, NULL);
    const struct snapshot_pool *db = snapshot_find_pool(named, "db"), *few = snapshot_find_pool(brief, "db"), *keyed = snapshot_find_pool(brief, "t/*");
    CU_ASSERT_FATAL(db && few && keyed);
    check_named(db);
    TEST_INT(few->used, 3 * HELD);
    TEST_INT(few->waiting, WAITING);
    TEST_INT(few->parked, PARKED);
    TEST_INT(few->n_holders, 100);
    TEST_INT(few->n_queue, 100);
    CU_ASSERT(few->is_cut);
    CU_ASSERT(!db->is_cut);
    TEST_INT(keyed->n_keys, KEYS);
    TEST_INT(keyed->used, KEYS);
    TEST_INT(named->n_sessions, SESSIONS + 1);
    TEST_INT(named->n_malformed, 0);
    end(&b);
}

/* A listed claim without a record is malformed. */
static void test_missing(void) {
    static const char claim[] = "b0000000000000000000000000000001";
    struct bed b;

    if (!begin(&b))
        return;
    CU_ASSERT(redis_number(&redis_bed.server, "HDEL berth:{test}:claims %s", claim) == 1);
    _cleanup_(snapshot_freep) struct snapshot *s = ask(&b, "db");
    TEST_INT(snapshot_find_pool(s, "db")->n_queue, WAITING + PARKED - 1);
    CU_ASSERT_FATAL(s->n_malformed == 1);
    TEST_STRING(s->malformed[0].key, "pool:db:queue");
    TEST_STRING(s->malformed[0].id, claim);
    end(&b);
}

static void ask_more(struct bed *b, struct answer *answers, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        answers[i].r = 1;
        TEST_INT(store_inspect(b->stores[0], &(struct store_question) {.keys = true}, on_inspected, &answers[i]), 0);
    }
}

/* Callers of the same turn of the loop share a snapshot. Callers that come while it is collected share the
 * next. */
static void test_shared(void) {
    struct answer answers[ASKERS] = {{0}};
    struct bed b;

    if (!begin(&b))
        return;
    long long before = n_calls();
    snapshot_free(ask(&b, NULL));
    long long one = n_calls() - before;
    before = n_calls();
    ask_more(&b, answers, 0, ASKERS / 2);
    BED_UNTIL(&b, n_calls() > before + 2);
    ask_more(&b, answers, ASKERS / 2, ASKERS);
    BED_UNTIL(&b, answers[ASKERS - 1].r <= 0);
    CU_ASSERT(n_calls() - before <= 2 * one + 2);
    for (size_t i = 0; i < ASKERS; i++) {
        TEST_INT(answers[i].r, 0);
        CU_ASSERT(answers[i].snapshot == answers[i < ASKERS / 2 ? 0 : ASKERS / 2].snapshot);
    }
    CU_ASSERT(answers[0].snapshot != answers[ASKERS / 2].snapshot);
    for (size_t i = 0; i < ASKERS; i++)
        snapshot_free(answers[i].snapshot);
    end(&b);
}

/* A caller that asks without pause gets its replies late. */
static void test_budget(void) {
    struct bed b;

    if (!begin(&b))
        return;
    usec_t longest = 0, until = clock_boottime() + BED_DEADLINE_USEC;
    for (unsigned i = 0; i < 200 && longest < 200 * USEC_PER_MSEC && clock_boottime() < until; i++) {
        usec_t asked = clock_boottime();

        snapshot_free(ask(&b, "db"));
        if (clock_boottime() - asked > longest)
            longest = clock_boottime() - asked;
    }
    CU_ASSERT(longest >= 200 * USEC_PER_MSEC);
    end(&b);
}

/* The connection breaks between two calls: the caller gets an answer nevertheless. */
static void test_broken(void) {
    struct answer answer = {.r = 1};
    struct proxy proxy = {};
    struct bed b;

    TEST_INT(redis_bed_start_proxy(&proxy), 0);
    if (begin(&b)) {
        bed_settle(&b); /* the reply that is lost is that of the inspection */
        proxy_set(&proxy, PROXY_LOSE_ANSWER, 0, false);
        TEST_INT(store_inspect(b.stores[0], NULL, on_inspected, &answer), 0);
        BED_UNTIL(&b, bed_count_events(&b, "redis-lost: ") > 0);
        proxy_set(&proxy, PROXY_PASS, 0, false);
        BED_UNTIL(&b, answer.r <= 0);
        CU_ASSERT(answer.r == 0 || answer.r == -ENOTCONN);
        CU_ASSERT((answer.r == 0) == (answer.snapshot != NULL));
        snapshot_free(answer.snapshot);
        BED_UNTIL(&b, bed_all_ready(&b));
        end(&b);
    }
    proxy_done(&proxy);
    redis_bed.port = 0;
}

/* Redis lost its data a moment ago, and no heartbeat has noticed it: the snapshot has no empty pools. */
static void test_lost_data(void) {
    struct bed b;

    if (!begin(&b))
        return;
    bed_settle(&b);
    redis_bed_command("FLUSHALL");
    _cleanup_(snapshot_freep) struct snapshot *after = ask(&b, "db");
    const struct snapshot_pool *db = snapshot_find_pool(after, "db");
    CU_ASSERT(after->grace_usec > 0);
    CU_ASSERT_FATAL(db != NULL);
    TEST_INT(db->limit, 1000);
    TEST_INT(after->n_sessions, 1);
    end(&b);
}

static long long n_told(void) {
    return redis_number(&redis_bed.server, "HLEN berth:{test}:times");
}

/* What hosts report about their runs is read only for hosts with claims in the named pools. */
static void test_times(void) {
    const char *name = "db";
    const struct store_question question = {.pools = &name, .n_pools = 1, .times = true};
    struct answer answer = {.r = 1};
    struct bed b;

    if (!begin(&b))
        return;
    _cleanup_(snapshot_freep) struct snapshot *without = ask(&b, "db");
    TEST_INT(without->n_times, 0);
    _cleanup_reply_ redisReply *told = redis_command(&redis_bed.server, "EVAL %s 0",
        "local s = '5' .. string.rep('0', 30) .. '1' redis.call('HSET', 'berth:{test}:meta', 'h:host1', s) "
        "return redis.call('HSET', 'berth:{test}:times', s, 'dump 10')");
    CU_ASSERT_FATAL(told && told->type == REDIS_REPLY_INTEGER);
    TEST_INT(store_inspect(b.stores[0], &question, on_inspected, &answer), 0);
    BED_UNTIL(&b, answer.r <= 0);
    CU_ASSERT_FATAL(answer.r == 0 && answer.snapshot->n_times == 1);
    TEST_STRING(answer.snapshot->times[0].host, "host1");
    CU_ASSERT_PTR_NOT_NULL_FATAL(answer.snapshot->times[0].text);
    TEST_STRING(answer.snapshot->times[0].text, "dump 10");
    snapshot_free(answer.snapshot);
    end(&b);
}

/* A host sends its report once, with a heartbeat, and again on a new connection. */
static void test_told(void) {
    struct bed b;

    if (!begin(&b))
        return;
    store_publish(b.stores[0], strdup("first"));
    store_publish(b.stores[0], strdup("dump 10"));
    BED_UNTIL(&b, n_told() == 1);
    _cleanup_reply_ redisReply *values = redis_command(&redis_bed.server, "HVALS berth:{test}:times");
    TEST_STRING(values->element[0]->str, "dump 10");
    redis_bed_command("DEL berth:{test}:times");
    redis_bed_command("CLIENT KILL TYPE normal SKIPME yes");
    BED_UNTIL(&b, n_told() == 1);
    end(&b);
}

static CU_TestInfo tests[] = {
    {"slices", test_slices},
    {"missing", test_missing},
    {"times", test_times},
    {"told", test_told},
    {"shared", test_shared},
    {"budget", test_budget},
    {"broken connection", test_broken},
    {"lost data", test_lost_data},
    CU_TEST_INFO_NULL,
};

TEST_MAIN(redis_bed_main(argc, argv, suites, NULL), {.pName = "store-redis, snapshots", .pTests = tests})
