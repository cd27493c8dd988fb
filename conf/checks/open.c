/* SPDX-License-Identifier: MIT */

/* Checks open-instances against the other options. */

#include <string.h>

#include "conf/checks/checks.h"

/* Hooks are marked when the config is read, so their names must be known then. */
static void check_hooks(const struct value_reader *template) {
    static const char *const options[] = {"on-success", "on-failure", "on-broken", "on-recovered"};

    for (size_t i = 0; i < ELEMENTSOF(options); i++) {
        const struct parsed_option *written = value_option(template, options[i]);

        for (size_t k = 0; k < written->n_values; k++)
            if (strchr(written->values[k].text, '%'))
                value_error(template, options[i], k,
                            "with open-instances names a hook for each instance; name one hook for all");
    }
}

void settings_check_open(const struct job_settings *job, const struct value_reader *reader) {
    const struct value_reader template = {reader->section->open_of, reader->notes};
    struct settings_place place = value_place(reader, "open-instances");

    if (!template.section)
        return;
    if (job->triggers.sharing.on == JOB_ON_ANY)
        value_note(
            reader, &place,
            "open-instances and on = \"any\" exclude each other: hosts share jobs that all of them list");
    if (job->retry.restart != JOB_RESTART_NO)
        value_note(
            reader, &place,
            "open-instances and restart exclude each other: list the instances that are to keep running");
    check_hooks(&template);
}
