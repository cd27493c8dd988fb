/* SPDX-License-Identifier: MIT */
#pragma once

/* The run that wrote a line of the journal. The cgroup of the line names the run (_SYSTEMD_CGROUP, below the
 * unit of berth-runner). If the process had ended before journald read the line, the unit names the run
 * (base/journal/journal-stream.h). journald vouches for both; an identifier can be forged. */

#include "base/journal/journal-read.h"
#include "base/name.h"

#define RUNNER_UNIT "berth-runner.service"

/* Stores the run that wrote the current entry. Returns 1, 0 (no run) or a negative errno. */
int log_writer_find(struct journal_reader *reader, char ret[static ID_TEXT_SIZE]);
