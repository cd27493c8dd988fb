/* SPDX-License-Identifier: MIT */

/* The floor under our scripts: a script with the same commands and ready-made arguments, on data of the same
 * shape, which decides and replies nothing. What our script costs above this is Lua; what this costs above
 * an empty script is Redis. No command can be left out: a claim, a release and a heartbeat read one HMGET
 * each; counters are R5, INFO is R10, TIME is R7; each of the others changes a key of its own. */

#include "tests/bench/peer.h"
#include "tests/bench/rig.h"

#define SESSION "0123456789abcdef0123456789abcdef"
#define CLAIM "0123456789abcdef0123456789%06u"
#define NUMBER "1763640000000000"
#define NEXT "fedcba9876543210fedcba9876%06u"
#define RECORD "H " NUMBER " " SESSION " busy:1 " NUMBER " " NUMBER " 0 4711 " SESSION " pg-dump "

static const char claim_text[] = "local call, meta, held, c = redis.call, KEYS[1], KEYS[3], ARGV[2]\n"
                                 "call('HMGET', meta, 'epoch', ARGV[1], 'grace', 'unsettled', 'replid', 'clock', 'l:busy')\n"
                                 "call('SCARD', held)\n"
                                 "call('INFO', 'replication')\n"
                                 "call('TIME')\n"
                                 "call('HSETNX', KEYS[4], c, ARGV[3])\n"
                                 "call('SADD', held, c)\n"
                                 "call('SADD', KEYS[5], c)\n"
                                 "call('HSET', meta, 'clock', ARGV[4], ARGV[1], ARGV[4])\n";

static const char release_text[] = "local call, c = redis.call, ARGV[2]\n"
                                   "call('HMGET', KEYS[1], 'epoch', ARGV[1], 'clock')\n"
                                   "call('HGET', KEYS[4], c)\n"
                                   "call('SREM', KEYS[5], c)\n"
                                   "call('HDEL', KEYS[4], c)\n"
                                   "call('SREM', KEYS[3], c)\n"
                                   "call('ZRANGE', KEYS[2], '0', '0')\n";

/* Releases, and grants the next claim. */
static const char grant_text[] = "local call, meta, held, claims, c, next = redis.call, KEYS[1], KEYS[3], KEYS[4], ARGV[2], ARGV[5]\n"
                                 "call('HMGET', meta, 'epoch', ARGV[1], 'clock')\n"
                                 "call('HGET', claims, c)\n"
                                 "call('SREM', KEYS[5], c)\n"
                                 "call('HDEL', claims, c)\n"
                                 "call('SREM', held, c)\n"
                                 "call('ZRANGE', KEYS[2], '0', '0')\n"
                                 "call('HGET', claims, next)\n"
                                 "call('HMGET', meta, 'grace', 'unsettled', 'l:busy', 'replid', ARGV[1])\n"
                                 "call('SCARD', held)\n"
                                 "call('INFO', 'replication')\n"
                                 "call('TIME')\n"
                                 "call('ZREM', KEYS[2], next)\n"
                                 "call('SADD', held, next)\n"
                                 "call('HSET', claims, next, ARGV[3])\n"
                                 "call('HSET', meta, 'clock', ARGV[4], ARGV[1], ARGV[4])\n"
                                 "call('SPUBLISH', KEYS[5], ARGV[3])\n";

static const char beat_text[] = "local call, meta, beats = redis.call, KEYS[1], KEYS[2]\n"
                                "call('HMGET', meta, 'epoch', ARGV[1], 'grace', 'unsettled', 'override_version', 'override_expiry', 'clock')\n"
                                "call('HINCRBY', meta, 'heartbeat_count', '1')\n"
                                "call('ZADD', beats, ARGV[3], ARGV[2])\n"
                                "call('SCARD', KEYS[3])\n"
                                "call('ZCOUNT', beats, '0', ARGV[4])\n";

static redisContext *listener; /* subscriber of the pushes; it reads none */

static void prepare(struct redis_server *s, size_t holders _unused_) {
    if (listener)
        redisFree(listener);
    listener = redisConnectUnix(s->socket);
    if (!listener || listener->err)
        rig_fail("cannot connect");
    peer_check(redisCommand(listener, "SSUBSCRIBE z:of"));
    peer_check(redis_command(s, "HSET z:meta about %s epoch " NUMBER " replid " SESSION " clock 1 l:busy 1000000 c:" SESSION " x",
                             "a text that makes this a hash table from the beginning, as it is in a namespace"));
    peer_check(redis_command(s, "ZADD z:queue 1 w"));
    peer_check(redis_command(s, "SADD z:held x"));
    peer_load(s, claim_text);
    peer_load(s, release_text);
    peer_load(s, grant_text);
    peer_load(s, beat_text);
}

static unsigned claim(redisContext *c, unsigned number) {
    redisAppendCommand(c, "EVALSHA %s 5 z:meta z:none z:held z:claims z:of c:" SESSION " " CLAIM " %s " NUMBER, peer_sha(c, claim_text),
                       number, RECORD);
    return 1;
}

static unsigned release(redisContext *c, unsigned number) {
    redisAppendCommand(c, "EVALSHA %s 5 z:meta z:none z:held z:claims z:of c:" SESSION " " CLAIM, peer_sha(c, release_text), number);
    return 1;
}

static unsigned grant(redisContext *c, unsigned number) {
    redisAppendCommand(c, "EVALSHA %s 5 z:meta z:queue z:held z:claims z:of c:" SESSION " " CLAIM " %s " NUMBER " " NEXT,
                       peer_sha(c, grant_text), number, RECORD, number);
    return 1;
}

/* Not counted: restores holder and waiter. */
static unsigned grant_back(redisContext *c, unsigned number) {
    redisAppendCommand(c, "SADD z:of " CLAIM, number);
    redisAppendCommand(c, "SADD z:held " CLAIM, number);
    redisAppendCommand(c, "SREM z:held " NEXT, number);
    redisAppendCommand(c, "ZADD z:queue %u " NEXT, number, number);
    redisAppendCommand(c, "HSET z:claims " CLAIM " %s " NEXT " %s", number, RECORD, number, RECORD);
    return 5;
}

static unsigned beat(redisContext *c, unsigned number) {
    redisAppendCommand(c, "EVALSHA %s 3 z:meta z:heartbeats z:of c:" SESSION " " SESSION " %u 0", peer_sha(c, beat_text), 1000000 + number);
    return 1;
}

static unsigned nothing(redisContext *c _unused_, unsigned number _unused_) {
    return 0;
}

const struct peer peer_floor = {"floor: scripts with only the commands of a claim and its release", "evalsha", SIZE_MAX, prepare, claim,
                                release};
const struct peer peer_floor_grant = {"floor: a script with only the commands of a release that grants", "evalsha", SIZE_MAX, prepare, grant,
                                      grant_back};
const struct peer peer_floor_beat = {"floor: a script with only the commands of a heartbeat", "evalsha", SIZE_MAX, prepare, beat, nothing};
