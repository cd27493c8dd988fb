/* SPDX-License-Identifier: MIT */
#pragma once

/* Allocations that fail (wrap.h), and the number of those that nobody has freed. The "wrap:" line of the
 * program lists malloc, calloc, realloc, strdup, strndup and free. */

#include <stdlib.h>

#include "tests/harness/wrap.h"

static long n_live;

static void *counted(void *p) {
    n_live += p != NULL;
    return p;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);
void __wrap_free(void *p);

void *__wrap_malloc(size_t size) {
    return fault_meets(FAULT_MEMORY) ? NULL : counted(__real_malloc(size));
}
void *__wrap_calloc(size_t n, size_t size) {
    return fault_meets(FAULT_MEMORY) ? NULL : counted(__real_calloc(n, size));
}
void *__wrap_realloc(void *p, size_t size) {
    if (fault_meets(FAULT_MEMORY))
        return NULL;
    n_live -= p != NULL;
    return counted(__real_realloc(p, size));
}
char *__wrap_strdup(const char *text) {
    return fault_meets(FAULT_MEMORY) ? NULL : counted(__real_strdup(text));
}
char *__wrap_strndup(const char *text, size_t n) {
    return fault_meets(FAULT_MEMORY) ? NULL : counted(__real_strndup(text, n));
}
void __wrap_free(void *p) {
    n_live -= p != NULL;
    __real_free(p);
}
