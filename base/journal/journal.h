/* SPDX-License-Identifier: MIT */
#pragma once

/* Entries with fields for the journal. Where standard error is not the journal, each is one readable line ("granted: pg-dump
 * may start run=... token=..."). A journald that does not read delays nothing: entries are kept, up to 4 MiB
 * (journal-socket.h). A warning counts lost entries. Without a journald entries go to standard error. */

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

/* identifier: SYSLOG_IDENTIFIER ("berthd"), borrowed. -ENOMEM, or an error of socket(2). */
int journal_new(struct journal **ret, const char *identifier);
/* Waits up to 300 ms for journald to take the kept entries. */
struct journal *journal_free(struct journal *j);
DEFINE_CLEANUP(struct journal, journal_free)
/* Sends kept entries from this loop; without a loop the next entry sends them. The journal references the loop. A
 * negative errno. */
int journal_attach_event(struct journal *j, sd_event *event);

/* Returns how many entries and lines were lost, as far as known. */
uint64_t journal_count_lost(const struct journal *j);

/* Sends one entry. priority: as in syslog(3). message_id: 32 hex digits or NULL. event: its name, which begins a readable
 * line, or NULL. */
void journal_send(struct journal *j, int priority, const char *message_id, const char *event, const char *message,
                  const struct journal_field *fields, size_t n_fields);
/* Sends an entry without fields. */
void journal_log(struct journal *j, int priority, const char *format, ...) _printf_(3, 4);
