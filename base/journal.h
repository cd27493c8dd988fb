/* SPDX-License-Identifier: MIT */
#pragma once

/* The only user of sd-journal: entries with fields, or, where standard error is not the journal, the same as one
 * readable line ("granted: pg-dump may start run=... token=..."). Entries are never lost in silence: what the journal
 * refuses goes to standard error. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct journal_field {
    const char *name;  /* "BERTH_RUN": A-Z 0-9 _ */
    const char *value; /* any text; newlines are kept in the journal, escaped on standard error */
};

struct journal; /* where this program's entries go */

/* identifier: SYSLOG_IDENTIFIER ("berthd"), kept, not copied. -ENOMEM. */
int journal_new(struct journal **ret, const char *identifier);
struct journal *journal_free(struct journal *j);
DEFINE_CLEANUP(struct journal, journal_free)

/* One entry. priority as in syslog(3). message_id: 32 hex digits or NULL; event: its name, shown first on a readable line, or
 * NULL. */
void journal_send(struct journal *j, int priority, const char *message_id, const char *event, const char *message,
                  const struct journal_field *fields, size_t n_fields);
/* An entry without fields. */
void journal_log(struct journal *j, int priority, const char *format, ...) _printf_(3, 4);
