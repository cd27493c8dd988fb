/* SPDX-License-Identifier: MIT */
#include "tests/bench/peer.h"

#include <string.h>

#include "tests/bench/rig.h"

#define PIPELINE 1000

redisContext *peer_connect(struct redis_server *s) {
    _cleanup_reply_ redisReply *reply = redis_command(s, "PING");

    if (!reply || !s->client)
        rig_fail("cannot connect");
    return s->client;
}

static void take(redisContext *c, unsigned replies) {
    for (unsigned i = 0; i < replies; i++) {
        _cleanup_reply_ redisReply *reply = NULL;

        if (redisGetReply(c, (void **) &reply) != REDIS_OK || reply->type == REDIS_REPLY_ERROR)
            rig_fail("a peer's command failed: %s", reply ? reply->str : c->errstr);
    }
}

void peer_run(const struct peer *p, struct redis_server *s, unsigned n, unsigned depth) {
    redisContext *c = peer_connect(s);

    for (unsigned i = 0; i < n; i += depth) {
        unsigned replies = 0, end = i + depth < n ? i + depth : n;

        for (unsigned k = i; k < end; k++)
            replies += p->acquire(c, k);
        take(c, replies);
        replies = 0;
        for (unsigned k = i; k < end; k++)
            replies += p->release(c, k);
        take(c, replies);
    }
}

double peer_cost(const struct peer *p, struct redis_server *s, unsigned n) {
    uint64_t calls;

    rig_reset_stats(s);
    peer_run(p, s, n, 10);
    return rig_server_usec(s, p->command, &calls) / n;
}

/* Scripts are loaded once a server; the name of one is its text's. */
const char *peer_sha(redisContext *c, const char *text) {
    static struct {
        const char *text;
        char sha[41];
    } known[16];
    size_t i = 0;
    _cleanup_reply_ redisReply *reply = NULL;

    for (; i < ELEMENTSOF(known) && known[i].text; i++)
        if (known[i].text == text)
            return known[i].sha;
    if (i == ELEMENTSOF(known))
        rig_fail("too many scripts");
    reply = redisCommand(c, "SCRIPT LOAD %s", text);
    if (!reply || reply->type != REDIS_REPLY_STRING)
        abort();
    known[i].text = text;
    snprintf(known[i].sha, sizeof(known[i].sha), "%s", reply->str);
    return known[i].sha;
}

/* Of a command that must work. */
void peer_check(redisReply *reply) {
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        rig_fail("a command failed: %s", reply ? reply->str : "no answer");
    freeReplyObject(reply);
}

void peer_load(struct redis_server *s, const char *text) {
    peer_check(redisCommand(peer_connect(s), "SCRIPT LOAD %s", text));
}

/* --- the floor --- */

static const char empty[] = "return 1";

static void empty_prepare(struct redis_server *s, size_t holders _unused_) {
    peer_load(s, empty);
}

static unsigned empty_call(redisContext *c, unsigned number _unused_) {
    redisAppendCommand(c, "EVALSHA %s 0", peer_sha(c, empty));
    return 1;
}

const struct peer peer_empty = {"two empty scripts", "evalsha", SIZE_MAX, empty_prepare, empty_call, empty_call};

static unsigned arguments_claim(redisContext *c, unsigned number) {
    redisAppendCommand(c, "EVALSHA %s 2 berth:{bench}:meta berth:{bench}:none 0123456789abcdef0123456789abcdef 1 1760000000000000 "
                          "0123456789abcdef0123456789%06u %s 0 0 busy 1 10000",
                       peer_sha(c, empty), number, "0 4711 0123456789abcdef0123456789abcdef pg-dump");
    return 1;
}

static unsigned arguments_release(redisContext *c, unsigned number) {
    redisAppendCommand(c, "EVALSHA %s 2 berth:{bench}:meta berth:{bench}:none 0123456789abcdef0123456789abcdef 1 1760000000000000 "
                          "0123456789abcdef0123456789%06u", peer_sha(c, empty), number);
    return 1;
}

const struct peer peer_arguments = {"two empty scripts with our arguments", "evalsha", SIZE_MAX, empty_prepare, arguments_claim,
                                    arguments_release};

/* --- the same without a script --- */

#define SESSION "0123456789abcdef0123456789abcdef"

static unsigned commands_acquire(redisContext *c, unsigned number) {
    redisAppendCommand(c, "HMGET y:meta epoch c:" SESSION " grace unsettled replid clock l:busy");
    redisAppendCommand(c, "SCARD y:pool:busy:held");
    redisAppendCommand(c, "TIME");
    redisAppendCommand(c, "HSETNX y:claims 0123456789abcdef0123456789%06u %s", number,
                       "H 1763640000000000 " SESSION " busy:1 1763640000000000 1763640000000000 0 4711 " SESSION " pg-dump ");
    redisAppendCommand(c, "SADD y:pool:busy:held 0123456789abcdef0123456789%06u#1", number);
    redisAppendCommand(c, "SADD y:session:" SESSION ":claims 0123456789abcdef0123456789%06u", number);
    redisAppendCommand(c, "HSET y:meta clock 1763640000000000 c:" SESSION " 1:1763640000000000");
    return 7;
}

static unsigned commands_release(redisContext *c, unsigned number) {
    redisAppendCommand(c, "HMGET y:meta epoch c:" SESSION " clock");
    redisAppendCommand(c, "HGET y:claims 0123456789abcdef0123456789%06u", number);
    redisAppendCommand(c, "SREM y:session:" SESSION ":claims 0123456789abcdef0123456789%06u", number);
    redisAppendCommand(c, "HDEL y:claims 0123456789abcdef0123456789%06u", number);
    redisAppendCommand(c, "SREM y:pool:busy:held 0123456789abcdef0123456789%06u#1", number);
    redisAppendCommand(c, "ZRANGE y:pool:busy:queue 0 0");
    return 6;
}

static void commands_prepare(struct redis_server *s, size_t holders _unused_) {
    peer_check(redis_command(s, "HSET y:meta what %s epoch 1763640000000000 replid " SESSION " clock 1 l:busy 1000000",
                             "a text that makes this a hash table from the beginning, as it is in a namespace"));
}

const struct peer peer_commands = {"the same commands without a script", "*", SIZE_MAX, commands_prepare, commands_acquire,
                                   commands_release};

/* --- "Redis in Action" --- */

#define SEED_LIMIT "1000000"
#define SEED_NOW "1763640000"
#define SEED_EXPIRED "1763639990" /* ten seconds before */

static void seed_prepare(struct redis_server *s, size_t holders) {
    redisContext *c = peer_connect(s);
    unsigned pending = 0;

    take(c, (redisAppendCommand(c, "DEL seed seed:owner seed:counter"), 1));
    for (unsigned i = 0; i < holders; i++) {
        redisAppendCommand(c, "ZADD seed " SEED_NOW " holder-0000-0000-0000-000000%06u", i);
        redisAppendCommand(c, "ZADD seed:owner %u holder-0000-0000-0000-000000%06u", i, i);
        pending += 2;
        if (pending == PIPELINE || i + 1 == holders) {
            take(c, pending);
            pending = 0;
        }
    }
}

static unsigned basic_acquire(redisContext *c, unsigned number) {
    redisAppendCommand(c, "MULTI");
    redisAppendCommand(c, "ZREMRANGEBYSCORE seed -inf " SEED_EXPIRED);
    redisAppendCommand(c, "ZADD seed " SEED_NOW " 01234567-89ab-cdef-0123-456789%06u", number);
    redisAppendCommand(c, "ZRANK seed 01234567-89ab-cdef-0123-456789%06u", number);
    redisAppendCommand(c, "EXEC");
    return 5;
}

static unsigned basic_release(redisContext *c, unsigned number) {
    redisAppendCommand(c, "ZREM seed 01234567-89ab-cdef-0123-456789%06u", number);
    return 1;
}

const struct peer peer_basic = {"seed's basic semaphore (6.3.1)", "*", SIZE_MAX, seed_prepare, basic_acquire, basic_release};

static unsigned fair_acquire(redisContext *c, unsigned number) {
    redisAppendCommand(c, "MULTI");
    redisAppendCommand(c, "ZREMRANGEBYSCORE seed -inf " SEED_EXPIRED);
    redisAppendCommand(c, "ZINTERSTORE seed:owner 2 seed:owner seed WEIGHTS 1 0");
    redisAppendCommand(c, "INCR seed:counter");
    redisAppendCommand(c, "EXEC");
    /* The counter's value would come back first; its size is what costs. */
    redisAppendCommand(c, "MULTI");
    redisAppendCommand(c, "ZADD seed " SEED_NOW " 01234567-89ab-cdef-0123-456789%06u", number);
    redisAppendCommand(c, "ZADD seed:owner %u 01234567-89ab-cdef-0123-456789%06u", 200000 + number, number);
    redisAppendCommand(c, "ZRANK seed:owner 01234567-89ab-cdef-0123-456789%06u", number);
    redisAppendCommand(c, "EXEC");
    return 10;
}

static unsigned fair_release(redisContext *c, unsigned number) {
    redisAppendCommand(c, "MULTI");
    redisAppendCommand(c, "ZREM seed 01234567-89ab-cdef-0123-456789%06u", number);
    redisAppendCommand(c, "ZREM seed:owner 01234567-89ab-cdef-0123-456789%06u", number);
    redisAppendCommand(c, "EXEC");
    return 4;
}

const struct peer peer_fair = {"seed's fair semaphore (6.3.2)", "*", 100000, seed_prepare, fair_acquire, fair_release};

static const char fair_acquire_text[] =
    "redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[2])\n"
    "redis.call('ZINTERSTORE', KEYS[2], 2, KEYS[2], KEYS[1], 'WEIGHTS', 1, 0)\n"
    "local counter = redis.call('INCR', KEYS[3])\n"
    "redis.call('ZADD', KEYS[1], ARGV[1], ARGV[4])\n"
    "redis.call('ZADD', KEYS[2], counter, ARGV[4])\n"
    "if redis.call('ZRANK', KEYS[2], ARGV[4]) < tonumber(ARGV[3]) then return ARGV[4] end\n"
    "redis.call('ZREM', KEYS[1], ARGV[4])\n"
    "redis.call('ZREM', KEYS[2], ARGV[4])\n"
    "return false\n";
static const char fair_release_text[] =
    "redis.call('ZREM', KEYS[2], ARGV[1])\n"
    "return redis.call('ZREM', KEYS[1], ARGV[1])\n";

static void fair_script_prepare(struct redis_server *s, size_t holders) {
    peer_load(s, fair_acquire_text);
    peer_load(s, fair_release_text);
    seed_prepare(s, holders);
}

static unsigned fair_script_acquire(redisContext *c, unsigned number) {
    redisAppendCommand(c, "EVALSHA %s 3 seed seed:owner seed:counter " SEED_NOW " " SEED_EXPIRED " " SEED_LIMIT
                          " 01234567-89ab-cdef-0123-456789%06u", peer_sha(c, fair_acquire_text), number);
    return 1;
}

static unsigned fair_script_release(redisContext *c, unsigned number) {
    redisAppendCommand(c, "EVALSHA %s 2 seed seed:owner 01234567-89ab-cdef-0123-456789%06u", peer_sha(c, fair_release_text), number);
    return 1;
}

const struct peer peer_fair_script = {"seed's fair semaphore as one script", "evalsha", 100000, fair_script_prepare,
                                      fair_script_acquire, fair_script_release};

/* --- a counter --- */

static const char counter_acquire_text[] =
    "local value = redis.call('get', KEYS[1])\n"
    "if value ~= false and tonumber(value) >= tonumber(ARGV[1]) then\n"
    "    redis.call('decrby', KEYS[1], ARGV[1])\n"
    "    return 1\n"
    "end\n"
    "return 0\n";
static const char counter_release_text[] =
    "local value = redis.call('incrby', KEYS[1], ARGV[1])\n"
    "redis.call('publish', KEYS[2], value)\n";

static void counter_prepare(struct redis_server *s, size_t holders _unused_) {
    peer_check(redis_command(s, "SET counter 1000000"));
    peer_load(s, counter_acquire_text);
    peer_load(s, counter_release_text);
}

static unsigned counter_acquire(redisContext *c, unsigned number _unused_) {
    redisAppendCommand(c, "EVALSHA %s 1 counter 1", peer_sha(c, counter_acquire_text));
    return 1;
}

static unsigned counter_release(redisContext *c, unsigned number _unused_) {
    redisAppendCommand(c, "EVALSHA %s 2 counter redisson_sc:{counter} 1", peer_sha(c, counter_release_text));
    return 1;
}

const struct peer peer_counter = {"Redisson's counter semaphore", "evalsha", SIZE_MAX, counter_prepare, counter_acquire,
                                  counter_release};
