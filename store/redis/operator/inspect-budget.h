/* SPDX-License-Identifier: MIT */
#pragma once

/* What looking may cost Redis: 2 ms of its time a second from one host, and 50 ms at once after a pause.
 * Costs are estimated. A snapshot waits until the host has credit again, but never for long. Pure. */

#include "base/clock.h"

#define INSPECT_CREDIT_MAX (50 * USEC_PER_MSEC)
#define INSPECT_CREDIT_RATE 500 /* µs of time for one of credit */
#define INSPECT_WAIT_MAX (2 * USEC_PER_SEC)

struct inspect_budget { /* all zero: nobody has looked yet */
    usec_t debt_usec;   /* what is missing of INSPECT_CREDIT_MAX, at `at` */
    usec_t at, begun;   /* boottime; of the last snapshot */
};

/* Returns how long the next snapshot has to wait; 0: it may begin. */
usec_t inspect_budget_wait(const struct inspect_budget *b, usec_t now);
void inspect_budget_begin(struct inspect_budget *b, usec_t now);
void inspect_budget_spend(struct inspect_budget *b, usec_t now, usec_t cost_usec);
