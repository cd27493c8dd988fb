/* SPDX-License-Identifier: MIT */
#pragma once

/* Makes a zone file (RFC 9636) of its parts, for tests of the reader and of schedules. */

#include <stddef.h>
#include <stdint.h>

struct tzif {
    char version;   /* 0: '2' */
    uint32_t leaps; /* how many leap seconds it counts */
    size_t n_times;
    const int64_t *times;
    const int32_t *offsets; /* after each of these */
    int32_t first_offset;
    const char *footer; /* without its newlines; NULL: "" */
};

/* Returns the bytes, to be freed; exits without memory. At most 255 times. */
uint8_t *tzif_make(const struct tzif *tzif, size_t *ret_size);
