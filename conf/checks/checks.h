/* SPDX-License-Identifier: MIT */
#pragma once

/* Checks of a job's options against each other, and of all jobs together. Errors are noted. This folder also
 * has the functions of conf/settings.h that check a config against this machine. */

#include "conf/value.h"

/* Checks when the job is due: schedule, every, except, zone and others; completes job->triggers. */
void settings_read_triggers(const struct settings *s, struct job_settings *job, const struct value_reader *reader);
/* Checks the options of the command: command, script, shell, io-class, io-priority. */
void settings_check_command(const struct job_settings *job, const struct value_reader *reader);
/* Checks the parameters against their defaults, and against whatever starts the job without setting them. */
void settings_check_parameters(const struct job_settings *job, const struct value_reader *reader);
/* Checks open-instances against the other options. */
void settings_check_open(const struct job_settings *job, const struct value_reader *reader);
/* Checks `on` and `prefer` against the other options. */
void settings_check_sharing(const struct settings *s, const struct job_settings *job, const struct value_reader *reader);
/* Adds the pool of each job with on = "any". Call it once no error is noted. */
void settings_add_job_pools(struct settings *s, struct notes *notes);
void settings_check_retry(const struct job_settings *job, const struct value_reader *reader);
/* Checks the hooks of all jobs, and sets is_hook of the jobs that are hooks. */
void settings_check_hooks(struct settings *s, const struct parsed *parsed, struct notes *notes);
