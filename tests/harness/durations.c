/* SPDX-License-Identifier: MIT */
#include "tests/harness/durations.h"

#include <stdlib.h>

static int compare(const void *a, const void *b) {
    const usec_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

void durations_sort(usec_t *durations, size_t n) {
    qsort(durations, n, sizeof(*durations), compare);
}
