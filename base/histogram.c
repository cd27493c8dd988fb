/* SPDX-License-Identifier: MIT */

#include "base/histogram.h"

void histogram_add(struct histogram *h, const struct histogram_bounds *bounds, usec_t usec) {
    size_t i = 0;

    while (i < bounds->n && usec > bounds->upper[i])
        i++;
    h->counts[i]++;
    h->sum_usec += usec;
}
