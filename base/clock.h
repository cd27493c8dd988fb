/* SPDX-License-Identifier: MIT */
#pragma once

/* The only place that reads clocks. Deadlines are on CLOCK_BOOTTIME, which continues while the machine is
 * suspended (R8: a suspended host must find that its deadline has passed). CLOCK_REALTIME is for people
 * only. */

#include <inttypes.h>
#include <stddef.h>
#include <time.h>

typedef uint64_t usec_t;

#define USEC_PER_MSEC ((usec_t) 1000)
#define USEC_PER_SEC ((usec_t) 1000000)
#define USEC_INFINITY UINT64_MAX

_Static_assert(sizeof(time_t) >= 8, "times after 2038 need -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64");

usec_t clock_boottime(void); /* µs since boot, suspend included */
usec_t clock_monotonic(void); /* the same without suspend, for libraries that use this clock */
usec_t clock_realtime(void); /* µs since 1970 */
/* Writes the name of the time namespace, "time:[4026531834]", in which the first two clocks count; "" if /proc does not name it. */
#define CLOCK_NAMESPACE_SIZE 32
void clock_namespace(char name[static CLOCK_NAMESPACE_SIZE]);

/* a + b, USEC_INFINITY if the sum overflows or an operand is infinite; a - b, 0 if b is larger,
 * USEC_INFINITY if only a is infinite. */
usec_t usec_add(usec_t a, usec_t b);
usec_t usec_sub(usec_t a, usec_t b);

/* "2026-11-20T11:01:19.123456Z" (RFC 3339, UTC) into a buffer of CLOCK_TEXT_SIZE bytes. */
#define CLOCK_TEXT_SIZE 32
const char *clock_format(usec_t realtime_usec, char buffer[static CLOCK_TEXT_SIZE]);
