/* SPDX-License-Identifier: MIT */
#pragma once

/* A file that commands of the bench map. Each notes its first and last instant in ns of CLOCK_MONOTONIC. */

#include <stdatomic.h>
#include <stdint.h>

#define SPANS_MAX 1024

struct spans {
    _Atomic uint32_t asked; /* commands that the workers have begun */
    _Atomic uint32_t n;     /* commands that have begun to run */
    struct {
        uint64_t began, ended; /* ended 0: it runs */
    } of[SPANS_MAX];
};
