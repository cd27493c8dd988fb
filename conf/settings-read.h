/* SPDX-License-Identifier: MIT */
#pragma once

/* From parsed sections to settings; inside conf/ alone. Errors are noted. If notes->out_of_memory is set,
 * strings may be NULL. */

#include "conf/value.h"

/* hostname: default of `host`; NULL: gethostname(2). */
void settings_read_top(struct settings *s, const struct parsed_section *top, const char *hostname, struct notes *notes);
void settings_read_redis(struct settings *s, const struct parsed *parsed, struct notes *notes);
void settings_read_pools(struct settings *s, const struct parsed *parsed, struct notes *notes); /* after redis */
/* What `schedule`, `zone` and the like have to do with each other; completes job->triggers. */
void settings_read_triggers(const struct settings *s, struct job_settings *job, const struct value_reader *reader);
void settings_read_jobs(struct settings *s, const struct parsed *parsed, struct notes *notes);  /* after pools */

/* What the options of the command have to do with each other: command, script, shell, io-class, io-priority. */
void settings_check_command(const struct job_settings *job, const struct value_reader *reader);
/* What parameters have to do with defaults and with what begins the job. */
void settings_check_parameters(const struct job_settings *job, const struct value_reader *reader);
/* What `on` and `prefer` have to do with the others; the pool of each job with on = "any", once nothing is wrong. */
void settings_check_sharing(const struct settings *s, const struct job_settings *job, const struct value_reader *reader);
void settings_add_job_pools(struct settings *s, struct notes *notes);
/* What the options of retries and hooks have to do with each other: of one job, and of all jobs together. */
void settings_check_retry(const struct job_settings *job, const struct value_reader *reader);
/* Also notes which jobs are hooks. */
void settings_check_hooks(struct settings *s, const struct parsed *parsed, struct notes *notes);

/* Reads the title of a section. A wrong one is noted and read as "". That of a job may be an
 * instance only if a template made it. */
void settings_read_job_title(const struct value_reader *reader, char ret[static NAME_MAX_LENGTH + 1]);
/* Reads that of a pool, which may be a key or a pattern. */
void settings_read_pool_title(const struct value_reader *reader, char ret[static POOL_NAME_SIZE]);
/* Whether one template made both sections. first: may be NULL. */
bool settings_is_same_template(const struct parsed_section *first, const struct parsed_section *later);
size_t settings_count(const struct parsed *parsed, enum section_kind kind);
/* Notes that `later` defines again what `first` has defined. */
void settings_note_twice(struct notes *notes, const char *what, const char *name, const struct settings_place *first,
                         const struct settings_place *later);
/* -1, 0, 1: which of two places comes first in the order of s->files. */
int settings_compare_places(const struct settings *s, const struct settings_place *a, const struct settings_place *b);
