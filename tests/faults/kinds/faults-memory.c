/* SPDX-License-Identifier: MIT */

/* Redis is restored twice from one copy, or loads older data without a restart. And a long queue. */

#include <stdio.h>
#include <string.h>

#include "cli/audit/check.h"
#include "store/redis/client/script.h"
#include "tests/faults/fault.h"
#include "tests/harness/test.h"

#define META "berth:{test}:meta"
#define NONE "berth:{test}:none"

static void save(struct bed *b, struct injection *i) {
    _cleanup_reply_ redisReply *reply = redis_command(b->master, "SAVE");

    i->n_hit += reply && reply->type == REDIS_REPLY_STATUS;
}

/* --- restored --- */

/* Starts a host with a new name and its own connection to Redis. Its berthd ends in order, so its
 * successor has no state either. */
static struct host *start_newcomer(struct bed *b) {
    static struct host *newcomer;
    static char called[32];
    static unsigned n;

    if (!newcomer)
        newcomer = host_add("new", " ");
    snprintf(called, sizeof(called), "new-%u", n++);
    newcomer->called = called;
    newcomer->redis = b->master->socket;
    host_set_config(newcomer, "%s", load_pools(0));
    host_start(newcomer);
    host_await(newcomer, "redis-connected", " ");
    return newcomer;
}

static void lead_all(struct bed *b, enum proxy_mode mode) {
    for (size_t h = 0; h < LOAD_HOSTS; h++)
        proxy_set(&b->proxies[h], mode, 0, false);
}

/* The new host sends the first hello. Then the grace period passes, and the load continues for a while. */
static void restore(struct bed *b) {
    struct host *newcomer;

    lead_all(b, PROXY_CUT);
    redis_server_kill(b->master);
    if (redis_server_resume(b->master) < 0)
        CU_FAIL("redis-server does not start again");
    newcomer = start_newcomer(b);
    lead_all(b, PROXY_PASS);
    load_turn(&b->load, clock_boottime() + LOAD_LEASE + USEC_PER_SEC);
    host_stop(newcomer);
}

static void restore_twice(struct bed *b, struct injection *i) {
    restore(b);
    restore(b);
    i->n_hit++;
}

/* --- gone back --- */

/* Returns the heartbeat count of the copy, before any other call; -1: no reply. */
static long long go_back(struct bed *b) {
    long long count = -1;

    if (redis_number(b->master, "EXISTS " META) != 1) /* connects if need be */
        return -1;
    (void) redisAppendCommand(b->master->client, "DEBUG RELOAD NOSAVE");
    (void) redisAppendCommand(b->master->client, "HGET " META " heartbeat_count");
    for (size_t k = 0; k < 2; k++) {
        _cleanup_reply_ redisReply *reply = NULL;

        if (redisGetReply(b->master->client, (void **) &reply) != REDIS_OK || reply->type == REDIS_REPLY_ERROR)
            return -1;
        if (k == 1 && reply->type == REDIS_REPLY_STRING)
            count = strtoll(reply->str, NULL, 10);
    }
    return count;
}

/* A host learns of the loss by the reply to a heartbeat or hello. Until all hosts have had one, a limit
 * may be exceeded (R1, and "what no rule covers" in doc/protocol.md). After that the limit holds again.
 * The journals show the same excess. */
static void forget_and_excuse(struct bed *b, struct injection *i) {
    usec_t from = clock_boottime(), until;
    long long count = go_back(b), clock = 0;

    cluster.broken |= 1U << AUDIT_ABOVE_LIMIT | 1U << AUDIT_TOKEN_TWICE; /* twice: if the clock has a lead (R7) */
    if (count < 0) {
        CU_FAIL("Redis's memory does not go back");
        return;
    }
    if (draw_between(&i->random, 0, 1) == 0) { /* half of the time, connections are cut */
        _cleanup_reply_ redisReply *normal = redis_command(b->master, "CLIENT KILL TYPE normal SKIPME yes");
        _cleanup_reply_ redisReply *pubsub = redis_command(b->master, "CLIENT KILL TYPE pubsub");

        (void) normal;
        (void) pubsub;
    }
    for (until = from + 10 * USEC_PER_SEC; clock <= 0 && clock_boottime() < until; load_turn(&b->load, clock_boottime() + 5 * USEC_PER_MSEC))
        clock = redis_number(b->master, "EVAL %s 2 %s %s %lld %d",
                             "return redis.call('ZCOUNT', KEYS[1], '(' .. ARGV[1], '+inf') >= tonumber(ARGV[2]) and "
                             "redis.call('HGET', KEYS[2], 'clock') or '0'",
                             "berth:{test}:heartbeats", META, count, LOAD_HOSTS);
    if (clock <= 0)
        CU_FAIL("a host had no reply to a heartbeat");
    load_excuse(&b->load, from, (uint64_t) clock);
    i->n_hit++;
}

/* --- a long queue --- */

#define CROWD "crowd" /* a session, and the name of its host */
#define CROWD_SIZE 10000
#define CROWD_CALL 32 /* claims */

static redisReply *call_script(struct bed *b, enum redis_script script, const char *words) {
    char copy[512], *rest = copy, *word;
    const char *argv[40] = {"EVALSHA", redis_script_sha(script), "2", META, NONE, CROWD};
    int argc = 6;

    redis_number(b->master, "EXISTS " META); /* connects if need be */
    snprintf(copy, sizeof(copy), "%s", words);
    while ((word = strsep(&rest, " ")) && argc < (int) ELEMENTSOF(argv))
        argv[argc++] = strcmp(word, "~") == 0 ? "" : word;
    return b->master->client ? redisCommandArgv(b->master->client, argc, argv, NULL) : NULL;
}

static bool is_ok(const redisReply *r) {
    return r && r->type == REDIS_REPLY_ARRAY && r->elements > 0 && r->element[0]->str && strcmp(r->element[0]->str, "ok") == 0;
}

/* Sends one call after the other, so that Redis serves other clients in between. */
static void claim_for_crowd(struct bed *b, const char *epoch) {
    char ids[CROWD_CALL][16];
    const char *argv[11 + 2 * CROWD_CALL] = {"EVALSHA", redis_script_sha(REDIS_SCRIPT_CLAIMS), "2",  META,    NONE, CROWD, "1",
                                             epoch,     "1", "db",                                  "1000000"};

    for (unsigned n = 0; n < CROWD_SIZE;) {
        _cleanup_reply_ redisReply *reply = NULL;
        int argc = 11;

        for (size_t k = 0; k < CROWD_CALL && n < CROWD_SIZE; k++, n++) {
            snprintf(ids[k], sizeof(ids[k]), "c%u", n);
            argv[argc++] = ids[k];
            argv[argc++] = "0 7 run name";
        }
        reply = redisCommandArgv(b->master->client, argc, argv, NULL);
        if (!reply)
            return;
    }
}

/* Ten thousand claims wait for a pool, and then it is paused. Claims on another pool are not delayed. */
static void crowd_and_pause(struct bed *b, struct injection *i) {
    _cleanup_reply_ redisReply *epoch = redis_command(b->master, "HGET " META " epoch"), *hello = NULL, *sync = NULL;
    char words[512];

    snprintf(words, sizeof(words), "1 ~ " CROWD " crowd-machine 1 %" PRIu64 " 0 0 0 0 0 0 unused 0", LOAD_LEASE);
    hello = call_script(b, REDIS_SCRIPT_HELLO, words);
    snprintf(words, sizeof(words), "1 %s 1 0 1 1", epoch && epoch->str ? epoch->str : "");
    sync = call_script(b, REDIS_SCRIPT_SYNC, words);
    if (!is_ok(hello) || !is_ok(sync)) {
        CU_FAIL("Redis refuses hello or sync");
        return;
    }
    claim_for_crowd(b, epoch->str);
    i->n_hit += redis_number(b->master, "ZCARD berth:{test}:pool:db:queue") >= CROWD_SIZE - LOAD_DB;
    i->n_hit += load_set_limit(&b->load, "db", 0);
}

/* The claims wait until the pool is resumed, and leave. */
static void resume_and_leave(struct bed *b, struct injection *i) {
    long long more = 1;

    restore_limit(b, i);
    for (unsigned calls = 0; more > 0 && calls < CROWD_SIZE; calls++) {
        _cleanup_reply_ redisReply *bye = call_script(b, REDIS_SCRIPT_BYE, "99");

        more = is_ok(bye) && bye->elements > 2 ? bye->element[2]->integer : 0;
    }
}

const struct fault faults_memory[] = {
    {"restored-twice", "Redis restored twice from one copy, each time a newcomer sends the first hello", FAULT_REDIS | FAULT_PROXY | FAULT_ALONE, 3000,
     save, restore_twice, NULL},
    {"memory-back", "the memory of Redis a second back, R1 excused until each host had a heartbeat answered", FAULT_REDIS | FAULT_ALONE, 1000,
     save, forget_and_excuse, NULL},
    {"paused-long-queue", "a pool paused and resumed that 10 000 wait for", FAULT_ALONE, 1500, crowd_and_pause, resume_and_leave, NULL},
    {0},
};
