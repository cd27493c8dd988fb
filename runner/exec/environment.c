/* SPDX-License-Identifier: MIT */
#include "runner/exec/environment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* ---- variables ---- */

/* Takes ownership of the entry, also on failure. */
static int take_entry(struct environment *e, char *entry) {
    size_t name = strcspn(entry, "=");
    char **more;

    for (size_t i = 0; i < e->n; i++)
        if (strncmp(e->items[i], entry, name) == 0 && e->items[i][name] == '=') {
            free(e->items[i]);
            e->items[i] = entry;
            return 0;
        }
    more = reallocarray(e->items, e->n + 2, sizeof(*more));
    if (!more) {
        free(entry);
        return -ENOMEM;
    }
    e->items = more;
    e->items[e->n++] = entry;
    e->items[e->n] = NULL;
    return 0;
}

int environment_add(struct environment *e, const char *entry) {
    char *copy = strdup(entry);

    return copy ? take_entry(e, copy) : -ENOMEM;
}

int environment_set(struct environment *e, const char *name, const char *value) {
    char *entry = NULL;

    return asprintf(&entry, "%s=%s", name, value) < 0 ? -ENOMEM : take_entry(e, entry);
}

void environment_done(struct environment *e) {
    for (size_t i = 0; i < e->n; i++)
        free(e->items[i]);
    free(e->items);
    *e = (struct environment){0};
}

/* ---- the text of a file ---- */

#define NAME_FIRST "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"

static bool has_control(const char *line) {
    for (; *line; line++)
        if (((unsigned char) *line < ' ' && *line != '\t') || *line == 0x7f)
            return true;
    return false;
}

/* Removes the quotes around a value. Returns false if the value does not end with its opening quote. */
static bool unquote(char *value) {
    size_t n = strlen(value);

    if (*value != '"' && *value != '\'')
        return true;
    if (n < 2 || value[n - 1] != *value)
        return false;
    memmove(value, value + 1, n - 2);
    value[n - 2] = '\0';
    return true;
}

/* Returns what is wrong with a line, or NULL. Removes the quotes of its value. */
static const char *check_line(char *line) {
    size_t n = strspn(line, NAME_FIRST "0123456789");

    if (has_control(line))
        return "a control character";
    if (strspn(line, NAME_FIRST) == 0 || line[n] != '=')
        return "no NAME=VALUE";
    if (strncmp(line, "BERTH_", strlen("BERTH_")) == 0)
        return "a name of berth's own, BERTH_...";
    return unquote(line + n + 1) ? NULL : "a quote that is not closed";
}

int environment_parse(struct environment *e, const char *text, size_t size,
                      struct environment_error *ret_error) {
    const char *end = text + size;
    unsigned number = 0;
    int r = 0;

    while (r == 0 && text < end) {
        const char *newline = memchr(text, '\n', (size_t) (end - text));
        size_t n = (size_t) ((newline ? newline : end) - text);
        _cleanup_free_ char *line = malloc(n + 1);
        const char *problem;

        if (!line)
            return -ENOMEM;
        snprintf(line, n + 1, "%.*s", (int) n, text); /* shorter if it has a NUL byte */
        text += n + 1;
        number++;
        if (line[0] == '#' || strspn(line, " \t") == n)
            continue;
        problem = strlen(line) < n ? "a NUL byte" : check_line(line);
        if (problem) {
            *ret_error = (struct environment_error){number, problem};
            return -EBADMSG;
        }
        r = environment_add(e, line);
    }
    return r;
}
