/* SPDX-License-Identifier: MIT */

/* The scripts alone: several claims in one call. Each gets the reply that a call of its own would get. */

#include <string.h>

#include "tests/harness/redis/script.h"

#define LINE 9 /* words of the line of a claim that is not refused */

/* --- requests --- */

static void test_granted(void) {
    uint64_t token[3];
    char last[64];

    script_begin();
    EXPECT(script_claims("s1", "db", "a b c"), "ok $ 0 H * * 0 0 * ok $ 0 H * * * 0 * ok $ 0 H * * * 0 *");
    for (unsigned i = 0; i < 3; i++) {
        token[i] = script_number(i * LINE + 5);
        CU_ASSERT(script_number(i * LINE + 4) == token[i]);
        CU_ASSERT(i == 0 || (token[i] > token[i - 1] && script_number(i * LINE + 6) == token[i - 1]));
        CU_ASSERT(script_number(i * LINE + 8) > 0 && script_number(i * LINE + 8) <= token[i]);
    }
    TEST_INT(script_used("db"), 3);
    TEST_INT(script_claims_of("s1"), 3);
    (void) snprintf(last, sizeof(last), "1 %" PRIu64, token[2]);
    EXPECT(script_field("meta", "c:s1"), last);
    EXPECT(script_field("meta", "clock"), last + 2);
    (void) snprintf(last, sizeof(last), "H %" PRIu64 " s1 db:1 %" PRIu64 " * 0 7 r-b name ", token[1], token[1]);
    EXPECT(script_field("claims", "b"), last);
    EXPECT(script_claim("s1", "d", "db 1 100"), "ok $ 0 H *");
    CU_ASSERT(script_number(5) > token[2] && script_number(6) == token[2]);
    script_end();
}

static void test_part_fits(void) {
    script_begin();
    EXPECT(script_claims("s1", "db", "a b c d e f"), "ok $ 0 H * ok $ 0 H * ok $ 0 H * ok $ 0 H * ok $ 0 W * 0 * 1 * ok $ 0 W * 0 * 2 *");
    for (unsigned i = 1; i < 6; i++)
        CU_ASSERT(script_number(i * LINE + 4) > script_number(i * LINE - 5));
    for (unsigned i = 1; i < 4; i++)
        CU_ASSERT(script_number(i * LINE + 6) == script_number(i * LINE - 4));
    TEST_INT(script_used("db"), 4);
    TEST_INT(script_claims_of("s1"), 6);
    EXPECT(script_field("meta", "l:db"), "4+");
    EXPECT(script_say("release s1 1 $ c"), "ok $ 0 * *");
    TEST_INT(script_state("e"), 'H');
    TEST_INT(script_state("f"), 'W');
    script_end();
}

/* No claim overtakes another except by a head start, also within one call. */
static void test_somebody_waits(void) {
    script_begin();
    EXPECT(script_claim("s2", "a", "db 2 100"), "ok $ 0 H *");
    EXPECT(script_claim("s2", "b", "db 3 100"), "ok $ 0 W *");
    EXPECT(script_claims("s1", "db", "c d"), "ok $ 0 W * 0 0 2 * ok $ 0 W * 0 0 3 *"); /* two permits are free, but older claims wait */
    TEST_INT(script_used("db"), 2);
    EXPECT(script_field("meta", "l:db"), "4+");
    EXPECT(script_say("claims s1 1 $ db 100 e 0_7_r_name f 60000000_7_r_name g 60000000_7_r_name h 90000000_7_r_name"),
           "ok $ 0 W * 0 0 4 * ok $ 0 H * * 0 0 * ok $ 0 H * * * 0 * ok $ 0 W * 0 * 1 *");
    CU_ASSERT(script_number(2 * LINE + 6) == script_number(LINE + 5) && script_number(3 * LINE + 6) == script_number(2 * LINE + 5));
    TEST_INT(script_used("db"), 4);
    EXPECT(script_field("claims", "h"), "W 0 s1 db:1 * * 90000000 7 r name ");
    script_end();
}

/* A "+" means that claims may wait. A script that finds none removes the "+". */
static void test_noted_limit(void) {
    script_begin();
    EXPECT(script_claim("s2", "a", "db 4 100"), "ok $ 0 H *");
    EXPECT(script_claim("s2", "b", "db 1 100"), "ok $ 0 W *");
    EXPECT(script_say("release s2 1 $ b"), "ok $ 0 * 0");
    EXPECT(script_say("release s2 1 $ a"), "ok $ 0 * *");
    EXPECT(script_field("meta", "l:db"), "4+");
    EXPECT(script_claims("s1", "db", "c d"), "ok $ 0 H * ok $ 0 H *");
    EXPECT(script_field("meta", "l:db"), "4");
    script_end();
}

/* Both hosts stop declaring db while claims wait there. Nothing is left of it after the last one, however that ends. */
static void test_undeclared(void) {
    for (unsigned with_bye = 0; with_bye < 2; with_bye++) {
        script_begin();
        EXPECT(script_claim("s2", "a", "db 4 100"), "ok $ 0 H *");
        EXPECT(script_claim("s2", "b", "db 1 100"), "ok $ 0 W *");
        (void) script_hello("s1", 2, 1, "net 2");
        (void) script_hello("s2", 2, 1, "net 2");
        TEST_INT(redis_number(&script_server, "HEXISTS berth:{t}:meta l:db"), 0);
        TEST_INT(redis_number(&script_server, "SISMEMBER berth:{t}:waiting db"), 1);
        EXPECT(script_say("release s2 2 $ a"), "ok $ 0 * *");
        TEST_INT(redis_number(&script_server, "SISMEMBER berth:{t}:waiting db"), 1);
        if (with_bye)
            (void) script_say("bye s2 2");
        else
            EXPECT(script_say("release s2 2 $ b"), "ok $ 0 * 0");
        TEST_INT(redis_number(&script_server, "SISMEMBER berth:{t}:waiting db"), 0);
        script_end();
    }
}

static void test_paused(void) {
    script_begin();
    EXPECT(script_say("override s1 1 $ db 0 id1 set 0 0 ~"), "ok $ 0 *");
    uint64_t version = script_number(3);
    EXPECT(script_claims("s1", "db", "a b"), "ok $ 0 W * 0 0 1 * ok $ 0 W * 0 0 2 *");
    TEST_INT(redis_number(&script_server, "ZCARD berth:{t}:pool:db:queue"), 2);
    EXPECT(script_say("claims s1 1 $ db 3 c 0_7_r_name d 0_7_r_name"), "ok $ 0 W * refused $ 0 queue-full db");
    EXPECT(script_sayf("override s1 1 $ db %" PRIu64 " id2 clear 0 0 ~", version), "ok $ 0 *");
    TEST_INT(script_state("a"), 'H');
    TEST_INT(script_used("db"), 3);
    script_end();
}

static void test_queue_full(void) {
    script_begin();
    EXPECT(script_claim("s2", "a", "db 3 100"), "ok $ 0 H *");
    EXPECT(script_say("claims s1 1 $ db 2 b 0_7_r_name c 0_7_r_name d 0_7_r_name e 0_7_r_name f 60000000_7_r_name"),
           "ok $ 0 H * ok $ 0 W * ok $ 0 W * refused $ 0 queue-full db refused $ 0 queue-full db");
    TEST_INT(script_state("d"), 'W');
    TEST_INT(script_state("e"), '-');
    TEST_INT(script_state("f"), '-');
    TEST_INT(script_claims_of("s1"), 3);
    EXPECT(script_say("claims s1 1 $ db 2 e 0_7_r_name d 0_7_r_name"), "refused $ 0 queue-full db ok $ 0 W *"); /* d is queued already */
    script_end();
}

/* --- repeated requests --- */

static void test_again(void) {
    uint64_t a, b, e;

    script_begin();
    EXPECT(script_claims("s1", "db", "a b"), "ok $ 0 H * ok $ 0 H *");
    a = script_number(5);
    b = script_number(LINE + 5);
    EXPECT(script_claims("s1", "db", "a b"), "ok $ 0 H * ok $ 0 H *");
    CU_ASSERT(script_number(5) == a && script_number(LINE + 5) == b);
    TEST_INT(script_used("db"), 2);
    EXPECT(script_claims("s1", "db", "a c b d e"), "ok $ 0 H * ok $ 0 H * ok $ 0 H * ok $ 0 H * ok $ 0 W * 0 * 1 *"); /* a and b again, and three new claims */
    CU_ASSERT(script_number(5) == a && script_number(2 * LINE + 5) == b);
    CU_ASSERT(script_number(LINE + 5) > b && script_number(3 * LINE + 5) > script_number(LINE + 5));
    CU_ASSERT(script_number(LINE + 6) == b && script_number(3 * LINE + 6) == script_number(LINE + 5));
    e = script_number(4 * LINE + 4);
    EXPECT(script_claims("s1", "db", "e d"), "ok $ 0 W * 0 * 1 * ok $ 0 H *");
    CU_ASSERT(script_number(4) == e);
    TEST_INT(script_used("db"), 4);
    TEST_INT(script_claims_of("s1"), 5);
    TEST_INT(redis_number(&script_server, "ZCARD berth:{t}:pool:db:queue"), 1);
    script_end();
}

/* The host's next session sends the claims again: they and their grants belong to that session. */
static void test_session_moved(void) {
    script_begin();
    EXPECT(script_claims("s1", "db", "a b c d e"), "ok $ 0 H * ok $ 0 H * ok $ 0 H * ok $ 0 H * ok $ 0 W *");
    EXPECT(script_claims("s2", "db", "a e"), "ok $ 0 H * ok $ 0 W *");
    TEST_INT(script_claims_of("s1"), 3);
    TEST_INT(script_claims_of("s2"), 2);
    EXPECT(script_field("claims", "a"), "H * s2 db:1 *");
    EXPECT(script_say("releases s1 1 $ a e"), "ok $ 0 ok $ 0");
    TEST_INT(script_used("db"), 4);
    EXPECT(script_say("release s1 1 $ b"), "ok $ 0 * *");
    TEST_INT(script_state("e"), 'H');
    CU_ASSERT(redis_number(&script_server, "HEXISTS berth:{t}:claims e") == 1);
    EXPECT(script_beat("s2", 0, 0), "ok $ 0 0 * * 2 *");
    CU_ASSERT(script_number(5) > 0); /* the last token granted to the session */
    script_end();
}

/* --- epochs --- */

static void test_failover(void) {
    script_begin();
    script_fail_over();
    EXPECT(script_claims("s1", "db", "a b"), "epoch ");
    EXPECT(script_say("claims s1 1 1 db 100 a 0_7_r_name b 0_7_r_name"), "epoch ");
    TEST_INT(script_state("a"), '-');
    TEST_INT(script_used("db"), 0);
    EXPECT(script_hello("s1", 1, 2, "db 4 net 2"), "ok * 0 1 *");
    script_learn_new_epoch();
    EXPECT(script_claims("s1", "db", "a b"), "ok $ 0 W * 0 0 1 * ok $ 0 W * 0 0 2 *"); /* free, but Redis is in grace */
    TEST_INT(script_used("db"), 0);
    EXPECT(script_beat("s1", 0, LEASE), "ok $ 0 0 *");
    TEST_INT(script_state("a"), 'H'); /* claims queued in grace stay queued */
    TEST_INT(script_state("b"), 'H');
    script_end();
}

/* A failover is detected at the next grant. Claims that were queued before it stay queued. */
static void test_failover_midway(void) {
    script_begin();
    EXPECT(script_claim("s2", "x", "db 3 100"), "ok $ 0 H *");
    EXPECT(script_claim("s2", "y", "db 2 100"), "ok $ 0 W *");
    script_fail_over();
    EXPECT(script_say("claims s1 1 $ db 100 a 0_7_r_name b 60000000_7_r_name c 0_7_r_name"), "epoch ");
    uint64_t ticket = strtoull(script_field("meta", "clock"), NULL, 10);
    TEST_INT(script_state("a"), 'W');
    TEST_INT(script_state("b"), '-');
    TEST_INT(script_state("c"), '-');
    TEST_INT(script_used("db"), 3);
    TEST_INT(script_claims_of("s1"), 1);
    EXPECT(script_hello("s1", 1, 2, "db 4 net 2"), "ok * 0 1 *");
    script_learn_new_epoch();
    CU_ASSERT(strtoull(script_field("meta", "began"), NULL, 10) > ticket);
    script_end();
}

/* Claims that were held in an earlier epoch wait, because another claim may have got their permits. */
static void test_doubtful(void) {
    script_begin();
    EXPECT(script_claims("s1", "db", "a b"), "ok $ 0 H * ok $ 0 H *");
    script_fail_over();
    EXPECT(script_hello("s1", 1, 2, "db 4 net 2"), "ok * 0 1 *");
    script_learn_new_epoch();
    EXPECT(script_claims("s1", "db", "a c b"), "ok $ 0 W * 0 * 1 * ok $ 0 W * 0 * 2 * ok $ 0 W * 0 * 3 *");
    TEST_INT(script_used("db"), 0);
    TEST_INT(script_claims_of("s1"), 3);
    EXPECT(script_beat("s1", 0, LEASE), "ok $ 0 0 *");
    EXPECT(script_claims("s1", "db", "b a"), "ok $ 0 H * ok $ 0 H *");
    TEST_INT(script_used("db"), 3);
    script_end();
}

/* --- unsettled pools --- */

/* Each grant names the previous grant of the same session. */
static void test_debt(void) {
    uint64_t token;

    script_begin();
    script_fail_over();
    EXPECT(script_hello("s1", 1, 2, "db 4 net 2"), "ok * 0 1 *");
    script_learn_new_epoch();
    EXPECT(script_claim("s1", "a", "db 2 100"), "ok $ 0 W *");
    EXPECT(script_beat("s1", 0, LEASE), "ok $ 0 0 *");
    EXPECT(script_claims("s1", "db", "b c d"), "ok $ 0 H * ok $ 0 H * ok $ 0 W *");
    token = (uint64_t) redis_number(&script_server, "EVAL %s 1 berth:{t}:claims",
                                    "return tonumber(string.match(redis.call('HGET', KEYS[1], 'a'), '^H (%d+) '))");
    CU_ASSERT(token > 0 && script_number(6) == token && script_number(5) > token);
    TEST_INT(redis_number(&script_server, "HEXISTS " META " unsettled"), 0);
    script_end();
}

static void test_debt_in_parts(void) {
    script_begin();
    script_tell("FLUSHALL");
    EXPECT(script_hello("s1", 1, 1, "db 400"), "ok *");
    script_learn_epoch();
    for (int i = 0; i < 300; i++)
        (void) script_sayf("claim s1 1 $ p%03d 0_0_r_name 0 0 db 1 1000", i);
    EXPECT(script_beat("s1", 0, LEASE), "ok $ 1 0 *"); /* one call does not settle all; the rest stays unsettled */
    EXPECT(script_say("claims s1 1 $ db 1000 late 0_0_r_name later 0_0_r_name"), "ok $ 0 W * 0 * 173 * ok $ 0 W * 0 * 174 *");
    TEST_INT(script_used("db"), 128);
    EXPECT(script_beat("s1", 0, 0), "ok $ 1 0 *");
    EXPECT(script_beat("s1", 0, 0), "ok $ 0 0 *");
    TEST_INT(script_used("db"), 302);
    script_end();
}

/* --- numbers and refusals --- */

static void test_numbers(void) {
    script_begin();
    script_tell("HSET " META " clock 4102444800000000"); /* the year 2100: Redis's clock was set back */
    EXPECT(script_claims("s1", "db", "a b"), "ok $ 0 H 4102444800000001 4102444800000001 0 0 * "
           "ok $ 0 H 4102444800000002 4102444800000002 4102444800000001 0 *");
    EXPECT(script_claims("s1", "db", "c d e"), "ok $ 0 H 4102444800000003 4102444800000003 4102444800000002 0 * "
           "ok $ 0 H 4102444800000004 4102444800000004 4102444800000003 0 * ok $ 0 W 4102444800000005 0 4102444800000004 1 *");
    EXPECT(script_field("meta", "clock"), "4102444800000005");
    EXPECT(script_say("releases s1 1 $ b a"), "ok $ 0 4102444800000005 4102444800000002 ok $ 0 4102444800000005 4102444800000001");
    EXPECT(script_field("claims", "e"), "H 4102444800000006 s1 db:1 4102444800000005 *");
    EXPECT(script_field("meta", "clock"), "4102444800000006");
    script_end();
}

static void test_gates(void) {
    script_begin();
    EXPECT(script_say("claims s9 1 $ db 100 a 0_7_r_name b 0_7_r_name"), "gone");
    EXPECT(script_say("claims s1 2 $ db 100 a 0_7_r_name b 0_7_r_name"), "stale");
    EXPECT(script_say("claims s1 1 1 db 100 a 0_7_r_name b 0_7_r_name"), "epoch $");
    TEST_INT(script_claims_of("s1"), 0);
    script_tell("CONFIG SET maxmemory 1000");
    EXPECT(script_claims("s1", "db", "a b"), "OOM *"); /* like claim (R13) */
    script_tell("CONFIG SET maxmemory 0");
    EXPECT(script_claims("s1", "db", "a b"), "ok $ 0 H *");
    script_end();
}

static CU_TestInfo tests[] = {
    {"all granted", test_granted},
    {"part fits", test_part_fits},
    {"claims wait", test_somebody_waits},
    {"noted limit", test_noted_limit},
    {"undeclared", test_undeclared},
    {"paused", test_paused},
    {"queue full", test_queue_full},
    {"requested again", test_again},
    {"session moved", test_session_moved},
    {"failover", test_failover},
    {"failover midway", test_failover_midway},
    {"doubtful", test_doubtful},
    {"unsettled", test_debt},
    {"debt in parts", test_debt_in_parts},
    {"numbers", test_numbers},
    {"gates", test_gates},
    CU_TEST_INFO_NULL,
};

TEST_MAIN(script_main(argc, argv, suites), {.pName = "scripts, claims", .pTests = tests})
