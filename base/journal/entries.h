/* SPDX-License-Identifier: MIT */
#pragma once

/* berthd's events as journals have them (berth-events(7)). Only those count of which journald itself says that they came from
 * berthd's unit (_SYSTEMD_UNIT, which a sender cannot choose): anybody may write a field BERTH_EVENT. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/journal/journal-read.h"

#define ENTRIES_UNIT_DEFAULT "berthd.service"

struct entry { /* texts are owned; those that the entry does not have are NULL, but host and cursor are "" */
    char *event, *host, *job, *run, *pools, *result, *reason, *limits, *namespace;
    char *cursor;
    char *boot;               /* of the machine: tells a restart of berthd from one of the host */
    char *process;            /* machine, boot and pid of the berthd that wrote it; another one counts BERTH_SEQ anew */
    uint64_t token, ticket, clock, seq;
    int64_t wait_ms, run_ms, head_start_ms; /* -1: not there */
    int64_t exit_code, signal;              /* -1: not there */
    int64_t position;                       /* in the queue; 0: not there */
    int64_t uid;                            /* of who asked for it; -1: a job */
    bool continues;           /* on-lease-lost = "continue" */
    usec_t time;              /* realtime of the host that wrote it */
};

struct entries {
    struct entry *items; /* of one journal after the other, each in its order */
    size_t n, allocated;
};

/* Appends all events of a journal. unit: NULL is the default. Negative errno. */
int entries_read(struct entries *e, struct journal_reader *r, const char *unit);
/* Appends one whose texts are copies; NULL is left NULL. -ENOMEM. */
int entries_add(struct entries *e, const struct entry *entry);
void entries_done(struct entries *e);
