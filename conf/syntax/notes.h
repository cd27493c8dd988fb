/* SPDX-License-Identifier: MIT */
#pragma once

/* The errors of a config, collected while it is read and reported in the order of files and lines. Adding
 * does not fail: if memory is short, it sets out_of_memory, which the caller checks once, at the end. */

#include "base/cleanup.h"
#include "conf/settings.h"

struct note {
    struct settings_place place;
    size_t order; /* of arrival: sorts the notes of one line */
    char *text;
    bool spoils;
};

struct notes {
    struct note *items;
    size_t n;
    bool out_of_memory;
    bool incomplete; /* a syntax error ended a file, whose rest may define what seems to be missing */
};

/* Adds an error. line 0: of the whole file. The text is "what is wrong; what to write instead"; unprintable
 * characters become '?'. */
void notes_add(struct notes *notes, const struct settings_place *place, const char *format, ...) _printf_(3, 4);
/* After a note about the characters of a value: suppresses errors about the values of this line. */
void notes_spoil(struct notes *notes, const struct settings_place *place);
bool notes_is_spoiled(const struct notes *notes, const struct settings_place *place);
/* Appends a line for each note to errors, sorted by file (in the order of files) and line; files are compared by pointer. */
void notes_finish(struct notes *notes, char *const *files, size_t n_files, struct settings_errors *errors);
void notes_done(struct notes *notes);
