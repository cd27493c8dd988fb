/* SPDX-License-Identifier: MIT */
#pragma once

/* Text: copies, and checks of what a journal, a terminal or JSON can show. */

#include <stdbool.h>
#include <stddef.h>

#define NAME_RULE "use 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with '.' or '-'"

/* Copies text, to be freed; NULL stays NULL. 0 or -ENOMEM; *ret is NULL then. */
int text_copy(char **ret, const char *text);
/* Returns the value of a variable in an environment as /proc shows it: entries that end with NUL. name: with "=" at its end.
 * NULL: it has none, or the last entry is cut. */
const char *text_find_variable(const char *environment, size_t size, const char *name);
/* Frees a NULL-terminated list of texts; NULL: does nothing. */
void text_free_list(char **list);
/* Returns whether text is well-formed UTF-8 (RFC 3629: no surrogates, nothing above U+10FFFF, shortest forms). */
bool text_is_utf8(const char *text);
/* Returns whether UTF-8 text has control characters: C0, DEL, C1 (U+0080 to U+009F, which terminals obey as well), or
 * characters that make a text look like another one by a change of its direction. may_break: newlines and tabs do not
 * count. */
bool text_has_control(const char *text, bool may_break);
/* Returns the length of the character at text; 0: it is a control character as above, or not UTF-8. */
size_t text_character(const char *text);
/* Formats n bytes with "\\xHH" for each backslash and each byte that is not printable ASCII. A text that is
 * too long for the buffer ends in "...". */
void text_escape(const char *data, size_t n, char *buffer, size_t size);
/* Replaces by '?' each byte that is not UTF-8 or belongs to a control character. */
void text_make_printable(char *text);
