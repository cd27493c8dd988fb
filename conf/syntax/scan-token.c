/* SPDX-License-Identifier: MIT */
#include "conf/syntax/scan-token.h"

#include <string.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define WORD_CHARACTERS LETTERS "0123456789._:-"

static bool is_control(char c) {
    return (unsigned char) c < ' ' || c == 0x7f;
}

/* Notes one control character for each file: a file with CRLF would have one in each line. */
static void refuse_control(struct scanner *s, size_t at) {
    struct settings_place place = place_at(s, s->line);

    if (!s->control_was_noted)
        notes_add(s->notes, &place, "control character 0x%02x%s; remove it", (unsigned char) s->text[at],
                  s->text[at] == '\r' ? " (lines must end in a newline alone)" : "");
    notes_spoil(s->notes, &place);
    s->control_was_noted = true;
    s->text[at] = ' ';
}

static void skip_line_comment(struct scanner *s) {
    for (; s->at < s->size && s->text[s->at] != '\n'; s->at++) {
        if (is_control(s->text[s->at]) && s->text[s->at] != '\t')
            refuse_control(s, s->at);
        s->text[s->at] = ' ';
    }
}

/* Skips a comment. False: it is not closed. */
static bool skip_block_comment(struct scanner *s) {
    int first = s->line;

    for (size_t i = s->at + 2; i + 1 < s->size; i++)
        if (s->text[i] == '*' && s->text[i + 1] == '/') {
            for (; s->at < i + 2; s->at++)
                if (s->text[s->at] == '\n')
                    s->line++;
                else if (is_control(s->text[s->at]) && s->text[s->at] != '\t')
                    refuse_control(s, s->at);
                else
                    s->text[s->at] = ' ';
            return true;
        }
    syntax_error(s, first, "the comment is not closed; add */");
    return false;
}

/* False: a syntax error. */
static bool skip_blanks(struct scanner *s) {
    for (;;) {
        const char *here = s->text + s->at;
        size_t left = s->size - s->at;

        if (left == 0)
            return true;
        if (*here == '\n') {
            s->line++;
            s->at++;
        } else if (*here == ' ' || *here == '\t') {
            s->at++;
        } else if (is_control(*here)) {
            refuse_control(s, s->at++);
        } else if (*here == '#' || (left > 1 && here[0] == '/' && here[1] == '/')) {
            skip_line_comment(s);
        } else if (left > 1 && here[0] == '/' && here[1] == '*') {
            if (!skip_block_comment(s))
                return false;
        } else {
            return true;
        }
    }
}

/* Returns whether an escape is a NUL: "\0", "\000", "\x00". libconfuse's strings end there. */
static bool is_nul_escape(const char *after_backslash) {
    size_t digits, zeros;

    if (after_backslash[0] == 'x') {
        digits = strspn(after_backslash + 1, "0123456789abcdefABCDEF");
        zeros = strspn(after_backslash + 1, "0");
        return digits > 0 && zeros >= (digits < 2 ? digits : 2);
    }
    digits = strspn(after_backslash, "01234567");
    zeros = strspn(after_backslash, "0");
    return digits > 0 && zeros >= (digits < 3 ? digits : 3);
}

/* A backslash in double quotes; s->at stands on it. */
static void scan_escape(struct scanner *s) {
    struct settings_place place = place_at(s, s->line);

    if (is_nul_escape(s->text + s->at + 1)) {
        notes_add(s->notes, &place, "a string cannot hold the character 0, \"\\0\" or \"\\x00\"; remove it");
        notes_spoil(s->notes, &place);
        s->text[s->at] = '?';
    }
    s->at++;
    if (s->at < s->size && s->text[s->at] != '\n')
        s->at++;
}

static void scan_string(struct scanner *s) {
    char quote = s->text[s->at++];
    struct settings_place place = place_at(s, s->line);

    while (s->at < s->size && s->text[s->at] != quote) {
        char *here = s->text + s->at;

        if (*here == '\n' && !s->may_break)
            break;
        if (*here == '\n') {
            s->line++;
            s->at++;
        } else if (*here == '\t' && s->may_break) {
            s->at++;
        } else if (is_control(*here)) {
            refuse_control(s, s->at++);
        } else if (quote == '"' && here[0] == '$' && here[1] == '{') {
            struct settings_place here_place = place_at(s, s->line);

            notes_add(s->notes, &here_place, "\"${\" in double quotes: variables are not replaced; write '${' in single quotes");
            notes_spoil(s->notes, &here_place);
            *here = '?';
            s->at++;
        } else if (*here == '\\' && quote == '"') {
            scan_escape(s);
        } else if (*here == '\\' && (here[1] == '\\' || here[1] == '\'')) {
            s->at += 2;
        } else {
            s->at++;
        }
    }
    if (s->at >= s->size || s->text[s->at] != quote) {
        syntax_error(s, place.line, "the string is not closed%s; add %c", s->may_break ? "" : " on its line", quote);
        return;
    }
    s->at++;
    s->token = TOKEN_STRING;
}

static enum token punctuation(char c) {
    switch (c) {
    case '=':
        return TOKEN_EQUALS;
    case '{':
        return TOKEN_OPEN;
    case '}':
        return TOKEN_CLOSE;
    case ',':
        return TOKEN_COMMA;
    }
    return TOKEN_WRONG;
}

/* Notes a byte outside of strings that is not ASCII: often a typographic quote, a no-break space, or the mark of another encoding. */
static void refuse_foreign(struct scanner *s, size_t at) {
    const char *here = s->text + at;

    if (at == 0 && strncmp(here, "\xef\xbb\xbf", 3) == 0)
        syntax_error(s, s->line, "the file begins with a byte order mark; save it as UTF-8 without one");
    else if (at == 0 && (strncmp(here, "\xff\xfe", 2) == 0 || strncmp(here, "\xfe\xff", 2) == 0))
        syntax_error(s, s->line, "the file is UTF-16; save it as UTF-8");
    else
        syntax_error(s, s->line, "unexpected byte 0x%02x; outside of strings only ASCII is allowed: strings stand in \" or ', blanks are spaces",
                     (unsigned char) *here);
}

void scanner_next(struct scanner *s) {
    if (!skip_blanks(s))
        return;
    s->begin = s->at;
    s->token_line = s->line;
    if (s->at == s->size) {
        s->token = TOKEN_END;
    } else if (s->text[s->at] == '"' || s->text[s->at] == '\'') {
        scan_string(s);
    } else if (punctuation(s->text[s->at]) != TOKEN_WRONG) {
        s->token = punctuation(s->text[s->at++]);
    } else {
        size_t n = strspn(s->text + s->at, WORD_CHARACTERS);
        unsigned char c = (unsigned char) s->text[s->at + n];

        /* A character that cannot follow a word is refused: "a/b" and "2*3" are not cut in two. */
        if (n > 0 && (is_control((char) c) || strchr(" #\"'={},(+", c))) {
            s->at += n;
            s->token = TOKEN_WORD;
        } else if (s->text[s->at + n] == '$' && s->text[s->at + n + 1] == '{') {
            syntax_error(s, s->line, "\"${\" without quotes: variables are not replaced; write '${' in single quotes");
        } else if (n == 0 && c == '+') {
            syntax_error(s, s->line, "\"+=\" is not supported; write the whole list with =");
        } else if (c == ';') {
            syntax_error(s, s->line, "unexpected ';'; remove it, or put the value with it in quotes");
        } else if (c == '[') {
            syntax_error(s, s->line, "unexpected '['; write a list as {\"a\", \"b\"}, or put the value with it in quotes");
        } else if (c > ' ' && c < 0x7f) {
            syntax_error(s, s->line, "unexpected '%c'; a value with it must stand in quotes", c);
        } else {
            refuse_foreign(s, s->at + n);
        }
    }
    s->end = s->at;
}
