/* SPDX-License-Identifier: MIT */

/* The scripts alone: turns (R18). Pool @b, with one permit, belongs to a job that s1 and s2 define. */

#include "tests/harness/redis/script-turns.h"

static void test_once(void) {
    uint64_t due;

    script_begin_turns();
    due = script_due_in(-1);
    EXPECT(script_turn("s1", "a", due), TAKEN "1 -");
    EXPECT(script_turn("s2", "b", due), "taken $ 0 * s1");
    CU_ASSERT(script_number(3) == due);
    EXPECT(script_turn("s2", "c", due - 60), "taken $ 0 * s1"); /* a later due time is decided */
    EXPECT(script_turn("s1", "a", due), TAKEN "1 -");           /* R6 */
    TEST_INT(script_used("@b"), 1);
    EXPECT(script_turned("s1", "commit a - -"), "ok $ 0");
    EXPECT(script_turned("s1", "commit a - -"), "ok $ 0");
    EXPECT(script_turned("s2", "commit a - -"), "lost $ 0");
    EXPECT(script_turned("s1", "over a"), "ok $ 0 * *");
    EXPECT(script_turned("s1", "over a"), "ok $ 0");
    EXPECT(script_turned("s1", "commit a - -"), "lost $ 0");
    TEST_INT(script_used("@b"), 0);
    EXPECT(script_turn("s2", "b", due), "taken $ 0 * s1");
    EXPECT(script_turn("s2", "b", script_due_in(0)), TAKEN "1 -");
    EXPECT(script_turned("s2", "over b"), "ok $ 0 * *");
    script_end_turns();
}

static void test_early(void) {
    script_begin_turns();
    EXPECT(script_turn("s1", "a", script_due_in(86400)), "early $ 0 *");
    CU_ASSERT(script_number(3) > 86330000 && script_number(3) <= 86340000);
    EXPECT(script_turn("s1", "a", script_due_in(50)), TAKEN "1 -");
    EXPECT(script_sayf("turned s2 1 $ pass @b %" PRIu64 " m", script_due_in(86400)), "early $ 0 *");
    EXPECT(script_turned("s1", "over a"), "ok *");
    script_end_turns();
}

static void test_overlap(void) {
    script_begin_turns();
    EXPECT(script_claim("s2", "x", "@b 1 100"), "ok $ 0 H *"); /* berth start */
    EXPECT(script_turn("s1", "a", script_due_in(-9)), "skipped $ 0 overlap r-x s2");
    EXPECT(script_turn("s1", "a", script_due_in(-9)), "skipped $ 0 overlap r-x s2"); /* the answer was lost */
    EXPECT(script_turn("s2", "b", script_due_in(-9)), "taken $ 0 * s1");
    EXPECT(script_turn_as("s1", "c", script_due_in(-8), "queue"), "ok $ 0 W * 1 -");
    EXPECT(script_turn_as("s2", "d", script_due_in(-7), "queue"), "skipped $ 0 overlap r-x s2");
    EXPECT(script_turned("s1", "commit c - -"), "waits $ 0");
    EXPECT(script_say("release s2 1 $ x"), "ok *");
    TEST_INT(script_state("c"), 'H');
    EXPECT(script_turned("s1", "commit c - -"), "ok $ 0");
    EXPECT(script_turned("s1", "over c"), "ok *");
    EXPECT(script_sayf("turn s1 1 $ e 0_7_r_b %" PRIu64 " allow @b 1 0", script_due_in(-6)), TAKEN "1 -");
    EXPECT(script_sayf("turn s1 1 $ f 0_7_r_b %" PRIu64 " allow @b 1 0", script_due_in(-5)), "skipped $ 0 queue-full @b -");
    EXPECT(script_turned("s1", "over e"), "ok *");
    script_end_turns();
}

/* The answer to a skip may be lost, and no other host logs the skip. So the same question gets the same answer, whatever
 * was decided since, until eight others were skipped. */
static void test_skipped_again(void) {
    char id[4] = "k0";

    script_begin_turns();
    EXPECT(script_claim("s2", "x", "@b 1 100"), "ok $ 0 H *");
    EXPECT(script_turn("s1", "a", script_due_in(-20)), "skipped $ 0 overlap r-x s2");
    EXPECT(script_turn("s1", "k0", script_due_in(-19)), "skipped $ 0 overlap r-x s2");
    EXPECT(script_say("release s2 1 $ x"), "ok *");
    EXPECT(script_turn("s2", "b", script_due_in(-18)), TAKEN "1 -");
    EXPECT(script_turn("s1", "a", script_due_in(-20)), "skipped $ 0 overlap r-x s2");
    EXPECT(script_turned("s2", "back b 2 0 r-b"), "ok *");
    EXPECT(script_claim("s2", "x", "@b 1 100"), "ok $ 0 H *");
    EXPECT(script_turn("s1", "c", script_due_in(-18)), "skipped $ 0 overlap r-x s2"); /* not the latest due time, but an open one */
    EXPECT(script_say("release s2 1 $ x"), "ok *");
    EXPECT(script_turn("s2", "d", script_due_in(-17)), TAKEN "1 -");
    EXPECT(script_turn("s1", "c", script_due_in(-18)), "skipped $ 0 overlap r-x s2");
    for (id[1] = '1'; id[1] <= '5'; id[1]++)
        EXPECT(script_turn("s1", id, script_due_in(id[1] - '0' - 17)), "skipped $ 0 overlap r-d s2");
    EXPECT(script_turn("s1", "a", script_due_in(-20)), "skipped $ 0 overlap r-x s2");
    EXPECT(script_turn("s1", id, script_due_in(-11)), "skipped $ 0 overlap r-d s2");
    EXPECT(script_turn("s1", "a", script_due_in(-20)), "taken $ 0 * s1");
    EXPECT(script_turn("s1", "k0", script_due_in(-19)), "skipped $ 0 overlap r-x s2");
    EXPECT(script_turned("s2", "over d"), "ok *");
    script_end_turns();
}

/* If the host dies before the commit, another one takes the turn; after the commit only if the job has a next attempt. */
static void test_burial(void) {
    script_begin_turns();
    EXPECT(script_turn("s2", "a", script_due_in(-9)), TAKEN "1 -");
    EXPECT(script_say("bye s2 1"), "ok *");
    EXPECT(script_turned("s1", "look @b"), "ok $ 0 [@b * [* 1 0 - host-lost]]");
    EXPECT(script_turn("s1", "b", script_due_in(-8)), "skipped $ 0 overlap - -"); /* the open turn counts as an overlap */
    EXPECT(script_turn_as("s1", "c", script_due_in(-9), "skip"), TAKEN "1 -");
    EXPECT(script_turned("s1", "look @b"), "ok $ 0 [@b ??????????]");
    EXPECT(script_turned("s1", "commit c 0 r-c"), "ok $ 0");
    EXPECT(script_say("bye s1 1"), "ok *");
    EXPECT(script_hello("s3", 1, 1, "@b 1"), "ok *");
    EXPECT(script_say("sync s3 1 $ 0 1 1"), "ok *");
    EXPECT(script_turn_as("s3", "d", script_due_in(-9), "skip"), TAKEN "2 r-c");
    EXPECT(script_turned("s3", "commit d - -"), "ok $ 0");
    EXPECT(script_say("bye s3 1"), "ok *");
    EXPECT(script_hello("s4", 1, 1, "@b 1"), "ok *");
    EXPECT(script_turned("s4", "look @b"), "ok $ 0 [@b ??????????]"); /* over */
    script_end_turns();
}

/* Overlap alone decides about a `berth start`. Decided due times do not matter. */
static void test_started(void) {
    script_begin_turns();
    EXPECT(script_turn("s1", "a", script_due_in(-9)), TAKEN "1 -");
    EXPECT(script_turn("s2", "b", 0), "skipped $ 0 overlap r-a s1");
    EXPECT(script_turn_as("s2", "c", 0, "queue"), "ok $ 0 W * 1 -");
    EXPECT(script_turn_as("s2", "d", 0, "queue"), "skipped $ 0 overlap r-a s1");
    EXPECT(script_turned("s1", "over a"), "ok *");
    EXPECT(script_turn_as("s2", "c", 0, "queue"), "ok $ 0 H * 1 -"); /* the answer was lost */
    EXPECT(script_turn("s1", "e", script_due_in(-8)), "skipped $ 0 overlap r-c s2");
    EXPECT(script_say("release s2 1 $ c"), "ok *");
    EXPECT(script_turn("s1", "f", script_due_in(-9)), "taken $ 0 * s1"); /* c, a start, has decided no due time */
    EXPECT(script_turn("s1", "f", script_due_in(-7)), TAKEN "1 -");
    EXPECT(script_turned("s1", "back f 2 60000 r-f"), "ok *");
    EXPECT(script_turn("s2", "g", 0), "ok $ 0 H * 1 - [* 2 r-f]"); /* another trigger ends the attempts */
    EXPECT(script_say("release s2 1 $ g"), "ok *");
    EXPECT(script_sayf("turn s2 1 $ h 0_7_r_b 0 skip @b 1 0"), "ok $ 0 H *");
    EXPECT(script_say("release s2 1 $ h"), "ok *");
    script_end_turns();
}

/* Hosts that define the job receive a push, with a number that lets them notice a lost push. */
static void test_pushes(void) {
    script_begin_turns();
    script_tell("DEL " PUSHES);
    EXPECT(script_turn("s1", "a", script_due_in(-9)), TAKEN "1 -");
    EXPECT(script_say_failing("turned s1 1 $ back a 1 500 -", 999), "ok *");
    {
        _cleanup_reply_ redisReply *r = redis_command(&script_server, "LRANGE " PUSHES " 0 -1");

        CU_ASSERT_FATAL(r && r->elements == 1); /* not its own host */
        EXPECT(r->element[0]->str, "turn $ 0 * @b * 1 500 given-back");
    }
    EXPECT(script_beat("s2", 0, 0), "ok $ 0 0 * *");
    CU_ASSERT(script_number(5) > 0); /* the number of that push */
    script_tell("DEL " PUSHES);
    script_end_turns();
}

static void test_missed(void) {
    script_begin_turns();
    EXPECT(script_turn("s1", "a", script_due_in(-90)), TAKEN "1 -");
    EXPECT(script_turned("s1", "back a 1 0 -"), "ok *");
    EXPECT(script_sayf("turned s2 1 $ pass @b %" PRIu64 " m1", script_due_in(-90)), "missed $ 0 *");
    EXPECT(script_turned("s1", "look @b"), "ok $ 0 [@b ??????????]");
    EXPECT(script_sayf("turned s2 1 $ pass @b %" PRIu64 " m2", script_due_in(-30)), "missed $ 0 *");
    CU_ASSERT(script_number(3) == script_due_in(-90));
    EXPECT(script_sayf("turned s2 1 $ pass @b %" PRIu64 " m2", script_due_in(-30)), "missed $ 0 *");
    EXPECT(script_sayf("turned s1 1 $ pass @b %" PRIu64 " m3", script_due_in(-30)), "taken $ 0 * s2");
    /* Its answer was lost, and a later due time is decided. */
    EXPECT(script_sayf("turned s2 1 $ pass @b %" PRIu64 " m1", script_due_in(-90)), "missed $ 0 *");
    EXPECT(script_turn("s1", "b", script_due_in(-60)), "taken $ 0 * s2");
    script_end_turns();
}

/* The hosts and open turns of a job, for `berth next`. */
static void test_hosts(void) {
    script_begin_turns();
    EXPECT(script_turned("s2", "hosts @b"), "ok $ 0 [s1 * s2 *] []");
    EXPECT(script_turn("s1", "a", script_due_in(-9)), TAKEN "1 -");
    EXPECT(script_turned("s1", "back a 2 60000 r-a"), "ok $ 0 * *");
    EXPECT(script_turned("s2", "hosts @b"), "ok $ 0 [s1 * s2 *] [[* 2 *]]");
    EXPECT(script_turned("s2", "stop @b"), "ok $ 0 [[* 2 r-a]] []");
    EXPECT(script_say("bye s2 1"), "ok *");
    EXPECT(script_turned("s1", "hosts @b"), "ok $ 0 [s1 *] []");
    EXPECT(script_turned("s1", "hosts @c"), "ok $ 0 [] []");
    script_end_turns();
}

/* `berth stop` on another host than that of the turn. */
static void test_ended(void) {
    script_begin_turns();
    EXPECT(script_turned("s2", "stop @b"), "ok $ 0 [] []");
    EXPECT(script_turn("s1", "a", script_due_in(-9)), TAKEN "1 -");
    EXPECT(script_turned("s2", "stop @b"), "ok $ 0 [] [[r-a s1 1]]");
    EXPECT(script_turned("s1", "stop @b"), "ok $ 0 [] []"); /* berthd knows its own */
    EXPECT(script_turn_as("s1", "c", script_due_in(-8), "queue"), "ok $ 0 W * 1 -");
    EXPECT(script_turned("s2", "stop @b"), "ok $ 0 [] [[r-a s1 1] [r-c s1 0]]");
    EXPECT(script_turned("s1", "over c"), "ok *");
    EXPECT(script_turned("s1", "back a 2 60000 r-a"), "ok $ 0 * *");
    EXPECT(script_turned("s2", "stop @b"), "ok $ 0 [[* 2 r-a]] []");
    EXPECT(script_turned("s2", "stop @b"), "ok $ 0 [] []");
    EXPECT(script_turn("s2", "b", script_due_in(-9)), "taken $ 0 * s1");
    EXPECT(script_turn("s2", "b", script_due_in(-7)), TAKEN "1 -"); /* the next due time is not ended */
    EXPECT(script_turned("s2", "over b"), "ok *");
    script_end_turns();
}

/* Redis may have lost data: turns that were taken or open are void, and the marks are those that hosts report. */
static void test_epochs(void) {
    script_begin_turns();
    EXPECT(script_turn("s1", "a", script_due_in(-9)), TAKEN "1 -");
    script_fail_over();
    EXPECT(script_turned("s1", "commit a - -"), "epoch*");
    EXPECT(script_hello("s1", 2, 1, "@b 1"), "ok *");
    script_learn_new_epoch();
    EXPECT(script_sayf("sync s1 2 $ 0 1 1 a H %" PRIu64 " %" PRIu64 " 0 0 7 r-a b @b:1", (uint64_t) 1, (uint64_t) 1), "ok *");
    EXPECT(script_say("turned s1 2 $ commit a - -"), "lost $ 0");
    EXPECT(script_sayf("turned s1 2 $ report a T @b %" PRIu64 " 1 - -", script_due_in(-9)), "ok $ 0");
    EXPECT(script_say("turned s1 2 $ commit a - -"), "ok $ 0"); /* also in grace: it was decided before */
    EXPECT(script_sayf("turn s1 2 $ b 0_7_r_b %" PRIu64 " skip @b 1 100", script_due_in(-5)), "grace $ 0");
    EXPECT(script_sayf("turned s1 2 $ pass @b %" PRIu64 " m", script_due_in(-5)), "grace $ 0");
    script_tell("FLUSHALL");
    EXPECT(script_hello("s2", 2, 1, "@b 1"), "ok *");
    script_learn_new_epoch();
    EXPECT(script_say("sync s2 2 $ 0 1 1"), "ok *");
    EXPECT(script_sayf("turned s2 2 $ marks @b %" PRIu64, script_due_in(-9)), "ok $ 0");
    EXPECT(script_sayf("turned s2 2 $ marks @b %" PRIu64, script_due_in(-99)), "ok $ 0");
    EXPECT(script_sayf("turned s2 2 $ marks @b %" PRIu64, script_due_in(86400)), "ok $ 0"); /* a wrong clock decided that */
    script_tell("HDEL " META " grace grace_elapsed");
    EXPECT(script_sayf("turn s2 2 $ c 0_7_r_b %" PRIu64 " skip @b 1 100", script_due_in(-9)), "taken $ 0 * -");
    freeReplyObject(redis_command(&script_server, "HSET berth:{t}:pool:@b:turns last %s", "1 old"));
    EXPECT(script_sayf("turn s2 2 $ c 0_7_r_b %" PRIu64 " skip @b 1 100", script_due_in(-9)), "taken $ 0 * -"); /* not by that host */
    EXPECT(script_sayf("turned s2 2 $ pass @b %" PRIu64 " m", script_due_in(-9)), "taken $ 0 * -");
    EXPECT(script_sayf("turn s2 2 $ c 0_7_r_b %" PRIu64 " skip @b 1 100", script_due_in(-8)), TAKEN "1 -");
    EXPECT(script_say("bye s2 2"), "ok *");
    EXPECT(script_hello("s3", 1, 1, "@b 1"), "ok *");
    EXPECT(script_sayf("turned s3 1 $ look @b"), "ok $ 0 [@b * [* 1 0 - host-lost]]");
    script_fail_over();
    EXPECT(script_hello("s3", 2, 1, "@b 1"), "ok *");
    script_learn_new_epoch();
    EXPECT(script_sayf("turned s3 2 $ look @b"), "ok $ 0 [@b ??????????]");
    script_end_turns();
}

/* A host that has forgotten the run syncs. */
static void test_forgotten(void) {
    script_begin_turns();
    EXPECT(script_turn("s1", "a", script_due_in(-9)), TAKEN "1 -");
    EXPECT(script_hello("s1", 2, 1, "@b 1"), "ok *");
    EXPECT(script_say("sync s1 2 $ 0 1 1"), "ok *");
    EXPECT(script_turn("s2", "b", script_due_in(-9)), TAKEN "1 -");
    EXPECT(script_turned("s2", "over b"), "ok *");
    EXPECT(script_turn("s2", "c", script_due_in(-8)), TAKEN "1 -");
    EXPECT(script_turned("s2", "commit c 0 r-c"), "ok $ 0");
    EXPECT(script_hello("s2", 2, 1, "@b 1"), "ok *");
    EXPECT(script_say("sync s2 2 $ 0 1 1"), "ok *"); /* it has noted the end: no next attempt */
    EXPECT(script_say("turned s2 2 $ look @b"), "ok $ 0 [@b ??????????]");
    EXPECT(script_turn("s1", "c", script_due_in(-1)), "stale");
    EXPECT(script_turned("s1", "commit a - -"), "stale");
    EXPECT(script_turn("s9", "c", script_due_in(-1)), "gone");
    EXPECT(script_turned("s9", "commit a - -"), "gone");
    script_end_turns();
}

/* Marks of a job that no host has defined for 400 days are deleted; others stay. */
static void test_old_marks(void) {
    script_begin_turns();
    EXPECT(script_say("turned s1 1 $ marks @old 1500000000 @b 1500000000"), "ok $ 0");
    TEST_INT(redis_number(&script_server, "ZCARD berth:{t}:marks"), 2);
    EXPECT(script_turned("s1", "look"), "ok $ 0");
    TEST_INT(redis_number(&script_server, "ZCARD berth:{t}:marks"), 1);
    EXPECT(script_turned("s1", "look @b"), "ok $ 0 [@b 1500000000]");
    script_end_turns();
}

static void test_full(void) {
    script_begin_turns();
    EXPECT(script_turn("s1", "a", script_due_in(-9)), TAKEN "1 -");
    script_tell("CONFIG SET maxmemory 1");
    EXPECT(script_turn("s2", "b", script_due_in(-8)), "OOM *");
    EXPECT(script_turned("s1", "commit a - -"), "ok $ 0");
    EXPECT(script_turned("s1", "over a"), "ok *");
    script_tell("CONFIG SET maxmemory 0");
    script_end_turns();
}

static CU_TestInfo tests[] = {
    {"turns: a due time is decided once", test_once},
    {"turns: a due time far ahead is not decided", test_early},
    {"turns: a due time meets a run", test_overlap},
    {"turns: skipped again", test_skipped_again},
    {"turns: of a host that ends", test_burial},
    {"turns: berth start", test_started},
    {"turns: hosts receive those that open", test_pushes},
    {"turns: ended by an operator", test_ended},
    {"turns: hosts that may begin a job", test_hosts},
    {"turns: missed due times", test_missed},
    {"turns: a new epoch", test_epochs},
    {"turns: a sync without the run", test_forgotten},
    {"turns: old marks are deleted", test_old_marks},
    {"turns: a full Redis takes no new one", test_full},
    CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
    {.pName = "scripts-turns", .pTests = tests},
    CU_SUITE_INFO_NULL,
};

int main(int argc, char **argv) {
    return script_main(argc, argv, suites);
}
