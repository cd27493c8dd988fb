/* SPDX-License-Identifier: MIT */
#pragma once

/* The words of BERTH_LIMITS (berth-events(7)). */

#include <stdbool.h>
#include <stdint.h>

#include "base/pool-name.h"

enum limit_kind {
    LIMIT_OVERRIDE, /* "db:4", "db:-" */
    LIMIT_DECLARED, /* "db:4/declared": the lowest that hosts declare */
    LIMIT_HOST,     /* "db:4/host" */
};

struct limit_word {
    char pool[POOL_NAME_SIZE]; /* "": malformed */
    enum limit_kind kind;
    bool none;
    uint32_t limit;
};

/* Parses one word. Returns the rest, or NULL at the end. */
const char *limit_word_next(const char *text, struct limit_word *ret);
