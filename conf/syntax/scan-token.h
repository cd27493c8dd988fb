/* SPDX-License-Identifier: MIT */
#pragma once

/* The tokens of a config file, for conf/syntax/scan.c alone. They are libconfuse's, but fewer: whatever its lexer would silently skip, or read
 * in a surprising way, is refused here. */

#include "conf/syntax/scan.h"

enum token { TOKEN_END, TOKEN_WORD, TOKEN_STRING, TOKEN_EQUALS, TOKEN_OPEN, TOKEN_CLOSE, TOKEN_COMMA, TOKEN_WRONG };

struct scanner {
    struct scan *out;
    struct notes *notes;
    const char *file;
    char *text; /* out->text */
    size_t size, at;
    int line; /* of text[at] */
    bool control_was_noted;
    bool may_break;   /* strings may have newlines and tabs */
    enum token token; /* the current one */
    size_t begin, end;
    int token_line;
};

static inline struct settings_place place_at(const struct scanner *s, int line) {
    return (struct settings_place) {s->file, line};
}

/* Notes a syntax error; the rest of the file is not scanned. */
#define syntax_error(s, at_line, ...)                            \
    do {                                                         \
        struct settings_place _place = place_at((s), (at_line)); \
        notes_add((s)->notes, &_place, __VA_ARGS__);             \
        (s)->notes->incomplete = true;                           \
        (s)->token = TOKEN_WRONG;                                \
    } while (0)

/* Returns the next token; TOKEN_WRONG: there is none that is valid, which is noted. */
void scanner_next(struct scanner *s);
