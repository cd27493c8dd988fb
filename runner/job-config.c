/* SPDX-License-Identifier: MIT */
#include "runner/job-config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/cleanup.h"

int job_config_init(struct job_config *config, struct journal *journal, const char *path, struct settings *settings) {
    *config = (struct job_config){.journal = journal, .path = strdup(path), .settings = settings};
    return config->path ? 0 : -ENOMEM;
}

void job_config_done(struct job_config *config) {
    settings_free(config->settings);
    free(config->path);
    *config = (struct job_config){};
}

static void log_errors(const struct job_config *config, struct settings_errors *errors) {
    for (size_t i = 0; i < errors->n; i++)
        journal_log(config->journal, LOG_ERR, "%s", errors->lines[i]);
    settings_errors_done(errors);
}

static void reload(struct job_config *config) {
    _cleanup_(settings_freep) struct settings *settings = NULL;
    struct settings_errors errors = {};
    int r = settings_load(config->path, &settings, &errors);

    log_errors(config, &errors);
    if (r != 0) {
        journal_log(config->journal, LOG_ERR, "%s: not used because of these errors; the last good config stays in force",
                    config->path);
        return;
    }
    settings_free(config->settings);
    config->settings = steal_pointer(&settings);
}

const struct job_settings *job_config_open(struct job_config *config, const struct guard_file *record, bool *ret_is_defined) {
    const struct job_settings *job;
    struct settings_errors errors = {};
    int r = settings_open_job(config->settings, record->job, &job, &errors);

    log_errors(config, &errors);
    *ret_is_defined = r == 0;
    return r == 0 && strcmp(job->hash, record->hash) == 0 ? job : NULL;
}

const struct job_settings *job_config_find(struct job_config *config, const struct guard_file *record, bool *ret_is_defined) {
    const struct job_settings *job = job_config_open(config, record, ret_is_defined);

    if (job)
        return job;
    reload(config);
    return job_config_open(config, record, ret_is_defined);
}

void job_config_close(struct job_config *config, const struct guard_file *record) {
    settings_close_job(config->settings, record->job);
}
