/* SPDX-License-Identifier: MIT */

/* Errors of a config, collected and sorted. */

#include "conf/syntax/notes.h"

#include <stdarg.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

#define TEXT_MAX 1024

void notes_add(struct notes *notes, const struct settings_place *place, const char *format, ...) {
    char text[TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    text_make_printable(text); /* errors quote the config: a terminal must not obey it, and JSON must be able to hold it */

    if (!array_grow(notes->items, notes->n)) {
        notes->out_of_memory = true;
        return;
    }
    notes->items[notes->n] = (struct note) {.place = *place, .order = notes->n, .text = strdup(text)};
    if (notes->items[notes->n].text)
        notes->n++;
    else
        notes->out_of_memory = true;
}

static bool is_same_line(const struct settings_place *a, const struct settings_place *b) {
    return a->file == b->file && a->line == b->line;
}

void notes_spoil(struct notes *notes, const struct settings_place *place) {
    for (size_t i = 0; i < notes->n; i++)
        if (is_same_line(&notes->items[i].place, place))
            notes->items[i].spoils = true;
}

bool notes_is_spoiled(const struct notes *notes, const struct settings_place *place) {
    for (size_t i = 0; i < notes->n; i++)
        if (notes->items[i].spoils && is_same_line(&notes->items[i].place, place))
            return true;
    return false;
}

static int compare(const void *a, const void *b) {
    const struct note *x = a, *y = b;

    if (x->place.line != y->place.line)
        return x->place.line < y->place.line ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static void append(struct settings_errors *errors, const struct note *note) {
    char number[16] = "";

    if (note->place.line > 0)
        snprintf(number, sizeof(number), ":%d", note->place.line);
    if (settings_errors_add(errors, "%s%s: %s", note->place.file, number, note->text) < 0)
        errors->out_of_memory = true;
}

void notes_finish(struct notes *notes, char *const *files, size_t n_files, struct settings_errors *errors) {
    if (notes->out_of_memory)
        errors->out_of_memory = true;
    if (notes->n > 0)
        qsort(notes->items, notes->n, sizeof(*notes->items), compare);
    for (size_t f = 0; f < n_files; f++)
        for (size_t i = 0; i < notes->n; i++)
            if (notes->items[i].place.file == files[f])
                append(errors, &notes->items[i]);
}

void notes_done(struct notes *notes) {
    for (size_t i = 0; i < notes->n; i++)
        free(notes->items[i].text);
    free(notes->items);
    *notes = (struct notes) {};
}
