/* SPDX-License-Identifier: MIT */

/* Each key is deleted while permits are held and waited for. verify detects the loss, all is dropped and
 * reported again, and no claim waits for ever (redisson/redisson#3573, dv/redis-semaphore#40). */

#include <string.h>

#include "tests/harness/redis/script.h"

/* a holds all of db, and b and c wait for it. n holds a permit of net. d wants more than the limit of
 * net. */
static void fill(void) {
    script_begin();
    EXPECT(script_claim("s1", "a", "db 4 100"), "ok $ 0 H *");
    EXPECT(script_claim("s2", "b", "db 2 100"), "ok $ 0 W *");
    EXPECT(script_claim("s1", "c", "db 1 100"), "ok $ 0 W *");
    EXPECT(script_claim("s2", "n", "net 1 100"), "ok $ 0 H *");
    EXPECT(script_claim("s2", "d", "net 3 100"), "ok $ 0 P *"); /* parked, as the first of its queue */
}

static void delete(const char *key) {
    TEST_INT(redis_number(&script_server, "DEL berth:{t}:%s", key), 1);
}

static const char *look_1(void) {
    return script_say("verify s1 1 $ a c");
}

static const char *look_2(void) {
    return script_say("verify s2 1 $ b n d");
}

/* Both hosts report; then a releases its permits, and the waiting claims are granted. */
static void heal(void) {
    char old[32];

    snprintf(old, sizeof(old), "%s", script_epoch);
    EXPECT(script_hello("s1", 1, 2, "db 4 net 2"), "ok * 0 1 *");
    script_learn_new_epoch();
    EXPECT(script_sayf("heartbeat s1 1 %s 0 0 0 0", old), "epoch $");
    EXPECT(script_say("sync s1 1 $ 0 1 1 a H 11 11 0 0 7 r-a name db:4 c W 0 13 0 0 7 r-c name db:1"), "ok $ 0 1 *");
    EXPECT(script_hello("s2", 1, 2, "db 4 net 2"), "ok $ 0 1 *");
    EXPECT(script_say("sync s2 1 $ 0 1 1 n H 14 14 0 0 7 r-n name net:1 b W 0 12 0 0 7 r-b name db:2 d W 0 15 0 0 7 r-d name net:3"),
           "ok $ 0 1 *");
    EXPECT(script_say("release s1 1 $ a"), "ok $ *");
    TEST_INT(script_state("b"), 'W'); /* grace */
    EXPECT(script_beat("s1", 0, LEASE), "ok $ 0 0 *");
    TEST_INT(script_state("b"), 'H');
    TEST_INT(script_state("c"), 'H');
    TEST_INT(script_state("d"), 'P');
    TEST_INT(script_used("db"), 3);
    TEST_INT(script_used("net"), 1);
    EXPECT(look_2(), "ok $ 0 0");
    script_end();
}

static void is_missed(const char *key, const char *(*look)(void)) {
    fill();
    delete(key);
    EXPECT(look(), "epoch * broken");
    heal();
}

static void test_nothing(void) {
    fill();
    EXPECT(look_1(), "ok $ 0 0");
    EXPECT(look_2(), "ok $ 0 0");
    EXPECT(script_say("verify s1 1 0 a"), "epoch $");
    EXPECT(script_say("verify s9 1 $ a"), "gone");
    EXPECT(script_say("verify s1 7 $ a"), "stale");
    EXPECT(script_say("verify s1 1 $ none"), "ok $ 0 1"); /* its host has to report again */
    EXPECT(script_say("revoke s2 1 $ c reason"), "ok *");
    EXPECT(look_1(), "ok $ 0 0"); /* c is in no queue any more */
    script_end();
}

static void test_held(void) {
    is_missed("pool:db:held", look_1);
}

static void test_queue(void) {
    is_missed("pool:db:queue", look_2);
}

static void test_parked(void) {
    is_missed("pool:net:parked", look_2);
}

static void test_beats(void) {
    is_missed("heartbeats", look_2);
}

static void test_claims(void) {
    is_missed("claims", look_2);
}

/* A release that finds no record of a held claim detects the loss at once. */
static void test_claims_at_release(void) {
    fill();
    delete("claims");
    EXPECT(script_say("release s1 1 $ a"), "epoch *");
    heal();
}

/* If the host of a lost record is dead, or has forgotten the claim, verify of a waiting claim detects the loss. */
static void test_claims_of_the_dead(void) {
    static const char *const ends[] = {"bye s1 1", "sync s1 1 $ 0 1 1"};

    for (size_t i = 0; i < ELEMENTSOF(ends); i++) {
        script_begin();
        EXPECT(script_claim("s1", "a", "db 4 100"), "ok $ 0 H *");
        delete("claims");
        EXPECT(script_say(ends[i]), "ok $ *");
        EXPECT(script_claim("s2", "b", "db 2 100"), "ok $ 0 W *");
        TEST_INT(script_used("db"), 4);
        EXPECT(script_say("verify s2 1 $ b"), "epoch * broken");
        EXPECT(script_hello("s2", 1, 2, "db 4 net 2"), "ok * 0 1 *");
        script_learn_new_epoch();
        TEST_INT(script_used("db"), 0);
        EXPECT(script_say("sync s2 1 $ 0 1 1 b W 0 12 0 0 7 r-b name db:2"), "ok $ 0 1 *");
        EXPECT(script_beat("s2", 0, LEASE), "ok $ 0 0 *");
        TEST_INT(script_state("b"), 'H');
        EXPECT(script_say("verify s2 1 $ b"), "ok $ 0 0");
        script_end();
    }
}

/* If declared limits are missing, verify asks the host to report again, and hello writes them. */
static void test_declared(void) {
    static const char *const keys[] = {"sessions", "pool:db:limits"};

    fill();
    delete("pool:db:limits");
    EXPECT(look_1(), "ok $ 0 1");
    EXPECT(script_hello("s1", 1, 2, "db 4 net 2"), "ok $ 0 0 *");
    EXPECT(look_1(), "ok $ 0 0");
    EXPECT(look_2(), "ok $ 0 1");
    EXPECT(script_hello("s2", 1, 2, "db 4 net 2"), "ok $ 0 0 *");
    EXPECT(look_2(), "ok $ 0 0");
    for (size_t i = 0; i < ELEMENTSOF(keys); i++)
        TEST_INT(redis_number(&script_server, "EXISTS berth:{t}:%s", keys[i]), 1);
    script_end();
    is_missed("sessions", look_1);
}

/* The limits of a session that is expired without its record would stay in force for ever. */
static void test_record_of_a_dead_session(void) {
    fill();
    delete("sessions");
    EXPECT(script_hello("s2", 1, 2, "db 4 net 2"), "ok $ 0 0 *");
    EXPECT(script_say("sync s2 1 $ 0 1 1 n H 14 14 0 0 7 r-n name net:1 b W 0 12 0 0 7 r-b name db:2 d W 0 15 0 0 7 r-d name net:3"),
           "ok $ 0 0 *");
    EXPECT(script_beat("s2", 0, 0), "ok $ 0 0 *");
    EXPECT(script_beat("s2", 1, 0), "ok $ 0 0 *");
    TEST_INT(redis_number(&script_server, "ZCARD berth:{t}:heartbeats"), 1);
    EXPECT(look_2(), "epoch * broken");
    EXPECT(script_hello("s2", 1, 2, "db 4 net 2"), "ok * 0 1 *");
    TEST_INT(redis_number(&script_server, "ZCARD berth:{t}:pool:db:limits"), 1);
    script_end();
}

/* The number of claims in the heartbeat's reply shows that the set of a session's claims is lost. */
static void test_claims_of_a_session(void) {
    fill();
    delete("session:s1:claims");
    EXPECT(script_beat("s1", 0, 0), "ok $ 0 0 * * 0 *");
    EXPECT(script_say("sync s1 1 $ 0 1 1 a H 11 11 0 0 7 r-a name db:4 c W 0 13 0 0 7 r-c name db:1"), "ok $ 0 0 *");
    EXPECT(script_beat("s1", 0, 0), "ok $ 0 0 * * 2 *");
    TEST_INT(script_used("db"), 4);
    script_end();
}

/* A dead host cannot report, and the call that expires it finds no claims. verify of a waiting claim detects
 * that the claim in front belongs to no session. */
static void test_claims_of_a_dead_session(void) {
    static const char *const waits[] = {"db 2 100", "db 1 100"};

    for (size_t i = 0; i < ELEMENTSOF(waits); i++) {
        script_begin();
        EXPECT(script_claim(i == 0 ? "s1" : "s2", "a", "db 3 100"), "ok $ 0 H *");
        EXPECT(script_claim("s1", "b", "db 2 100"), "ok $ 0 W *"); /* checked the second time */
        EXPECT(script_claim("s2", "c", waits[i]), "ok $ 0 W *");
        EXPECT(script_say("verify s2 1 $ c"), "ok $ 0 0");
        delete("session:s1:claims");
        EXPECT(script_beat("s2", 0, 0), "ok $ 0 0 *");
        EXPECT(script_beat("s2", 1, 0), "ok $ 0 0 * [[s1 s1 *]] [] *");
        EXPECT(script_say("verify s2 1 $ c"), "epoch * broken");
        EXPECT(script_hello("s2", 1, 2, "db 4 net 2"), "ok * 0 1 *");
        TEST_INT(script_used("db"), 0);
        script_end();
    }
}

/* Without `meta`, the remaining keys of a namespace are ignored. */
static void test_meta(void) {
    fill();
    delete("meta");
    EXPECT(look_1(), "epoch ");
    EXPECT(script_hello("s2", 1, 2, "db 4 net 2"), "ok * 0 1 *");
    TEST_INT(script_state("a"), '-');
    TEST_INT(script_used("db"), 0);
    heal();
}

/* A record without its pools counts as missing: its permits are unknown. */
static void test_malformed_at_release(void) {
    static const char *const records[] = {"?", "H 11 s1 ", "H 11 s1 db"};

    for (size_t i = 0; i < ELEMENTSOF(records); i++) {
        fill();
        TEST_INT(redis_number(&script_server, "HSET berth:{t}:claims a %s", records[i]), 0);
        EXPECT(script_say("release s1 1 $ a"), "epoch *");
        heal();
    }
}

/* verify of the first waiting claim settles an unsettled pool. */
static void test_debt(void) {
    fill();
    script_tell("HSET " META " unsettled 1");
    EXPECT(script_say("sync s1 1 $ 0 1 0"), "ok $ *"); /* a first part: the other claims are not listed yet, and stay */
    script_tell("DEL berth:{t}:pool:db:held");
    script_tell("HDEL " META " unsettled");
    script_tell("HDEL berth:{t}:claims a"); /* as if a had been released without a settle */
    script_tell("SREM berth:{t}:session:s1:unsynced a");
    EXPECT(look_2(), "ok $ 0 0");
    TEST_INT(script_state("b"), 'H');
    TEST_INT(script_state("c"), 'H');
    script_end();
}

/* The work of one call is bounded (R15): a large namespace is wiped by several hellos, and granted nothing in between. */
static void test_large_wipe(void) {
    unsigned again = 0;

    script_begin();
    for (int i = 0; i < 1500; i++)
        EXPECT(script_sayf("hello x%d 1 ~ x%d m1 v1 %d 0 0 $ 0 0 0 ! 1 db 4", i, i, LEASE), "ok *");
    script_tell("HSET " META " broken 1");
    while (strcmp(script_hello("s1", 2, 2, "db 4 net 2"), "again") == 0 && again < 10) {
        again++;
        EXPECT(script_claim("s2", "early", "db 1 100"), "epoch *");
        CU_ASSERT(redis_number(&script_server, "ZCARD berth:{t}:heartbeats") > 0);
    }
    CU_ASSERT(again >= 1 && again < 10);
    script_learn_new_epoch();
    TEST_INT(redis_number(&script_server, "ZCARD berth:{t}:heartbeats"), 1);
    TEST_INT(redis_number(&script_server, "HLEN berth:{t}:sessions"), 1);
    TEST_INT(redis_number(&script_server, "ZCARD berth:{t}:pool:db:limits"), 1);
    script_end();
}

static CU_TestInfo tests[] = {
    {"nothing is missing", test_nothing},
    {"held", test_held},
    {"queue", test_queue},
    {"parked", test_parked},
    {"heartbeats", test_beats},
    {"claims", test_claims},
    {"claims, at release", test_claims_at_release},
    {"claims, malformed, at release", test_malformed_at_release},
    {"claims of the dead", test_claims_of_the_dead},
    {"limits, sessions", test_declared},
    {"sessions, of a dead one", test_record_of_a_dead_session},
    {"session:SESSION:claims", test_claims_of_a_session},
    {"session:SESSION:claims of the dead", test_claims_of_a_dead_session},
    {"meta", test_meta},
    {"unsettled", test_debt},
    {"a large namespace is wiped in parts", test_large_wipe},
    CU_TEST_INFO_NULL,
};

TEST_MAIN(script_main(argc, argv, suites), {.pName = "deleted keys", .pTests = tests})
