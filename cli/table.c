/* SPDX-License-Identifier: MIT */
#include "cli/table.h"

#include <libsmartcols.h>
#include <stdarg.h>
#include <string.h>

struct table {
    struct libscols_table *scols;
    struct libscols_line *line; /* the current line */
    size_t column, n_lines;
    bool colours;
    int error; /* the first negative errno */
};

static bool wants_colours(void) {
    const char *no = getenv("NO_COLOR");

    return (!no || !no[0]) && isatty(STDOUT_FILENO);
}

int table_new(struct table **ret, const struct table_column *columns, size_t n) {
    _cleanup_(table_freep) struct table *t = calloc(1, sizeof(*t));

    if (!t)
        return -ENOMEM;
    t->scols = scols_new_table();
    if (!t->scols)
        return -ENOMEM;
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

static const char *colour_name(enum table_colour colour) {
    switch (colour) {
    case TABLE_PLAIN:
        return NULL;
    case TABLE_GOOD:
        return "green";
    case TABLE_NOTICE:
        return "yellow";
    case TABLE_BAD:
        return "red";
    }
    return NULL;
}

void table_cell(struct table *t, enum table_colour colour, const char *format, ...) {
    _cleanup_free_ char *text = NULL;
    va_list arguments;
    int n, r;

    va_start(arguments, format);
    n = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (n < 0)
        text = NULL;
    if (!text || !t->line) {
        if (t->error == 0)
            t->error = -ENOMEM;
        return;
    }
    r = scols_line_set_data(t->line, t->column, text[0] ? text : "-");
    if (r == 0 && t->colours && colour != TABLE_PLAIN)
        r = scols_cell_set_color(scols_line_get_cell(t->line, t->column), colour_name(colour));
    if (r != 0 && t->error == 0)
        t->error = r < 0 ? r : -EINVAL;
    t->column++;
}

int table_print(struct table *t) {
    int r = t->error < 0 ? t->error : scols_print_table(t->scols);

    return r > 0 ? -EIO : r;
}

bool table_is_empty(const struct table *t) {
    return t->n_lines == 0;
}
