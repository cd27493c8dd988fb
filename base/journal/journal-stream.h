/* SPDX-License-Identifier: MIT */
#pragma once

/* A command's output as lines of the journal, each attributable to its unit and cgroup.
 *
 * journald looks up the cgroup of a line's sender when it reads the line. Of a sender that is gone by then it knows the unit, if root named
 * it when the stream was opened; and the cgroup, if it had read anything of that sender before. (sd_journal_stream_fd(3) does neither.) */

#include <stdbool.h>

/* A stream into the journal under this identifier (no line end in it); priority as in syslog(3). Root's names the unit that it is called
 * in. Where there is no journal: a duplicate of this program's standard error, and *ret_is_journal is false. A blocking descriptor
 * (close-on-exec) or a negative errno. */
int journal_stream_open(const char *identifier, int priority, bool *ret_is_journal);
/* Called in the process that becomes the command, as its user: makes it known to journald. Leaves no line in the journal. */
void journal_stream_begin(int fd);
