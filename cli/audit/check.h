/* SPDX-License-Identifier: MIT */
#pragma once

/* Replays the events of the hosts of a namespace and reports what breaks the rules (doc/protocol.md: R1, R2, R7), and
 * due times that were begun twice or overlap. Events in, findings out: no I/O, no clock.
 *
 * Events are ordered by numbers of the namespace's clock, which Redis draws one after the other: tickets, tokens, versions of
 * overrides, and BERTH_CLOCK of what ends a grant or changes a limit. Where a reply of Redis was lost, the end of a grant is
 * known only by its host's clock (counted in n_by_clock); so is the end of the processes after a lost lease. The offset of a
 * host's clock follows from its own grants: a grant is logged after its token was drawn, and claimed before. BERTH_LEAD_MS says
 * how far the token was ahead of Redis's time then. `tolerance` is
 * added. If a clock was set meanwhile, the uncertainty is reported and counts in favour of the hosts.
 *
 * Limits are those in the journal: BERTH_LIMITS of redis-connected and limit-changed for the cluster; of ready, config-loaded
 * and limit-changed for host pools.
 *
 * Some ends cannot be in any journal: a host that lost its reply, or was killed, does not know that it expired another one or
 * which grant its predecessor received. No entry of a later berthd can repair that, so lost-answers.c and queue-presence.c
 * treat such times as uncertain instead of reporting violations. */

#include <stddef.h>

#include "base/pool-name.h"
#include "base/journal/entries.h"

#define AUDIT_RELEASE_USEC (60 * USEC_PER_SEC) /* from the end of a run to the release of its permits: two leases */
#define AUDIT_TOLERANCE_DEFAULT (100 * USEC_PER_MSEC)
#define AUDIT_DOUBTS_MAX 100 /* listed; all are counted */

enum audit_kind {
    AUDIT_SEQ_GAP,      /* entries are missing */
    AUDIT_SEQ_TWICE,    /* two entries have one number */
    AUDIT_SEQ_ORDER,    /* an entry stands in the wrong place */
    AUDIT_ABOVE_LIMIT,  /* a grant that the limit did not allow */
    AUDIT_NO_LIMIT,     /* no entry has a pool's limit: nothing can be proved */
    AUDIT_OVERTAKEN,    /* a later claim was granted before an earlier one */
    AUDIT_TOKEN_TWICE,
    AUDIT_TOKEN_ORDER,  /* a grant with a lower token than one made before it was asked for */
    AUDIT_NOT_ENDED,    /* a grant whose end is missing */
    AUDIT_NOT_GRANTED,  /* a run that started without a grant */
    AUDIT_DIFFERS,      /* entries contradict each other about one run or one berthd, or are in an impossible order */
    AUDIT_MOVED,        /* a move, and there must be none */
    AUDIT_DUE_TWICE,    /* two runs were begun for one due time */
    AUDIT_DUE_OVERLAP,  /* a grant beside another run of the same job, which has on = "any" */
    AUDIT_NO_JOURNAL,   /* a host is named and wrote nothing: unproved, not a violation */
    AUDIT_MALFORMED,    /* an event without a mandatory field */
};
const char *audit_kind_name(enum audit_kind kind);

struct audit_limit { /* given by the user */
    char pool[POOL_NAME_SIZE];
    uint32_t limit;
    bool host;  /* scope */
    bool fixed; /* replaces the logged limit (--limit); otherwise used where none is logged (-c) */
};

struct audit_options {
    const char *namespace;
    usec_t tolerance;
    usec_t since; /* entries before it are replayed, but their findings are left out */
    const struct audit_limit *limits;
    size_t n_limits;
    bool no_moves; /* each move is a finding */
};

struct audit_finding {
    enum audit_kind kind;
    const struct entry *entry; /* of the entries checked */
    char *text;
};

struct audit_report {
    struct audit_finding *findings;
    size_t n_findings, allocated;
    struct audit_finding *doubts; /* possible violations that are not proved: the first of n_unproved */
    size_t n_doubts;
    size_t n_events, n_starts, n_hosts, n_pools, n_granted, n_running; /* n_starts: of berthd; n_running: granted, no end known */
    size_t n_explained; /* overtakings with a logged reason: parked, or the host was gone */
    size_t n_by_clock;  /* grants whose end is known only by their host's clock */
    size_t n_unproved;  /* grants that are within the limit only if earlier ones had ended without a log entry (lost-answers.c); and runs without a logged end on a lost host */
    size_t n_no_journal; /* of n_unproved: signs of a host whose journal is missing (missing-hosts.c) */
    size_t n_continued; /* grants above the limit because of on-lease-lost = "continue" */
    const struct entry **moves; /* one for each move: of the host that was asked, if its journal has it */
    size_t n_moves;
    const struct entry **missed; /* events of due times that were not begun, by host */
    size_t n_missed;
    usec_t doubt;       /* largest uncertainty of a host's clock */
    bool out_of_memory;
};

/* Returns 0 or -ENOMEM. The report refers to the entries. */
int audit_check(const struct entries *entries, const struct audit_options *options, struct audit_report *ret);
void audit_report_done(struct audit_report *report);
