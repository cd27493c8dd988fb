/* SPDX-License-Identifier: MIT */
#pragma once

/* Reads journals: this machine's, all that it has collected (merged), or those in a folder. Entries of one
 * writer come in the order of its journal (sd_journal_next(3)), those of several by time of reception.
 * Fields are read by name or one after the other. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/clock.h"

struct journal_reader;

/* directory: NULL for this machine's journal. Otherwise all *.journal and *.journal~ files in it and below
 * are read, and an unreadable one is an error, because a proof must not omit a file. merged: with the
 * journals of other hosts (all such files beside the machine's own in /var/log/journal and /run/log/journal,
 * except files that appear later). Negative errno; -ENOENT: no such folder; -ENODATA: no journal; -EACCES:
 * not readable for this user. */
int journal_reader_new(struct journal_reader **ret, const char *directory, bool merged);
struct journal_reader *journal_reader_free(struct journal_reader *r);
DEFINE_CLEANUP(struct journal_reader, journal_reader_free)

/* Restricts the entries to those with this "FIELD=value": any value of one field, all of several fields.
 * Before the first journal_reader_next(). Negative errno. */
int journal_reader_match(struct journal_reader *r, const char *match);
/* Adds the entries with this "FIELD=value" to those that match already. Before journal_reader_rewind() or
 * the first journal_reader_next(). Negative errno. */
int journal_reader_match_also(struct journal_reader *r, const char *match);
/* Adds the entries with any other value of the field of the last match for which is_wanted() returns true.
 * Can be called again at any time, for values that have come meanwhile. Negative errno. */
int journal_reader_match_values(struct journal_reader *r, const char *field,
                                bool (*is_wanted)(const char *value, void *userdata), void *userdata);

/* Skips entries that were received before this time. Before the first journal_reader_next(). */
void journal_reader_since(struct journal_reader *r, usec_t realtime);
/* 1: the next entry is the current one now. 0: there is none yet. Negative errno: the journal is damaged
 * here. */
int journal_reader_next(struct journal_reader *r);
/* Called after the last entry, before the first wait, by a program that has no other reader. -EBADMSG: a file is damaged, and the
 * library has left out the rest of it; else 0. */
int journal_reader_check(const struct journal_reader *r);
/* Goes back to the first entry. */
void journal_reader_rewind(struct journal_reader *r);
/* Waits for more entries, this long at most. 1: there may be some; 0: none. Negative errno; -EPIPE: the pipe reader_fd
 * (-1: none) has no reader any more. */
int journal_reader_wait(struct journal_reader *r, usec_t usec, int reader_fd);

/* Returns the first value of a field of the current entry, to be freed; NULL if there is none. Cut at a NUL
 * byte. Negative errno. */
int journal_reader_get(struct journal_reader *r, const char *field, char **ret);
/* Returns the current entry's fields, one for each call: 1 and "FIELD=value" (not NUL-terminated, valid
 * until the next call; length: of the name). 0: no more. Negative errno. A field with several values is
 * returned several times. */
int journal_reader_field(struct journal_reader *r, const char **ret_data, size_t *ret_length, size_t *ret_size);
/* Returns when the entry was sent (_SOURCE_REALTIME_TIMESTAMP), or received if that is unknown. Negative
 * errno. */
int journal_reader_time(struct journal_reader *r, usec_t *ret_realtime);
/* Returns the cursor for `journalctl --cursor=`, to be freed. Negative errno. */
int journal_reader_cursor(struct journal_reader *r, char **ret);
