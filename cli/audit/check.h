/* SPDX-License-Identifier: MIT */
#pragma once

/* Replays the events of the hosts of a namespace and finds what breaks the rules (doc/protocol.md: R1, R2, R7). Events in, findings out:
 * no I/O, no clock.
 *
 * What was before what is told by numbers of the namespace's clock, which Redis draws one after the other: tickets, tokens, versions of
 * overrides, and BERTH_CLOCK of what ends a grant or changes a limit. Where an answer of Redis was lost the end of a grant is told by
 * the clock of its host (counted in n_by_clock), as it is when the processes of a lost lease were gone. How far a host's clock is from
 * Redis's follows from its own grants (a grant is logged after its token was drawn, and claimed before). `tolerance` is given besides.
 * Where a clock moved meanwhile, the doubt is in favour of the hosts, and told.
 *
 * Limits are those that the journal tells: BERTH_LIMITS of redis-connected and limit-changed for the cluster, of ready, config-loaded and
 * limit-changed for a host's own pools. */

#include <stddef.h>

#include "base/name.h"
#include "base/journal/entries.h"

#define AUDIT_RELEASE_USEC (60 * USEC_PER_SEC) /* from the end of a run to the release of its permits: two leases */
#define AUDIT_TOLERANCE_DEFAULT (100 * USEC_PER_MSEC)
#define AUDIT_DOUBTS_MAX 100 /* named; all are counted */

enum audit_kind {
    AUDIT_SEQ_GAP,      /* entries are missing */
    AUDIT_SEQ_TWICE,    /* two entries have one number */
    AUDIT_SEQ_ORDER,    /* an entry does not stand where it was written */
    AUDIT_ABOVE_LIMIT,  /* a grant that the limit did not allow */
    AUDIT_NO_LIMIT,     /* nothing tells a pool's limit: cannot be proved */
    AUDIT_OVERTAKEN,    /* a later claim was granted before an earlier one */
    AUDIT_TOKEN_TWICE,
    AUDIT_TOKEN_ORDER,  /* a grant with a lower token than one made before it was asked for */
    AUDIT_NOT_ENDED,    /* a grant whose end is missing */
    AUDIT_NOT_GRANTED,  /* a run that started without a grant */
    AUDIT_DIFFERS,      /* two entries tell different things of one run or one berthd, or in an order that cannot be */
    AUDIT_NO_JOURNAL,   /* a host is told of, and wrote nothing: a doubt alone */
    AUDIT_MALFORMED,    /* an event without what it must have */
};
const char *audit_kind_name(enum audit_kind kind);

struct audit_limit { /* given by the user */
    char pool[NAME_MAX_LENGTH + 1];
    uint32_t limit;
    bool host;  /* scope */
    bool fixed; /* instead of what the journal tells (--limit), else where it tells nothing (-c) */
};

struct audit_options {
    const char *namespace;
    usec_t tolerance;
    usec_t since; /* findings of entries before it are left out; what they mean for later ones is not */
    const struct audit_limit *limits;
    size_t n_limits;
};

struct audit_finding {
    enum audit_kind kind;
    const struct entry *entry; /* of the entries checked */
    char *text;
};

struct audit_report {
    struct audit_finding *findings;
    size_t n_findings, allocated;
    struct audit_finding *doubts; /* what would be a violation, and is not proved to be one: the first of n_unproved */
    size_t n_doubts;
    size_t n_events, n_starts, n_hosts, n_pools, n_granted, n_running; /* n_starts: of berthd; n_running: granted, no end known */
    size_t n_explained; /* overtakings with a reason in the journal: parked, or its host was gone meanwhile */
    size_t n_by_clock;  /* grants whose end only their host's clock tells */
    size_t n_unproved;  /* grants within the limit only if earlier ones were over, whose end nobody can have told (lost-answers.c); and
                         * runs that nobody reclaimed, or was heard to */
    size_t n_unseen;    /* of n_unproved: what tells of a host whose journal is missing (missing-hosts.c) */
    size_t n_continued; /* grants above the limit because of on-lease-lost = "continue" */
    usec_t doubt;       /* the most that a host's clock is in doubt */
    bool out_of_memory;
};

/* 0 or -ENOMEM. The report lives as long as the entries. */
int audit_check(const struct entries *entries, const struct audit_options *options, struct audit_report *ret);
void audit_report_done(struct audit_report *report);
