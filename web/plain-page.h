/* SPDX-License-Identifier: MIT */
#pragma once

/* The board as HTML without a script. */

#include "web/board.h"

/* Returns an owned text, *ret_size long; NULL: no memory. */
char *plain_page_make(const struct board *b, size_t *ret_size);
