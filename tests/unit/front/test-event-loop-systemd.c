/* SPDX-License-Identifier: MIT */
/* libsystemd, with the expectations that front/event-loop.c meets. */
#include "tests/harness/event-suite.h"
#include "tests/harness/test.h"

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "event loop systemd", .pTests = event_suite}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
