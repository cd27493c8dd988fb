/* SPDX-License-Identifier: MIT */
#pragma once

/* Bounds what one answer of Redis may cost in memory. hiredis itself bounds neither the total of an answer nor (since 1.0) its depth, and
 * hiredis 0.14 believes whatever count an array announces (CVE-2021-32765). */

#include <stdbool.h>
#include <stddef.h>

struct redisReader;

struct redis_bounds {  /* of one answer */
    size_t elements;   /* in all its lists together */
    size_t depth;      /* lists inside lists */
    size_t size;       /* bytes of its texts together; also of what is read and not parsed yet */
};
extern const struct redis_bounds redis_bounds_answer; /* of a command */
extern const struct redis_bounds redis_bounds_push;   /* on a subscription */

struct redis_meter {   /* begin with {} */
    const struct redis_bounds *bounds;
    size_t elements, size;
    char excess[80];   /* which bound was exceeded, for people; "": none */
};

/* From now on this reader's answers are bounded, by m->bounds. One that exceeds them is a reader's error, and m->excess says which. The
 * meter must outlive the reader. */
void redis_meter_attach(struct redis_meter *m, struct redisReader *reader);
/* Whether what was read and is no whole answer yet is too much; then m->excess says so. */
bool redis_meter_is_over(struct redis_meter *m, const struct redisReader *reader);
