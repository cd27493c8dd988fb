/* SPDX-License-Identifier: MIT */
#pragma once

/* Members of berthd's replies as text for people. A missing or null member is "". */

#include <jansson.h>

#include "base/clock.h"

#define FORMAT_SIZE 512

/* Formats a duration with two units at most: "850ms", "5.1s", "12m30s", "3h20m", "4d3h". */
const char *format_msec(json_int_t msec, char buffer[static FORMAT_SIZE]);
/* Formats a member that is a duration. */
const char *format_duration(const json_t *object, const char *key, char buffer[static FORMAT_SIZE]);
/* Formats a member that is a time (RFC 3339 UTC) relative to now: "5.1s ago", "in 3h20m". */
const char *format_when(const json_t *object, const char *key, usec_t now_realtime, char buffer[static FORMAT_SIZE]);
/* Formats {"db": 2, "net": 1} as "db:2 net:1". */
const char *format_pools(const json_t *object, const char *key, char buffer[static FORMAT_SIZE]);
/* Formats the result of a run: "failure (exit 3)", "stopped (signal 15)". */
const char *format_result(const json_t *object, const char *result, const char *code, const char *signal,
                         char buffer[static FORMAT_SIZE]);
/* Returns a time (RFC 3339 UTC) in ms since 1970; 0: there is none. */
json_int_t format_get_time(const json_t *object, const char *key);
const char *format_get_text(const json_t *object, const char *key);
json_int_t format_get_number(const json_t *object, const char *key);
