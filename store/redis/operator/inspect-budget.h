/* SPDX-License-Identifier: MIT */
#pragma once

/* How much of Redis's time snapshots may take: 2 ms a second for one host, and 50 ms at once after a pause. Costs are
 * estimated. A snapshot waits until the host has credit, at most INSPECT_WAIT_MAX. Pure. */

#include "base/clock.h"

#define INSPECT_CREDIT_MAX (50 * USEC_PER_MSEC)
#define INSPECT_CREDIT_RATE 500 /* µs until one µs of credit is back */
#define INSPECT_WAIT_MAX (2 * USEC_PER_SEC)

struct inspect_budget { /* all zero: no snapshot yet */
    usec_t debt_usec;   /* time spent and not back yet, at `at` */
    usec_t at, begun;   /* boottime; of the last snapshot */
    usec_t all_usec;    /* spent since berthd started */
    uint64_t n_calls;   /* likewise */
};

/* Returns how long the next snapshot must wait; 0: it may begin. */
usec_t inspect_budget_wait(const struct inspect_budget *b, usec_t now);
void inspect_budget_begin(struct inspect_budget *b, usec_t now);
void inspect_budget_spend(struct inspect_budget *b, usec_t now, usec_t cost_usec);
