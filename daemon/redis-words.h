/* SPDX-License-Identifier: MIT */
#pragma once

/* The words of one command being put together. An allocation that fails is kept and told at the end. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct words {
    char **items;
    size_t n, size;
    bool failed;
};

void words_add(struct words *w, const char *text); /* copied */
void words_add_u64(struct words *w, uint64_t number);
/* 0, or -ENOMEM if not all words are there. */
int words_check(const struct words *w);
void words_done(struct words *w);
#define _cleanup_words_ _cleanup_(words_done)
