/* SPDX-License-Identifier: MIT */

/* The scripts alone: patterns and their keys (doc/protocol.md, Keys). BERTH_TEST_KEYS: how many keys are used
 * once. BERTH_TEST_WAITING: for how many keys claims wait. */

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/harness/redis/script.h"

#define PARKED 150u
#define PARKED_OLD 22u /* claims that the first call leaves parked */

static void begin(const char *limits, unsigned n) {
    script_begin();
    EXPECT(script_hello("s1", 1, n, limits), "ok $ *");
    EXPECT(script_hello("s2", 1, n, limits), "ok $ *");
}

static long long keys_of(const char *pattern) {
    return redis_number(&script_server, "SCARD berth:{t}:pool:%s:keys", pattern);
}

/* Returns the number of keys, fields of `meta` and waiting pools. */
static size_t count_all(void) {
    _cleanup_reply_ redisReply *keys = redis_command(&script_server, "KEYS *");

    return keys->elements + (size_t) redis_number(&script_server, "HLEN " META) +
           (size_t) redis_number(&script_server, "SCARD berth:{t}:waiting");
}

/* Keys that are used once leave nothing behind. */
static void test_used_once(void) {
    uint64_t n = test_count("BERTH_TEST_KEYS", 3000);

    begin("t/* 1", 1);
    size_t before = count_all();
    for (uint64_t i = 0; i < n; i++) {
        bool is_contended = i % 10 == 0;
        char pools[48];

        snprintf(pools, sizeof(pools), "t/k%" PRIu64 " 1 100", i);
        EXPECT(script_claim("s1", "a", pools), "ok $ 0 H *");
        if (is_contended)
            EXPECT(script_claim("s2", "b", pools), "ok $ 0 W *");
        EXPECT(script_say("release s1 1 $ a"), "ok $ 0 *");
        if (is_contended) {
            TEST_INT(script_state("b"), 'H');
            EXPECT(script_say("release s2 1 $ b"), "ok $ 0 *");
        }
    }
    TEST_INT(count_all(), before);
    script_end();
}

/* A key ends with its last claim, however that claim ends. */
static void test_every_way_out(void) {
    begin("t/* 1 net 2", 2);
    size_t before = count_all();
    EXPECT(script_claims("s1", "t/x", "a b"), "ok $ 0 H * ok $ 0 W *");
    TEST_INT(keys_of("t/*"), 1);
    EXPECT(script_say("releases s1 1 $ a b"), "*");
    TEST_INT(count_all(), before);
    EXPECT(script_claims("s1", "t/x", "a"), "ok $ 0 H *");
    EXPECT(script_say("releases s1 1 $ a"), "*");
    TEST_INT(count_all(), before);
    EXPECT(script_claim("s1", "a", "t/x 1 100"), "ok $ 0 H *");
    EXPECT(script_claim("s2", "b", "t/x 1 100 t/y 1 100 net 2 100"), "ok $ 0 W *"); /* b is the only claim of t/y */
    TEST_INT(keys_of("t/*"), 2);
    EXPECT(script_say("release s1 1 $ a"), "ok $ 0 *");
    TEST_INT(script_state("b"), 'H');
    EXPECT(script_claim("s1", "c", "t/y 1 100"), "ok $ 0 W *");
    EXPECT(script_say("release s1 1 $ c"), "ok $ 0 *");
    EXPECT(script_say("bye s2 1"), "ok *"); /* holds b */
    TEST_INT(keys_of("t/*"), 0);
    EXPECT(script_hello("s2", 1, 2, "t/* 1 net 2"), "ok $ *");
    EXPECT(script_say("sync s2 1 $ 0 1 1"), "ok $ *");
    TEST_INT(redis_number(&script_server, "SISMEMBER berth:{t}:waiting t/x"), 0);
    TEST_INT(redis_number(&script_server, "SISMEMBER berth:{t}:waiting t/y"), 0);
    script_end();
}

/* R2, R15: after a limit was raised, each call requeues 128 parked claims. Until all are requeued, a release
 * grants nothing to them. Claims with the lowest ids are requeued first. Here the oldest claims have the
 * highest ids. */
static void test_release_waits_for_parked(void) {
    begin("t/* 2", 1);
    EXPECT(script_claim("s1", "h", "t/x 1 1000"), "ok $ 0 H *");
    EXPECT(script_claim("s1", "g", "t/x 1 1000"), "ok $ 0 H *");
    EXPECT(script_say("release s1 1 $ g"), "ok $ 0 *");
    EXPECT(script_say("override s1 1 $ t/* 0 ! set 1 0 ~"), "ok $ *");
    for (unsigned i = 0; i < PARKED_OLD; i++)
        EXPECT(script_sayf("claim s1 1 $ z%03u 0_7_r_name 0 0 t/x 2 1000", i), "ok $ 0 P *");
    uint64_t ticket = script_number(4) + 1; /* between the z claims and the a claims */
    for (unsigned i = PARKED_OLD; i < PARKED; i++)
        EXPECT(script_sayf("claim s1 1 $ a%03u 0_7_r_name 0 0 t/x 2 1000", i), "ok $ 0 P *");
    EXPECT(script_sayf("claim s2 1 $ one 0_7_r_name %" PRIu64 " 0 t/x 1 1000", ticket), "ok $ 0 W *");
    EXPECT(script_claim("s2", "two", "t/y 2 1000"), "ok $ 0 P *");
    EXPECT(script_sayf("override s1 1 $ t/* %s ! clear 0 0 ~", "0"), "conflict $ *");
    char version[32];
    snprintf(version, sizeof(version), "%" PRIu64, script_number(2));
    EXPECT(script_sayf("override s1 1 $ t/* %s ! clear 0 0 ~", version), "ok $ 1 *");
    EXPECT(script_say("release s1 1 $ h"), "ok $ *");
    TEST_INT(script_state("one"), 'W');
    for (unsigned i = 0; i < 10; i++)
        (void) script_sayf("heartbeat s1 1 $ 0 0 0 0 0 0");
    TEST_INT(script_state("z000"), 'H');
    TEST_INT(script_state("one"), 'W');
    TEST_INT(script_state("two"), 'H');
    script_end();
}

/* A claim of each key waits for the pattern's pause to end. */
static void fill_paused(unsigned n) {
    for (unsigned i = 0; i < n; i++)
        EXPECT(script_sayf("claim s1 1 $ c%u 0_7_r_name 0 0 t/k%u 1 100000", i, i), "ok $ 0 W *");
}

static usec_t longest, total;

/* Returns the number of calls until nothing is left to settle. */
static unsigned beat_until_settled(void) {
    unsigned calls = 0;

    do {
        usec_t before = clock_monotonic();

        (void) script_beat("s1", 0, 0);
        total += clock_monotonic() - before;
        if (clock_monotonic() - before > longest)
            longest = clock_monotonic() - before;
    } while (++calls < 100000 && script_number(2) > 0);
    return calls;
}

/* R15: one call visits 256 of the keys whose claims wait, however many there are. */
static void test_many_waiting(void) {
    uint64_t n = test_count("BERTH_TEST_WAITING", 1500);
    char version[32];
    usec_t before, change;
    unsigned calls;

    begin("t/* 1", 1);
    EXPECT(script_say("override s1 1 $ t/* 0 ! set 0 0 ~"), "ok $ *");
    snprintf(version, sizeof(version), "%" PRIu64, script_number(3));
    fill_paused((unsigned) n);
    before = clock_monotonic();
    EXPECT(script_sayf("override s1 1 $ t/* %s ! clear 0 0 ~", version), "ok $ *");
    change = clock_monotonic() - before;
    TEST_INT(redis_number(&script_server, "SCARD berth:{t}:unsettled") >= (long long) n - 256, 1);
    calls = beat_until_settled();
    CU_ASSERT(calls > n / 256);
    TEST_INT(redis_number(&script_server, "EXISTS berth:{t}:unsettled"), 0);
    for (uint64_t i = 0; i < n; i += 7) {
        char id[32];

        snprintf(id, sizeof(id), "c%" PRIu64, i);
        TEST_INT(script_state(id), 'H');
    }
    printf("%" PRIu64 " keys: the change took %.1f ms, %u calls of %.1f ms, at most %.1f ms\n", n, (double) change / 1000, calls, (double) total / 1000 / calls,
           (double) longest / 1000);
    script_end();
}

/* R15: calls go on until they have visited all keys, though the first ones find nothing to grant. */
static void test_many_held(void) {
    unsigned n = 600;
    char version[32];

    begin("t/* 1", 1);
    for (unsigned i = 0; i < n; i++)
        EXPECT(script_sayf("claim s1 1 $ h%u 0_7_r_name 0 0 t/k%u 1 100000", i, i), "ok $ 0 H *");
    EXPECT(script_say("override s1 1 $ t/* 0 ! set 0 0 ~"), "ok $ *");
    snprintf(version, sizeof(version), "%" PRIu64, script_number(3));
    fill_paused(n);
    EXPECT(script_sayf("override s1 1 $ t/* %s ! clear 0 0 ~", version), "ok $ 1 *");
    CU_ASSERT(redis_number(&script_server, "SCARD berth:{t}:unsettled") > 256);
    CU_ASSERT(beat_until_settled() > 1);
    TEST_INT(redis_number(&script_server, "EXISTS berth:{t}:unsettled"), 0);
    TEST_INT(redis_number(&script_server, "HEXISTS " META " unsettled"), 0);
    script_end();
}

/* R2, R15: the limit of a pattern rises, and more keys have parked claims than two calls visit. Then the claims
 * that hold the other pools of 20 younger claims are released. None of the 20 overtakes the parked claim of its
 * key, whether that key was visited or not. */
static void test_grant_waits_for_unvisited(void) {
    unsigned n = 600, n_young = 20;
    char version[32], line[1024] = "claim s1 1 $ h 0_7_r_name 0 0", id[32];

    begin("t/* 2 u/* 1", 2);
    EXPECT(script_say("override s1 1 $ t/* 0 ! set 1 0 ~"), "ok $ *");
    snprintf(version, sizeof(version), "%" PRIu64, script_number(3));
    for (unsigned i = 0; i < n_young; i++)
        (void) snprintf(line + strlen(line), sizeof(line) - strlen(line), " u/k%u 1 1000", i);
    EXPECT(script_say(line), "ok $ 0 H *");
    for (unsigned i = 0; i < n; i++)
        EXPECT(script_sayf("claim s1 1 $ p%u 0_7_r_name 0 0 t/k%u 2 1000", i, i), "ok $ 0 P *");
    for (unsigned i = 0; i < n_young; i++)
        EXPECT(script_sayf("claim s2 1 $ c%u 0_7_r_name 0 0 u/k%u 1 1000 t/k%u 1 1000", i, i, i),
               "ok $ 0 W *");
    EXPECT(script_sayf("override s1 1 $ t/* %s ! clear 0 0 ~", version), "ok $ 1 *");
    EXPECT(script_say("release s1 1 $ h"), "ok $ *");
    CU_ASSERT(redis_number(&script_server, "SCARD berth:{t}:unsettled") > 100);
    for (unsigned i = 0; i < n_young; i++) {
        snprintf(id, sizeof(id), "c%u", i);
        TEST_INT(script_state(id), 'W');
    }
    (void) beat_until_settled();
    for (unsigned i = 0; i < n; i++) {
        snprintf(id, sizeof(id), "p%u", i);
        TEST_INT(script_state(id), 'H');
    }
    script_end();
}

/* The holders of a key, its queue, or all claims are deleted. Redis drops everything, the key too, and hosts
 * report again. */
static void test_deleted(void) {
    static const char *const deleted[] = {"pool:t/x:held", "pool:t/x:queue", "claims"};

    for (size_t i = 0; i < ELEMENTSOF(deleted); i++) {
        begin("t/* 1", 1);
        EXPECT(script_claim("s1", "a", "t/x 1 100"), "ok $ 0 H *");
        EXPECT(script_claim("s2", "b", "t/x 1 100"), "ok $ 0 W *");
        TEST_INT(redis_number(&script_server, "DEL berth:{t}:%s", deleted[i]), 1);
        (void) script_say("verify s1 1 $ a");
        (void) script_say("verify s2 1 $ b");
        EXPECT(script_hello("s1", 1, 1, "t/* 1"), "ok * 0 1 *");
        script_learn_new_epoch();
        TEST_INT(keys_of("t/*"), 0);
        TEST_INT(script_used("t/x"), 0);
        EXPECT(script_say("sync s1 1 $ 0 1 1 a H 11 11 0 0 7 r-a name t/x:1"), "ok $ 0 1 *");
        EXPECT(script_hello("s2", 1, 1, "t/* 1"), "ok $ 0 1 *");
        EXPECT(script_say("sync s2 1 $ 0 1 1 b W 0 12 0 0 7 r-b name t/x:1"), "ok $ 0 1 *");
        TEST_INT(keys_of("t/*"), 1);
        EXPECT(script_beat("s1", 0, LEASE), "ok $ 0 0 *");
        EXPECT(script_say("release s1 1 $ a"), "ok $ 0 *");
        TEST_INT(script_state("b"), 'H');
        script_end();
    }
}

/* The set of keys is deleted. verify adds the keys of its claims to the set again. */
static void test_keys_deleted(void) {
    begin("t/* 1 t/full 1", 2);
    size_t before = count_all();
    EXPECT(script_claim("s1", "a", "t/x 1 100"), "ok $ 0 H *");
    EXPECT(script_claim("s2", "b", "t/full 1 100"), "ok $ 0 H *");
    EXPECT(script_claim("s2", "c", "t/full 1 100"), "ok $ 0 W *");
    TEST_INT(redis_number(&script_server, "DEL berth:{t}:pool:t/*:keys"), 1);
    EXPECT(script_say("verify s1 1 $ a"), "ok $ 0 *");
    TEST_INT(keys_of("t/*"), 1);
    EXPECT(script_say("verify s2 1 $ c"), "ok $ 0 *");
    TEST_INT(keys_of("t/*"), 2);
    EXPECT(script_say("release s1 1 $ a"), "ok $ 0 *");
    EXPECT(script_say("releases s2 1 $ b c"), "*");
    TEST_INT(count_all(), before);
    script_end();
}

/* There are more keys than one call deletes. */
static void test_many_deleted(void) {
    begin("t/* 1", 1);
    for (unsigned i = 0; i < 1200; i++)
        EXPECT(script_sayf("claim s1 1 $ c%u 0_7_r_name 0 0 t/k%u 1 100", i, i), "ok $ 0 H *");
    TEST_INT(redis_number(&script_server, "DEL berth:{t}:claims"), 1);
    EXPECT(script_say("verify s1 1 $ c7"), "epoch * broken");
    EXPECT(script_hello("s1", 1, 1, "t/* 1"), "again");
    EXPECT(script_hello("s1", 1, 1, "t/* 1"), "again");
    EXPECT(script_hello("s1", 1, 1, "t/* 1"), "ok * 0 1 *");
    script_learn_new_epoch();
    TEST_INT(keys_of("t/*"), 0);
    _cleanup_reply_ redisReply *held = redis_command(&script_server, "KEYS *held*");
    TEST_INT(held->elements, 0);
    EXPECT(script_say("sync s1 1 $ 0 1 1"), "ok $ 0 1 *");
    script_end();
}

static void test_inspect(void) {
    begin("t/* 2 t/full 3", 2);
    EXPECT(script_say("override s1 1 $ t/y 0 ! set 1 0 ~"), "ok $ *");
    EXPECT(script_say("override s1 1 $ u/y 0 ! set 1 0 ~"), "unknown *");
    EXPECT(script_claim("s1", "a", "t/x 2 100"), "ok $ 0 H *");
    EXPECT(script_claim("s1", "b", "t/x 1 100"), "ok $ 0 W *");
    EXPECT(script_claim("s1", "c", "t/y 1 100"), "ok $ 0 H *");
    EXPECT(script_claim("s1", "d", "t/full 3 100"), "ok $ 0 H *");
    const char *keys = script_say("inspect keys t/* 0");
    CU_ASSERT_PTR_NOT_NULL(strstr(keys, "t/x 2 2 1 0"));
    CU_ASSERT_PTR_NOT_NULL(strstr(keys, "t/y 1 1 0 0"));
    CU_ASSERT_PTR_NOT_NULL(strstr(keys, "t/full 3 3 0 0"));
    EXPECT(script_say("inspect pool t/x"), "ok [] 2 *");
    EXPECT(script_say("inspect pool t/full"), "ok [] 3 *");
    EXPECT(script_say("inspect pool t/y"), "ok [] 1 *");
    EXPECT(script_say("inspect pool t/*"), "ok [] 2 *");
    script_end();
}

/* An operator raises the limit of a key and clears it again, while s2 is away. A day later Redis forgets that, because no session
 * declares the key. s2 still remembers the raised limit, which must not come back. */
static void test_cleared_while_away(void) {
    begin("t/* 1", 1);
    EXPECT(script_say("override s1 1 $ t/x 0 idA set 9 0 ~"), "ok $ 0 *");
    uint64_t raised = script_number(3);
    EXPECT(script_sayf("override s1 1 $ t/x %" PRIu64 " idB clear 0 0 ~", raised), "ok $ 0 *");
    uint64_t day_after = script_number(3) + 24 * 3600 * USEC_PER_SEC;
    _cleanup_reply_ redisReply *r = redis_command(&script_server, "HSET " META " clock %" PRIu64, day_after + 2000000);
    CU_ASSERT(r && r->type == REDIS_REPLY_INTEGER);
    EXPECT(script_say("override s1 1 $ t/y 0 idC set 1 1 ~"), "ok $ 0 *");
    EXPECT(script_beat("s1", 0, 0), "ok $ 0 0 *"); /* ends that one, and looks at all others */
    TEST_STRING(script_field("meta", "o:t/x"), "nothing");

    EXPECT(script_sayf("hello s2 2 ~ s2 m1 v1 %d 0 0 $ 0 0 0 ! 1 t/* 1 t/x %" PRIu64 " 9 0 idA ~ ~", LEASE, raised),
           "ok $ 0 0 * 1 * [[t/y *] [t/x * - 0 idA  ]] [] [] [] [] *");
    CU_ASSERT(strtoull(strstr(script_shown, "[t/x ") + 5, NULL, 10) > day_after); /* so that s2 forgets it, too */
    EXPECT(script_claim("s1", "a", "t/x 1 100"), "ok $ 0 H *");
    EXPECT(script_claim("s1", "b", "t/x 1 100"), "ok $ 0 W *");
    script_end();
}

static CU_TestInfo tests[] = {
    {"keys that are used once", test_used_once},
    {"every way out", test_every_way_out},
    {"a release waits for parked claims", test_release_waits_for_parked},
    {"claims of many keys wait", test_many_waiting},
    {"many keys are held", test_many_held},
    {"a grant waits for keys that no call has visited", test_grant_waits_for_unvisited},
    {"deleted keys", test_deleted},
    {"many keys deleted", test_many_deleted},
    {"the set of keys deleted", test_keys_deleted},
    {"inspect", test_inspect},
    {"a key's override is cleared while a host is away", test_cleared_while_away},
    CU_TEST_INFO_NULL,
};

TEST_MAIN(script_main(argc, argv, suites), {.pName = "scripts-keyed", .pTests = tests})
