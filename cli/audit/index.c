/* SPDX-License-Identifier: MIT */
#include "cli/audit/index.h"

#include <errno.h>
#include <stdlib.h>

size_t index_count_below(const uint64_t *first, size_t stride, size_t n, uint64_t number) {
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (*(const uint64_t *) (const void *) ((const char *) first + middle * stride) < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* --- maxima: a segment tree --- */

int maxima_make(struct maxima *m, size_t n) {
    *m = (struct maxima) {.size = 1};
    while (m->size < n)
        m->size *= 2;
    m->nodes = calloc(2 * m->size, sizeof(*m->nodes));
    return m->nodes ? 0 : -ENOMEM;
}

void maxima_set(struct maxima *m, size_t i, uint64_t number) {
    m->nodes[i += m->size] = number;
    while ((i /= 2) > 0)
        m->nodes[i] = m->nodes[2 * i] > m->nodes[2 * i + 1] ? m->nodes[2 * i] : m->nodes[2 * i + 1];
}

size_t maxima_next(const struct maxima *m, size_t from, uint64_t least) {
    size_t i = from + m->size;

    if (from >= m->size)
        return SIZE_MAX;
    while (m->nodes[i] < least) { /* to the largest subtree that begins right of it */
        while (i % 2 == 1)
            i /= 2;
        if (i == 0)
            return SIZE_MAX;
        i++;
    }
    while (i < m->size) {
        i *= 2;
        i += m->nodes[i] < least;
    }
    return i - m->size;
}

void maxima_done(struct maxima *m) {
    free(m->nodes);
    *m = (struct maxima) {};
}

/* --- places: a Fenwick tree --- */

int places_make(struct places *p, size_t n) {
    *p = (struct places) {.sums = calloc(n + 1, sizeof(*p->sums)), .n = n};
    return p->sums ? 0 : -ENOMEM;
}

void places_take(struct places *p, size_t i) {
    for (i++; i <= p->n; i += i & -i)
        p->sums[i]++;
}

void places_leave(struct places *p, size_t i) {
    for (i++; i <= p->n; i += i & -i)
        p->sums[i]--;
}

size_t places_before(const struct places *p, size_t i) {
    size_t sum = 0;

    for (; i > 0; i -= i & -i)
        sum += p->sums[i];
    return sum;
}

void places_done(struct places *p) {
    free(p->sums);
    *p = (struct places) {};
}
