/* SPDX-License-Identifier: MIT */
#pragma once

/* Configs as texts, on host "ant": valid ones, and those that are refused with exact messages. A text
 * without a file name is of the file "c". */

#include <stddef.h>

#include "conf/settings.h"

#define POOL "pool p { limit = 2 scope = host }\n"
#define JOB(options) "job j { command = {\"/j\"} " options " }"

/* Common parts of messages. */
#define NAMES "use 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with '.' or '-'"
#define KEYS NAMES ", or NAME/KEY, or NAME/* for all keys"
#define ACCOUNT "must be a name, not a number: letters, digits, '_', '-' and '.', beginning with a letter or '_'"
#define DURATION "must be a duration such as \"250ms\", \"30s\" or \"1h30m\""
#define X65 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

/* Returns settings; the test is over if there are errors. */
struct settings *config_parse(const char *text);
struct settings *config_parse_files(const struct settings_source *sources, size_t n);

/* errors: one a line. */
void config_expect_errors(const struct settings_errors *errors, const char *expected);

struct config_error {
    const char *text;
    const char *errors; /* one a line */
};

void config_refuse(const char *text, const char *errors);
void config_refuse_all(const struct config_error *rows, size_t n);
void config_refuse_files(const struct settings_source *sources, size_t n, const char *hostname, const char *errors);
