/* SPDX-License-Identifier: MIT */
#include "base/journal/limit-word.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

const char *limit_word_next(const char *text, struct limit_word *ret) {
    static const struct {
        const char *suffix;
        enum limit_kind kind;
    } kinds[] = {{"/declared", LIMIT_DECLARED}, {"/host", LIMIT_HOST}, {"", LIMIT_OVERRIDE}};
    size_t length = strcspn(text, ","), colon = strcspn(text, ":"), i = 0;
    char number[16];
    uint64_t limit = 0;

    *ret = (struct limit_word){.pool = ""};
    if (colon < length && colon <= POOL_NAME_MAX_LENGTH) {
        size_t end = length;

        while (strlen(kinds[i].suffix) > length - colon ||
               strncmp(text + length - strlen(kinds[i].suffix), kinds[i].suffix, strlen(kinds[i].suffix)) !=
                   0)
            i++;
        end -= strlen(kinds[i].suffix);
        snprintf(number, sizeof(number), "%.*s", (int) (end - colon - 1), text + colon + 1);
        ret->kind = kinds[i].kind;
        ret->none = strcmp(number, "-") == 0;
        if (ret->none || number_parse(number, UINT32_MAX, &limit) == 0)
            snprintf(ret->pool, sizeof(ret->pool), "%.*s", (int) colon, text);
        ret->limit = (uint32_t) limit;
    }
    return text[length] == ',' ? text + length + 1 : NULL;
}
