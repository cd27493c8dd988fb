/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=clock_boottime */

/* `berth watch` waits a minute for a berthd that has gone, and no longer. Its clock runs 60 times as fast. */

#include <stdlib.h>

#include "cli/verbs.h"
#include "tests/harness/host/fake-berthd.h"
#include "tests/harness/test.h"

#define FAST 60

usec_t __real_clock_boottime(void);
usec_t __wrap_clock_boottime(void);

static usec_t fast_since; /* 0: as it is */

usec_t __wrap_clock_boottime(void) {
    usec_t now = __real_clock_boottime();

    return fast_since > 0 ? fast_since + FAST * (now - fast_since) : now;
}

/* In the child, in place of `berth run`. */
static void watch(_unused_ struct fake *f) {
    char program[] = "berth", verb[] = "watch";
    char *argv[] = {program, verb, NULL};

    fast_since = __real_clock_boottime();
    exit(cli_main(2, argv));
}

static void test_gone(void) {
    usec_t began = __real_clock_boottime(), took;
    struct fake f;

    fake_init(&f);
    fake_in_child = watch;
    fake_run(&f, "", NULL);
    fake_accept(&f);
    json_decref(fake_expect(&f, "io.berth.Events"));
    fake_reply(&f, "{'parameters': {'at': '12345678:1', 'missed': 0}, 'continues': true}");
    fake_stop(&f);
    TEST_INT(fake_await_exit(&f), 69);
    took = __real_clock_boottime() - began;
    TEST_STRING(fake_errors(&f), "berth: berthd has been away for 60s\n");
    CU_ASSERT(took >= USEC_PER_SEC);
    fake_done(&f);
}

static CU_TestInfo tests[] = {{"berthd does not come back", test_gone}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "watch-away", .pTests = tests});
