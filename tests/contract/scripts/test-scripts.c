/* SPDX-License-Identifier: MIT */

/* The scripts alone: order and limits (R2, R3, R6, R14, R15). */

#include <string.h>

#include "tests/harness/redis/script.h"

/* --- order --- */

static void test_order(void) {
    script_begin();
    EXPECT(script_claim("s1", "a", "db 3 100"), "ok $ 0 H * * 0 0 *");
    EXPECT(script_claim("s2", "b", "db 2 100"), "ok $ 0 W * 0 0 1 *");
    EXPECT(script_claim("s1", "c", "db 1 100"), "ok $ 0 W * 0 * 2 *"); /* one permit is free, but an older claim waits */
    TEST_INT(script_used("db"), 3);
    EXPECT(script_say("release s1 1 $ a"), "ok $ 0 * *");
    TEST_INT(script_state("b"), 'H');
    TEST_INT(script_state("c"), 'H');
    TEST_INT(script_used("db"), 3);
    script_end();
}

static void test_head_start(void) {
    script_begin();
    EXPECT(script_claim("s1", "a", "db 4 100"), "ok $ 0 H *");
    EXPECT(script_claim("s2", "b", "db 4 100"), "ok $ 0 W * 1 *");
    EXPECT(script_say("claim s1 1 $ c 60000000_0_r_name 0 0 db 1 100"), "ok $ 0 W * 0 * 1 *");
    EXPECT(script_say("claim s1 1 $ d 1000_0_r_name 0 0 db 1 100"), "ok $ 0 W * 0 * ? *");
    EXPECT(script_say("release s1 1 $ a"), "ok $ 0 * *");
    TEST_INT(script_state("c"), 'H');
    TEST_INT(script_state("b"), 'W');
    EXPECT(script_say("claim s1 1 $ e 90000000_0_r_name 0 0 db 1 100"), "ok $ 0 H *"); /* first of all, and its permits are free */
    script_end();
}

static void test_two_pools(void) {
    script_begin();
    EXPECT(script_claim("s1", "a", "net 2 100"), "ok $ 0 H *");
    EXPECT(script_claim("s2", "b", "db 2 100 net 1 100"), "ok $ 0 W *");
    TEST_INT(script_used("db"), 0); /* all or none */
    EXPECT(script_claim("s1", "c", "db 1 100"), "ok $ 0 W *");
    EXPECT(script_claim("s1", "d", "net 1 100 db 4 100"), "ok $ 0 W *");
    EXPECT(script_say("release s1 1 $ a"), "ok $ 0 * *");
    TEST_INT(script_state("b"), 'H');
    TEST_INT(script_state("c"), 'H'); /* only b was in front of it */
    TEST_INT(script_state("d"), 'W');
    EXPECT(script_say("release s2 1 $ b"), "ok $ 0 * *");
    EXPECT(script_say("release s1 1 $ c"), "ok $ 0 * *");
    TEST_INT(script_state("d"), 'H');
    script_end();
}

/* A claim that is first in one queue, with all its permits free, waits while an older claim waits in another
 * of its queues. */
static void test_first_everywhere(void) {
    script_begin();
    EXPECT(script_claim("s1", "a", "db 3 100"), "ok $ 0 H *");
    EXPECT(script_claim("s1", "n", "net 2 100"), "ok $ 0 H *");
    EXPECT(script_claim("s2", "y", "db 2 100"), "ok $ 0 W *");
    EXPECT(script_claim("s1", "x", "net 1 100 db 1 100"), "ok $ 0 W *");
    EXPECT(script_say("release s1 1 $ n"), "ok $ 0 * *");
    TEST_INT(script_state("x"), 'W');
    EXPECT(script_say("release s1 1 $ a"), "ok $ 0 * *");
    TEST_INT(script_state("y"), 'H');
    TEST_INT(script_state("x"), 'H');
    script_end();
}

static void test_withdraw_frees_queue(void) {
    script_begin();
    EXPECT(script_claim("s1", "a", "db 3 100"), "ok $ 0 H *");
    EXPECT(script_claim("s2", "b", "db 2 100 net 1 100"), "ok $ 0 W *");
    EXPECT(script_claim("s1", "c", "db 1 100"), "ok $ 0 W *");
    EXPECT(script_claim("s1", "d", "net 1 100"), "ok $ 0 W *");
    EXPECT(script_say("release s2 1 $ b"), "ok $ 0 * *");
    TEST_INT(script_state("c"), 'H');
    TEST_INT(script_state("d"), 'H');
    script_end();
}

static void test_refusals(void) {
    script_begin();
    EXPECT(script_claim("s1", "a", "db 4 100"), "ok $ 0 H *");
    EXPECT(script_say("claim s1 1 $ n 0_0_r_name 0 1 db 1 100"), "refused $ 0 busy db");
    EXPECT(script_claim("s1", "b", "db 1 1"), "ok $ 0 W *");
    EXPECT(script_claim("s1", "c", "net 1 100 db 1 1"), "refused $ 0 queue-full db");
    TEST_INT(script_state("c"), '-');
    EXPECT(script_say("claim s1 1 $ t 0_0_r_name 1700000000000001 0 db 1 1"), "ok $ 0 W * 1 *"); /* the ticket shows that it had a place */
    script_end();
}

/* --- limits --- */

static void test_lowest_limit(void) {
    script_begin();
    EXPECT(script_claim("s1", "a", "db 3 100"), "ok $ 0 H *");
    EXPECT(script_hello("s2", 1, 2, "db 2 net 2"), "ok $ 0 0 * 1 * [] [[db 2 4 0]] [] [] [] *");
    EXPECT(script_claim("s1", "b", "db 2 100"), "ok $ 0 W *");
    EXPECT(script_claim("s1", "c", "db 3 100"), "ok $ 0 W * 0 * 2 *"); /* above the limit, but it blocks no other claim */
    EXPECT(script_say("release s1 1 $ a"), "ok $ 0 * *");
    TEST_INT(script_state("b"), 'H');
    EXPECT(script_claim("s1", "e", "db 1 100"), "ok $ 0 W *"); /* b's session holds one of two */
    EXPECT(script_say("release s1 1 $ b"), "ok $ 0 * *");
    TEST_INT(script_state("c"), 'P');
    TEST_INT(script_state("e"), 'H');
    EXPECT(script_hello("s2", 1, 2, "db 5 net 2"), "ok $ 0 0 * 1 * [] [[db 4 5 0]] [] [] [] *");
    TEST_INT(script_state("c"), 'H'); /* requeued, and 1 of 4 is used */
    EXPECT(script_say("bye s1 1"), "ok $ 0 [[db 5 *]]"); /* it declared the lowest limit; both declare the same one of net */
    EXPECT(script_claim("s2", "d", "db 5 100"), "ok $ 0 H *");
    script_end();
}

/* A pool has scope host on one host and cluster on the other. hello reports this to both sessions, in either
 * order, until the scopes agree (R14). */
static void test_scopes_differ(void) {
    script_begin();
    EXPECT(script_hello("s2", 1, 2, "db host net 2"), "ok $ 0 0 * 1 * [] [[db 4 4 1]] [] [] [] *");
    EXPECT(script_hello("s1", 1, 2, "db 4 net 2"), "ok $ 0 0 * 1 * [] [[db 4 4 1]] [] [] [] *");
    EXPECT(script_say("inspect pool db"), "ok [] 4 4 4 [] 0 0 0 1 s1");
    EXPECT(script_hello("s2", 1, 2, "db 4 net 2"), "ok $ 0 0 * 1 * [] [] [] [] [] *");
    EXPECT(script_hello("s2", 1, 2, "db host net 2"), "ok $ 0 0 * 1 * [] [[db 4 4 1]] [] [] [] *");
    EXPECT(script_say("bye s2 1"), "ok $ 0 *");
    EXPECT(script_hello("s1", 1, 2, "db 4 net 2"), "ok $ 0 0 * 1 * [] [] [] [] [] *");
    script_end();
}

/* A pause never blocks other pools, and all parked claims are requeued before the first grant. */
static void test_park(void) {
    script_begin();
    EXPECT(script_claim("s1", "a", "db 4 100"), "ok $ 0 H *");
    EXPECT(script_claim("s1", "b", "db 1 100 net 2 100"), "ok $ 0 W *");
    EXPECT(script_claim("s1", "c", "net 2 100"), "ok $ 0 W *");
    EXPECT(script_say("override s1 1 $ db 0 id1 pause 0 0 why"), "ok $ 0 *");
    TEST_INT(script_state("b"), 'P');
    TEST_INT(script_state("c"), 'H');
    EXPECT(script_claim("s1", "d", "db 1 100"), "ok $ 0 W * 1 *"); /* in this pool no claim can be granted */
    EXPECT(script_say("release s1 1 $ a"), "ok $ 0 * *");
    EXPECT(script_say("release s1 1 $ c"), "ok $ 0 * *");
    TEST_INT(script_used("db") + script_used("net"), 0);
    EXPECT(script_say("override s1 1 $ db 0 id2 resume 0 0 ~"), "conflict $ *");
    EXPECT(script_sayf("override s1 1 $ db %" PRIu64 " id2 resume 0 0 ~", script_number(2)), "ok $ 0 *");
    TEST_INT(script_state("b"), 'H');
    TEST_INT(script_state("d"), 'H');
    script_end();
}

static void test_park_order(void) {
    script_begin();
    EXPECT(script_claim("s1", "a", "db 4 100"), "ok $ 0 H *");
    EXPECT(script_claim("s1", "b", "db 3 100"), "ok $ 0 W *"); /* older */
    EXPECT(script_claim("s1", "c", "db 2 100"), "ok $ 0 W *");
    EXPECT(script_say("override s1 1 $ db 0 id1 set 1 0 ~"), "ok $ 0 *");
    EXPECT(script_say("release s1 1 $ a"), "ok $ 0 * *");
    EXPECT(script_say("override s1 1 $ db 0 id2 clear 0 0 ~"), "conflict $ *");
    EXPECT(script_sayf("override s1 1 $ db %" PRIu64 " id2 clear 0 0 ~", script_number(2)), "ok $ 0 *");
    TEST_INT(script_state("b"), 'H'); /* although requeuing c first would have granted c */
    TEST_INT(script_state("c"), 'W');
    script_end();
}

static void settle_all(const char *session) {
    while (strncmp(script_beat(session, 0, 0) + strlen("ok ") + strlen(script_epoch), " 1", 2) == 0)
        ;
}

/* A pause and its end cost the same for any number of waiting claims, except for the grants. */
static void test_pause_of_many(void) {
    script_begin();
    for (int i = 0; i < 300; i++)
        EXPECT(script_sayf("claim s1 1 $ p%03d 0_0_r_name 0 0 db 1 1000", i), i < 4 ? "ok $ 0 H *" : "ok $ 0 W *");
    EXPECT(script_say("override s1 1 $ db 0 id1 set 0 0 ~"), "ok $ 0 *");
    uint64_t version = script_number(3);
    TEST_INT(redis_number(&script_server, "ZCARD berth:{t}:pool:db:queue"), 296);
    TEST_INT(redis_number(&script_server, "HEXISTS " META " unsettled"), 0);
    EXPECT(script_claim("s2", "n", "net 2 100"), "ok $ 0 H *");
    for (int i = 0; i < 4; i++)
        (void) script_sayf("release s1 1 $ p%03d", i);
    TEST_INT(script_used("db"), 0);
    EXPECT(script_sayf("override s1 1 $ db %" PRIu64 " id2 clear 0 0 ~", version), "ok $ 0 *");
    TEST_INT(script_used("db"), 4);
    TEST_INT(script_state("p004"), 'H');
    TEST_INT(script_state("p007"), 'H');
    for (int i = 4; i < 300; i++) /* the bye would grant to those still waiting, 128 a call */
        (void) script_sayf("release s1 1 $ p%03d", i);
    script_end();
}

/* Claims that want both pools block net: a call parks 128 of them, later calls the rest. They are requeued
 * in the same parts, all before db grants anything. Claims that want another pool alone are granted
 * meanwhile. */
static void test_many_parked(void) {
    script_begin();
    EXPECT(script_hello("s1", 1, 3, "db 4 net 2 disk 1"), "ok *");
    EXPECT(script_claim("s1", "a", "db 4 100"), "ok $ 0 H *");
    for (int i = 0; i < 300; i++)
        EXPECT(script_sayf("claim s1 1 $ p%03d 0_0_r_name 0 0 db 1 1000 net 1 1000", i), "ok $ 0 W *");
    EXPECT(script_claim("s2", "n", "net 1 1000"), "ok $ 0 W *");
    EXPECT(script_say("override s1 1 $ db 0 id1 set 0 0 ~"), "ok $ 1 *");
    uint64_t version = script_number(3);
    EXPECT(script_claim("s1", "x", "disk 1 100"), "ok $ 0 H *");
    settle_all("s1");
    TEST_INT(script_state("n"), 'H');
    TEST_INT(redis_number(&script_server, "ZCARD berth:{t}:pool:db:parked"), 300);
    TEST_INT(redis_number(&script_server, "EXISTS berth:{t}:pool:db:queue berth:{t}:pool:net:queue"), 0);
    EXPECT(script_say("release s1 1 $ a"), "ok $ 0 * *");
    EXPECT(script_sayf("override s1 1 $ db %" PRIu64 " id2 clear 0 0 ~", version), "ok $ 1 *");
    EXPECT(script_field("meta", "l:db"), "4!");
    EXPECT(script_claim("s2", "late", "db 1 1000"), "ok $ ? W *"); /* an older claim may not be requeued yet */
    EXPECT(script_say("claims s2 1 $ db 1000 late1 0_7_r_name late2 0_7_r_name"), "ok $ ? W * ok $ ? W *");
    EXPECT(script_say("release s1 1 $ x"), "ok $ 0 * *");
    EXPECT(script_claim("s2", "y", "disk 1 100"), "ok $ 0 H *");
    settle_all("s1");
    TEST_INT(script_used("net"), 2);
    TEST_INT(script_state("p000"), 'H');
    EXPECT(script_field("meta", "l:db"), "4+");
    for (int i = 0; i < 300; i++)
        (void) script_sayf("release s1 1 $ p%03d", i);
    script_end();
}

/* One call raises the limits of two pools, and reaches its bound in the first. No claim overtakes the parked
 * claims of the second. */
static void test_two_pools_return(void) {
    script_begin();
    EXPECT(script_hello("s1", 1, 2, "db 4 net 4"), "ok *");
    EXPECT(script_hello("s2", 1, 2, "db 1 net 1"), "ok *");
    EXPECT(script_claim("s1", "holds-db", "db 1 1000"), "ok $ 0 H *");
    EXPECT(script_claim("s1", "holds-net", "net 1 1000"), "ok $ 0 H *");
    for (int i = 0; i < 150; i++) {
        EXPECT(script_sayf("claim s1 1 $ p%03d 0_0_r_name 0 0 db 2 1000", i), "ok $ ? P *");
        EXPECT(script_sayf("claim s1 1 $ q%03d 0_0_r_name 0 0 net 2 1000", i), "ok $ ? P *");
    }
    EXPECT(script_claim("s1", "late-db", "db 1 1000"), "ok $ 0 W *");
    EXPECT(script_claim("s1", "late-net", "net 1 1000"), "ok $ 0 W *");
    EXPECT(script_say("bye s2 1"), "ok $ *");
    TEST_INT(script_state("late-db"), 'W');
    TEST_INT(script_state("late-net"), 'W');
    settle_all("s1");
    TEST_INT(script_state("p000"), 'H');
    TEST_INT(script_state("q000"), 'H');
    TEST_INT(script_state("late-db"), 'W');
    TEST_INT(script_state("late-net"), 'W');
    TEST_INT(redis_number(&script_server, "EXISTS berth:{t}:pool:db:parked berth:{t}:pool:net:parked"), 0);
    script_end();
}

/* One call has many claims of a pool to park, and grants to make in 20 others: each pool has its share of the bound. */
static void test_shared_bound(void) {
    char limits[512] = "db 4 net 2";

    script_begin();
    for (int i = 0; i < 20; i++)
        snprintf(limits + strlen(limits), sizeof(limits) - strlen(limits), " disk%d 1", i);
    EXPECT(script_hello("s1", 1, 22, limits), "ok *");
    EXPECT(script_claim("s1", "a", "db 4 100"), "ok $ 0 H *");
    for (int i = 0; i < 300; i++)
        EXPECT(script_sayf("claim s1 1 $ p%03d 0_0_r_name 0 0 db 3 1000", i), "ok $ 0 W *");
    for (int i = 0; i < 20; i++) {
        EXPECT(script_sayf("claim s1 1 $ d%d 0_0_r_name 0 0 disk%d 1 1000", i, i), "ok $ 0 H *");
        EXPECT(script_sayf("claim s1 1 $ e%d 0_0_r_name 0 0 disk%d 1 1000", i, i), "ok $ 0 W *");
    }
    script_tell("HSET " META " grace 1"); /* all that becomes possible is left to the first call after it */
    EXPECT(script_say("override s1 1 $ db 0 id1 set 2 0 ~"), "ok $ *");
    for (int i = 0; i < 20; i++)
        EXPECT(script_sayf("release s1 1 $ d%d", i), "ok $ *");
    script_tell("HDEL " META " grace");
    EXPECT(script_beat("s1", 0, 0), "ok $ 1 *");
    for (int i = 0; i < 20; i++) {
        char id[16];

        snprintf(id, sizeof(id), "e%d", i);
        TEST_INT(script_state(id), 'H');
    }
    settle_all("s1");
    TEST_INT(redis_number(&script_server, "ZCARD berth:{t}:pool:db:parked"), 300);
    for (int i = 0; i < 300; i++)
        (void) script_sayf("release s1 1 $ p%03d", i);
    script_end();
}

/* A's override 0, B's override 3, A's resend of 0. */
static void test_override_versions(void) {
    script_begin();
    EXPECT(script_say("override s1 1 $ db 0 idA set 0 0 ~"), "ok $ 0 *");
    uint64_t first = script_number(3);
    EXPECT(script_say("override s1 1 $ db 0 idA set 0 0 ~"), "ok $ 0 *"); /* repeated at once: recognized */
    CU_ASSERT(script_number(3) == first);
    EXPECT(script_sayf("override s2 1 $ db %" PRIu64 " idB set 3 0 ~", first), "ok $ 0 *");
    EXPECT(script_say("override s1 1 $ db 0 idA set 0 0 ~"), "conflict $ *");
    EXPECT(script_claim("s1", "a", "db 3 100"), "ok $ 0 H *");
    EXPECT(script_say("override s1 1 $ other 0 idC set 0 0 ~"), "unknown $");
    EXPECT(script_beat("s1", 0, 0), "ok $ 0 0 * [[db * 3 0 idB  ]] [] [] []");
    script_end();
}

static void test_override_end(void) {
    script_begin();
    EXPECT(script_say("override s1 1 $ db 0 id1 set 2 0 kept"), "ok $ 0 *");
    uint64_t version = script_number(3);
    EXPECT(script_sayf("override s1 1 $ db %" PRIu64 " id2 pause 0 1 soon", version), "ok $ 0 *"); /* 1 µs */
    EXPECT(script_beat("s1", 0, 0), "ok $ 0 0 * [[db * 2 0 id2  kept]] [] [] []");
    TEST_INT(redis_number(&script_server, "HEXISTS " META " override_expiry"), 0);
    script_end();
}

/* R15: a script has set many limits for the same time. One call ends 128 of these overrides. */
static void test_many_overrides_end(void) {
    static const char set[] = "local m = 'berth:{t}:' local v = redis.call('HGET', m .. 'meta', 'clock') "
                              "for i = 1, 300 do local version = string.format('%d', v + i) "
                              "  redis.call('HSET', m .. 'meta', 'o:db/' .. i, version .. '\\t1\\t1\\tid\\t\\t', 'clock', version) "
                              "  redis.call('ZADD', m .. 'overrides', version, 'db/' .. i) "
                              "end redis.call('HSET', m .. 'meta', 'override_expiry', 1)";
    static const char left[] = "local n = 0 for i = 1, 300 do "
                               "  if redis.call('HGET', 'berth:{t}:meta', 'o:db/' .. i):match('^%d+\\t1\\t') then n = n + 1 end end return n";

    script_begin();
    _cleanup_reply_ redisReply *reply = redis_command(&script_server, "EVAL %s 0", set);
    CU_ASSERT(reply && reply->type == REDIS_REPLY_NIL);
    EXPECT(script_beat("s1", 0, 0), "ok $ 1 0 *");
    TEST_INT(redis_number(&script_server, "EVAL %s 0", left), 172);
    EXPECT(script_beat("s2", 0, 0), "ok $ 1 0 *");
    EXPECT(script_beat("s1", 0, 0), "ok $ 0 0 *");
    TEST_INT(redis_number(&script_server, "EVAL %s 0", left), 0);
    TEST_INT(redis_number(&script_server, "HEXISTS " META " override_expiry"), 0);
    script_end();
}

static CU_TestInfo tests[] = {
    {"order", test_order},
    {"head start", test_head_start},
    {"two pools", test_two_pools},
    {"first everywhere", test_first_everywhere},
    {"withdraw frees queue", test_withdraw_frees_queue},
    {"refusals", test_refusals},
    {"lowest limit", test_lowest_limit},
    {"scopes differ", test_scopes_differ},
    {"park", test_park},
    {"park order", test_park_order},
    {"pause of many", test_pause_of_many},
    {"many parked", test_many_parked},
    {"two pools come back in one call", test_two_pools_return},
    {"many parked leave room for another pool", test_shared_bound},
    {"override versions", test_override_versions},
    {"override end", test_override_end},
    {"many overrides end", test_many_overrides_end},
    CU_TEST_INFO_NULL,
};

TEST_MAIN(script_main(argc, argv, suites), {.pName = "scripts", .pTests = tests})
