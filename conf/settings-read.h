/* SPDX-License-Identifier: MIT */
#pragma once

/* From parsed sections to settings; inside conf/ alone. What is wrong is noted; values that are wrong are left at a default that makes
 * no further error. If notes->out_of_memory is set, strings may be NULL. */

#include "conf/value.h"

/* hostname: NULL for gethostname(2), asked only if the config names no host. */
void settings_read_top(struct settings *s, const struct parsed_section *top, const char *hostname, struct notes *notes);
void settings_read_redis(struct settings *s, const struct parsed *parsed, struct notes *notes);
void settings_read_pools(struct settings *s, const struct parsed *parsed, struct notes *notes); /* after redis */
void settings_read_jobs(struct settings *s, const struct parsed *parsed, struct notes *notes);  /* after pools */

/* The title of a section as a name; what is wrong is noted, and the name is "" then. */
void settings_read_title(const struct value_reader *r, char ret[static NAME_MAX_LENGTH + 1]);
size_t settings_count(const struct parsed *parsed, enum section_kind kind);
/* Notes that `later` defines again what `first` has defined. */
void settings_note_twice(struct notes *notes, const char *what, const char *name, const struct settings_place *first,
                         const struct settings_place *later);
/* -1, 0, 1: which of two places comes first in the order of s->files. */
int settings_compare_places(const struct settings *s, const struct settings_place *a, const struct settings_place *b);

/* limits, nice, memory-max and what else bounds a command. */
void settings_read_bounds(struct job_settings *job, const struct value_reader *r);

/* Users and "@groups" of a list; and one group, by its name alone. */
void settings_read_accounts(const struct value_reader *r, unsigned option, struct accounts *ret);
void settings_read_group(const struct value_reader *r, unsigned option, const char *default_name, struct account *ret);
void accounts_done(struct accounts *accounts);

void redis_settings_free(struct redis_settings *redis);
void pool_settings_done(struct pool_settings *pool);
void job_settings_done(struct job_settings *job);
