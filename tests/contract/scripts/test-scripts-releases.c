/* SPDX-License-Identifier: MIT */

/* The scripts alone: several claims are released or withdrawn in one call, all of them before the first
 * grant. */

#include <string.h>

#include "tests/harness/redis/script.h"

#define LINE 9 /* words of the line of a claim that is not refused */

static void test_releases(void) {
    uint64_t token[3];

    script_begin();
    EXPECT(script_claims("s1", "db", "a b c"), "ok *");
    for (unsigned i = 0; i < 3; i++)
        token[i] = script_number(i * LINE + 5);
    EXPECT(script_say("releases s1 1 $ c a"), "ok $ 0 * * ok $ 0 * *");
    CU_ASSERT(script_number(3) == token[2] && script_number(4) == token[2]); /* the last number drawn */
    CU_ASSERT(script_number(8) == token[2] && script_number(9) == token[0]);
    TEST_INT(script_used("db"), 1);
    TEST_INT(script_claims_of("s1"), 1);
    TEST_INT(redis_number(&script_server, "HLEN berth:{t}:claims"), 1);
    EXPECT(script_say("releases s1 1 $ c a"), "ok $ 0 ok $ 0"); /* sent again */
    EXPECT(script_say("releases s1 1 $ a b"), "ok $ 0 ok $ 0 * *");
    TEST_INT(script_used("db"), 0);
    TEST_INT(script_claims_of("s1"), 0);
    script_end();
}

static void test_releases_of_pools(void) {
    script_begin();
    EXPECT(script_claim("s1", "a", "db 2 100"), "ok $ 0 H *");
    EXPECT(script_claim("s1", "b", "net 1 100"), "ok $ 0 H *");
    EXPECT(script_claim("s1", "c", "net 1 100 db 2 100"), "ok $ 0 H *");
    EXPECT(script_claim("s2", "d", "net 2 100 db 3 100"), "ok $ 0 W *");
    EXPECT(script_claim("s2", "e", "db 2 100"), "ok $ 0 W *");
    EXPECT(script_say("releases s1 1 $ b a"), "ok $ 0 * * ok $ 0 * *");
    CU_ASSERT(script_number(4) > script_number(9)); /* b was granted after a */
    TEST_INT(script_used("db"), 2);
    TEST_INT(script_used("net"), 1);
    TEST_INT(script_state("d"), 'W');
    EXPECT(script_say("releases s1 1 $ c"), "ok $ 0 * *");
    TEST_INT(script_state("d"), 'H');
    TEST_INT(script_state("e"), 'W'); /* d has three of four */
    EXPECT(script_say("releases s2 1 $ d e"), "ok $ 0 * * ok $ 0 * 0");
    TEST_INT(script_used("db"), 0);
    TEST_INT(script_used("net"), 0);
    EXPECT(script_claim("s1", "f", "db 1 100"), "ok $ 0 H *"); /* not alike: the fast path must not take them */
    EXPECT(script_claim("s1", "g", "net 1 100"), "ok $ 0 H *");
    EXPECT(script_claim("s1", "h", "db 2 100"), "ok $ 0 H *");
    EXPECT(script_say("releases s1 1 $ f g"), "ok $ 0 * * ok $ 0 * *");
    EXPECT(script_say("releases s1 1 $ h none"), "ok $ 0 * * ok $ 0");
    EXPECT(script_claim("s1", "i", "db 2 100"), "ok $ 0 H *");
    EXPECT(script_claim("s1", "j", "db 1 100"), "ok $ 0 H *");
    EXPECT(script_say("releases s1 1 $ i j"), "ok $ 0 * * ok $ 0 * *");
    TEST_INT(script_used("db"), 0);
    TEST_INT(script_used("net"), 0);
    script_end();
}

/* Claims that wait for the released permits are granted at once, also on the fast path (one pool, one permit
 * each). */
static void test_releases_grant(void) {
    uint64_t last;

    script_begin();
    EXPECT(script_claims("s1", "db", "a b c d"), "ok *");
    last = script_number(3 * LINE + 5);
    EXPECT(script_claim("s2", "e", "db 2 100"), "ok $ 0 W *");
    EXPECT(script_claims("s2", "db", "f g"), "ok $ 0 W * ok $ 0 W *");
    CU_ASSERT(script_number(LINE + 4) > last);
    last = script_number(LINE + 4);
    EXPECT(script_say("releases s1 1 $ a c d"), "ok $ 0 * * ok $ 0 * * ok $ 0 * *");
    CU_ASSERT(script_number(3) == last && script_number(8) == last && script_number(13) == last); /* before the grants of this call */
    TEST_INT(script_state("e"), 'H');
    TEST_INT(script_state("f"), 'H');
    TEST_INT(script_state("g"), 'W');
    TEST_INT(script_used("db"), 4);
    CU_ASSERT(redis_number(&script_server, "HGET " META " clock") > (long long) last);
    script_end();
}

/* All named claims are removed before the first grant, so none of them gets the permits of another. */
static void test_releases_before_grants(void) {
    static const char *const orders[] = {"releases s1 1 $ a w v", "releases s1 1 $ w a v", "releases s1 1 $ v w a"};

    for (size_t i = 0; i < ELEMENTSOF(orders); i++) {
        script_begin();
        EXPECT(script_claim("s1", "a", "db 4 100"), "ok $ 0 H *");
        EXPECT(script_claim("s1", "w", "db 3 100"), "ok $ 0 W *");
        EXPECT(script_claim("s1", "v", "db 1 100"), "ok $ 0 W *");
        EXPECT(script_claim("s2", "x", "db 4 100"), "ok $ 0 W *");
        uint64_t clock = script_number(4);
        EXPECT(script_say(orders[i]), "ok $ 0 * * ok $ 0 * * ok $ 0 * *");
        for (unsigned k = 0; k < 3; k++)
            CU_ASSERT(script_number(k * 5 + 3) == clock && (script_number(k * 5 + 4) == 0) == (orders[i][16 + 2 * k] != 'a'));
        TEST_INT(script_state("w"), '-');
        TEST_INT(script_state("v"), '-');
        TEST_INT(script_state("x"), 'H');
        TEST_INT(redis_number(&script_server, "EXISTS berth:{t}:pool:db:queue"), 0);
        EXPECT(script_beat("s1", 0, 0), "ok $ 0 0 * * 0 *");
        script_end();
    }
}

/* Each claim gets its own reply, in every state. */
static void test_releases_of_all_kinds(void) {
    script_begin();
    EXPECT(script_claim("s1", "h", "db 3 100"), "ok $ 0 H *");
    uint64_t token = script_number(5);
    EXPECT(script_claim("s2", "o", "net 1 100"), "ok $ 0 H *");
    EXPECT(script_claim("s1", "w", "db 2 100 net 1 100"), "ok $ 0 W *");
    EXPECT(script_claim("s1", "p", "net 3 100"), "ok $ 0 W *");
    EXPECT(script_claim("s2", "x", "net 1 100"), "ok $ 0 W *"); /* behind w */
    uint64_t clock = script_number(4);
    EXPECT(script_say("releases s1 1 $ w p o unknown h"), "ok $ 0 * 0 ok $ 0 * 0 ok $ 0 ok $ 0 ok $ 0 * *");
    CU_ASSERT(script_number(3) == clock && script_number(8) == clock && script_number(19) == clock && script_number(20) == token);
    TEST_INT(script_state("o"), 'H');
    TEST_INT(script_state("x"), 'H');
    TEST_INT(script_used("db"), 0);
    TEST_INT(script_used("net"), 2);
    TEST_INT(script_claims_of("s1"), 0);
    TEST_INT(script_claims_of("s2"), 2);
    TEST_INT(redis_number(&script_server, "HLEN berth:{t}:claims"), 2);
    TEST_INT(redis_number(&script_server, "EXISTS berth:{t}:pool:net:parked berth:{t}:pool:db:queue"), 0);
    /* Held claims of another session alone, where the fast path would apply. */
    EXPECT(script_say("releases s1 1 $ o x"), "ok $ 0 ok $ 0");
    TEST_INT(script_used("net"), 2);
    script_end();
}

/* A claim without a record cannot be released; the other hosts report again what they hold. */
static void test_releases_wipe(void) {
    script_begin();
    EXPECT(script_claims("s1", "db", "a b c"), "ok *");
    script_tell("HDEL berth:{t}:claims b");
    EXPECT(script_say("releases s1 1 $ a b"), "epoch ");
    EXPECT(script_beat("s1", 0, 0), "epoch ");
    EXPECT(script_hello("s2", 1, 2, "db 4 net 2"), "ok * 0 1 * 0 *"); /* unknown after the wipe */
    script_learn_new_epoch();
    EXPECT(script_beat("s1", 0, 0), "gone");
    TEST_INT(script_used("db"), 0);
    TEST_INT(script_state("c"), '-');
    TEST_INT(redis_number(&script_server, "HGET " META " grace"), 1);
    script_end();
}

/* If a bound is reached, `more` is set once, and the host has to call again. */
static void test_releases_in_parts(void) {
    script_begin();
    EXPECT(script_hello("s1", 1, 1, "db 200"), "ok *");
    EXPECT(script_hello("s2", 1, 1, "db 200"), "ok *");
    EXPECT(script_claim("s1", "a", "db 100 100"), "ok $ 0 H *");
    EXPECT(script_claim("s1", "b", "db 100 100"), "ok $ 0 H *");
    for (int i = 0; i < 150; i++)
        (void) script_sayf("claim s2 1 $ p%03d 0_0_r_name 0 0 db 1 1000", i);
    EXPECT(script_say("releases s1 1 $ a b"), "ok $ 1 * * ok $ 0 * *");
    TEST_INT(script_used("db"), 128);
    EXPECT(script_beat("s2", 0, 0), "ok $ 0 0 *");
    TEST_INT(script_used("db"), 150);
    script_end();
}

/* A Redis with another replication id than the epoch's grants nothing; released permits stay released. */
static void test_releases_failover(void) {
    script_begin();
    EXPECT(script_claims("s1", "db", "a b c d"), "ok *");
    EXPECT(script_claim("s2", "e", "db 1 100"), "ok $ 0 W *");
    script_fail_over();
    EXPECT(script_say("releases s1 1 $ a b"), "epoch ");
    TEST_INT(script_state("e"), 'W');
    TEST_INT(script_used("db"), 2);
    TEST_INT(redis_number(&script_server, "EXISTS berth:{t}:unsettled"), 1); /* settled after grace */
    script_end();
}

static void test_gates(void) {
    script_begin();
    EXPECT(script_claims("s1", "db", "a b"), "ok $ 0 H *");
    EXPECT(script_say("releases s9 1 $ a b"), "gone");
    EXPECT(script_say("releases s1 2 $ a b"), "stale");
    EXPECT(script_say("releases s1 1 1 a b"), "epoch $");
    TEST_INT(script_used("db"), 2);
    script_tell("CONFIG SET maxmemory 1000");
    EXPECT(script_say("releases s1 1 $ a b"), "ok $ 0 * * ok $ 0 * *"); /* like all but claims (R13) */
    script_tell("CONFIG SET maxmemory 0");
    TEST_INT(script_used("db"), 0);
    script_end();
}

static CU_TestInfo tests[] = {
    {"held", test_releases},
    {"several pools", test_releases_of_pools},
    {"with grants", test_releases_grant},
    {"before grants", test_releases_before_grants},
    {"all kinds", test_releases_of_all_kinds},
    {"a record is missing", test_releases_wipe},
    {"in parts", test_releases_in_parts},
    {"failover", test_releases_failover},
    {"gates", test_gates},
    CU_TEST_INFO_NULL,
};

TEST_MAIN(script_main(argc, argv, suites), {.pName = "scripts, releases", .pTests = tests})
