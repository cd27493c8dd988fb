/* SPDX-License-Identifier: MIT */
#include "base/pool-name.h"

#include <stdio.h>
#include <string.h>

#include "base/job-name.h"

enum pool_name pool_name_parse(const char *text) {
    const char *slash = strchr(text, '/');
    char first[NAME_FIRST_SIZE];

    if (*text == '@')
        return job_name_is_runnable(text + 1) ? POOL_NAME_JOB : POOL_NAME_INVALID;
    if (!slash)
        return name_is_valid(text) ? POOL_NAME_PLAIN : POOL_NAME_INVALID;
    name_copy_first(text, (size_t) (slash - text), first);
    if (!name_is_valid(first))
        return POOL_NAME_INVALID;
    if (strcmp(slash, "/*") == 0)
        return POOL_NAME_PATTERN;
    return name_is_valid(slash + 1) ? POOL_NAME_KEY : POOL_NAME_INVALID;
}

const char *pool_name_explain(const char *text) {
    const char *slash = strchr(text, '/');
    char first[NAME_FIRST_SIZE];

    if (*text == '@')
        return job_name_parse(text + 1) == JOB_NAME_TEMPLATE ? "is that of a template, which has no pool"
                                                             : job_name_explain(text + 1);
    if (!slash)
        return name_explain(text);
    name_copy_first(text, (size_t) (slash - text), first);
    if (!name_is_valid(first))
        return name_explain(first);
    return slash[1] == '\0' ? "has no key behind the slash" : name_explain(slash + 1);
}

bool pool_name_is_claimable(const char *text) {
    enum pool_name kind = pool_name_parse(text);

    return kind != POOL_NAME_INVALID && kind != POOL_NAME_PATTERN;
}

const char *pool_name_pattern(const char *key, char buffer[static POOL_NAME_SIZE]) {
    if (pool_name_parse(key) != POOL_NAME_KEY)
        return NULL;
    (void) snprintf(buffer, POOL_NAME_SIZE, "%.*s/*", (int) strcspn(key, "/"), key);
    return buffer;
}

bool pool_name_matches(const char *pattern, const char *key) {
    size_t n = strlen(pattern);

    return pool_name_parse(pattern) == POOL_NAME_PATTERN && strncmp(pattern, key, n - 1) == 0 &&
           pool_name_parse(key) == POOL_NAME_KEY;
}
