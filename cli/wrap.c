/* SPDX-License-Identifier: MIT */
#include "cli/wrap.h"

#include <string.h>

/* Returns the number of characters in n bytes of UTF-8. */
static size_t columns(const char *text, size_t n) {
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += ((unsigned char) text[i] & 0xC0) != 0x80;
    return sum;
}

void wrap_print(FILE *f, const char *text, size_t at, const struct wrap *wrap) {
    const char *end = wrap->end ? wrap->end : "";

    while (*text) {
        size_t spaces = strspn(text, " "), word = strcspn(text + spaces, " "),
               width = columns(text + spaces, word);

        if (word > 0 && at > wrap->indent && at + spaces + width + strlen(end) > wrap->width) {
            fprintf(f, "%s\n%*s", end, (int) wrap->indent, "");
            at = wrap->indent;
        } else {
            fprintf(f, "%*s", (int) spaces, "");
            at += spaces;
        }
        fprintf(f, "%.*s", (int) word, text + spaces);
        at += width;
        text += spaces + word;
    }
    (void) fputc('\n', f);
}
