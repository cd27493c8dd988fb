/* SPDX-License-Identifier: MIT */
#pragma once

/* What was found wrong while a config is read: collected as it comes, handed out in the order of files and lines. Adding never fails:
 * what cannot be noted for want of memory sets out_of_memory, and the caller looks at that once, at the end. */

#include "base/cleanup.h"
#include "conf/settings.h"

struct note {
    struct settings_place place;
    size_t order; /* as it came: keeps those of one line in order */
    char *text;
    bool spoils;
};

struct notes {
    struct note *items;
    size_t n;
    bool out_of_memory;
    bool incomplete; /* a syntax error ended a file: what is missing elsewhere may stand in the rest of it */
};

/* line 0: about the whole file. The text is "what is wrong, and what would be right"; what cannot be shown in it becomes '?'. */
void notes_add(struct notes *notes, const struct settings_place *place, const char *format, ...) _printf_(3, 4);
/* After a note about the characters of a value: what the values of this line seem to mean is not judged. */
void notes_spoil(struct notes *notes, const struct settings_place *place);
bool notes_is_spoiled(const struct notes *notes, const struct settings_place *place);
/* Appends all as lines to errors, sorted by file (in the order of files) and line; files are compared by pointer. */
void notes_finish(struct notes *notes, char *const *files, size_t n_files, struct settings_errors *errors);
void notes_done(struct notes *notes);
