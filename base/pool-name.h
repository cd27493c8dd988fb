/* SPDX-License-Identifier: MIT */
#pragma once

/* Names of pools (berth.conf(5)): plain ("db"), a key ("tenant/acme"), or a pattern, which has a star in place of the key
 * and stands for all keys that begin as it does. Both parts of a key are names. A job that hosts share has a pool of its
 * own ("@report"), which no config and no client can name in a claim. */

#include <stdbool.h>

#include "base/name.h"

#define POOL_NAME_MAX_LENGTH (2 * NAME_MAX_LENGTH + 1)
#define POOL_NAME_SIZE (POOL_NAME_MAX_LENGTH + 1)

enum pool_name {
    POOL_NAME_INVALID,
    POOL_NAME_PLAIN,
    POOL_NAME_KEY,
    POOL_NAME_PATTERN,
    POOL_NAME_JOB, /* '@' and the name of a job */
};
enum pool_name pool_name_parse(const char *text);
/* Returns an error text for an invalid name: "is empty", "has a space", ... */
const char *pool_name_explain(const char *text);
/* Returns whether a claim can have permits of this pool: it is not a pattern. */
bool pool_name_is_claimable(const char *text);
/* Writes the pattern of a key, and returns it; NULL: the text is no key. */
const char *pool_name_pattern(const char *key, char buffer[static POOL_NAME_SIZE]);
/* Returns whether `key` is a key of `pattern`. */
bool pool_name_matches(const char *pattern, const char *key);
