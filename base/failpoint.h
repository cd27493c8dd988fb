/* SPDX-License-Identifier: MIT */
#pragma once

/* Steps between two outside effects at which a test makes a process fail. Only builds with
 * -DBERTH_FAILPOINTS have them. There, $FAILPOINT is "NAME ACTION FILE": the first process that reaches the
 * step of that name and removes the FILE performs the ACTION: "crash" (SIGKILL), "hang" for 3.5 s, or "starve": for 1 s
 * each allocation and each fork of the process fails.
 * $FAILPOINT_TRACE is a file of struct failpoint_trace, in which each process notes when it was at which step. */

#include <stdatomic.h>
#include <stdint.h>

#define FAILPOINT_TRACE_MAX 65536
#define FAILPOINT_NAME_SIZE 24

struct failpoint_trace { /* in a mapped file of this size */
    _Atomic uint32_t n;  /* may be larger than the array: later steps are not noted */
    struct {
        uint64_t at;     /* ns on CLOCK_MONOTONIC */
        char name[FAILPOINT_NAME_SIZE];
    } of[FAILPOINT_TRACE_MAX];
};

#ifdef BERTH_FAILPOINTS
void failpoint(const char *name);
#define FAILPOINT(name) failpoint(name)
#else
#define FAILPOINT(name) ((void) 0)
#endif
