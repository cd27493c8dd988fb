/* SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#define EXPLAIN_SHOWN 5 /* claims of a list; the others as a number */

/* Prints an item of "explained" of `berth explain --json` for people. silent_ms: after which a host counts as silent.
 * Returns 0 or -ENOMEM. */
int explain_print(const json_t *explained, json_int_t silent_ms);
