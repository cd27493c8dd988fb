/* SPDX-License-Identifier: MIT */

/* Checks the parameters of a job: their defaults, the values that its schedule sets, and triggers that set
 * none. */

#include "conf/checks/checks.h"
#include "conf/parameter.h"
#include "conf/settings-read.h"

/* If an entry has errors of its own, entries and texts no longer have the same indices. */
static bool has_all_entries(const struct schedule *schedule, const struct value_reader *reader) {
    return schedule->n_entries == value_option(reader, "schedule")->n_values;
}

static size_t count(char *const *sets) {
    size_t n = 0;

    while (sets && sets[n])
        n++;
    return n;
}

static void check_entry(const struct parameters *parameters, char *const *sets, size_t index,
                        const struct value_reader *reader) {
    char error[PARAMETER_ERROR_SIZE];
    int r = parameters_check_sets(parameters, sets, count(sets), error);
    const char *missing = r == 0 ? parameters_find_missing(parameters, sets, count(sets)) : NULL;

    if (r == -ENOMEM)
        reader->notes->out_of_memory = true;
    else if (r < 0)
        value_error(reader, "schedule", index, ": %s", error);
    else if (missing)
        value_error(reader, "schedule", index,
                    ": parameter %.*s has no default; write %.*s=... behind the fields, or in environment",
                    (int) parameter_name_length(missing), missing, (int) parameter_name_length(missing),
                    missing);
}

static void check_defaults(const struct parameters *parameters, const struct value_reader *reader) {
    struct settings_place place = value_place(reader, "parameters");
    char error[PARAMETER_ERROR_SIZE];
    int r = parameters_check_defaults(parameters, error);

    if (r == -ENOMEM)
        reader->notes->out_of_memory = true;
    else if (r < 0)
        value_note(reader, &place, "%s", error);
}

/* Checks the triggers that set no parameter. */
static void check_triggers(const struct job_settings *job, const struct parameters *parameters,
                           const struct value_reader *reader) {
    const char *missing = parameters_find_missing(parameters, NULL, 0);
    const struct {
        const char *name;
        bool is_there;
    } options[] = {
        {"at-start", job->triggers.at_start},
        {"every", job->triggers.every_usec != USEC_INFINITY},
        {"restart", job->retry.restart != JOB_RESTART_NO},
    };

    for (size_t i = 0; missing && i < ELEMENTSOF(options); i++) {
        struct settings_place place = value_place(reader, options[i].name);

        if (options[i].is_there)
            value_note(reader, &place, "%s, and parameter %.*s has no default; add %.*s=... to environment",
                       options[i].name, (int) parameter_name_length(missing), missing,
                       (int) parameter_name_length(missing), missing);
    }
}

void settings_check_parameters(const struct job_settings *job, const struct value_reader *reader) {
    const struct parameters parameters = {reader->section->title ? reader->section->title : "",
                                          job->input.parameters, job->input.environment};
    const struct schedule *schedule = &job->triggers.schedule;

    if (reader->notes->out_of_memory)
        return;
    check_defaults(&parameters, reader);
    for (size_t i = 0; has_all_entries(schedule, reader) && i < schedule->n_entries; i++)
        check_entry(&parameters, schedule->entries[i].set, i, reader);
    check_triggers(job, &parameters, reader);
}
