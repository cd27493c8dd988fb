/* SPDX-License-Identifier: MIT */
#include "base/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int number_parse_span(const char *text, size_t n, uint64_t max, uint64_t *ret) {
    uint64_t value = 0;

    if (n == 0 || (n > 1 && text[0] == '0'))
        return -EINVAL;
    for (size_t i = 0; i < n; i++) {
        uint64_t digit = (uint64_t) (text[i] - '0');

        if (text[i] < '0' || text[i] > '9')
            return -EINVAL;
        if (value > (UINT64_MAX - digit) / 10)
            return -ERANGE;
        value = value * 10 + digit;
    }
    if (value > max)
        return -ERANGE;
    *ret = value;
    return 0;
}

int number_parse(const char *text, uint64_t max, uint64_t *ret) {
    return number_parse_span(text, strlen(text), max, ret);
}

int size_parse(const char *text, uint64_t *ret_bytes) {
    static const char suffixes[] = "KMGT";
    size_t n = strlen(text);
    unsigned shift = 0;
    uint64_t value;
    int r;

    if (n > 0) {
        const char *suffix = strchr(suffixes, text[n - 1]);

        if (suffix) {
            shift = 10 * (unsigned) (suffix - suffixes + 1);
            n--;
        }
    }
    r = number_parse_span(text, n, UINT64_MAX >> shift, &value);
    if (r < 0)
        return r;
    *ret_bytes = value << shift;
    return 0;
}

const char *size_format(uint64_t bytes, char buffer[static SIZE_TEXT_SIZE]) {
    static const char suffixes[] = "KMGT";
    char suffix[2] = "";

    for (size_t i = 0; suffixes[i] != '\0' && bytes > 0 && bytes % 1024 == 0; i++) {
        bytes /= 1024;
        suffix[0] = suffixes[i];
    }
    snprintf(buffer, SIZE_TEXT_SIZE, "%" PRIu64 "%s", bytes, suffix);
    return buffer;
}
