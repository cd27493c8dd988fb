/* SPDX-License-Identifier: MIT */
#pragma once

/* The output buffer of a connection: commands in Redis's protocol that are not sent yet. The formatter of hiredis
 * calls printf for each number, which took a quarter of a claim's time here. */

#include <stdbool.h>
#include <stddef.h>

struct redis_outbuf { /* begin with {} */
    char *data;
    size_t size, allocated;
    bool is_secret; /* set by the owner before it appends a password: memory is cleared until all is consumed */
};

/* Appends one command. 0 or -ENOMEM; then nothing is appended. */
int redis_outbuf_append(struct redis_outbuf *out, size_t argc, const char *const *argv);
/* Removes the first n bytes, which were sent. */
void redis_outbuf_consume(struct redis_outbuf *out, size_t n);
void redis_outbuf_done(struct redis_outbuf *out);
