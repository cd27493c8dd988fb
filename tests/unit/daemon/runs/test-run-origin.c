/* SPDX-License-Identifier: MIT */

/* The origin of a run, as fields of a record or a message. */

#include "daemon/runs/run-origin.h"

#include <string.h>

#include "tests/harness/test.h"

#define RUN "0123456789abcdef0123456789abcdef"
#define FIRST "fedcba9876543210fedcba9876543210"

static void read_back(const struct run_origin *origin, struct run_origin *ret) {
    struct message_writer w;
    struct message m;

    message_begin(&w, "start");
    run_origin_put(origin, &w);
    TEST_INT(w.error, 0);
    TEST_INT(message_parse(&m, w.text, w.size), 0);
    run_origin_init(ret, RUN);
    TEST_INT(run_origin_read(ret, &m), 0);
}

static void test_plain(void) {
    struct run_origin origin, copy;

    run_origin_init(&origin, RUN);
    read_back(&origin, &copy);
    TEST_INT(copy.trigger, RUN_TRIGGER_NONE);
    TEST_INT(copy.attempt, 1);
    TEST_STRING(copy.first_run, RUN);
    TEST_STRING(copy.due, "");
    TEST_INT(copy.depth, 0);
    CU_ASSERT_PTR_NULL(copy.of);
}

static void test_all(void) {
    const char *of = "of-job=pg-dump\nof-reason=a = b\nof-signal=\n";
    struct run_origin origin = {.trigger = RUN_TRIGGER_HOOK,
                                .due = "2027-03-28T03:00:00+02:00",
                                .first_run = FIRST,
                                .attempt = 3,
                                .depth = 2};
    struct run_origin copy = {}, second = {};

    TEST_INT(run_origin_set_of(&origin, of), 0);
    read_back(&origin, &copy);
    TEST_INT(copy.trigger, RUN_TRIGGER_HOOK);
    TEST_STRING(copy.due, origin.due);
    TEST_STRING(copy.first_run, FIRST);
    TEST_INT(copy.attempt, 3);
    TEST_INT(copy.depth, 2);
    TEST_STRING(copy.of->lines, of);
    TEST_INT(run_origin_copy(&second, &copy), 0);
    run_origin_done(&copy);
    TEST_STRING(second.of->lines, of);
    TEST_STRING(second.of->job, "pg-dump");
    TEST_STRING(second.of->run, "");
    run_origin_done(&second);
    run_origin_done(&origin);
}

static void test_triggers(void) {
    CU_ASSERT_PTR_NULL(run_trigger_name(RUN_TRIGGER_NONE));
    for (int trigger = RUN_TRIGGER_START; trigger <= RUN_TRIGGER_HOOK; trigger++)
        TEST_INT(run_trigger_parse(run_trigger_name((enum run_trigger) trigger)), trigger);
    TEST_INT(run_trigger_parse("cron"), RUN_TRIGGER_NONE);
}

static CU_TestInfo tests[] = {
    {"plain", test_plain},
    {"all", test_all},
    {"triggers", test_triggers},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "run-origin", .pTests = tests});
