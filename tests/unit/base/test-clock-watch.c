/* SPDX-License-Identifier: MIT */

/* Each setting of the clock is reported once. */

#include "base/clock-watch.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "tests/harness/clock-file.h"
#include "tests/harness/test.h"

#define HOUR (INT64_C(3600) * (int64_t) USEC_PER_SEC)

static void on_set(void *userdata) {
    ++*(unsigned *) userdata;
}

static void test_set(void) {
    static const int64_t steps[] = {-5 * HOUR, -4 * HOUR, 0, 1000 * HOUR};
    struct clock_watch watch = {};
    sd_event *event = NULL;
    unsigned n = 0;

    clock_watch_done(&watch);
    clock_file_step(&own_clock, HOUR);
    CU_ASSERT_FATAL(sd_event_new(&event) >= 0);
    TEST_INT(clock_watch_init(&watch, event, on_set, &n), 0);
    for (unsigned i = 0; i < ELEMENTSOF(steps); i++) {
        while (sd_event_run(event, 20 * USEC_PER_MSEC) > 0) /* nothing happens */
            ;
        TEST_INT(n, i);
        clock_file_step(&own_clock, steps[i]);
        CU_ASSERT(sd_event_run(event, 10 * USEC_PER_SEC) > 0);
        TEST_INT(n, i + 1);
    }
    clock_watch_done(&watch);
    clock_watch_done(&watch);
    sd_event_unref(event);
}

static CU_TestInfo tests[] = {
    {"set", test_set},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "clock-watch", .pTests = tests}, CU_SUITE_INFO_NULL};

    clock_file_own(argv);
    return test_main(argc, argv, suites);
}
