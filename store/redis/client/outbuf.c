/* SPDX-License-Identifier: MIT */
#include "store/redis/client/outbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEPT ((size_t) 64 << 10) /* of an empty buffer */
#define LENGTHS_KEPT 32          /* of a command's words while it is written; more are counted again */
#define COUNT_SIZE 24            /* the most that put_count() writes */

static int reserve(struct redis_out *o, size_t size) {
    size_t allocated = 2 * (o->size + size);
    char *data;

    if (o->size + size <= o->allocated)
        return 0;
    data = realloc(o->data, allocated);
    if (!data)
        return -ENOMEM;
    o->data = data;
    o->allocated = allocated;
    return 0;
}

/* "*3\r\n", "$5\r\n": how many follow. Returns where it ends. */
static char *put_count(char *at, char mark, size_t count) {
    char digits[24];
    size_t n = sizeof(digits);

    do {
        digits[--n] = (char) ('0' + count % 10);
        count /= 10;
    } while (count > 0);
    *at++ = mark;
    at = mempcpy(at, digits + n, sizeof(digits) - n);
    return mempcpy(at, "\r\n", 2);
}

int redis_out_put(struct redis_out *o, size_t argc, const char *const *argv) {
    size_t lengths[LENGTHS_KEPT], size = COUNT_SIZE;
    char *at;
    int r;

    for (size_t i = 0; i < argc; i++) {
        size_t length = strlen(argv[i]);

        size += length + COUNT_SIZE + 2;
        if (i < LENGTHS_KEPT)
            lengths[i] = length;
    }
    r = reserve(o, size);
    if (r < 0)
        return r;
    at = put_count(o->data + o->size, '*', argc);
    for (size_t i = 0; i < argc; i++) {
        size_t length = i < LENGTHS_KEPT ? lengths[i] : strlen(argv[i]);

        at = put_count(at, '$', length);
        at = mempcpy(at, argv[i], length);
        at = mempcpy(at, "\r\n", 2);
    }
    o->size = (size_t) (at - o->data);
    return 0;
}

void redis_out_drop(struct redis_out *o, size_t n) {
    o->size -= n;
    memmove(o->data, o->data + n, o->size);
    if (o->size == 0 && o->allocated > KEPT) /* a sync's; claims need little */
        redis_out_done(o);
}

void redis_out_done(struct redis_out *o) {
    free(o->data);
    *o = (struct redis_out) {};
}
