/* SPDX-License-Identifier: MIT */
/* The loop of front/, which the Makefile links into this program. */
#include "tests/harness/event-suite.h"
#include "tests/harness/test.h"

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "event loop", .pTests = event_suite}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
