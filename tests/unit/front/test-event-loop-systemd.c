/* SPDX-License-Identifier: MIT */
/* libsystemd, with the expectations that front/event-loop.c meets. */
#include "tests/harness/event-suite.h"
#include "tests/harness/test.h"

TEST_SUITES({.pName = "event loop systemd", .pTests = event_suite});
