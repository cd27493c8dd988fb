/* SPDX-License-Identifier: MIT */

#include "conf/hash.h"

#include <stdio.h>
#include <string.h>

#define FNV_PRIME UINT64_C(0x100000001b3)

static void add_bytes(uint64_t *hash, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        *hash = (*hash ^ (unsigned char) bytes[i]) * FNV_PRIME;
}

void hash_add_text(uint64_t *hash, const char *key, const char *value) {
    char head[64];
    int n = snprintf(head, sizeof(head), "%s=%zu:", key, strlen(value));

    add_bytes(hash, head, (size_t) n);
    add_bytes(hash, value, strlen(value));
    add_bytes(hash, "\n", 1);
}

void hash_add_number(uint64_t *hash, const char *key, uint64_t value) {
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    hash_add_text(hash, key, text);
}
