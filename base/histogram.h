/* SPDX-License-Identifier: MIT */
#pragma once

/* Counts durations by size. Plain data, all zero at first. */

#include <stddef.h>

#include "base/clock.h"

#define HISTOGRAM_BOUNDS_MAX 12

struct histogram_bounds { /* ascending; a duration equal to a bound is within it */
    size_t n;
    usec_t upper[HISTOGRAM_BOUNDS_MAX];
};

struct histogram {
    uint64_t counts[HISTOGRAM_BOUNDS_MAX + 1]; /* durations up to each bound and above the one before; last: above all */
    usec_t sum_usec;
};

void histogram_add(struct histogram *h, const struct histogram_bounds *bounds, usec_t usec);
