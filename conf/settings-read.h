/* SPDX-License-Identifier: MIT */
#pragma once

/* Makes settings from parsed sections, for conf/ alone. Errors are noted. If notes->out_of_memory is set,
 * strings may be NULL. */

#include "conf/value.h"

/* hostname: default of `host`; NULL: gethostname(2). */
void settings_read_top(struct settings *s, const struct parsed_section *top, const char *hostname, struct notes *notes);
void settings_read_redis(struct settings *s, const struct parsed *parsed, struct notes *notes);
void settings_read_pools(struct settings *s, const struct parsed *parsed, struct notes *notes); /* after redis */
void settings_read_jobs(struct settings *s, struct parsed *parsed, struct notes *notes); /* after pools */

/* Reads one job, and checks it against pools, lease and rights. */
void settings_read_job(const struct settings *s, struct job_settings *job,
                       const struct parsed_section *section, struct notes *notes);
/* Moves the open templates from s->jobs and parsed->open to s->open. */
void settings_keep_open(struct settings *s, struct parsed *parsed, struct notes *notes);
void settings_free_open(struct settings *s);

/* Reads the title of a section. A wrong one is noted and read as "". That of a job may be an
 * instance only if a template made it. */
void settings_read_job_title(const struct value_reader *reader, char ret[static NAME_MAX_LENGTH + 1]);
/* Reads the title of a pool, which may be a key or a pattern. */
void settings_read_pool_title(const struct value_reader *reader, char ret[static POOL_NAME_SIZE]);
/* Returns whether both sections were made of one template. first: may be NULL. */
bool settings_is_same_template(const struct parsed_section *first, const struct parsed_section *later);
size_t settings_count(const struct parsed *parsed, enum section_kind kind);
/* Notes that `later` defines again what `first` has defined. */
void settings_note_twice(struct notes *notes, const char *what, const char *name, const struct settings_place *first,
                         const struct settings_place *later);
/* Compares two places: -1, 0 or 1, by file in the order of s->files, then by line. */
int settings_compare_places(const struct settings *s, const struct settings_place *a, const struct settings_place *b);
