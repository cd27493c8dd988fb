/* SPDX-License-Identifier: MIT */
#pragma once

/* Reads journals: this machine's, all that it has collected (merged), or those in a folder. Entries come one after the other: those of
 * one writer in the order of its journal (sd_journal_next(3)), several by the time at which they were received; a field is asked for by
 * name, or all come one after the other. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/clock.h"

struct journal_reader;

/* directory: NULL for this machine's journal. Else all *.journal and *.journal~ files in it and below are opened, and one that cannot
 * be read is an error: a proof over a file that was left out would be none. merged: of the machine's, those of other hosts, too (all
 * such files beside its own in /var/log/journal and /run/log/journal; those that are made later are not noticed).
 * Negative errno; -ENOENT: no such folder; -ENODATA: there is no journal; -EACCES: this user may not read it. */
int journal_reader_new(struct journal_reader **ret, const char *directory, bool merged);
struct journal_reader *journal_reader_free(struct journal_reader *r);
DEFINE_CLEANUP(struct journal_reader, journal_reader_free)

/* Only entries with this "FIELD=value": of one field any of the values, of several fields all. Before the first
 * journal_reader_next(). Negative errno. */
int journal_reader_match(struct journal_reader *r, const char *match);

/* 1: there is a next entry, and it is the current one now. 0: not yet. Negative errno: the journal is broken here. */
int journal_reader_next(struct journal_reader *r);
/* The next one is the first again. */
void journal_reader_rewind(struct journal_reader *r);
/* Waits for more, so long at most. 1: there may be something new; 0: nothing was heard. Negative errno; -EPIPE: nobody reads any more what
 * is written to reader_fd (-1: none). */
int journal_reader_wait(struct journal_reader *r, usec_t usec, int reader_fd);

/* Of the current entry, to be freed; *ret is NULL if it has no such field. Only its first value; cut at a NUL byte. Negative errno. */
int journal_reader_get(struct journal_reader *r, const char *field, char **ret);
/* The current entry's fields, one at each call: 1 and "FIELD=value" without a NUL byte at its end, good until the next call; length: of
 * the name. 0: that was the last one. Negative errno. A field that has several values comes several times. */
int journal_reader_field(struct journal_reader *r, const char **ret_data, size_t *ret_length, size_t *ret_size);
/* When its sender sent it, if the journal knows (_SOURCE_REALTIME_TIMESTAMP), else when it was received. Negative errno. */
int journal_reader_time(struct journal_reader *r, usec_t *ret_realtime);
/* To be freed: `journalctl --cursor=` finds the entry by it. Negative errno. */
int journal_reader_cursor(struct journal_reader *r, char **ret);
