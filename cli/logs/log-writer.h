/* SPDX-License-Identifier: MIT */
#pragma once

/* The run that wrote a line of the journal. A line belongs to the run that its cgroup names (_SYSTEMD_CGROUP,
 * below berth-runner's unit). The line of a process that had ended belongs to the run that its unit names
 * (base/journal/journal-stream.h). journald vouches for both; an identifier can be forged. */

#include "base/journal/journal-read.h"
#include "base/name.h"

#define RUNNER_UNIT "berth-runner.service"

/* Stores the run that wrote the current entry. Returns 1, 0 (no run) or a negative errno. */
int log_writer_find(struct journal_reader *reader, char ret[static ID_TEXT_SIZE]);
