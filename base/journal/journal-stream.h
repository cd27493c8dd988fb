/* SPDX-License-Identifier: MIT */
#pragma once

/* A command's output as lines of the journal, each attributable to its unit and cgroup.
 *
 * journald looks up the cgroup of a line's sender when it reads the line. For a sender that has ended it knows the unit, if root named it
 * when the stream was opened, and the cgroup, if it had read an earlier line of that sender. (sd_journal_stream_fd(3) does neither.) */

#include <stdbool.h>

/* Opens a stream into the journal under this identifier (without line end); priority as in syslog(3). A
 * stream of root names the unit of the calling process. Without a journal: a duplicate of standard error,
 * and *ret_is_journal is false. A blocking descriptor (close-on-exec) or a negative errno. */
int journal_stream_open(const char *identifier, int priority, bool *ret_is_journal);
/* To be called by the process that becomes the command, as its user: makes it known to journald. Leaves no
 * line in the journal. */
void journal_stream_begin(int fd);
