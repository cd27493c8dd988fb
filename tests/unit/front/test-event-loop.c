/* SPDX-License-Identifier: MIT */
/* The loop of front/, which the Makefile links into this program. */
#include "tests/harness/event-suite.h"
#include "tests/harness/test.h"

TEST_SUITES({.pName = "event loop", .pTests = event_suite});
