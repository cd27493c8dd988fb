/* SPDX-License-Identifier: MIT */
#pragma once

/* Entries with fields, or, where standard error is not the journal, the same as one readable line ("granted: pg-dump may start
 * run=... token=..."). A journald that does not read delays nobody: entries are kept until it does, up to 4 MiB (journal-socket.h).
 * Entries are never lost in silence: a warning counts those that were, and without a journald they go to standard error. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"

struct journal_field {
    const char *name;  /* "BERTH_RUN": A-Z 0-9 _ */
    const char *value; /* any text; newlines are kept in the journal, escaped on standard error */
};

struct journal; /* where this program's entries go */

/* identifier: SYSLOG_IDENTIFIER ("berthd"), kept, not copied. -ENOMEM, or of socket(2). */
int journal_new(struct journal **ret, const char *identifier);
/* Waits up to 300 ms for journald to take the kept entries. */
struct journal *journal_free(struct journal *j);
DEFINE_CLEANUP(struct journal, journal_free)
/* From now on this loop sends kept entries; without a loop the next entry sends them. The journal keeps the loop. A negative errno. */
int journal_attach_event(struct journal *j, sd_event *event);

/* Returns how many entries or lines were lost, of those that are known to be. */
uint64_t journal_count_lost(const struct journal *j);

/* One entry. priority as in syslog(3). message_id: 32 hex digits or NULL; event: its name, shown first on a readable line, or
 * NULL. */
void journal_send(struct journal *j, int priority, const char *message_id, const char *event, const char *message,
                  const struct journal_field *fields, size_t n_fields);
/* An entry without fields. */
void journal_log(struct journal *j, int priority, const char *format, ...) _printf_(3, 4);
