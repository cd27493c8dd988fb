/* SPDX-License-Identifier: MIT */
#include "tests/harness/redis/redis-peer-answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void peer_answer_put(struct peer_answer *a, const char *format, ...) {
    size_t used = strlen(a->text);
    va_list args;

    va_start(args, format);
    (void) vsnprintf(a->text + used, sizeof(a->text) - used, format, args);
    va_end(args);
}

void peer_answer_split(struct peer_answer *a) {
    for (char *rest = a->text, *word; (word = strsep(&rest, " ")) && a->n < PEER_WORDS_MAX / 2;)
        a->words[a->n++] = strcmp(word, "''") == 0 ? "" : word;
}

void peer_answer_open_lines(struct peer_answer *a) {
    for (size_t i = 0; i < sizeof(a->text); i++)
        if (a->text[i] == '_')
            a->text[i] = ' ';
}

void peer_answer_change(struct peer_answer *a, enum peer_change how, unsigned at, const char *text) {
    size_t k = a->n > 0 ? at % a->n : 0;

    if (a->n == 0)
        return;
    switch (how) {
    case PEER_REPLACE: a->words[k] = text; break;
    case PEER_REMOVE:
        memmove(&a->words[k], &a->words[k + 1], (a->n - k - 1) * sizeof(*a->words));
        a->n--;
        break;
    case PEER_INSERT:
        memmove(&a->words[k + 1], &a->words[k], (a->n - k) * sizeof(*a->words));
        a->words[k] = text;
        a->n++;
        break;
    case PEER_NEST:
        memmove(&a->words[k + 3], &a->words[k + 1], (a->n - k - 1) * sizeof(*a->words));
        a->words[k + 1] = a->words[k];
        a->words[k] = "[";
        a->words[k + 2] = "]";
        a->n += 2;
        break;
    case PEER_CUT: a->n = k; break;
    case PEER_WORD:
        a->words[0] = text;
        a->n = 1;
        break;
    default: break;
    }
}

static size_t write_text(char *buffer, size_t size, const char *text) {
    int n = snprintf(buffer, size, "$%zu\r\n%s\r\n", strlen(text), text);

    return n < 0 || (size_t) n >= size ? 0 : (size_t) n;
}

static size_t count_items(const struct peer_answer *a, size_t from) {
    size_t depth = 0, n = 0;

    for (size_t i = from; i < a->n; i++) {
        if (strcmp(a->words[i], "]") == 0) {
            if (depth == 0)
                return n;
            depth--;
            continue;
        }
        n += depth == 0;
        depth += strcmp(a->words[i], "[") == 0;
    }
    return n;
}

size_t peer_answer_write(const struct peer_answer *a, char *buffer, size_t size) {
    size_t used = 0;

    if (a->line) {
        char text[8192];
        size_t length = 0;

        text[0] = '\0';
        for (size_t i = 0; i < a->n && length < sizeof(text); i++)
            length += (size_t) snprintf(text + length, sizeof(text) - length, i ? " %s" : "%s", a->words[i]);
        return write_text(buffer, size, text);
    }
    for (size_t i = 0; i < a->n && used + 32 < size; i++)
        if (strcmp(a->words[i], "[") == 0)
            used += (size_t) snprintf(buffer + used, size - used, "*%zu\r\n", count_items(a, i + 1));
        else if (strcmp(a->words[i], "]") != 0)
            used += write_text(buffer + used, size - used, a->words[i]);
    return used;
}
