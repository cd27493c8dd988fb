/* SPDX-License-Identifier: MIT */
#pragma once

/* Lines that continue below their text, for terminals. */

#include <stddef.h>
#include <stdio.h>

struct wrap {
    size_t width;    /* columns that a line may have; SIZE_MAX: any number */
    size_t indent;   /* the column at which a line continues */
    const char *end; /* before a line break in a command, which has none in 'single quotes'; NULL: this is no command */
};

/* Is printed as a space, and no line ends there: for commands, which somebody may copy. */
#define WRAP_NO_BREAK "\u00a0"

/* Prints the text and ends its line. at: the column at which it begins. A word that is too long stays
 * whole. */
void wrap_print(FILE *f, const char *text, size_t at, const struct wrap *wrap);
