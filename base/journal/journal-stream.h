/* SPDX-License-Identifier: MIT */
#pragma once

/* A command's output as lines of the journal, each attributable to its run.
 *
 * journald looks up the cgroup of a line's sender when it reads the line. If the sender has ended by then, the line gets the unit that
 * root named when the stream was opened (sd_journal_stream_fd(3) cannot name one). A stream names a unit of its run, which need not
 * exist. */

#define JOURNAL_STREAM_UNIT_BEGIN "berth-runner@" /* then the run's id */
#define JOURNAL_STREAM_UNIT_END ".service"

/* Opens a stream into the journal under this identifier (without line end) for a run; priority as in
 * syslog(3). Without a journal: a duplicate of standard error. A blocking descriptor (close-on-exec) or a
 * negative errno. */
int journal_stream_open(const char *identifier, const char *run, int priority);
