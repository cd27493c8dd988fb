/* SPDX-License-Identifier: MIT */
#pragma once

/* The journals that a verb reads: this machine's, all that it has collected (-m), or directories
 * (--directory). */

#include <stdbool.h>

#include "base/journal/entries.h"
#include "cli/verbs.h"

struct sources {
    struct string_list directories; /* none: the machine's */
    bool merged;
    const char *unit; /* NULL: the default */
    bool may_lack; /* a damaged file causes a warning, and its entries before the damage count */
};

/* The options that fill a struct sources, for a verb's table. */
#define SOURCES_OPTIONS(s) \
    OPTION_LIST("--directory", &(s)->directories), OPTION_FLAG("-m", &(s)->merged), OPTION_VALUE("--unit", &(s)->unit)

/* Appends all events of all journals. Returns 0, or an exit status whose reason was printed:
 * EXIT_UNKNOWN_NAME (65) if a journal is missing or cannot be read. */
int sources_read(const char *verb, const struct sources *s, struct entries *ret);
/* Warns if entries are missing because a file is damaged. After the last entry. 0 or a negative errno. */
int sources_warn(const char *verb, const char *directory, struct journal_reader *reader);
/* Prints why the journals of a directory (NULL: the machine's) cannot be read. Returns the exit status. */
int sources_explain(const char *verb, const char *directory, int error);
