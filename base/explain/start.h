/* SPDX-License-Identifier: MIT */
#pragma once

/* When an explained run probably starts: the members "estimate" and "no_estimate" of `berth explain --json`
 * (berth(1)), and "usual" of its holders. */

#include "base/explain/estimate.h"
#include "base/explain/listed.h"

/* Makes the holders that are shown of each pool: those of berthd with "usual". -ENOMEM. */
int start_add_usual(const struct listed *listed, const struct usuals *usuals, usec_t now);
/* Adds the estimate, or why a run cannot be estimated: `why`, or a reason from the queues. With `why`, s may be
 * NULL. -ENOMEM. */
int start_add_estimate(json_t *explained, struct estimator *s, const struct listed *listed, const char *why);
/* Formats a span of time with two figures at each end, low rounded down and high rounded up. */
#define START_SPAN_SIZE 80
const char *start_format_span(json_int_t low_ms, json_int_t high_ms, char buffer[static START_SPAN_SIZE]);
