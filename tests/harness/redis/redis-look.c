/* SPDX-License-Identifier: MIT */
#include "tests/harness/redis/redis-look.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

enum { WORDS = 3, CLIENT };

static bool ends_with(const char *text, const char *end) {
    size_t size = strlen(text);

    return size >= strlen(end) && strcmp(text + size - strlen(end), end) == 0;
}

/* Scripts use some of these commands, too; they have no client. */
static bool is_plain(const redisReply *logged) {
    static const char *const commands[][2] = {
        {"HMGET", ":claims"}, {"SSCAN", ":held"}, {"ZRANGE", ":queue"}, {"ZRANGE", ":parked"}};
    const redisReply *words = logged->element[WORDS];

    for (size_t i = 0; i < ELEMENTSOF(commands); i++)
        if (words->elements > 2 && strcasecmp(words->element[0]->str, commands[i][0]) == 0 &&
            ends_with(words->element[1]->str, commands[i][1]))
            return strcmp(logged->element[CLIENT]->str, "?:0") != 0;
    return false;
}

redisReply *const *redis_look_words(const redisReply *logged, size_t *ret_n) {
    static const char *const parts[] = {"sessions", "pool", "positions", "records", "keys", "times"};
    const redisReply *words = logged->element[WORDS];
    size_t first = words->elements > 2 ? 3 + strtoul(words->element[2]->str, NULL, 10) : SIZE_MAX;

    if (is_plain(logged)) {
        *ret_n = words->elements;
        return words->element;
    }
    if (strcasecmp(words->element[0]->str, "EVALSHA") != 0 || first >= words->elements)
        return NULL;
    for (size_t i = 0; i < ELEMENTSOF(parts); i++)
        if (strcmp(parts[i], words->element[first]->str) == 0) {
            *ret_n = words->elements - first;
            return words->element + first;
        }
    return NULL;
}
