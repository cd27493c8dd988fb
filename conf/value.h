/* SPDX-License-Identifier: MIT */
#pragma once

/* What an option's text may be, and what it means. Each function leaves *io as it is (a default) where the option is not given or is
 * wrong; what is wrong is noted with the section's and the option's name, what was written, and what would be right. */

#include "conf/parser.h"

struct value_reader { /* one section */
    const struct parsed_section *section;
    struct notes *notes;
};

#define VALUE_DURATION_MAX (UINT64_C(3650) * 86400 * USEC_PER_SEC) /* of duration_parse() */

/* Where an option stands, or its section if it is not given. */
struct settings_place value_place(const struct value_reader *r, unsigned option);
bool value_is_given(const struct value_reader *r, unsigned option);
/* Neither given nor tried in a way that was complained about. */
bool value_is_missing(const struct value_reader *r, unsigned option);
/* Notes 'job "x": ' and the text, at a place. */
void value_note(const struct value_reader *r, const struct settings_place *place, const char *format, ...) _printf_(3, 4);
/* Notes 'job "x": timeout "5x" ' and the text, at that value. index: in a list, else 0. */
void value_error(const struct value_reader *r, unsigned option, size_t index, const char *format, ...) _printf_(4, 5);
/* The text of a value; NULL if it is not there, or noted: is not UTF-8, or holds a control character (with may_break newlines and tabs
 * are allowed). */
const char *value_get(const struct value_reader *r, unsigned option, size_t index, bool may_break);

/* The name of a user or group, without the '@' that `@group` begins with; NULL as above. ret_is_group: NULL where '@' is not allowed. */
const char *value_get_account(const struct value_reader *r, unsigned option, size_t index, bool *ret_is_group);

void value_duration(const struct value_reader *r, unsigned option, usec_t min, usec_t max, usec_t *io);
/* "" is USEC_INFINITY. */
void value_optional_duration(const struct value_reader *r, unsigned option, usec_t min, usec_t *io);
/* Whether it was given and right. */
bool value_number(const struct value_reader *r, unsigned option, uint32_t max, uint32_t *io);
/* A number that may be negative. "" leaves *io as it is. */
void value_optional_integer(const struct value_reader *r, unsigned option, int min, int max, int *io);
/* A number of at least 1. "" leaves *io as it is. */
void value_optional_number(const struct value_reader *r, unsigned option, uint32_t max, uint32_t *io);
/* A size of at least 1 byte. "" leaves *io as it is. */
void value_optional_size(const struct value_reader *r, unsigned option, uint64_t *io);
void value_bool(const struct value_reader *r, unsigned option, bool *io);
/* One of n names: its index. */
void value_choice(const struct value_reader *r, unsigned option, const char *const *names, size_t n, unsigned *io);
void value_name(const struct value_reader *r, unsigned option, char io[static NAME_MAX_LENGTH + 1]);
void value_signal(const struct value_reader *r, unsigned option, int *io);
void value_umask(const struct value_reader *r, unsigned option, mode_t *io);

/* These make *io a copy, of the default if nothing is given; free it. NULL only if memory is short. */
void value_text(const struct value_reader *r, unsigned option, const char *default_text, char **io);
void value_path(const struct value_reader *r, unsigned option, const char *default_path, char **io); /* absolute, or "" if that is the default */
void value_account(const struct value_reader *r, unsigned option, char **io);                         /* of a user or a group, or "" */
