/* SPDX-License-Identifier: MIT */

/* Text, byte by byte. */

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int text_copy(char **ret, const char *text) {
    *ret = text ? strdup(text) : NULL;
    return text && !*ret ? -ENOMEM : 0;
}

const char *text_find_variable(const char *environment, size_t size, const char *name) {
    size_t length = strlen(name);

    for (const char *entry = environment, *end = environment + size, *nul; entry < end; entry = nul + 1) {
        nul = memchr(entry, '\0', (size_t) (end - entry));
        if (!nul)
            return NULL;
        if (strncmp(entry, name, length) == 0)
            return entry + length;
    }
    return NULL;
}

void text_free_list(char **list) {
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

/* Returns the length of the UTF-8 sequence at text; 0: invalid. */
static size_t sequence(const unsigned char *t) {
    static const struct range { /* RFC 3629, section 4: first byte, second byte, length */
        unsigned char first_low, first_high, second_low, second_high, length;
    } ranges[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };

    if (t[0] < 0x80)
        return 1;
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        const struct range *r = &ranges[i];

        if (t[0] < r->first_low || t[0] > r->first_high)
            continue;
        if (t[1] < r->second_low || t[1] > r->second_high)
            return 0;
        for (size_t j = 2; j < r->length; j++)
            if (t[j] < 0x80 || t[j] > 0xbf)
                return 0;
        return r->length;
    }
    return 0;
}

bool text_is_utf8(const char *text) {
    const unsigned char *t = (const unsigned char *) text;

    while (*t != '\0') {
        size_t n = sequence(t);

        if (n == 0)
            return false;
        t += n;
    }
    return true;
}

/* Returns whether a character of 3 bytes changes the direction of writing: U+202A to U+202E, U+2066 to U+2069. */
static bool is_direction(const unsigned char *t) {
    return t[0] == 0xe2 && ((t[1] == 0x80 && t[2] >= 0xaa && t[2] <= 0xae) || (t[1] == 0x81 && t[2] >= 0xa6 && t[2] <= 0xa9));
}

/* Returns whether a character of n bytes is a control character. */
static bool is_control(const unsigned char *t, size_t n) {
    return *t < ' ' || *t == 0x7f || (n == 2 && t[0] == 0xc2 && t[1] <= 0x9f) || (n == 3 && is_direction(t));
}

size_t text_character(const char *text) {
    const unsigned char *t = (const unsigned char *) text;
    size_t n = sequence(t);

    return n > 0 && is_control(t, n) ? 0 : n;
}

bool text_has_control(const char *text, bool may_break) {
    size_t n;

    for (const unsigned char *t = (const unsigned char *) text; *t != '\0'; t += n) {
        n = sequence(t);
        if (n == 0 || (is_control(t, n) && !(may_break && (*t == '\n' || *t == '\t'))))
            return true;
    }
    return false;
}

void text_make_printable(char *text) {
    for (unsigned char *t = (unsigned char *) text; *t != '\0';) {
        size_t n = sequence(t);

        if (n == 0 || is_control(t, n)) {
            *t = '?'; /* continuation bytes that follow are invalid by themselves */
            n = 1;
        }
        t += n;
    }
}

static bool is_plain(char c) {
    return c >= ' ' && c < 0x7f && c != '\\';
}

void text_escape(const char *data, size_t n, char *buffer, size_t size) {
    size_t used = 0, all = 0, most;

    for (size_t i = 0; i < n; i++)
        all += is_plain(data[i]) ? 1 : 4;
    most = all < size ? all : size - sizeof("...");
    for (size_t i = 0; i < n && used + (is_plain(data[i]) ? 1 : 4) <= most; i++)
        if (is_plain(data[i]))
            buffer[used++] = data[i];
        else
            used += (size_t) snprintf(buffer + used, size - used, "\\x%02x", (unsigned char) data[i]);
    (void) snprintf(buffer + used, size - used, "%s", all < size ? "" : "...");
}
