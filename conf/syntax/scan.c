/* SPDX-License-Identifier: MIT */

/* The statements of a config file. */

#include "conf/syntax/scan.h"

#include <string.h>

#include "base/array.h"
#include "conf/syntax/scan-token.h"

#define NAME_SHOWN_MAX 64

struct frame { /* the section that is being scanned */
    int kind;                     /* enum section_kind; -1: unknown, and its options are not checked */
    int seen[OPTIONS_MAX]; /* line of each option, 0: not there */
    uint64_t refused;             /* as in struct statement */
};

static void blank(struct scanner *s, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++)
        if (s->text[i] != '\n')
            s->text[i] = ' ';
}

static void add_statement(struct scanner *s, const struct statement *statement) {
    if (array_grow(s->out->statements, s->out->n_statements))
        s->out->statements[s->out->n_statements++] = *statement;
    else
        s->notes->out_of_memory = true;
}

/* Scans a list from '{' to '}'. A comma may follow the last value. False: a syntax error. */
static bool scan_list(struct scanner *s, const char *name) {
    int line = s->token_line;
    bool may_be_value = true;

    for (;;) {
        scanner_next(s);
        switch (s->token) {
        case TOKEN_CLOSE:
            return true;
        case TOKEN_WRONG:
            return false;
        case TOKEN_WORD:
        case TOKEN_STRING:
        case TOKEN_COMMA:
            if ((s->token == TOKEN_COMMA) != may_be_value)
                break;
            if (may_be_value)
                syntax_error(s, s->token_line, "unexpected ',' in the list \"%s\"; a value must stand before it", name);
            else
                syntax_error(s, s->token_line,
                             "',' or '}' is missing in the list \"%s\", which began in line %d; put ',' between two values", name, line);
            return false;
        case TOKEN_END:
            syntax_error(s, line, "'{' of the list \"%s\" is not closed; add }", name);
            return false;
        case TOKEN_EQUALS:
        case TOKEN_OPEN:
            syntax_error(s, s->token_line, "unexpected '%c' in the list \"%s\", which began in line %d; is a } missing?",
                         s->text[s->begin], name, line);
            return false;
        }
        may_be_value = !may_be_value;
    }
}

static bool may_break(int kind, const char *name) {
    int option = kind >= 0 ? section_find_option((enum section_kind) kind, name, strlen(name)) : -1;

    return option >= 0 && section_get((enum section_kind) kind)->options[option].type->may_break;
}

/* Scans the value of an option in this kind of section, from '='; the token after the value is the current one then. False: a syntax
 * error. */
static bool scan_value(struct scanner *s, int kind, const char *name, bool *ret_is_list, size_t *ret_end) {
    int line = s->token_line;

    s->may_break = may_break(kind, name);
    scanner_next(s);
    s->may_break = false;
    *ret_is_list = s->token == TOKEN_OPEN;
    if (*ret_is_list && !scan_list(s, name))
        return false;
    if (!*ret_is_list && s->token != TOKEN_WORD && s->token != TOKEN_STRING) {
        if (s->token != TOKEN_WRONG)
            syntax_error(s, line, "\"%s\" has no value; write %s = ...", name, name);
        return false;
    }
    *ret_end = s->end;
    scanner_next(s);
    return s->token != TOKEN_WRONG;
}

/* Finds an option and notes its errors. -1: do not use it. */
static int check_option(struct scanner *s, struct frame *frame, const char *name, int line, bool is_list) {
    const struct section *section = section_get((enum section_kind) frame->kind);
    struct settings_place place = place_at(s, line);
    int option = section_find_option((enum section_kind) frame->kind, name, strlen(name));
    char known[OPTIONS_TEXT_SIZE];
    const char *near;

    if (option < 0 && frame->kind == SECTION_TOP && section_find(name, strlen(name)) >= 0) {
        notes_add(s->notes, &place, "\"%s\" is a section; write %s {", name, name);
    } else if (option < 0) {
        near = section_nearest_option((enum section_kind) frame->kind, name);
        if (near)
            frame->refused |= UINT64_C(1) << section_find_option((enum section_kind) frame->kind, near, strlen(near));
        notes_add(s->notes, &place, "unknown option \"%s\"%s%s%s%s%s", name, *section->name ? " in " : "", section->name,
                  near ? "; did you mean \"" : "; ",
                  near ? near : section_list_options((enum section_kind) frame->kind, known), near ? "\"?" : "");
    } else if (frame->seen[option] > 0) {
        notes_add(s->notes, &place, "\"%s\" is given twice, first in line %d; keep one", name, frame->seen[option]);
    } else {
        frame->seen[option] = line;
        if (is_list == option_is_list(&section->options[option]))
            return option;
        frame->refused |= UINT64_C(1) << option;
        if (is_list)
            notes_add(s->notes, &place, "\"%s\" takes one value, not a list; write %s = \"...\"", name, name);
        else
            notes_add(s->notes, &place, "\"%s\" takes a list; write %s = {\"...\"}", name, name);
    }
    return -1;
}

/* Scans "name = value"; '=' is the current token. False: a syntax error. */
static bool scan_option(struct scanner *s, struct frame *frame, const char *name, size_t begin, int line) {
    bool is_list;
    size_t end;
    int option;

    if (!scan_value(s, frame->kind, name, &is_list, &end))
        return false;
    if (frame->kind < 0)
        return true;
    option = check_option(s, frame, name, line, is_list);
    if (option < 0)
        blank(s, begin, end);
    else if (frame->kind == SECTION_TOP)
        add_statement(s, &(struct statement) {SECTION_TOP, option, begin, end, line, 0});
    return true;
}

/* Copies the name at the start of an option or a section, cut if it is too long to be one. False: a syntax error. */
static bool scan_name(struct scanner *s, const char *where, char ret[static NAME_SHOWN_MAX + 1]) {
    size_t n = s->end - s->begin;

    if (s->token == TOKEN_WRONG)
        return false;
    if (s->token != TOKEN_WORD) {
        syntax_error(s, s->token_line, "unexpected %s%s; the name of an option%s must stand here",
                     s->token == TOKEN_STRING ? "string" : (const char[]) {'\'', s->text[s->begin], '\'', '\0'}, where,
                     *where ? "" : " or a section");
        return false;
    }
    if (n > NAME_SHOWN_MAX)
        n = NAME_SHOWN_MAX;
    memcpy(ret, s->text + s->begin, n);
    ret[n] = '\0';
    return true;
}

/* Returns the length of a name without the ':' that other formats put after it. */
static size_t without_colon(const char *name) {
    size_t n = strlen(name);

    return n > 1 && name[n - 1] == ':' ? n - 1 : n;
}

/* Scans the inside of a section: '{' is the current token, then the one after '}'. False: a syntax error. */
static bool scan_section_body(struct scanner *s, const char *section, struct frame *frame, size_t *ret_end) {
    char name[NAME_SHOWN_MAX + 1], where[NAME_SHOWN_MAX + 8];
    int open_line = s->token_line;

    snprintf(where, sizeof(where), " in %s", section);
    scanner_next(s);
    while (s->token != TOKEN_CLOSE) {
        size_t begin = s->begin;
        int line = s->token_line;

        if (s->token == TOKEN_END) {
            syntax_error(s, open_line, "'{' of \"%s\" is not closed; add }", section);
            return false;
        }
        if (!scan_name(s, where, name))
            return false;
        scanner_next(s);
        if (s->token != TOKEN_EQUALS) {
            if (s->token != TOKEN_WRONG && section_find(name, strlen(name)) >= 0)
                syntax_error(s, line, "section \"%s\" begins inside of %s, which began in line %d; is a } missing?", name, section, open_line);
            else if (s->token != TOKEN_WRONG)
                syntax_error(s, line, "\"%s\" in %s: '=' is missing; write %.*s = ...", name, section, (int) without_colon(name), name);
            return false;
        }
        if (!scan_option(s, frame, name, begin, line))
            return false;
    }
    *ret_end = s->end;
    scanner_next(s);
    return s->token != TOKEN_WRONG;
}

/* Notes errors in the head of a section. Returns whether the section can be used. */
static bool check_section(struct scanner *s, const char *name, int line, bool has_title) {
    struct settings_place place = place_at(s, line);
    int kind = section_find(name, strlen(name));
    const char *near;

    if (kind >= 0 && section_get((enum section_kind) kind)->is_titled != has_title) {
        if (has_title)
            notes_add(s->notes, &place, "%s has no name; write %s {", name, name);
        else
            notes_add(s->notes, &place, "%s must have a name; write %s \"NAME\" {", name, name);
    } else if (kind >= 0) {
        return true;
    } else if (section_find_option(SECTION_TOP, name, strlen(name)) >= 0) {
        notes_add(s->notes, &place, "\"%s\" is an option; write %s = ...", name, name);
    } else {
        near = section_nearest(name);
        notes_add(s->notes, &place, "unknown section \"%s\"; %s%s%s", name, near ? "did you mean \"" : "there are redis, pool and job",
                  near ? near : "", near ? "\"?" : "");
    }
    return false;
}

/* Notes that neither '=' nor '{' follows a name. */
static void refuse_head(struct scanner *s, const char *name, int line) {
    int n = (int) without_colon(name), kind = section_find(name, (size_t) n);

    if (kind >= 0)
        syntax_error(s, line, "'{' is missing after %.*s; write %.*s%s {", n, name, n, name,
                     section_get((enum section_kind) kind)->is_titled ? " \"NAME\"" : "");
    else
        syntax_error(s, line, "unexpected \"%s\"; an option is %.*s = ..., a section is %.*s {", name, n, name, n, name);
}

/* Scans 'name ["title"] { ... }'; the token after the name is the current one. False: a syntax error. */
static bool scan_section(struct scanner *s, const char *name, size_t begin, int line) {
    bool has_title = s->token == TOKEN_STRING || s->token == TOKEN_WORD, is_usable;
    struct frame frame = {};
    size_t end;

    if (has_title)
        scanner_next(s);
    if (s->token != TOKEN_OPEN) {
        if (s->token != TOKEN_WRONG)
            refuse_head(s, name, line);
        return false;
    }
    /* The options are checked even if the head is wrong. */
    is_usable = check_section(s, name, line, has_title);
    frame.kind = section_find(name, strlen(name));
    if (!scan_section_body(s, name, &frame, &end))
        return false;
    if (is_usable)
        add_statement(s, &(struct statement) {(enum section_kind) frame.kind, -1, begin, end, line, frame.refused});
    return true;
}

static bool scan_statement(struct scanner *s, struct frame *top) {
    char name[NAME_SHOWN_MAX + 1];
    size_t begin = s->begin;
    int line = s->token_line;

    if (!scan_name(s, "", name))
        return false;
    if (strcmp(name, "include") == 0) {
        syntax_error(s, line, "\"include\" is not supported; put files into %s.d/, named *.conf", s->file);
        return false;
    }
    scanner_next(s);
    if (s->token == TOKEN_EQUALS)
        return scan_option(s, top, name, begin, line);
    return s->token != TOKEN_WRONG && scan_section(s, name, begin, line);
}

int scan_text(struct scan *ret, const char *file, const char *text, size_t size, struct notes *notes) {
    struct frame top = {.kind = SECTION_TOP};
    struct scan scan = {.text = malloc(size + 1)};
    struct scanner s = {.out = &scan, .notes = notes, .file = file, .text = scan.text, .size = size, .line = 1};

    if (!scan.text)
        return -ENOMEM;
    memcpy(scan.text, text, size);
    scan.text[size] = '\0';
    scanner_next(&s);
    while (s.token != TOKEN_END && s.token != TOKEN_WRONG && scan_statement(&s, &top))
        ;
    if (notes->out_of_memory) {
        scan_done(&scan);
        return -ENOMEM;
    }
    *ret = scan;
    return 0;
}

void scan_done(struct scan *scan) {
    free(scan->text);
    free(scan->statements);
    *scan = (struct scan) {};
}
