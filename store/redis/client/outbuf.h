/* SPDX-License-Identifier: MIT */
#pragma once

/* Commands in Redis's protocol, on their way out. hiredis prints each number with a printf of its own, which took a quarter of a claim's
 * time here. */

#include <stddef.h>

struct redis_out { /* begin with {} */
    char *data;
    size_t size, allocated;
};

/* Appends one command. 0 or -ENOMEM; then nothing is appended. */
int redis_out_put(struct redis_out *o, size_t argc, const char *const *argv);
/* So many bytes of the beginning were sent. */
void redis_out_drop(struct redis_out *o, size_t n);
void redis_out_done(struct redis_out *o);
