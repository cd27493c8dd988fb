/* SPDX-License-Identifier: MIT */
#pragma once

/* 64-bit FNV-1a over a canonical text, "key=length:value\n" for each value, so that no two lists of
 * values have the same text. The hash differs between two versions of a config. It protects nothing:
 * berth-runner starts only what its own config defines. */

#include <inttypes.h>

#define HASH_EMPTY UINT64_C(0xcbf29ce484222325) /* http://www.isthe.com/chongo/tech/comp/fnv/ */

void hash_add_text(uint64_t *hash, const char *key, const char *value);
void hash_add_number(uint64_t *hash, const char *key, uint64_t value);
