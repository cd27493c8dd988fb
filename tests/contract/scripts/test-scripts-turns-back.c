/* SPDX-License-Identifier: MIT */

/* The scripts alone: turns that their host gives back (R18). */

#include <stdio.h>

#include "tests/harness/redis/script-turns.h"

static void test_given_back(void) {
    script_begin_turns();
    EXPECT(script_turn("s1", "a", script_due_in(-9)), TAKEN "1 -");
    EXPECT(script_turned("s1", "back a 1 0 -"), "ok $ 0 * *"); /* the host is drained */
    EXPECT(script_turn("s2", "b", script_due_in(-9)), TAKEN "1 -");
    EXPECT(script_turned("s2", "commit b - -"), "ok $ 0");
    EXPECT(script_turned("s2", "back b 2 60000 r-b"), "ok $ 0 * *"); /* the run failed */
    EXPECT(script_turned("s2", "back b 2 60000 r-b"), "ok $ 0");
    EXPECT(script_turn("s1", "c", script_due_in(-9)), "later $ 0 * 2");
    CU_ASSERT(script_number(3) > 50000 && script_number(3) <= 60000);
    EXPECT(script_turn("s1", "c", script_due_in(-8)), "ok $ 0 H * 1 - [* 2 r-b]"); /* the chain is superseded */
    EXPECT(script_turn("s2", "d", script_due_in(-9)), "taken $ 0 * s1");
    EXPECT(script_turned("s1", "back c 2 0 r-c"), "ok *");
    EXPECT(script_turn("s2", "d", script_due_in(-8)), TAKEN "2 r-c");
    EXPECT(script_turned("s2", "over d"), "ok *");
    script_end_turns();
}

/* The reply is lost, and the sync makes the claim wait again. The first delay goes on. */
static void test_given_back_again(void) {
    script_begin_turns();
    EXPECT(script_turn("s1", "a", script_due_in(-9)), TAKEN "1 -");
    EXPECT(script_turned("s1", "commit a - -"), "ok $ 0");
    EXPECT(script_turned("s1", "back a 2 60000 r-a"), "ok $ 0 * *");
    EXPECT(script_say("sync s1 1 $ 0 1 1 a W 0 1700000000000000 0 0 7 r-a name @b:1"), "ok $ 0 *");
    EXPECT(script_turned("s1", "back a 2 90000 r-a"), "ok $ 0 * *");
    TEST_INT(script_used("@b"), 0);
    EXPECT(script_turn("s2", "b", script_due_in(-9)), "later $ 0 *");
    CU_ASSERT(script_number(3) > 50000 && script_number(3) <= 60000);
    script_end_turns();
}

/* The host may give its turn back again after a sync. If Redis has done so before, another host may have the
 * permit. */
static void test_given_back_and_synced(void) {
    script_begin_turns();
    EXPECT(script_turn("s1", "a", script_due_in(-9)), TAKEN "1 -");
    EXPECT(script_turned("s1", "commit a - -"), "ok $ 0");
    EXPECT(script_say("sync s1 1 $ 0 1 1 a B 1 1 0 0 7 r-a b @b:1"), "ok $ 0 0 * * [[a H *]] []");
    EXPECT(script_turned("s1", "back a 2 0 r-a"), "ok $ 0 * *");
    EXPECT(script_turn("s2", "b", script_due_in(-9)), TAKEN "2 r-a");
    EXPECT(script_say("sync s1 1 $ 0 1 1 a B 1 1 0 0 7 r-a b @b:1"), "ok $ 0 0 * * [[a - *]] []");
    TEST_INT(script_used("@b"), 1);
    EXPECT(script_turned("s2", "over b"), "ok $ 0 * *");
    script_fail_over();
    EXPECT(script_hello("s1", 2, 1, "@b 1"), "ok *");
    script_learn_new_epoch();
    EXPECT(script_say("sync s1 2 $ 0 1 1 a B 1 1 0 0 7 r-a b @b:1"),
           "ok $ 0 1 * * [[a H *]] []"); /* Redis may have lost it */
    script_end_turns();
}

/* Redis stores no time for a turn that is given back at once, because TIME may be set back. */
static void test_given_back_at_once(void) {
    char due[24];

    script_begin_turns();
    (void) snprintf(due, sizeof(due), "%" PRIu64, script_due_in(-9));
    EXPECT(script_turn("s1", "a", script_due_in(-9)), TAKEN "1 -");
    EXPECT(script_turned("s1", "back a 1 0 -"), "ok *");
    EXPECT(script_field("pool:@b:turns", due), "1 0 $ - given-back");
    EXPECT(script_turned("s2", "look @b"), "ok $ 0 [@b * [* 1 0 - given-back]]");
    EXPECT(script_turn("s2", "b", script_due_in(-9)), TAKEN "1 -");
    EXPECT(script_turned("s2", "over b"), "ok *");
    script_end_turns();
}

static CU_TestInfo tests[] = {
    {"turns: given back", test_given_back},
    {"turns: given back again", test_given_back_again},
    {"turns: given back and synced", test_given_back_and_synced},
    {"turns: given back at once", test_given_back_at_once},
    CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
    {.pName = "scripts-turns-back", .pTests = tests},
    CU_SUITE_INFO_NULL,
};

int main(int argc, char **argv) {
    return script_main(argc, argv, suites);
}
