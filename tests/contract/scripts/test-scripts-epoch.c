/* SPDX-License-Identifier: MIT */

/* The scripts alone: epochs, sync, pushes, tokens, a full Redis (R7, R10 to R13). */

#include <fnmatch.h>
#include <string.h>

#include "base/clock.h"
#include "tests/harness/redis/script.h"

/* --- epochs --- */

/* A call that is about to grant detects a failover. No call grants anything until a host has known the new
 * epoch for a lease. */
static void test_failover(void) {
    char old[32];

    script_begin();
    EXPECT(script_claim("s1", "a", "db 4 100"), "ok $ 0 H *");
    EXPECT(script_claim("s1", "b", "db 4 100"), "ok $ 0 W *");
    EXPECT(script_claim("s2", "c", "net 1 100"), "ok $ 0 H *");
    script_fail_over();
    EXPECT(script_say("release s1 1 $ a"), "epoch ");
    TEST_INT(script_state("b"), 'W');
    TEST_INT(script_used("db"), 0);
    snprintf(old, sizeof(old), "%s", script_epoch);
    EXPECT(script_beat("s1", 0, 0), "epoch "); /* there is no epoch before a hello */
    EXPECT(script_hello("s2", 1, 2, "db 4 net 2"), "ok * 0 1 *");
    script_learn_new_epoch();
    EXPECT(script_sayf("heartbeat s1 1 %s 0 0 0 0", old), "epoch $");
    EXPECT(script_sayf("claim s1 1 %s x 0_0_r_name 0 0 net 1 100", old), "epoch $");
    EXPECT(script_sayf("sync s1 1 %s 0 1 1", old), "epoch $");
    EXPECT(script_hello("s1", 1, 2, "db 4 net 2"), "ok $ 0 1 * 1 *");
    EXPECT(script_say("sync s1 1 $ 0 1 1 b W 0 1700000000000001 0 0 0 r name db:4"), "ok $ 0 1 * * [[b W * 0 1 * ]] []");
    EXPECT(script_claim("s1", "x", "net 1 100"), "ok $ 0 W *"); /* free, but Redis is in grace */
    EXPECT(script_beat("s1", 0, LEASE - 1), "ok $ 0 1 *");
    TEST_INT(script_state("b"), 'W');
    EXPECT(script_beat("s1", 0, LEASE), "ok $ 0 0 *");
    TEST_INT(script_state("b"), 'H');
    TEST_INT(script_state("x"), 'H'); /* claims queued in grace stay queued */
    TEST_INT(redis_number(&script_server, "EXISTS berth:{t}:unsettled"), 0);
    script_end();
}

/* The same for the fast path of a claim. */
static void test_failover_at_claim(void) {
    char old[32];

    script_begin();
    script_fail_over();
    snprintf(old, sizeof(old), "%s", script_epoch);
    EXPECT(script_claim("s1", "a", "db 1 100"), "epoch ");
    EXPECT(script_sayf("heartbeat s1 1 %s 0 0 0 0", old), "epoch ");
    TEST_INT(script_used("db"), 0);
    TEST_INT(script_state("a"), '-');
    script_end();
}

/* Heartbeat counts from before a failover expire no session. */
static void test_failover_at_expiry(void) {
    script_begin();
    EXPECT(script_claim("s2", "a", "db 1 100"), "ok $ 0 H *");
    script_fail_over();
    (void) script_beat("s1", 2, 2 * LEASE);
    TEST_INT(script_state("a"), 'H');
    TEST_INT(redis_number(&script_server, "HEXISTS berth:{t}:sessions s2"), 1);
    CU_ASSERT(strncmp(script_shown, "epoch ", 6) == 0);
    script_end();
}

/* Redis comes back empty, with its clock set back. Held claims are restored, even beyond the limit. Waiting
 * claims keep their places, and tokens grow. */
static void test_wipe(void) {
    script_begin();
    EXPECT(script_claim("s1", "a", "db 3 100"), "ok $ 0 H *");
    uint64_t token = script_number(5), future = token + 3600000000;
    char id[2][40];
    (void) snprintf(id[0], sizeof(id[0]), "%" PRIu64, token + 20);
    (void) snprintf(id[1], sizeof(id[1]), "%" PRIu64, token + 10);
    script_tell("FLUSHALL");
    EXPECT(script_beat("s1", 0, 0), "epoch ");
    EXPECT(script_sayf("hello s1 1 ~ s1 m1 v1 30000000 0 %" PRIu64 " $ 0 0 0 ! 1 db 4", future), "ok * 0 1 1 0 *");
    script_learn_epoch();
    CU_ASSERT(strtoull(script_field("meta", "began"), NULL, 10) > future);
    EXPECT(script_hello("s2", 1, 1, "db 4"), "ok $ 0 1 2 0 *");
    EXPECT(script_sayf("sync s2 1 $ 0 1 1 h H %" PRIu64 " 5 0 0 0 r name db:2 y W 0 %s 0 0 0 r name db:1", token + 1, id[0]),
           "ok $ 0 1 0 * [[h H 5 * 0 * ] [y W * 0 1 * ]] []");
    EXPECT(script_sayf("sync s1 1 $ 0 1 1 a H %" PRIu64 " 4 0 0 9 r name db:3 x W 0 %s 0 0 0 r name db:1", token, id[1]),
           "ok $ 0 1 0 * [[a H 4 * 0 * ] [x W * 0 1 * ]] [[db 5 4]]"); /* x came before y */
    EXPECT(script_beat("s2", 0, LEASE), "ok $ 0 0 *");
    TEST_INT(script_state("x"), 'W'); /* 5 of 4 are in use */
    EXPECT(script_say("release s2 1 $ h"), "ok $ 0 * *");
    TEST_INT(script_state("x"), 'H');
    TEST_INT(script_state("y"), 'W');
    EXPECT(script_say("sync s1 1 $ 0 1 1 x W 0 1 0 0 0 r name db:1"),
           "ok $ 0 0 * * [[x H * * 0 * ]] []"); /* its push was lost; a is dropped */
    EXPECT(script_say("sync s1 1 $ 0 1 1 x A 0 0 0 0 0 r name db:1"), "ok $ 0 0 * * [[x H * * 0 * ]] []");
    CU_ASSERT(strtoull(strstr(script_shown, "[[x H") + 6 + 17, NULL, 10) > future);
    TEST_INT(script_state("a"), '-');
    TEST_INT(script_state("y"), 'H');
    script_end();
}

/* R10: hosts remember the clock and the overrides with their versions; the newest ones count. */
static void test_wipe_remembered(void) {
    script_begin();
    script_tell("FLUSHALL");
    EXPECT(script_say("hello s1 1 ~ s1 m1 v1 30000000 0 0 $ 0 0 0 ! 1 db 4 db 1700000000000002 2 0 idB ~ newer"), "ok *");
    script_learn_epoch();
    EXPECT(script_say("hello s2 1 ~ s2 m1 v1 30000000 0 0 $ 0 0 0 ! 1 db 4 db 1700000000000001 0 0 idA ~ older net 1700000000000003 3 0 idC ~ ~ gone 1700000000000004 - 0 idD ~ ~"),
           "ok $ 0 1 2 0 * [[db 1700000000000002 2 0 idB  newer] [net 1700000000000003 3 0 idC  ]] [] [] [] [] *"); /* the override of pool gone is over */
    TEST_STRING(script_field("meta", "o:gone"), "nothing");
    EXPECT(script_say("inspect pool db"), "ok [] 2 4 4 [2 0 newer] *");
    EXPECT(script_say("sync s1 1 $ 1893456000000000 1 1"), "ok $ 0 1 0 1893456000000000 *");
    EXPECT(script_claim("s1", "a", "db 1 100"), "ok $ 0 W 1893456000000001 *");
    script_end();
}

static void test_grace_pays_all(void) {
    script_begin();
    script_tell("FLUSHALL");
    EXPECT(script_hello("s1", 1, 1, "db 400"), "ok *");
    script_learn_epoch();
    EXPECT(script_say("sync s1 1 $ 0 1 1"), "ok *");
    for (int i = 0; i < 300; i++)
        (void) script_sayf("claim s1 1 $ p%03d 0_0_r_name 0 0 db 1 1000", i);
    EXPECT(script_beat("s1", 0, LEASE), "ok $ 1 0 *"); /* one call does not settle all; the rest stays unsettled */
    TEST_INT(script_used("db"), 128);
    EXPECT(script_claim("s1", "late", "db 1 1000"), "ok $ 0 W *"); /* it must not overtake others meanwhile */
    EXPECT(script_beat("s1", 0, 0), "ok $ 1 0 *");
    EXPECT(script_beat("s1", 0, 0), "ok $ 0 0 *");
    TEST_INT(script_used("db"), 301);
    script_end();
}

/* --- sync --- */

static void test_sync_drops(void) {
    script_begin();
    for (int i = 0; i < 300; i++)
        (void) script_sayf("claim s1 1 $ p%03d 0_0_r_name 0 0 db 1 1000", i);
    EXPECT(script_claim("s2", "w", "db 1 1000"), "ok $ 0 W *");
    EXPECT(script_say("sync s1 1 $ 0 1 0 p000 H 5 5 0 0 0 r name db:1"), "ok $ 0 *");
    EXPECT(script_say("sync s1 1 $ 0 1 0 p000 H 5 5 0 0 0 r name db:1"), "ok $ 0 *"); /* repeated after a cut */
    EXPECT(script_say("sync s1 1 $ 0 0 1 p001 H 6 6 0 0 0 r name db:1 zz A 0 0 0 0 0 r name db:1"),
           "ok $ 1 0 * * [[p001 H *] [zz - *]] []");
    TEST_INT(script_state("w"), 'W');
    EXPECT(script_say("sync s1 1 $ 0 0 1"), "ok $ 1 *");
    EXPECT(script_say("sync s1 1 $ 0 0 1"), "ok $ 0 *");
    TEST_INT(redis_number(&script_server, "SCARD berth:{t}:session:s1:claims"), 2);
    TEST_INT(redis_number(&script_server, "HLEN berth:{t}:claims"), 3);
    TEST_INT(script_state("w"), 'H');
    TEST_INT(script_used("db"), 3);
    script_end();
}

/* A claim that continues after a lost lease gets a new token, beyond the limit. */
static void test_sync_keep(void) {
    script_begin();
    EXPECT(script_claim("s2", "a", "db 4 100"), "ok $ 0 H *");
    uint64_t token = script_number(5);
    EXPECT(script_beat("s1", 2, 0), "ok * [[s2 s2 *]] *");
    EXPECT(script_claim("s1", "b", "db 4 100"), "ok $ 0 H *");
    EXPECT(script_hello("s3", 1, 1, "db 4"), "ok *");
    EXPECT(script_sayf("sync s3 1 $ 0 1 1 a K %" PRIu64 " 9 0 0 0 r name db:4", token), "ok $ 0 0 * * [[a H 9 * 0 * ]] [[db 8 4]]");
    CU_ASSERT(strtoull(strstr(script_shown, "[[a H 9 ") + 8, NULL, 10) > token);
    CU_ASSERT(script_number(4) > token); /* and it is the session's last token */
    EXPECT(script_claim("s1", "c", "db 1 100"), "ok $ 0 W *");
    EXPECT(script_say("release s1 1 $ b"), "ok $ 0 * *");
    TEST_INT(script_state("c"), 'W');
    EXPECT(script_say("release s3 1 $ a"), "ok $ 0 * *");
    TEST_INT(script_state("c"), 'H');
    script_end();
}

/* --- pushes --- */

static redisContext *listen_to(const char *session) {
    redisContext *c = redisConnectUnixWithTimeout(script_server.socket, (struct timeval) {.tv_sec = 5});

    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    _cleanup_reply_ redisReply *r = redisCommand(c, "SSUBSCRIBE berth:{t}:to:%s", session);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return c;
}

static void expect_push(unsigned line, redisContext *c, const char *pattern) {
    void *reply = NULL;

    if (redisGetReply(c, &reply) != REDIS_OK)
        reply = NULL;
    const redisReply *r = reply;
    script_expect(__FILE__, line, r && r->type == REDIS_REPLY_ARRAY && r->elements == 3 ? r->element[2]->str : "none", pattern);
    freeReplyObject(reply);
}

static void test_pushes(void) {
    char before[64], last[64];
    redisContext *c;

    script_begin();
    c = listen_to("s1");
    EXPECT(script_claim("s1", "a", "db 4 100"), "ok $ 0 H * * 0 *");
    (void) snprintf(before, sizeof(before), "granted $ %" PRIu64 " * b * * *", script_number(5));
    EXPECT(script_claim("s1", "b", "db 2 100"), "ok $ 0 W *");
    EXPECT(script_claim("s1", "c", "db 2 100"), "ok $ 0 W *");
    EXPECT(script_claim("s2", "o", "db 2 100"), "ok $ 0 W *");
    EXPECT(script_say("release s1 1 $ a"), "ok $ 0 * *");
    expect_push(__LINE__, c, before); /* each push names the previous token, even if a reply brought that one */
    EXPECT(script_beat("s1", 0, 0), "ok *");
    uint64_t newest = script_number(5);
    (void) snprintf(last, sizeof(last), "granted $ * %" PRIu64 " c * * *", newest);
    expect_push(__LINE__, c, last);
    TEST_INT(script_number(6), 2);
    EXPECT(script_say("override s2 1 $ db 0 id set 1 0 ~"), "ok *");
    EXPECT(script_claim("s1", "d", "net 1 100"), "ok * H *");
    newest = script_number(5);
    EXPECT(script_say("revoke s2 1 $ b because it must"), "ok $ 0 sent");
    (void) snprintf(before, sizeof(before), "revoked $ %" PRIu64 " * b because", newest);
    expect_push(__LINE__, c, before);
    EXPECT(script_say("revoke s2 1 $ nobody why"), "unknown $");
    EXPECT(script_say("sync s1 1 $ 0 1 1 b H 5 5 0 0 0 r name db:2"), "ok * [[b H * because ]] []*"); /* in case the push was lost */
    redisFree(c);
    script_end();
}

/* --- numbers, memory, keys --- */

static void test_numbers(void) {
    script_begin();
    script_tell("HSET " META " clock 1893456000000000"); /* the year 2030: Redis's clock was set back */
    EXPECT(script_claim("s1", "a", "db 1 100"), "ok $ 0 H 1893456000000001 1893456000000001 0 0 *");
    EXPECT(script_claim("s1", "b", "db 1 100 net 1 100"), "ok $ 0 H 1893456000000002 1893456000000002 1893456000000001 0 *");
    EXPECT(script_claim("s1", "c", "db 3 100"), "ok $ 0 W 18934560???????? 0 1893456000000002 1 *");
    EXPECT(script_say("release s1 1 $ a"), "ok $ 0 * *");
    _cleanup_reply_ redisReply *r = redis_command(&script_server, "HGET berth:{t}:claims c");
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    CU_ASSERT(fnmatch("H 18934560???????? s1 db:3 18934560???????? * 0 7 r-c name *", r->str, 0) == 0);
    script_end();
}

static void test_full(void) {
    script_begin();
    EXPECT(script_claim("s1", "a", "db 1 100"), "ok *");
    script_tell("SADD berth:{t}:pool:db:held no#1");
    EXPECT(script_say("inspect records db held no gone"), "ok [] [nil ]");
    script_tell("SREM berth:{t}:pool:db:held no#1");
    script_tell("CONFIG SET maxmemory 1000");
    EXPECT(script_claim("s1", "b", "db 1 100"), "OOM *");
    EXPECT(script_beat("s1", 0, 0), "ok *");
    EXPECT(script_hello("s1", 1, 2, "db 4 net 2"), "ok *");
    EXPECT(script_say("sync s1 1 $ 0 1 1 a H 5 5 0 0 0 r name db:1"), "ok *");
    EXPECT(script_say("inspect pool db"), "ok [] 4 4 4 [] 1 0 0 0 *");
    EXPECT(script_say("inspect records db held a gone"), "ok [] [H 5 s1 db:1 * * 0 0 r-a name  ]");
    EXPECT(script_say("inspect sessions 0"), "ok [] $ 0 0 * [s2 s1] [2 4] [s2 m1 v1 db=4,net=2 s1 m1 v1 db=4,net=2] [0 1]");
    EXPECT(script_say("release s1 1 $ a"), "ok *");
    script_tell("CONFIG SET maxmemory 0");
    EXPECT(script_claim("s1", "b", "db 1 100"), "ok *");
    script_end();
}

/* Keys are deleted: no rule covers this, but no claim may hang. */
static void test_partly_gone(void) {
    script_begin();
    EXPECT(script_claim("s1", "a", "db 4 100"), "ok *");
    EXPECT(script_claim("s1", "b", "db 1 100"), "ok * W *");
    EXPECT(script_claim("s1", "c", "db 1 100"), "ok * W *");
    script_tell("HDEL berth:{t}:claims b");
    EXPECT(script_say("release s1 1 $ a"), "ok $ 0 * *");
    TEST_INT(script_state("c"), 'H');
    script_tell("DEL berth:{t}:claims");
    EXPECT(script_say("sync s1 1 $ 0 1 1 c H 5 5 0 0 0 r name db:1"), "ok $ 0 *");
    TEST_INT(script_used("db"), 1);
    script_tell("DEL berth:{t}:pool:db:held");
    EXPECT(script_say("release s1 1 $ c"), "ok $ 0 * *");
    script_end();
}

/* Redis has older data, and other hosts have caught up since. Only this session's own writes show the loss.
 * The call that detects the loss expires no session. */
static void test_heartbeat_proves(void) {
    static const char *const beats[] = {
        "heartbeat s1 1 $ 0 5 0 0 0 0", /* its own count was higher */
        "heartbeat s1 1 $ 9 1 0 0",     /* it remembers a count that no host has reached */
        "heartbeat s1 1 $ 0 1 0 99",    /* it has received a higher token */
    };

    for (size_t i = 0; i < ELEMENTSOF(beats); i++) {
        script_begin();
        EXPECT(script_say(beats[i]), "epoch ");
        TEST_STRING(script_field("meta", "epoch"), "nothing");
        TEST_INT(redis_number(&script_server, "ZCARD berth:{t}:heartbeats"), 2);
        EXPECT(script_hello("s2", 1, 2, "db 4 net 2"), "ok * 0 1 *");
        script_learn_new_epoch();
        script_end();
    }
}

/* hello returns the highest number that can have been drawn. The end of grace advances the clock to this
 * number. */
static void test_clock_remembered(void) {
    script_begin();
    script_tell("HSET " META " clock 1700000000000000"); /* in the past */
    EXPECT(script_hello("s1", 1, 2, "db 4 net 2"), "ok $ 0 0 *");
    CU_ASSERT(script_number(6) > 1767225600000000);
    script_tell("HSET " META " grace 1");
    EXPECT(script_sayf("heartbeat s1 1 $ 0 0 0 0 %d 1893456000000000", LEASE), "ok $ 0 0 *");
    EXPECT(script_claim("s1", "a", "db 1 100"), "ok $ 0 H 1893456000000001 *");
    script_end();
}

/* No call takes over a number that was never drawn, whichever host reports it. */
static void test_implausible_number(void) {
    static const char *const numbers[] = {"9000000000000000", "9007199254740993", "4102444800000000" /* 2100 */};

    script_begin();
    for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
        EXPECT(script_sayf("hello s1 1 ~ s1 m1 v1 %d %s %s $ 0 0 0 ! 2 db 4 net 2", LEASE, numbers[i], numbers[i]), "ok * 0 1 *");
        script_learn_new_epoch();
        EXPECT(script_sayf("sync s1 1 $ %s 1 1 a H %s %s 0 0 7 r-a name db:1", numbers[i], numbers[i], numbers[i]), "ok $ *");
        EXPECT(script_sayf("heartbeat s1 1 $ 0 0 0 0 0 %s", numbers[i]), "ok $ *");
        CU_ASSERT(redis_number(&script_server, "HGET " META " clock") < (long long) clock_realtime() + LEASE);
    }
    script_end();
}

/* hello resets an implausible lead, because hosts would refuse every number drawn with it. */
static void test_implausible_lead(void) {
    script_begin();
    script_tell("HSET " META " lead 400000000000000000");
    EXPECT(script_hello("s1", 2, 2, "db 4 net 2"), "ok $ 0 0 * 1 *");
    EXPECT(script_field("meta", "lead"), "0");
    EXPECT(script_claim("s2", "a", "db 1 100"), "ok $ 0 H *");
    CU_ASSERT(redis_number(&script_server, "HGET " META " clock") < (long long) clock_realtime() + LEASE);
    script_end();
}

static CU_TestInfo tests[] = {
    {"failover", test_failover},
    {"failover at claim", test_failover_at_claim},
    {"failover at expiry", test_failover_at_expiry},
    {"wipe", test_wipe},
    {"wipe remembered", test_wipe_remembered},
    {"grace settles all", test_grace_pays_all},
    {"sync drops", test_sync_drops},
    {"sync keep", test_sync_keep},
    {"pushes", test_pushes},
    {"numbers", test_numbers},
    {"full", test_full},
    {"partly gone", test_partly_gone},
    {"heartbeat proves a loss", test_heartbeat_proves},
    {"clock remembered", test_clock_remembered},
    {"an implausible number", test_implausible_number},
    {"an implausible lead", test_implausible_lead},
    CU_TEST_INFO_NULL,
};

TEST_MAIN(script_main(argc, argv, suites), {.pName = "scripts, epochs", .pTests = tests})
