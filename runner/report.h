/* SPDX-License-Identifier: MIT */
#pragma once

/* RUN.report: the end of a run, for berthd. */

#include "base/process/supervise.h"
#include "runner/guard-file.h"

/* Begins the message with the fields of the guard file. The caller adds how the command ended. */
void report_begin(struct message_writer *w, const struct guard_file *r, const char *reason);
/* Adds why the command did not run: a positive errno, a static word for the stage, and a text; "" if the errno
 * is enough. */
void report_put_failure(struct message_writer *w, int error, const char *stage, const char *text);
/* Adds how the command ended. */
void report_put_result(struct message_writer *w, const struct supervise_result *result);
/* 0 or a negative errno. The file outlives a crash of the machine. */
int report_write(const struct message_writer *w, const char *directory, const char *run);
/* 0, -ENOENT, or another negative errno. */
int report_load(struct message_writer *ret, const char *directory, const char *run);
