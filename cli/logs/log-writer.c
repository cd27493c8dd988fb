/* SPDX-License-Identifier: MIT */
#include "cli/logs/log-writer.h"

#include <stdio.h>
#include <string.h>

#include "base/journal/journal-stream.h"

/* Finds the run in a cgroup's path: "/berth.slice/berth-runner.service/RUN/below". */
static bool find_run(const char *cgroup, char ret[static ID_TEXT_SIZE]) {
    for (const char *at = cgroup; *at;) {
        size_t length = strcspn(at, "/");
        const char *id = length >= ID_TEXT_SIZE - 1 ? at + length - (ID_TEXT_SIZE - 1) : NULL; /* also "run-RUN" */

        if (id) {
            snprintf(ret, ID_TEXT_SIZE, "%.*s", ID_TEXT_SIZE - 1, id);
            if (id_is_valid(ret))
                return true;
        }
        at += length + (at[length] == '/');
    }
    return false;
}

/* Finds the run in the unit of a line whose writer had ended. */
static bool find_run_of_unit(const char *unit, char ret[static ID_TEXT_SIZE]) {
    size_t begin = strlen(JOURNAL_STREAM_UNIT_BEGIN), end = begin + ID_TEXT_SIZE - 1;

    if (strncmp(unit, JOURNAL_STREAM_UNIT_BEGIN, begin) != 0 || strlen(unit) < end ||
        strcmp(unit + end, JOURNAL_STREAM_UNIT_END) != 0)
        return false;
    snprintf(ret, ID_TEXT_SIZE, "%s", unit + begin);
    return id_is_valid(ret);
}

int log_writer_find(struct journal_reader *reader, char ret[static ID_TEXT_SIZE]) {
    _cleanup_free_ char *unit = NULL, *cgroup = NULL;
    int k = journal_reader_get(reader, "_SYSTEMD_UNIT", &unit);

    if (k < 0 || !unit)
        return k;
    if (strcmp(unit, RUNNER_UNIT) != 0)
        return find_run_of_unit(unit, ret);
    k = journal_reader_get(reader, "_SYSTEMD_CGROUP", &cgroup);
    return k < 0 || !cgroup ? k : find_run(cgroup, ret);
}
