/* SPDX-License-Identifier: MIT */

/* The main of test programs that define TEST_SUITES(). It is a file of its own, because other programs have their own main. */

#include "tests/harness/test.h"

int main(int argc, char **argv) {
    return test_main(argc, argv, test_suites);
}
