/* SPDX-License-Identifier: MIT */

/* Rules for single values of the config. */

#include "conf/value.h"

#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include "base/duration.h"
#include "base/nearest.h"
#include "base/number.h"
#include "base/text.h"

#define ACCOUNT_MAX 64
#define ACCOUNT_FIRST "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define NOTE_MAX 768

static const char *option_name(const struct value_reader *r, unsigned option) {
    return schema_get(r->section->kind)->options[option].name;
}

bool value_is_given(const struct value_reader *r, unsigned option) {
    return r->section->options[option].is_given;
}

bool value_is_missing(const struct value_reader *r, unsigned option) {
    return !value_is_given(r, option) && !(r->section->refused >> option & 1);
}

struct settings_place value_place(const struct value_reader *r, unsigned option) {
    return value_is_given(r, option) ? r->section->options[option].place : r->section->place;
}

static void note_arguments(const struct value_reader *r, const struct settings_place *place, const char *before, const char *format,
                           va_list arguments) _printf_(4, 0);
static void note_arguments(const struct value_reader *r, const struct settings_place *place, const char *before, const char *format,
                           va_list arguments) {
    const struct schema_section *section = schema_get(r->section->kind);
    char text[NOTE_MAX];

    (void) vsnprintf(text, sizeof(text), format, arguments);
    if (r->section->title)
        notes_add(r->notes, place, "%s \"%.100s\": %s%s", section->name, r->section->title, before, text);
    else
        notes_add(r->notes, place, "%s%s%s%s", section->name, *section->name ? ": " : "", before, text);
}

void value_note(const struct value_reader *r, const struct settings_place *place, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    note_arguments(r, place, "", format, arguments);
    va_end(arguments);
}

void value_error(const struct value_reader *r, unsigned option, size_t index, const char *format, ...) {
    const struct parsed_option *o = &r->section->options[option];
    struct settings_place place = {o->place.file, o->values[index].line};
    char before[256];
    va_list arguments;

    if (notes_is_spoiled(r->notes, &place))
        return;
    snprintf(before, sizeof(before), "%s \"%.200s\" ", option_name(r, option), o->values[index].text);
    va_start(arguments, format);
    note_arguments(r, &place, before, format, arguments);
    va_end(arguments);
}

const char *value_get(const struct value_reader *r, unsigned option, size_t index, bool may_break) {
    const struct parsed_option *o = &r->section->options[option];

    if (index >= o->n_values)
        return NULL;
    if (!text_is_utf8(o->values[index].text)) {
        value_error(r, option, index, "is not UTF-8; write it as UTF-8");
        return NULL;
    }
    if (text_has_control(o->values[index].text, may_break)) {
        value_error(r, option, index, "holds a control character; remove it");
        return NULL;
    }
    return o->values[index].text;
}

/* ---- times and numbers ---- */

#define DURATION_FORM "must be a duration such as \"250ms\", \"30s\" or \"1h30m\""

static void duration(const struct value_reader *r, unsigned option, usec_t min, usec_t max, bool is_optional, usec_t *io) {
    const char *text = value_get(r, option, 0, false), *or_none = is_optional ? ", or \"\" for none" : "";
    char low[DURATION_TEXT_SIZE], high[DURATION_TEXT_SIZE];
    usec_t usec;
    int error;

    if (!text)
        return;
    if (is_optional && *text == '\0') {
        *io = USEC_INFINITY;
        return;
    }
    error = duration_parse(text, &usec);
    if (error == -EINVAL)
        value_error(r, option, 0, DURATION_FORM "%s", or_none);
    else if (error < 0 || usec < min || usec > max)
        value_error(r, option, 0, "must be between %s and %s%s", duration_format(min, low), duration_format(max, high), or_none);
    else
        *io = usec;
}

void value_duration(const struct value_reader *r, unsigned option, usec_t min, usec_t max, usec_t *io) {
    duration(r, option, min, max, false, io);
}

void value_optional_duration(const struct value_reader *r, unsigned option, usec_t min, usec_t *io) {
    duration(r, option, min, VALUE_DURATION_MAX, true, io);
}

bool value_number(const struct value_reader *r, unsigned option, uint32_t max, uint32_t *io) {
    const char *text = value_get(r, option, 0, false);
    uint64_t value;

    if (!text)
        return false;
    if (number_parse(text, max, &value) < 0) {
        value_error(r, option, 0, "must be a decimal number from 0 to %" PRIu32 ", without leading zeros", max);
        return false;
    }
    *io = (uint32_t) value;
    return true;
}

void value_optional_integer(const struct value_reader *r, unsigned option, int min, int max, int *io) {
    const char *text = value_get(r, option, 0, false);
    bool is_negative = text && text[0] == '-';
    uint64_t value;

    if (!text || *text == '\0')
        return;
    if (number_parse(text + is_negative, (uint64_t) (is_negative ? -min : max), &value) < 0 || (is_negative && value == 0))
        value_error(r, option, 0, "must be a decimal number from %d to %d, or \"\" for none", min, max);
    else
        *io = is_negative ? -(int) value : (int) value;
}

void value_optional_number(const struct value_reader *r, unsigned option, uint32_t max, uint32_t *io) {
    const char *text = value_get(r, option, 0, false);
    uint64_t value;

    if (!text || *text == '\0')
        return;
    if (number_parse(text, max, &value) < 0 || value == 0)
        value_error(r, option, 0, "must be a decimal number from 1 to %" PRIu32 ", or \"\" for none", max);
    else
        *io = (uint32_t) value;
}

void value_optional_size(const struct value_reader *r, unsigned option, uint64_t *io) {
    const char *text = value_get(r, option, 0, false);
    uint64_t value;

    if (!text || *text == '\0')
        return;
    if (size_parse(text, &value) < 0 || value == 0 || value > INT64_MAX)
        value_error(r, option, 0, "must be a size such as \"512M\" or \"2G\", or \"\" for none");
    else
        *io = value;
}

void value_umask(const struct value_reader *r, unsigned option, mode_t *io) {
    const char *text = value_get(r, option, 0, false);
    size_t n = text ? strspn(text, "01234567") : 0;
    mode_t mode = 0;

    if (!text)
        return;
    if (n < 1 || n > 4 || text[n] != '\0' || (n == 4 && text[0] != '0')) {
        value_error(r, option, 0, "must be octal, \"000\" to \"777\"");
        return;
    }
    for (size_t i = 0; i < n; i++)
        mode = mode * 8 + (mode_t) (text[i] - '0');
    *io = mode;
}

/* ---- words ---- */

void value_bool(const struct value_reader *r, unsigned option, bool *io) {
    const char *text = value_get(r, option, 0, false);

    if (!text)
        return;
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        value_error(r, option, 0, "must be true or false");
    else
        *io = text[0] == 't';
}

/* "a", "b" or "c" */
static const char *list_names(const char *const *names, size_t n, char *buffer, size_t size) {
    size_t length = 0;

    buffer[0] = '\0';
    for (size_t i = 0; i < n && length < size; i++)
        length += (size_t) snprintf(buffer + length, size - length, "%s\"%s\"", i == 0 ? "" : i + 1 < n ? ", " : " or ", names[i]);
    return buffer;
}

void value_choice(const struct value_reader *r, unsigned option, const char *const *names, size_t n, unsigned *io) {
    const char *text = value_get(r, option, 0, false), *near;
    char known[128];

    if (!text)
        return;
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, names[i]) == 0) {
            *io = (unsigned) i;
            return;
        }
    near = nearest(text, names, n);
    value_error(r, option, 0, "must be %s%s%s%s", list_names(names, n, known, sizeof(known)), near ? "; did you mean \"" : "",
                near ? near : "", near ? "\"?" : "");
}

void value_name(const struct value_reader *r, unsigned option, char io[static NAME_MAX_LENGTH + 1]) {
    const char *text = value_get(r, option, 0, false);

    if (!text)
        return;
    if (name_is_valid(text))
        memcpy(io, text, strlen(text) + 1);
    else
        value_error(r, option, 0, "%s; " NAME_RULE, name_explain(text));
}

void value_signal(const struct value_reader *r, unsigned option, int *io) {
    const char *text = value_get(r, option, 0, false), *names[32], *near;
    size_t n = 0;

    if (!text)
        return;
    if (strncmp(text, "SIG", 3) == 0)
        text += 3;
    for (int signal = 1; signal < 32; signal++) {
        const char *name = sigabbrev_np(signal);

        if (name && strcmp(name, text) == 0) {
            *io = signal;
            return;
        }
        if (name)
            names[n++] = name;
    }
    near = nearest(text, names, n);
    value_error(r, option, 0, "is not the name of a signal; %s%s%s", near ? "did you mean \"" : "write \"TERM\", \"INT\", \"HUP\" or the like",
                near ? near : "", near ? "\"?" : "");
}

/* ---- strings ---- */

static void copy(const struct value_reader *r, const char *text, char **io) {
    *io = strdup(text);
    if (!*io)
        r->notes->out_of_memory = true;
}

void value_text(const struct value_reader *r, unsigned option, const char *default_text, char **io) {
    const char *text = value_get(r, option, 0, false);

    copy(r, text ? text : default_text, io);
}

void value_path(const struct value_reader *r, unsigned option, const char *default_path, char **io) {
    const char *text = value_get(r, option, 0, false);

    if (text && *text != '/' && (*text != '\0' || *default_path != '\0')) {
        value_error(r, option, 0, "must be an absolute path");
        text = NULL;
    }
    copy(r, text ? text : default_path, io);
}

const char *value_get_account(const struct value_reader *r, unsigned option, size_t index, bool *ret_is_group) {
    const char *text = value_get(r, option, index, false);
    bool is_group = text && ret_is_group && text[0] == '@';
    size_t n;

    if (!text)
        return NULL;
    text += is_group;
    n = strspn(text, ACCOUNT_FIRST "0123456789.-");
    /* Never a number, nor what some tool may take for one: "0day" and "0x0" became root elsewhere (CVE-2017-1000082, CVE-2020-13776). */
    if (strspn(text, ACCOUNT_FIRST) == 0 || n > ACCOUNT_MAX || (text[n] != '\0' && strcmp(text + n, "$") != 0)) {
        value_error(r, option, index, "must be a name, not a number: letters, digits, '_', '-' and '.', beginning with a letter or '_'%s",
                    ret_is_group ? "; '@' before it for a group" : "");
        return NULL;
    }
    if (ret_is_group)
        *ret_is_group = is_group;
    return text;
}

void value_account(const struct value_reader *r, unsigned option, char **io) {
    const char *text = value_get(r, option, 0, false);

    if (text && *text != '\0')
        text = value_get_account(r, option, 0, NULL);
    copy(r, text ? text : "", io);
}
