/* SPDX-License-Identifier: MIT */
#pragma once

/* What `berth run` expects of an event loop. Two programs run it: front/event-loop.c and libsystemd must
 * pass. */

#include <CUnit/CUnit.h>

extern CU_TestInfo event_suite[];
