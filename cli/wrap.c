/* SPDX-License-Identifier: MIT */
#include "cli/wrap.h"

#include <stdbool.h>
#include <string.h>

/* Returns the number of characters in n bytes of UTF-8. */
static size_t columns(const char *text, size_t n) {
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += ((unsigned char) text[i] & 0xC0) != 0x80;
    return sum;
}

/* Returns the number of bytes before the next space; of a command, of that outside of single quotes. */
static size_t word_size(const char *text, bool is_command) {
    bool is_quoted = false;
    size_t n;

    for (n = 0; text[n] && (text[n] != ' ' || is_quoted); n++)
        if (is_command && text[n] == '\'' && (is_quoted || n == 0 || text[n - 1] != '\\'))
            is_quoted = !is_quoted;
    return n;
}

static void print_word(FILE *f, const char *word, size_t n) {
    const size_t size = strlen(WRAP_NO_BREAK);

    while (n > 0)
        if (n >= size && memcmp(word, WRAP_NO_BREAK, size) == 0) {
            (void) fputc(' ', f);
            word += size;
            n -= size;
        } else {
            (void) fputc(*word++, f);
            n--;
        }
}

void wrap_print(FILE *f, const char *text, size_t at, const struct wrap *wrap) {
    const char *end = wrap->end ? wrap->end : "";

    while (*text) {
        size_t spaces = strspn(text, " "), word = word_size(text + spaces, wrap->end != NULL),
               width = columns(text + spaces, word);

        if (word > 0 && at > wrap->indent && at + spaces + width + strlen(end) > wrap->width) {
            fprintf(f, "%s\n%*s", end, (int) wrap->indent, "");
            at = wrap->indent;
        } else {
            fprintf(f, "%*s", (int) spaces, "");
            at += spaces;
        }
        print_word(f, text + spaces, word);
        at += width;
        text += spaces + word;
    }
    (void) fputc('\n', f);
}
