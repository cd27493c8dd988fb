/* SPDX-License-Identifier: MIT */
#include "cli/table.h"

#include <langinfo.h>
#include <libsmartcols.h>
#include <locale.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <wchar.h>

#include "base/text.h"

#define COLUMNS_MAX 16
#define CUT_MIN 8 /* characters that stay of a text */

struct table {
    struct libscols_table *scols;
    struct libscols_line *line; /* the current line */
    bool is_utf8;               /* the terminal */
    const struct table_column *columns;
    size_t n_columns;
    size_t column, n_lines;
    bool colours;
    int error; /* the first negative errno */
};

static bool wants_colours(void) {
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");

    return (!no || !no[0]) && (!terminal || strcmp(terminal, "dumb") != 0) && isatty(STDOUT_FILENO);
}

int table_new(struct table **ret, const struct table_column *columns, size_t n) {
    _cleanup_(table_freep) struct table *t = calloc(1, sizeof(*t));

    if (!t)
        return -ENOMEM;
    t->scols = scols_new_table();
    if (!t->scols)
        return -ENOMEM;
    t->columns = columns;
    t->n_columns = n;
    t->is_utf8 = table_has_utf8();
    scols_table_enable_noencoding(t->scols, true); /* show() escapes, also what changes the direction of a text */
    t->colours = wants_colours();
    (void) scols_table_enable_colors(t->scols, t->colours);
    for (size_t i = 0; i < n; i++)
        if (!scols_table_new_column(t->scols, columns[i].name, 0, columns[i].right ? SCOLS_FL_RIGHT : 0))
            return -ENOMEM;
    *ret = steal_pointer(&t);
    return 0;
}

struct table *table_free(struct table *t) {
    if (!t)
        return NULL;
    scols_unref_table(t->scols);
    free(t);
    return NULL;
}

void table_line(struct table *t) {
    t->line = scols_table_new_line(t->scols, NULL);
    t->column = 0;
    t->n_lines++;
    if (!t->line && t->error == 0)
        t->error = -ENOMEM;
}

/* Of the 256 colours those that are readable on white and on black: contrast 4:1 at least on both, where yellow has 1:1 on
 * white. The first 16 depend on the terminal's palette. */
static const char *colour_sequence(enum table_colour colour) {
    switch (colour) {
    case TABLE_PLAIN:
        return NULL;
    case TABLE_GOOD:
        return "\033[38;5;28m"; /* green */
    case TABLE_NOTICE:
        return "\033[38;5;130m"; /* brown */
    case TABLE_BAD:
        return "\033[38;5;196m"; /* red */
    }
    return NULL;
}

/* --- characters --- */

/* Returns the columns that the character at text takes on the terminal; -1: the C library does not know it. Stores its bytes. */
static int character_width(const char *text, size_t *ret_size) {
    mbstate_t state = {0};
    wchar_t c;

    *ret_size = text_character(text);
    if (*ret_size == 1)
        return 1;
    return *ret_size > 0 && mbrtowc(&c, text, *ret_size, &state) == *ret_size ? wcwidth(c) : -1;
}

/* Returns a copy with "\\xHH" for each byte that the terminal cannot show or might obey. NULL: no memory. */
static char *show(const char *text, bool is_utf8) {
    char *shown = malloc(4 * strlen(text) + 1), *at = shown;

    for (size_t n; shown && *text; text += n) {
        bool is_plain = character_width(text, &n) >= 0 && (n == 1 || is_utf8);

        if (is_plain)
            at = mempcpy(at, text, n);
        else
            for (size_t i = 0; i < (n = MAX(n, (size_t) 1)); i++)
                at += sprintf(at, "\\x%02x", (unsigned char) text[i]);
    }
    if (shown)
        *at = '\0';
    return shown;
}

/* text: of show(). */
static size_t text_width(const char *text) {
    size_t width = 0;

    for (size_t n; *text; text += n)
        width += (size_t) character_width(text, &n);
    return width;
}

void table_cell(struct table *t, enum table_colour colour, const char *format, ...) {
    _cleanup_free_ char *text = NULL, *shown = NULL;
    va_list arguments;
    int n, r;

    va_start(arguments, format);
    n = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (n < 0)
        text = NULL;
    shown = text ? show(text, t->is_utf8) : NULL;
    if (!shown || !t->line) {
        if (t->error == 0)
            t->error = -ENOMEM;
        return;
    }
    r = scols_line_set_data(t->line, t->column, shown[0] ? shown : "-");
    if (r == 0 && t->colours && colour != TABLE_PLAIN && shown[0])
        r = scols_cell_set_color(scols_line_get_cell(t->line, t->column), colour_sequence(colour));
    if (r != 0 && t->error == 0)
        t->error = r < 0 ? r : -EINVAL;
    t->column++;
}

/* --- narrow terminals --- */

bool table_has_utf8(void) {
    return setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

size_t table_terminal_width(void) {
    struct winsize size = {0};

    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : SIZE_MAX;
}

static struct libscols_cell *get_cell(const struct table *t, size_t line, size_t column) {
    return scols_line_get_cell(scols_table_get_line(t->scols, line), column);
}

static size_t column_width(const struct table *t, size_t column, bool *ret_is_empty) {
    size_t width = strlen(t->columns[column].name);

    *ret_is_empty = true;
    for (size_t i = 0; i < t->n_lines; i++) {
        const char *text = scols_cell_get_data(get_cell(t, i, column));

        *ret_is_empty = *ret_is_empty && strcmp(text, "-") == 0;
        width = MAX(width, text_width(text));
    }
    return width;
}

static int shorten_id(const struct table *t, size_t column) {
    for (size_t i = 0; i < t->n_lines; i++) {
        struct libscols_cell *cell = get_cell(t, i, column);
        char *text = strndup(scols_cell_get_data(cell), t->columns[column].digits);
        int r = text ? scols_cell_refer_data(cell, text) : -ENOMEM;

        if (r != 0) {
            free(text);
            return r;
        }
    }
    return 0;
}

struct fit {
    size_t wanted, width; /* of a line, with a space behind each column */
};

static void leave_out(const struct table *t, struct fit *fit, size_t column) {
    bool is_empty;

    fit->width -= column_width(t, column, &is_empty) + 1;
    (void) scols_column_set_flags(scols_table_get_column(t->scols, column), SCOLS_FL_HIDDEN);
}

static bool is_left_out(const struct table *t, size_t column) {
    return scols_column_get_flags(scols_table_get_column(t->scols, column)) & SCOLS_FL_HIDDEN;
}

static void leave_out_empty(const struct table *t, struct fit *fit) {
    for (size_t i = 0; i < t->n_columns && fit->width > fit->wanted; i++) {
        bool is_empty;

        (void) column_width(t, i, &is_empty);
        if (t->columns[i].drop > 0 && is_empty)
            leave_out(t, fit, i);
    }
}

static void leave_out_others(const struct table *t, struct fit *fit) {
    for (unsigned next = 1; next <= t->n_columns && fit->width > fit->wanted; next++)
        for (size_t i = 0; i < t->n_columns; i++)
            if (t->columns[i].drop == next && !is_left_out(t, i))
                leave_out(t, fit, i);
}

/* Ends a text that is wider than this by "…", or "..." in another locale. Sets *ret to NULL if it is not. */
static int cut_text(const char *text, size_t width, char **ret) {
    const char *end = table_has_utf8() ? "…" : "...";
    size_t room = width - text_width(end), n = 0, size;

    *ret = NULL;
    if (text_width(text) <= width)
        return 0;
    for (size_t seen = 0; (seen += (size_t) character_width(text + n, &size)) <= room;)
        n += size;
    return asprintf(ret, "%.*s%s", (int) n, text, end) < 0 ? -ENOMEM : 0;
}

static int cut_column(const struct table *t, size_t column, size_t width) {
    for (size_t i = 0; i < t->n_lines; i++) {
        struct libscols_cell *cell = get_cell(t, i, column);
        char *text;
        int r = cut_text(scols_cell_get_data(cell), width, &text);

        if (r == 0 && text)
            r = scols_cell_refer_data(cell, text);
        if (r != 0)
            return r;
    }
    return 0;
}

/* Cuts the longest texts, never numbers, ids or names of columns, until the line fits. */
static int cut_longest(const struct table *t, struct fit *fit) {
    size_t widths[COLUMNS_MAX] = {0};
    int r = 0;

    for (size_t i = 0; i < t->n_columns && i < COLUMNS_MAX; i++) {
        bool is_empty;

        if (!t->columns[i].right && t->columns[i].digits == 0 && !is_left_out(t, i))
            widths[i] = column_width(t, i, &is_empty);
    }
    while (fit->width > fit->wanted) {
        size_t longest = 0;

        for (size_t i = 1; i < COLUMNS_MAX; i++)
            longest = widths[i] > widths[longest] ? i : longest;
        if (widths[longest] <= CUT_MIN || widths[longest] <= strlen(t->columns[longest].name))
            break;
        widths[longest]--;
        fit->width--;
    }
    for (size_t i = 0; i < t->n_columns && i < COLUMNS_MAX && r == 0; i++)
        r = widths[i] > 0 ? cut_column(t, i, widths[i]) : 0;
    return r;
}

static int make_fit(const struct table *t) {
    struct fit fit = {.wanted = table_terminal_width()};
    bool is_empty;
    int r = 0;

    if (fit.wanted == SIZE_MAX)
        return 0;
    fit.wanted++; /* the last column has no space behind it */
    for (size_t i = 0; i < t->n_columns; i++)
        fit.width += column_width(t, i, &is_empty) + 1;
    leave_out_empty(t, &fit);
    for (size_t i = 0; i < t->n_columns && r == 0 && fit.width > fit.wanted; i++)
        if (t->columns[i].digits > 0) {
            fit.width -= column_width(t, i, &is_empty);
            r = shorten_id(t, i);
            fit.width += column_width(t, i, &is_empty);
        }
    leave_out_others(t, &fit);
    return r == 0 && fit.width > fit.wanted ? cut_longest(t, &fit) : r;
}

int table_print(struct table *t) {
    int r = t->error < 0 ? t->error : make_fit(t);

    if (r == 0)
        r = scols_print_table(t->scols);

    return r > 0 ? -EIO : r;
}

bool table_is_empty(const struct table *t) {
    return t->n_lines == 0;
}
