/* SPDX-License-Identifier: MIT */
#pragma once

/* The texts of a section's options, by option name, and errors about them. */

#include "conf/syntax/parser.h"

struct value_reader { /* one section */
    const struct parsed_section *section;
    struct notes *notes;
};

/* Returns the option as written; its place and values are empty if it is not given. */
const struct parsed_option *value_option(const struct value_reader *reader, const char *option);
/* Returns the place of an option, or of its section if the option is not given. */
struct settings_place value_place(const struct value_reader *reader, const char *option);
bool value_is_given(const struct value_reader *reader, const char *option);
/* Returns whether the option is not given, and no refused option looks like a misspelling of it. */
bool value_is_missing(const struct value_reader *reader, const char *option);
/* Returns the text of a value (index: in a list, else 0). NULL: there is none, or it is not UTF-8 or holds a
 * control character, which is noted. may_break: newlines and tabs are allowed. */
const char *value_get(const struct value_reader *reader, const char *option, size_t index, bool may_break);

/* Notes 'job "x": ' and the text, at a place. */
void value_note(const struct value_reader *reader, const struct settings_place *place, const char *format, ...) _printf_(3, 4);
/* Notes 'job "x": timeout "5x" ' and the text, at that value. A text that begins with ':' follows without a
 * space. */
void value_error(const struct value_reader *reader, const char *option, size_t index, const char *format, ...) _printf_(4, 5);

/* Returns a copy, or NULL: memory is short, which is noted. */
char *value_copy(const struct value_reader *reader, const char *text);
/* Returns the name of a user or group. is_listed: `text` may begin with '@', which makes it a group and is
 * not part of the name. NULL: the name is invalid, which is noted. */
const char *value_account(const struct value_reader *reader, const char *option, size_t index, const char *text, bool is_listed);
