/* SPDX-License-Identifier: MIT */
#pragma once

/* What is text that can be shown: in a journal, a terminal, JSON. */

#include <stdbool.h>
#include <stddef.h>

#define NAME_RULE "use 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with '.' or '-'"

/* Well-formed UTF-8 (RFC 3629: no surrogates, nothing above U+10FFFF, no longer form than needed). */
bool text_is_utf8(const char *text);
/* C0, DEL and C1 (U+0080 to U+009F, which terminals obey, too); text must be UTF-8. may_break: newlines and tabs are none. */
bool text_has_control(const char *text, bool may_break);
/* n bytes of anything as text that can be shown: "\\xHH" for each byte that is not printable ASCII and for each backslash. What is too long
 * for the buffer ends in "...". */
void text_escape(const char *data, size_t n, char *buffer, size_t size);
/* Puts '?' for each byte that is not UTF-8 or belongs to a control character. */
void text_make_printable(char *text);
