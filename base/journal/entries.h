/* SPDX-License-Identifier: MIT */
#pragma once

/* berthd's events in journals (berth-events(7)). Only entries whose _SYSTEMD_UNIT is berthd's count:
 * journald sets that field itself, while anybody can write a field BERTH_EVENT. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/journal/journal-read.h"

#define ENTRIES_UNIT_DEFAULT "berthd.service"

/* Texts are owned, and UTF-8 without control characters except newlines and tabs; NULL if the entry lacks them, but host and
 * cursor are "". */
struct entry {
    char *event, *host, *job, *run, *pools, *result, *reason, *limits, *namespace;
    struct {
        char *trigger, *first_run; /* first_run: of a later attempt */
        char *due;                 /* by the clock of its zone; of missed due times the first */
        int64_t attempt;           /* from 1; 0: missing */
    } origin;
    struct {
        char *until;              /* the last due time */
        int64_t count;            /* 0: missing */
    } missed;
    char *cursor;
    char *boot;               /* of the machine: distinguishes a reboot from a restart of berthd */
    char *process;            /* machine, boot and pid of the berthd that wrote it; BERTH_SEQ counts within a process */
    uint64_t token, ticket, clock, seq;
    struct {                  /* what the caller asked for */
        int64_t head_start_ms; /* -1: missing */
        char *on_behalf;
    } asked;
    struct {
        int64_t wait_ms, run_ms; /* -1: missing */
        int64_t lead_ms;         /* how far the token is ahead of Redis's TIME; 0: missing, or less than 1 */
    } took;
    struct {
        int64_t code, signal; /* -1: missing */
    } exit;
    int64_t position;         /* in the queue; 0: missing */
    int64_t uid;              /* of the caller; -1: a job */
    bool continues;           /* on-lease-lost = "continue" */
    usec_t time;              /* realtime of the host that wrote it */
};

struct entries {
    struct entry *items; /* journals one after the other, each in its own order */
    size_t n;
};

/* Appends all events of a journal. unit: NULL is the default. Negative errno. */
int entries_read(struct entries *e, struct journal_reader *r, const char *unit);
/* Appends a deep copy; NULL texts stay NULL. -ENOMEM. */
int entries_add(struct entries *e, const struct entry *entry);
void entries_done(struct entries *e);
static inline bool entry_is(const struct entry *e, const char *event) {
    return strcmp(e->event, event) == 0;
}
/* Returns whether the event may name another host than its writer. */
bool entry_is_of_another(const struct entry *e);
