/* SPDX-License-Identifier: MIT */
#pragma once

/* Which journals a verb reads: this machine's, all that it has collected (-m), or folders (--directory). */

#include <stdbool.h>

#include "base/journal/entries.h"
#include "cli/verbs.h"

struct sources {
    struct string_list directories; /* none: the machine's */
    bool merged;
    const char *unit;             /* NULL: the default */
};

/* The options of these, to stand in a verb's table. */
#define SOURCES_OPTIONS(s) \
    OPTION_LIST("--directory", &(s)->directories), OPTION_FLAG("-m", &(s)->merged), OPTION_VALUE("--unit", &(s)->unit)

/* All events of all of them, appended. 0, or an exit status whose reason was printed: EXIT_UNKNOWN_NAME (65) where a journal is not
 * there or cannot be read. */
int sources_read(const char *verb, const struct sources *s, struct entries *ret);
/* What went wrong with one (NULL: the machine's): explained; the exit status. */
int sources_explain(const char *verb, const char *directory, int error);
