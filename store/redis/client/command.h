/* SPDX-License-Identifier: MIT */
#pragma once

/* The words of one command being put together. A usual command needs no allocation: its words stand in the struct itself, which for
 * this reason is not to be copied. An allocation that fails is kept and told at the end. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

#define WORDS_INLINE 32
#define WORDS_BYTES_INLINE 640

struct words {
    char **items;
    size_t n, size;
    bool failed;
    size_t used;                     /* bytes of buffer */
    char *first[WORDS_INLINE];       /* items, as long as they suffice */
    char buffer[WORDS_BYTES_INLINE]; /* texts, as long as it suffices */
};

void words_add(struct words *w, const char *text); /* copied */
void words_add_u64(struct words *w, uint64_t number);
/* 0, or -ENOMEM if not all words are there. */
int words_check(const struct words *w);
void words_done(struct words *w);
#define _cleanup_words_ _cleanup_(words_done)
