/* SPDX-License-Identifier: MIT */

/* store-redis and the overrides of many pools that this host does not declare. */

#include "store/redis/store-redis.h"
#include "tests/harness/redis/redis-bed.h"

#define KEYS 1300 /* more than a host keeps, and than a heartbeat brings beside these */

/* Operators have set or cleared ("-") the limits of this many keys, this many µs ago, and then set that of one more pool. Returns the
 * version of the last override. */
static uint64_t override_many(const char *limit, usec_t ago, const char *pool) {
    static const char script[] =
        "local m = 'berth:{test}:' local now = redis.call('HGET', m .. 'meta', 'clock') local version "
        "local function set(pool, v, limit) "
        "  version = string.format('%d', v) "
        "  redis.call('HSET', m .. 'meta', 'o:' .. pool, version .. '\\t' .. limit .. '\\t0\\tid\\t\\t', 'override_version', version) "
        "  redis.call('ZADD', m .. 'overrides', version, pool) "
        "end "
        "for i = 1, ARGV[1] do set('tenant/k' .. i, now - ARGV[3] + i, ARGV[2]) end "
        "set(ARGV[4], now + ARGV[1] + 1, '1') redis.call('HSET', m .. 'meta', 'clock', version) return version";
    _cleanup_reply_ redisReply *reply =
        redis_command(&redis_bed.server, "EVAL %s 0 %d %s %" PRIu64 " %s", script, KEYS, limit, ago, pool);

    CU_ASSERT_FATAL(reply && reply->type == REDIS_REPLY_STRING);
    return strtoull(reply->str, NULL, 10);
}

static void expect_known(const char *limit, usec_t ago, const char *pool) {
    char event[96];
    struct bed b;

    redis_bed.heartbeat = 50 * USEC_PER_MSEC;
    if (!redis_bed_begin(&b, 1))
        return;
    uint64_t version = override_many(limit, ago, pool);
    BED_UNTIL(&b, limits_override_version(store_redis_of(b.stores[0]), pool) == version);
    (void) snprintf(event, sizeof(event), "limit-changed: the limit of pool %s is 1 by override", pool);
    TEST_INT(bed_count_events(&b, event), 1);
    CU_ASSERT(store_redis_of(b.stores[0])->limits.n_overrides <= 1001);
    bed_done(&b);
}

static void test_own_pool(void) {
    expect_known("1", 0, "db");
}

/* The limits of a thousand keys were cleared days ago. */
static void test_cleared_long_ago(void) {
    expect_known("-", 2 * 24 * 3600 * USEC_PER_SEC, "tenant/new");
}

static CU_TestInfo tests[] = {
    {"of a pool of this host, behind many others", test_own_pool},
    {"behind many that were cleared long ago", test_cleared_long_ago},
    CU_TEST_INFO_NULL,
};

TEST_MAIN(redis_bed_main(argc, argv, suites, NULL), {.pName = "store-redis, overrides", .pTests = tests})
