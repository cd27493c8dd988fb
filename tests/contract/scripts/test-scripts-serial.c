/* SPDX-License-Identifier: MIT */

/* Each reply that a host acts on carries the serial number of its call. */

#include "tests/harness/redis/script.h"

/* Makes the call with serial number 77 and expects a reply of this pattern. */
#define EXPECT_NAMED(line, pattern)        \
    do {                                   \
        script_serial = "77";              \
        EXPECT(script_say(line), pattern); \
        script_serial = script_epoch;      \
    } while (0)

/* The fast paths: one pool, and no claim waits. */
static void test_fast(void) {
    script_begin();
    EXPECT_NAMED("claim s1 1 $ a 0_7_r_name 0 0 db 1 9", "ok 77 0 H *");
    EXPECT_NAMED("claims s1 1 $ db 9 b 0_7_r_name c 0_7_r_name", "ok 77 0 H * ok 77 0 H *");
    EXPECT_NAMED("release s1 1 $ a", "ok 77 0 *");
    EXPECT_NAMED("release s1 1 $ a", "ok 77 0");
    EXPECT_NAMED("releases s1 1 $ b c", "ok 77 0 * ok 77 0 *");
    EXPECT_NAMED("heartbeat s1 1 $ 0 0 0 0", "ok 77 0 0 *");
    EXPECT_NAMED("verify s1 1 $", "ok 77 0 0");
    script_end();
}

/* Claims wait, or need several pools. */
static void test_slow(void) {
    script_begin();
    EXPECT_NAMED("claim s1 1 $ a 0_7_r_name 0 0 db 4 9 net 1 9", "ok 77 0 H *");
    EXPECT_NAMED("claim s1 1 $ a 0_7_r_name 0 0 db 4 9 net 1 9", "ok 77 0 H *");
    EXPECT_NAMED("claim s1 1 $ b 0_7_r_name 0 0 db 1 9", "ok 77 0 W *");
    EXPECT_NAMED("claim s1 1 $ c 0_7_r_name 0 1 db 1 9", "refused 77 0 busy db");
    EXPECT_NAMED("claims s1 1 $ db 2 d 0_7_r_name e 0_7_r_name", "ok 77 0 W * refused 77 0 queue-full db");
    EXPECT_NAMED("verify s1 1 $ a b", "ok 77 0 0");
    EXPECT_NAMED("sync s1 1 $ 0 1 1 a W 0 1 0 1 7 r name db:4,net:1", "ok 77 0 0 *");
    EXPECT_NAMED("heartbeat s1 1 $ 0 0 0 0 1 0", "ok 77 0 0 *");
    script_end();
    script_begin();
    EXPECT_NAMED("claim s1 1 $ a 0_7_r_name 0 0 db 4 9", "ok 77 0 H *");
    EXPECT_NAMED("claims s1 1 $ db 9 b 0_7_r_name c 0_7_r_name", "ok 77 0 W * ok 77 0 W *");
    EXPECT_NAMED("release s1 1 $ a", "ok 77 0 *"); /* grants two claims */
    EXPECT_NAMED("releases s1 1 $ b c x", "ok 77 0 * ok 77 0 * ok 77 0");
    script_end();
}

static void test_operator(void) {
    script_begin();
    EXPECT_NAMED("override s1 1 $ db 0 id set 2 0 ~", "ok 77 0 *");
    EXPECT_NAMED("override s1 1 $ db 0 other set 2 0 ~", "conflict 77 *");
    EXPECT_NAMED("override s1 1 $ nothing 0 id set 2 0 ~", "unknown 77");
    EXPECT_NAMED("move s1 1 $ x first -", "unknown 77 x");
    EXPECT_NAMED("claim s1 1 $ a 0_7_r_name 0 0 db 2 9", "ok 77 0 H *");
    EXPECT_NAMED("claim s1 1 $ b 0_7_r_name 0 0 db 1 9", "ok 77 0 W *");
    EXPECT_NAMED("move s1 1 $ a first -", "held 77 a");
    EXPECT_NAMED("move s1 1 $ b by 5", "ok 77 0 *");
    EXPECT_NAMED("revoke s1 1 $ b ~", "ok 77 0 sent");
    EXPECT_NAMED("revoke s1 1 $ x ~", "unknown 77");
    script_end();
}

static void test_turns(void) {
    script_begin();
    EXPECT_NAMED("turn s1 1 $ a 0_7_r_name 1000 skip net 1 9", "ok 77 0 H * 1 -");
    EXPECT_NAMED("turn s2 1 $ b 0_7_r_name 1000 skip net 1 9", "taken 77 0 1000 s1");
    EXPECT_NAMED("turn s2 1 $ b 0_7_r_name 1001 skip net 1 9", "skipped 77 0 overlap *");
    EXPECT_NAMED("turn s2 1 $ c 0_7_r_name 9999999999 skip net 1 9", "early 77 0 *");
    EXPECT_NAMED("turned s1 1 $ commit a - -", "ok 77 0");
    EXPECT_NAMED("turned s1 1 $ commit x - -", "lost 77 0");
    EXPECT_NAMED("turned s1 1 $ hosts net", "ok 77 0 *");
    EXPECT_NAMED("turned s1 1 $ look net", "ok 77 0 *");
    EXPECT_NAMED("turned s1 1 $ stop net", "ok 77 0 *");
    EXPECT_NAMED("turned s1 1 $ marks net 1000", "ok 77 0");
    EXPECT_NAMED("turned s1 1 $ pass net 1002 p", "missed 77 0 1001");
    EXPECT_NAMED("turned s1 1 $ pass net 1000 q", "taken 77 0 *");
    EXPECT_NAMED("turned s1 1 $ report", "ok 77 0");
    EXPECT_NAMED("turned s1 1 $ over a", "ok 77 0 *");
}

int main(int argc, char **argv) {
    static CU_TestInfo tests[] = {
        {"one pool, nobody waits", test_fast},
        {"several pools, or claims wait", test_slow},
        {"an operator's calls", test_operator},
        {"turns", test_turns},
        CU_TEST_INFO_NULL,
    };
    static CU_SuiteInfo suites[] = {{.pName = "scripts-serial", .pTests = tests}, CU_SUITE_INFO_NULL};

    return script_main(argc, argv, suites);
}
