/* SPDX-License-Identifier: MIT */
#include "store/redis/client/outbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEPT ((size_t) 64 << 10) /* bytes that an empty buffer keeps allocated */
#define LENGTHS_KEPT 32          /* arguments whose length is not computed twice */
#define COUNT_SIZE 24            /* the most that put_count() writes */

/* As realloc(), but clears what it leaves behind. */
static char *move(const struct redis_outbuf *out, size_t allocated) {
    char *data = malloc(allocated);

    if (!data)
        return NULL;
    if (out->data) {
        memcpy(data, out->data, out->size);
        explicit_bzero(out->data, out->allocated);
        free(out->data);
    }
    return data;
}

static int reserve(struct redis_outbuf *out, size_t size) {
    size_t allocated = 2 * (out->size + size);
    char *data;

    if (out->size + size <= out->allocated)
        return 0;
    data = out->is_secret ? move(out, allocated) : realloc(out->data, allocated);
    if (!data)
        return -ENOMEM;
    out->data = data;
    out->allocated = allocated;
    return 0;
}

/* Writes a count such as "*3\r\n" or "$5\r\n". Returns its end. */
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

int redis_outbuf_append(struct redis_outbuf *out, size_t argc, const char *const *argv) {
    size_t lengths[LENGTHS_KEPT], size = COUNT_SIZE;
    char *at;
    int r;

    for (size_t i = 0; i < argc; i++) {
        size_t length = strlen(argv[i]);

        size += length + COUNT_SIZE + 2;
        if (i < LENGTHS_KEPT)
            lengths[i] = length;
    }
    r = reserve(out, size);
    if (r < 0)
        return r;
    at = put_count(out->data + out->size, '*', argc);
    for (size_t i = 0; i < argc; i++) {
        size_t length = i < LENGTHS_KEPT ? lengths[i] : strlen(argv[i]);

        at = put_count(at, '$', length);
        at = mempcpy(at, argv[i], length);
        at = mempcpy(at, "\r\n", 2);
    }
    out->size = (size_t) (at - out->data);
    return 0;
}

void redis_outbuf_consume(struct redis_outbuf *out, size_t n) {
    out->size -= n;
    memmove(out->data, out->data + n, out->size);
    if (out->is_secret)
        explicit_bzero(out->data + out->size, n);
    if (out->size == 0 && (out->is_secret || out->allocated > KEPT)) /* a sync is large, claims are small */
        redis_outbuf_done(out);
}

void redis_outbuf_done(struct redis_outbuf *out) {
    if (out->is_secret && out->data)
        explicit_bzero(out->data, out->allocated);
    free(out->data);
    *out = (struct redis_outbuf) {};
}
