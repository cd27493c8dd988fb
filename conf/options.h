/* SPDX-License-Identifier: MIT */
#pragma once

/* The options of the config, one row each (conf/options.c). A row has all that concerns one option alone: its
 * name, type, field, range, default, and whether it is hashed. settings-*.c and conf/checks/ check options
 * against each other. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

enum section_kind { SECTION_TOP, SECTION_REDIS, SECTION_POOL, SECTION_JOB, N_SECTION_KINDS };
#define OPTIONS_MAX 64 /* of one section: each option is also a bit of a uint64_t */
#define OPTION_DURATION_MAX (INT64_C(3650) * 86400 * 1000000) /* µs, of duration_parse() */

struct option;
struct value_reader;

/* Which texts an option accepts, and how they become a value. `at` is the option's field. Each type has
 * parse or parse_list. */
struct option_type {
    /* Sets *at. False: the text is wrong (noted) or memory is short (noted); *at is unchanged. */
    bool (*parse)(const struct value_reader *reader, const struct option *option, const char *text, void *at);
    /* Sets *at from all valid values of a list; the others are noted. */
    void (*parse_list)(const struct value_reader *reader, const struct option *option, void *at);
    /* NULL only if all options of this type have HASH_NOT. */
    void (*hash)(uint64_t *hash, const struct option *option, const void *at);
    void (*done)(void *at);   /* NULL: the field owns nothing */
    bool may_break;           /* its text may have newlines and tabs, escaped or not */
    const char *const *words; /* of a choice: NULL-terminated, by value of the enum; else NULL */
};

/* HASH_IF_SET: a job without the option has the hash that it had before the option existed. */
enum option_hash { HASH_NOT, HASH_IF_SET, HASH };

struct option {
    const char *name;
    const struct option_type *type;
    size_t at;             /* offset of the field in the section's settings */
    int64_t min, max;      /* of durations (µs), numbers and sizes (bytes) */
    const char *text;      /* the default, as a config would have it; "": none, and "" may be written. NULL: required, a list, or computed */
    enum option_hash hash; /* of jobs: part of the job's hash. Elsewhere: a change needs a restart of berthd */
};

struct section {
    const char *name; /* "" for the options outside of any section */
    bool is_titled;
    const struct option *options;
    size_t n_options;
};

const struct section *section_get(enum section_kind kind);
/* Returns the kind of section, or the index of the option, with this name (n bytes); -1 if there is none. */
int section_find(const char *name, size_t n);
int section_find_option(enum section_kind kind, const char *name, size_t n);
/* Returns the known name nearest to an unknown one, or NULL. */
const char *section_nearest(const char *name);
const char *section_nearest_option(enum section_kind kind, const char *name);
/* Returns "there are limit, scope, ..."; for a section of many options a pointer to the manual. */
#define OPTIONS_LISTED_MAX 16
#define OPTIONS_TEXT_SIZE (OPTIONS_LISTED_MAX * 20)
const char *section_list_options(enum section_kind kind, char buffer[static OPTIONS_TEXT_SIZE]);

/* Sets the fields of all options in `settings` (a struct settings, redis_settings, pool_settings or
 * job_settings), from the text or else the default. A field without either is unchanged. Errors are in
 * reader->notes. */
void option_read_section(const struct value_reader *reader, void *settings);
/* Adds the values of all options that are hashed, defaults included, to a hash (conf/hash.h). */
void option_hash_section(enum section_kind kind, const void *settings, uint64_t *hash);
/* Returns the name of the first hashed option in which two settings differ, or NULL. */
const char *option_find_difference(enum section_kind kind, const void *a, const void *b);
/* Frees whatever the fields own. */
void option_done_section(enum section_kind kind, void *settings);

/* Returns whether "" may be written for "none". */
bool option_is_optional(const struct option *option);
bool option_is_list(const struct option *option);
