/* SPDX-License-Identifier: MIT */
#pragma once

/* The config as berth-runner reads it itself: a request of berthd names a job and its hash, and the runner
 * starts what its own config defines. */

#include <stdbool.h>

#include "base/journal/journal.h"
#include "conf/settings.h"
#include "runner/guard-file.h"

struct job_config {
    struct journal *journal;
    const char *path;
    struct settings *settings; /* the last good ones; NULL: none yet */
};

/* Reads the config; journal and path are borrowed. Returns 0, SETTINGS_E_INVALID or a negative errno, logged. */
int job_config_init(struct job_config *config, struct journal *journal, const char *path);
void job_config_done(struct job_config *config);

/* Returns the job of a record if it has the record's hash, else NULL; then *ret_is_defined tells whether
 * another version of the job is defined. To be followed by job_config_close() in any case. */
const struct job_settings *job_config_open(struct job_config *config, const struct guard_file *record, bool *ret_is_defined);
/* Likewise; reads the config again if the hash differs. A bad config is logged, and the last good one stays. */
const struct job_settings *job_config_find(struct job_config *config, const struct guard_file *record, bool *ret_is_defined);
void job_config_close(struct job_config *config, const struct guard_file *record);
