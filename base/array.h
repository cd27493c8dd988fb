/* SPDX-License-Identifier: MIT */
#pragma once

/* Arrays that grow by one item at a time. */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for one more item behind the n that the array `items` has; NULL: it has none yet. The room doubles whenever n
 * is a power of two, so only this function may make room. Returns false without memory; the array is as before then. */
#define array_grow(items, n) array_make_room(&(items), (n), sizeof(*(items)))

/* items: address of the pointer to the array. */
static inline bool array_make_room(void *items, size_t n, size_t size) {
    void *array, *grown;

    if ((n & (n - 1)) != 0)
        return true;
    memcpy(&array, items, sizeof(array));
    grown = realloc(array, (n > 0 ? 2 * n : 1) * size); /* no overflow: the array of n items exists */
    if (grown)
        memcpy(items, &grown, sizeof(grown));
    return grown;
}
