/* SPDX-License-Identifier: MIT */

/* The scripts alone: sessions, and calls that come twice or too late (R4, R6, R8, R14, R15). */

#include <string.h>

#include "tests/harness/redis/script.h"

static void test_expiry(void) {
    script_begin();
    EXPECT(script_claim("s2", "a", "db 4 100"), "ok $ 0 H *");
    EXPECT(script_claim("s2", "b", "net 1 100"), "ok $ 0 H *");
    EXPECT(script_claim("s2", "w", "db 4 100"), "ok $ 0 W *"); /* the place of a dead session's claim */
    EXPECT(script_claim("s1", "c", "db 4 100"), "ok $ 0 W *");
    EXPECT(script_beat("s1", 1, 0), "ok $ 0 0 3 * 1 *"); /* hello counts as s2's heartbeat, count 2 */
    EXPECT(script_beat("s1", 2, 0), "ok $ 0 0 4 * [] [[s2 s2 *]] [[?* s2 name r-? * * *] [?* s2 name r-? * * *]] []");
    TEST_INT(script_state("c"), 'H');
    TEST_INT(script_state("a"), '-');
    TEST_INT(script_state("w"), '-');
    EXPECT(script_beat("s2", 0, 0), "gone");
    EXPECT(script_claim("s2", "x", "db 1 100"), "gone");
    EXPECT(script_say("release s2 1 $ a"), "gone");
    script_end();
}

/* Bugs of other programs: swarthy/redis-semaphore#28, SGrondin/bottleneck#115. */
static void test_expiry_in_parts(void) {
    int calls = 0;

    script_begin();
    _cleanup_reply_ redisReply *r = redis_command(&script_server, "EVAL %s 0",
        "for i = 1, 9000 do local c = string.format('%032x', i) redis.call('SADD', 'berth:{t}:session:s2:claims', c) "
        "redis.call('HSET', 'berth:{t}:claims', c, 'H 1700000000000000 s2 net:1 1700000000000000 1700000000000000 0 0 r name ') "
        "redis.call('SADD', 'berth:{t}:pool:net:held', c .. '#1') end");
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    TEST_INT(script_used("net"), 9000);
    EXPECT(script_claim("s1", "a", "net 1 100"), "ok $ 0 W *");
    do
        EXPECT(script_beat("s1", calls == 0 ? 2 : 0, 0), "ok $ ? 0 *"); /* an end that was begun continues */
    while (++calls < 200 && script_number(2) > 0);
    CU_ASSERT(calls > 9000 / 128 && calls < 9000 / 128 + 4);
    TEST_INT(script_used("net"), 1);
    TEST_INT(script_state("a"), 'H');
    TEST_INT(redis_number(&script_server, "EXISTS berth:{t}:session:s2:claims"), 0);
    TEST_INT(redis_number(&script_server, "ZCARD berth:{t}:heartbeats"), 1);
    script_end();
}

static void test_connections(void) {
    script_begin();
    EXPECT(script_hello("s1", 2, 2, "db 4 net 2"), "ok $ 0 0 * 1 *");
    EXPECT(script_claim("s1", "a", "db 1 100"), "stale");
    EXPECT(script_beat("s1", 0, 0), "stale");
    EXPECT(script_say("release s1 1 $ a"), "stale");
    EXPECT(script_say("sync s1 1 $ 0 1 1"), "stale");
    EXPECT(script_hello("s1", 1, 2, "db 4 net 2"), "stale 2");
    EXPECT(script_say("bye s1 1"), "stale");
    EXPECT(script_say("heartbeat s1 2 $ 0 0 0 0"), "ok *");
    script_end();
}

/* Numbers of one clock in the reply: until when a claim was held, and since when a limit is in force. */
static void test_clock(void) {
    uint64_t before, token;

    script_begin();
    EXPECT(script_claim("s1", "a", "db 4 100"), "ok $ 0 H *");
    token = script_number(5);
    EXPECT(script_claim("s2", "b", "db 1 100"), "ok $ 0 W *");
    EXPECT(script_claim("s2", "c", "db 2 100"), "ok $ 0 W *");
    before = script_number(4); /* the last number drawn */
    EXPECT(script_say("release s2 1 $ c"), "ok $ 0 * 0"); /* it waited */
    CU_ASSERT(script_number(3) == before);
    EXPECT(script_say("release s1 1 $ a"), "ok $ 0 * *");
    CU_ASSERT(script_number(3) == before && script_number(4) == token);
    EXPECT(script_claim("s1", "b", "db 1 100"), "ok $ 0 H *");
    CU_ASSERT(script_number(5) > before);
    before = script_number(5);
    EXPECT(script_claim("s1", "d", "db 3 100"), "ok $ 0 H *");
    token = script_number(5);
    EXPECT(script_hello("s2", 1, 2, "db 5 net 1"), "ok $ 0 0 * 1 * [] [[db 4 5 0] [net 1 2 0]] [] [] [] *");
    CU_ASSERT(script_number(19) == token);
    EXPECT(script_claim("s1", "e", "db 1 100"), "ok $ 0 W *");
    EXPECT(script_beat("s2", 1, 0), "ok $ 0 0 * [[s1 s1 *]] [[* *] [* *]] [[db 5 *]]"); /* of net, s2's is still the lowest */
    script_end();
}

/* What hosts report about their runs is kept as long as the session; a value of a wrong type does no harm. */
static void test_times(void) {
    script_begin();
    EXPECT(script_say("heartbeat s1 1 $ 0 0 0 0 0 0 a_10_0"), "ok $ *");
    EXPECT(script_say("heartbeat s2 1 $ 0 0 0 0 0 0 b_20_0"), "ok $ *");
    EXPECT(script_say("inspect times s1 none s2"), "ok [] a 10 0  b 20 0");
    EXPECT(script_say("heartbeat s2 1 $ 0 0 0 0 0 0 c_30_0"), "ok $ *");
    EXPECT(script_say("inspect times s2"), "ok [] c 30 0");
    EXPECT(script_say("heartbeat s2 1 $ 0 0 0 0"), "ok $ *");
    EXPECT(script_say("inspect times s2"), "ok [] c 30 0");
    EXPECT(script_beat("s1", 2, 0), "ok $ *"); /* s2 has sent more since */
    EXPECT(script_say("bye s2 1"), "ok *");
    TEST_INT(redis_number(&script_server, "HLEN berth:{t}:times"), 1);
    script_tell("DEL berth:{t}:times");
    script_tell("SET berth:{t}:times x");
    EXPECT(script_say("inspect times s1"), "ok [[berth:{t}:times * WRONGTYPE*]] ");
    EXPECT(script_say("heartbeat s1 1 $ 0 0 0 0 0 0 d_40_0"), "ok $ *");
    EXPECT(script_say("inspect times s1"), "ok [] ");
    EXPECT(script_say("heartbeat s1 1 $ 0 0 0 0 0 0 d_40_0"), "ok $ *");
    EXPECT(script_say("inspect times s1"), "ok [] d 40 0");
    script_end();
    TEST_INT(redis_number(&script_server, "EXISTS berth:{t}:times"), 0);
}

/* In grace no pool is settled. The end of the last session leaves nothing to settle (R16). */
static void test_last_in_grace(void) {
    script_begin();
    script_tell("FLUSHALL");
    EXPECT(script_hello("s1", 2, 2, "db 4 net 2"), "ok *");
    script_learn_new_epoch();
    EXPECT(script_hello("s2", 2, 2, "db 4 net 2"), "ok $ 0 1 *");
    EXPECT(script_say("claim s1 2 $ x 0_0_r_name 0 0 db 1 100"), "ok $ 0 W *");
    EXPECT(script_say("bye s1 2"), "ok *");
    TEST_INT(redis_number(&script_server, "EXISTS berth:{t}:unsettled"), 1);
    EXPECT(script_say("bye s2 2"), "ok *");
    TEST_INT(redis_number(&script_server, "EXISTS berth:{t}:unsettled"), 0);
    TEST_INT(redis_number(&script_server, "HEXISTS berth:{t}:meta unsettled"), 0);
}

static void test_resend(void) {
    char first[200];

    script_begin();
    EXPECT(script_claim("s1", "a", "db 3 100"), "ok $ 0 H *");
    uint64_t token = script_number(5);
    EXPECT(script_claim("s1", "a", "db 3 100"), "ok $ 0 H *");
    CU_ASSERT(script_number(5) == token);
    TEST_INT(script_used("db"), 3);
    (void) snprintf(first, sizeof(first), "%.190s", script_claim("s1", "b", "db 2 100"));
    TEST_STRING(script_claim("s1", "b", "db 2 100"), first);
    TEST_INT(redis_number(&script_server, "ZCARD berth:{t}:pool:db:queue"), 1);
    EXPECT(script_say("release s1 1 $ a"), "ok $ 0 * *");
    EXPECT(script_say("release s1 1 $ a"), "ok $ 0");
    TEST_INT(script_used("db"), 2);
    EXPECT(script_say("release s2 1 $ b"), "ok $ 0"); /* of another session */
    TEST_INT(script_used("db"), 2);
    EXPECT(script_claim("s2", "b", "db 2 100"), "ok $ 0 H *"); /* requested again by the host's next session, which owns it now */
    TEST_INT(script_used("db"), 2);
    TEST_INT(redis_number(&script_server, "SCARD berth:{t}:session:s1:claims"), 0);
    TEST_INT(redis_number(&script_server, "SCARD berth:{t}:session:s2:claims"), 1);
    EXPECT(script_say("release s1 1 $ b"), "ok $ 0");
    TEST_INT(script_used("db"), 2);
    script_end();
}

static void test_hello_refused(void) {
    script_begin();
    EXPECT(script_say("hello x 1 ~ s1 m2 v1 30000000 0 0 $ 0 0 0 ! 0"), "name-taken $ 0 2 30000000 * [] [] []");
    EXPECT(script_say("hello x 1 ~ s1 m1 v1 30000000 0 0 $ 0 0 0 ! 0"), "ok $ *"); /* the same machine */
    EXPECT(script_say("bye x 1"), "ok *");
    EXPECT(script_say("hello y 1 ~ cow m2 v1 6000000 0 0 $ 0 0 0 ! 0"), "lease-differs $ 0 3 30000000 * [] [] []");
    EXPECT(script_say("hello y 1 s2 cow m2 v1 30000000 0 0 $ 0 0 0 ! 0"), "ok $ *"); /* s2 belongs to another machine and continues */
    TEST_INT(redis_number(&script_server, "HEXISTS berth:{t}:sessions s2"), 1);
    EXPECT(script_say("hello s2 2 ~ cow m2 v1 30000000 0 0 $ 0 0 0 ! 0"), "gone"); /* nor can it be continued */
    EXPECT(script_beat("s2", 0, 0), "ok *");
    EXPECT(script_say("bye y 1"), "ok *");
    EXPECT(script_say("hello y 1 s2 cow m1 v1 30000000 0 0 $ 0 0 0 ! 0"), "ok $ *"); /* s2 ends */
    TEST_INT(redis_number(&script_server, "HEXISTS berth:{t}:sessions s2"), 0);
    EXPECT(script_say("bye y 1"), "ok *");
    EXPECT(script_say("hello z 1 ~ cow m2 v1 6000000 0 0 $ 0 3 0 ! 0"), "ok $ *"); /* s1's last heartbeat was 1: dead, and no other reply reports that */
    TEST_INT(redis_number(&script_server, "HGET " META " lease"), 6000000);
    script_tell("HSET " META " schema 2");
    EXPECT(script_hello("s1", 3, 0, ""), "schema 2");
    script_tell("HSET " META " schema 1");
    script_end();
}

/* A refused host may be the only one that expires a session, so the refusal reports this, and the clock
 * (R10). */
static void test_refused_expires(void) {
    uint64_t token;

    script_begin();
    EXPECT(script_claim("s1", "a", "db 3 100"), "ok $ 0 H *");
    token = script_number(5);
    EXPECT(script_claim("s2", "b", "db 2 100"), "ok $ 0 W *");
    EXPECT(script_beat("s2", 0, 0), "ok *");
    EXPECT(script_say("hello x 1 ~ s2 m2 v1 30000000 0 0 $ 0 1 0 ! 0"), "name-taken $ 0 3 30000000 * [[s1 s1 *]] [[a s1 name r-a db:3 * *]] []");
    CU_ASSERT(script_number(5) >= token);
    TEST_INT(script_state("b"), 'H');
    script_end();
}

/* A name belongs to a host while its session uses the name. When the session continues under another name,
 * the old name is free. */
static void test_renamed(void) {
    script_begin();
    EXPECT(script_say("hello s1 2 ~ cow m1 v1 30000000 0 0 $ 0 0 0 ! 0"), "ok $ *");
    TEST_INT(redis_number(&script_server, "HEXISTS " META " h:s1"), 0);
    EXPECT(script_say("hello x 1 ~ s1 m2 v1 30000000 0 0 $ 0 0 0 ! 0"), "ok $ *");
    EXPECT(script_say("hello y 1 ~ cow m2 v1 30000000 0 0 $ 0 0 0 ! 0"), "name-taken *");
    EXPECT(script_say("hello s1 3 ~ s1 m1 v1 30000000 0 0 $ 0 0 0 ! 0"), "name-taken *");
    EXPECT(script_say("bye x 1"), "ok *");
    EXPECT(script_say("hello s1 3 ~ s1 m1 v1 30000000 0 0 $ 0 0 0 ! 0"), "ok $ *");
    script_end();
}

/* Permits granted under a longer lease may be in use until that lease ends. With a shorter lease, other
 * hosts would expire the session earlier (R8). */
static void test_shorter_lease(void) {
    script_begin();
    EXPECT(script_say("bye s2 1"), "ok *");
    EXPECT(script_claim("s1", "a", "db 3 100"), "ok $ 0 H *");
    EXPECT(script_say("hello s1 2 ~ s1 m1 v1 6000000 0 0 $ 0 0 0 ! 0"), "lease-differs $ 0 2 30000000 *");
    EXPECT(script_say("hello s1 2 ~ s1 m1 v1 6000000 0 0 0 0 2 0 ! 0"), "lease-differs *"); /* counts of another epoch are meaningless */
    EXPECT(script_say("hello s1 2 ~ s1 m1 v1 90000000 0 0 $ 0 0 0 ! 0"), "ok $ *");
    EXPECT(script_say("hello s1 3 ~ s1 m1 v1 6000000 0 0 $ 0 2 0 ! 0"), "lease-differs $ 0 3 90000000 *");
    EXPECT(script_say("hello s1 3 ~ s1 m1 v1 6000000 0 0 $ 0 3 0 ! 0"), "ok $ *"); /* it was silent for that lease */
    TEST_INT(redis_number(&script_server, "HGET " META " lease"), 6000000);
    TEST_INT(script_used("db"), 3);
    EXPECT(script_say("release s1 3 $ a"), "ok *");
    EXPECT(script_say("hello s1 4 ~ s1 m1 v1 5000000 0 0 $ 0 0 0 ! 0"), "ok $ *"); /* it holds nothing */
    script_end();
}

#define ONE "11111111111111111111111111111111"
#define TWO "22222222222222222222222222222222"

/* The namespace gets the id of the first host that remembers one, or, after grace, of the first host that proposes one. */
static void test_namespace_id(void) {
    script_begin();
    EXPECT(script_field("meta", "id"), "nothing");
    EXPECT(script_say("hello s1 2 ~ s1 m1 v1 30000000 0 0 $ 0 0 0 f00d,+" ONE " 0"), "ok $ 0 0 * " ONE);
    EXPECT(script_field("meta", "id"), ONE);
    EXPECT(script_say("hello s2 2 ~ s2 m1 v1 30000000 0 0 $ 0 0 0 f00d,+" TWO " 0"), "ok $ 0 0 * " ONE);
    EXPECT(script_say("hello s2 3 ~ s2 m1 v1 30000000 0 0 $ 0 0 0 f00d,=" ONE " 0"), "ok $ 0 0 * " ONE);
    EXPECT(script_say("hello s2 4 ~ s2 m1 v1 30000000 0 0 $ 0 0 2 f00d,=" TWO " 0"), "other " ONE);
    EXPECT(script_say("hello s2 3 ~ s2 m1 v1 30000000 0 0 $ 0 0 0 f00d,=" ONE " 0"), "ok $ 0 0 *"); /* the refused hello changed nothing */
    EXPECT(script_say("hello s2 4 ~ s2 m1 v1 30000000 0 0 $ 0 0 0 f00d,=" ONE "! 0"), "ok $ 0 0 * " ONE);
    EXPECT(script_say("hello s3 1 ~ s3 m1 v1 30000000 0 0 $ 0 0 0 f00d,=" ONE "! 0"), "other " ONE); /* that session is not there */
    EXPECT(script_field("sessions", "s3"), "nothing");
    script_fail_over();
    EXPECT(script_say("hello s1 3 ~ s1 m1 v1 30000000 0 0 $ 0 0 0 f00d,=" ONE " 0"), "ok f00d * " ONE);
    script_tell("HDEL " META " id");
    EXPECT(script_say("hello s1 4 ~ s1 m1 v1 30000000 0 0 f00d 0 0 0 f00e,+" ONE " 0"), "ok f00d 0 1 * "); /* in grace */
    EXPECT(script_field("meta", "id"), "nothing");
    EXPECT(script_say("hello s2 5 ~ s2 m1 v1 30000000 0 0 f00d 0 0 0 f00e,=" TWO " 0"), "ok f00d 0 1 * " TWO);
    script_learn_epoch();
    script_end();
}

/* A session that is being ended does not count, not even for itself when it comes back with another
 * lease. */
static void test_lease_after_end_begun(void) {
    script_begin();
    script_tell("ZADD berth:{t}:heartbeats 0 s1");
    EXPECT(script_say("hello s1 2 ~ s1 m1 v1 6000000 0 0 $ 0 0 0 ! 0"), "lease-differs *");
    EXPECT(script_say("hello s1 2 ~ s1 m1 v1 30000000 0 0 $ 0 0 0 ! 0"), "ok $ *");
    script_end();
}

/* Nobody uses the remaining claims of a session that is being ended. */
static void test_shorter_lease_after_end_begun(void) {
    script_begin();
    EXPECT(script_say("bye s2 1"), "ok *");
    EXPECT(script_claim("s1", "a", "db 3 100"), "ok $ 0 H *");
    script_tell("ZADD berth:{t}:heartbeats 0 s1");
    EXPECT(script_say("hello s1 2 ~ s1 m1 v1 6000000 0 0 0 0 2 0 ! 0"), "ok $ *");
    TEST_INT(redis_number(&script_server, "HGET " META " lease"), 6000000);
    EXPECT(script_say("sync s1 2 $ 0 1 1"), "ok *"); /* its host holds nothing */
    TEST_INT(script_used("db"), 0);
    script_end();
}

/* hello treats a session whose end has begun like one that is gone: within the lease this proves that Redis has
 * lost data. */
static void test_hello_after_end_begun(void) {
    script_begin();
    script_tell("ZADD berth:{t}:heartbeats 0 s1");
    script_tell("HDEL " META " c:s1");
    EXPECT(script_say("hello s1 2 ~ s1 m1 v1 30000000 0 0 $ 0 0 0 ! 0"), "ok $ 0 0 *");
    script_tell("ZADD berth:{t}:heartbeats 0 s1");
    script_tell("HDEL " META " c:s1");
    EXPECT(script_say("hello s1 3 ~ s1 m1 v1 30000000 0 0 $ 1 0 0 ! 0"), "ok * 0 1 *");
    script_learn_new_epoch();
    script_end();
}

static CU_TestInfo tests[] = {
    {"the id of a namespace", test_namespace_id},
    {"expiry", test_expiry},
    {"expiry in parts", test_expiry_in_parts},
    {"connections", test_connections},
    {"clock", test_clock},
    {"times", test_times}, {"the last session ends in grace", test_last_in_grace},
    {"resend", test_resend},
    {"hello refused", test_hello_refused},
    {"refused expires", test_refused_expires},
    {"renamed", test_renamed},
    {"shorter lease", test_shorter_lease},
    {"lease after end begun", test_lease_after_end_begun},
    {"shorter lease after end begun", test_shorter_lease_after_end_begun},
    {"hello after end begun", test_hello_after_end_begun},
    CU_TEST_INFO_NULL,
};

TEST_MAIN(script_main(argc, argv, suites), {.pName = "scripts-session", .pTests = tests})
