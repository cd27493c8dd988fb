/* SPDX-License-Identifier: MIT */

#include "conf/value.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/text.h"

#define ACCOUNT_MAX 64
#define ACCOUNT_FIRST "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define NOTE_MAX 768

static size_t option_index(const struct value_reader *reader, const char *option) {
    int index = section_find_option(reader->section->kind, option, strlen(option));

    assert(index >= 0);
    return (size_t) index;
}

const struct parsed_option *value_option(const struct value_reader *reader, const char *option) {
    return &reader->section->options[option_index(reader, option)];
}

bool value_is_given(const struct value_reader *reader, const char *option) {
    return value_option(reader, option)->is_given;
}

bool value_is_missing(const struct value_reader *reader, const char *option) {
    return !value_is_given(reader, option) && !(reader->section->refused >> option_index(reader, option) & 1);
}

struct settings_place value_place(const struct value_reader *reader, const char *option) {
    return value_is_given(reader, option) ? value_option(reader, option)->place : reader->section->place;
}

static void note_arguments(const struct value_reader *reader, const struct settings_place *place, const char *before, const char *format,
                           va_list arguments) _printf_(4, 0);
static void note_arguments(const struct value_reader *reader, const struct settings_place *place, const char *before, const char *format,
                           va_list arguments) {
    const struct section *section = section_get(reader->section->kind);
    char text[NOTE_MAX];

    (void) vsnprintf(text, sizeof(text), format, arguments);
    if (reader->section->title)
        notes_add(reader->notes, place, "%s \"%.100s\": %s%s", section->name, reader->section->title, before, text);
    else
        notes_add(reader->notes, place, "%s%s%s%s", section->name, *section->name ? ": " : "", before, text);
}

void value_note(const struct value_reader *reader, const struct settings_place *place, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    note_arguments(reader, place, "", format, arguments);
    va_end(arguments);
}

void value_error(const struct value_reader *reader, const char *option, size_t index, const char *format, ...) {
    const struct parsed_option *o = value_option(reader, option);
    struct settings_place place = {o->place.file, o->values[index].line};
    char before[256];
    va_list arguments;

    if (notes_is_spoiled(reader->notes, &place))
        return;
    snprintf(before, sizeof(before), "%s \"%.200s\"%s", option, o->values[index].text, format[0] == ':' ? "" : " ");
    va_start(arguments, format);
    note_arguments(reader, &place, before, format, arguments);
    va_end(arguments);
}

const char *value_get(const struct value_reader *reader, const char *option, size_t index, bool may_break) {
    const struct parsed_option *o = value_option(reader, option);

    if (index >= o->n_values)
        return NULL;
    if (!text_is_utf8(o->values[index].text)) {
        value_error(reader, option, index, "is not UTF-8; write it as UTF-8");
        return NULL;
    }
    if (text_has_control(o->values[index].text, may_break)) {
        value_error(reader, option, index, "holds a control character; remove it");
        return NULL;
    }
    return o->values[index].text;
}

char *value_copy(const struct value_reader *reader, const char *text) {
    char *copy = strdup(text);

    if (!copy)
        reader->notes->out_of_memory = true;
    return copy;
}

const char *value_account(const struct value_reader *reader, const char *option, size_t index, const char *text, bool is_listed) {
    size_t n;

    text += is_listed && text[0] == '@';
    n = strspn(text, ACCOUNT_FIRST "0123456789.-");
    /* Refuse numbers, and whatever a tool may read as one: elsewhere "0day" and "0x0" became root (CVE-2017-1000082, CVE-2020-13776). */
    if (strspn(text, ACCOUNT_FIRST) > 0 && n <= ACCOUNT_MAX && (text[n] == '\0' || strcmp(text + n, "$") == 0))
        return text;
    value_error(reader, option, index,
                "must be a name, not a number: letters, digits, '_', '-' and '.', beginning with a letter or '_'%s",
                is_listed ? "; '@' before it for a group" : "");
    return NULL;
}
