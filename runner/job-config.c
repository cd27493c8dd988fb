/* SPDX-License-Identifier: MIT */
#include "runner/job-config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/cleanup.h"

static void log_errors(const struct job_config *config, struct settings_errors *errors) {
    for (size_t i = 0; i < errors->n; i++)
        journal_log(config->journal, LOG_ERR, "%s", errors->lines[i]);
    settings_errors_done(errors);
}

static int load(struct job_config *config) {
    _cleanup_(settings_freep) struct settings *settings = NULL;
    struct settings_errors errors = {};
    int r = settings_load(config->path, &settings, &errors);

    log_errors(config, &errors);
    if (r < 0)
        journal_log(config->journal, LOG_ERR, "%s: cannot read: %s", config->path, strerror(-r));
    if (r != 0)
        return r;
    settings_free(config->settings);
    config->settings = steal_pointer(&settings);
    return 0;
}

int job_config_init(struct job_config *config, struct journal *journal, const char *path) {
    *config = (struct job_config) {.journal = journal, .path = path};
    return load(config);
}

void job_config_done(struct job_config *config) {
    config->settings = settings_free(config->settings);
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
    if (load(config) != 0)
        journal_log(config->journal, LOG_ERR, "%s: not used; the last good config stays in force", config->path);
    return job_config_open(config, record, ret_is_defined);
}

void job_config_close(struct job_config *config, const struct guard_file *record) {
    settings_close_job(config->settings, record->job);
}
