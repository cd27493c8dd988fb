/* SPDX-License-Identifier: MIT */
#pragma once

/* Random numbers of a seed, the same on every machine: splitmix64. The state begins as the seed. */

#include <stdint.h>

static inline uint64_t draw(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Returns a number from 0 to n - 1. */
static inline uint64_t draw_below(uint64_t *state, uint64_t n) {
    return draw(state) % n;
}

static inline uint64_t draw_between(uint64_t *state, uint64_t lowest, uint64_t highest) {
    return lowest + draw_below(state, highest - lowest + 1);
}
