/* SPDX-License-Identifier: MIT */
#include "base/nearest.h"

#include <stdbool.h>
#include <string.h>

#define LENGTH_MAX 64

static size_t minimum(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t distance(const char *a, size_t n, const char *b, size_t m) {
    size_t rows[3][LENGTH_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];

    for (size_t j = 0; j <= m; j++)
        last[j] = j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = minimum(minimum(last[j] + 1, row[j - 1] + 1), last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = minimum(row[j], before[j - 2] + 1);
        }
        size_t *free_row = before;
        before = last;
        last = row;
        row = free_row;
    }
    return last[m];
}

static bool begin_alike(const char *a, const char *b) {
    a += strspn(a, "-");
    b += strspn(b, "-");
    return *a == *b;
}

static bool is_near(const char *a, size_t n, const char *b, size_t m, size_t steps) {
    size_t longer = n > m ? n : m;

    return steps <= longer / 3 + 1 && steps < longer && (steps <= 1 || begin_alike(a, b));
}

const char *nearest(const char *written, const char *const *known, size_t n_known) {
    size_t n = strlen(written), best_distance = 0;
    const char *best = NULL;

    for (size_t i = 0; i < n_known; i++) {
        size_t m = strlen(known[i]), d;

        if (n > LENGTH_MAX || m > LENGTH_MAX)
            continue;
        d = distance(written, n, known[i], m);
        if (is_near(written, n, known[i], m, d) && (!best || d < best_distance)) {
            best = known[i];
            best_distance = d;
        }
    }
    return best;
}
