/* SPDX-License-Identifier: MIT */
#pragma once

/* Checks of a job's options against each other, and of all jobs together. Errors are noted. What a config
 * asks of this machine is checked by the functions of conf/settings.h that are here, too. */

#include "conf/value.h"

/* What `schedule`, `zone` and the like have to do with each other; completes job->triggers. */
void settings_read_triggers(const struct settings *s, struct job_settings *job, const struct value_reader *reader);
/* What the options of the command have to do with each other: command, script, shell, io-class, io-priority. */
void settings_check_command(const struct job_settings *job, const struct value_reader *reader);
/* What parameters have to do with defaults and with what begins the job. */
void settings_check_parameters(const struct job_settings *job, const struct value_reader *reader);
/* What open-instances has to do with the others. */
void settings_check_open(const struct job_settings *job, const struct value_reader *reader);
/* What `on` and `prefer` have to do with the others; the pool of each job with on = "any", once nothing is wrong. */
void settings_check_sharing(const struct settings *s, const struct job_settings *job, const struct value_reader *reader);
void settings_add_job_pools(struct settings *s, struct notes *notes);
/* What the options of retries and hooks have to do with each other: of one job, and of all jobs together. */
void settings_check_retry(const struct job_settings *job, const struct value_reader *reader);
/* Also notes which jobs are hooks. */
void settings_check_hooks(struct settings *s, const struct parsed *parsed, struct notes *notes);
