/* SPDX-License-Identifier: MIT */
#pragma once

/* When an explained run probably starts: the members "estimate" and "no_estimate" of `berth explain --json`
 * (berth(1)), and "usual" of its holders. */

#include "base/explain/estimate.h"

/* Adds "usual" to the holders in "pools" of an explained run. -ENOMEM. */
int start_add_usual(json_t *explained, const struct usuals *usuals, usec_t now);
/* Adds the estimate, or why a run cannot be estimated: `why`, or a reason from the queues. With `why`, view->q
 * may be NULL. -ENOMEM. */
int start_add_estimate(json_t *explained, const struct estimate_view *view, const char *why);
/* Formats a span of time with two figures at each end, low rounded down and high rounded up. */
#define START_SPAN_SIZE 80
const char *start_format_span(json_int_t low_ms, json_int_t high_ms, char buffer[static START_SPAN_SIZE]);
