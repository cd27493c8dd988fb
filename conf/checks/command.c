/* SPDX-License-Identifier: MIT */

/* Checks the options of a job's command against each other. */

#include <string.h>

#include "conf/checks/checks.h"
#include "conf/settings-read.h"

/* Returns whether the option is not given, or is "". A text that was refused is neither: its error is noted already. */
static bool has_no_script(const struct value_reader *reader) {
    const struct parsed_option *script = value_option(reader, "script");

    return value_is_missing(reader, "script") || (script->n_values > 0 && !*script->values[0].text);
}

static void check_program(const struct job_settings *job, const struct value_reader *reader) {
    struct settings_place place = value_place(reader, "script"), shell = value_place(reader, "shell");

    if (value_is_missing(reader, "command") && has_no_script(reader))
        value_note(reader, &reader->section->place,
                   "command or script is missing; write command = {\"/path/to/program\", \"argument\"}");
    if (value_is_given(reader, "command") && job->command.script && *job->command.script)
        value_note(reader, &place, "command and script exclude each other; remove one");
    if (job->command.shell && strcmp(job->command.shell, SHELL_DEFAULT) != 0 && has_no_script(reader))
        value_note(reader, &shell,
                   "shell without script; remove it, or write script = \"...\" instead of command");
}

static void check_io(const struct job_settings *job, const struct value_reader *reader) {
    struct settings_place place = value_place(reader, "io-priority");

    if (job->process.io_priority == JOB_INHERIT)
        return;
    if (job->process.io_class == JOB_IO_CLASS_NONE && value_is_missing(reader, "io-class"))
        value_note(reader, &place, "io-priority without io-class; add io-class = \"best-effort\"");
    else if (job->process.io_class == JOB_IO_CLASS_IDLE)
        value_note(reader, &place,
                   "io-priority with io-class = \"idle\", which has no priorities; remove one");
}

void settings_check_command(const struct job_settings *job, const struct value_reader *reader) {
    check_program(job, reader);
    check_io(job, reader);
}
