/* SPDX-License-Identifier: MIT */
#pragma once

/* Replays the events of the hosts of a namespace. Reports violations of the rules R1, R2 and R7 of
 * doc/protocol.md, and due times that were begun twice or whose runs overlap. Events in, findings out: no
 * I/O, no clock.
 *
 * Events are ordered by numbers of the namespace's clock, which Redis draws one after the other: tickets,
 * tokens, versions of overrides, and BERTH_CLOCK of events that end a grant or change a limit. If a reply of
 * Redis was lost, only the host's clock shows the end of a grant (counted in n_by_clock). The same holds for
 * the end of processes after a lost lease. The offset of a host's clock follows from its own grants: each
 * was claimed before its token was drawn and logged after that. BERTH_LEAD_MS has the lead of the token over
 * Redis's time. `tolerance` is added. If a clock was set meanwhile, the uncertainty is reported and counts
 * in favour of the hosts.
 *
 * Limits are those in the journal: BERTH_LIMITS of redis-connected and limit-changed for the cluster; of
 * ready, config-loaded and limit-changed for host pools.
 *
 * Some ends are in no journal. A berthd that lost a reply or was killed does not log that it expired another
 * host, and its successor does not know which grants it received. lost-answers.c and queue-presence.c treat
 * such times as uncertain instead of reporting violations. */

#include <stddef.h>

#include "base/pool-name.h"
#include "base/journal/entries.h"

#define AUDIT_RELEASE_USEC (60 * USEC_PER_SEC) /* from the end of a run to the release of its permits: two leases */
#define AUDIT_TOLERANCE_DEFAULT (100 * USEC_PER_MSEC)
#define AUDIT_DOUBTS_MAX 100 /* listed; all are counted */

enum audit_kind {
    AUDIT_SEQ_GAP,      /* entries are missing */
    AUDIT_SEQ_TWICE,    /* two entries have one number */
    AUDIT_SEQ_ORDER,    /* an entry is in the wrong place */
    AUDIT_ABOVE_LIMIT,  /* a grant that the limit did not allow */
    AUDIT_NO_LIMIT,     /* no entry has a pool's limit: nothing can be proved */
    AUDIT_OVERTAKEN,    /* a later claim was granted before an earlier one */
    AUDIT_TOKEN_TWICE,
    AUDIT_TOKEN_ORDER,  /* a grant with a lower token than one made before its claim */
    AUDIT_NOT_ENDED,    /* a grant whose end is missing */
    AUDIT_NOT_GRANTED,  /* a run that started without a grant */
    AUDIT_DIFFERS,      /* entries contradict each other about one run or one berthd, or are in an impossible order */
    AUDIT_MOVED,        /* a move, with --no-moves */
    AUDIT_DUE_TWICE,    /* two runs were begun for one due time */
    AUDIT_DUE_OVERLAP,  /* a grant beside another run of the same job, which has on = "any" */
    AUDIT_NO_JOURNAL,   /* a host is named but has no entries: unproved, not a violation */
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
    usec_t since; /* earlier entries are replayed without findings */
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
    size_t n_findings;
    struct audit_finding *doubts; /* possible violations that are not proved: the first of n_unproved */
    size_t n_doubts;
    size_t n_events, n_starts, n_hosts, n_pools, n_granted, n_running; /* n_starts: of berthd; n_running: granted, no end known */
    size_t n_explained; /* overtakings with a logged reason: parked, or the host was gone */
    size_t n_by_clock;  /* grants whose end is known only by their host's clock */
    size_t n_unproved;  /* grants within the limit only if earlier ones ended unlogged; lost runs without an end */
    size_t n_no_journal; /* of n_unproved: signs of a host whose journal is missing (missing-hosts.c) */
    size_t n_continued; /* grants above the limit because of on-lease-lost = "continue" */
    const struct entry **moves; /* one for each move, if possible of the host that received the call */
    size_t n_moves;
    const struct entry **missed; /* events of missed due times, by host */
    size_t n_missed;
    usec_t doubt;       /* largest uncertainty of a host's clock */
    bool out_of_memory;
};

/* Returns 0 or -ENOMEM. The report refers to the entries. */
int audit_check(const struct entries *entries, const struct audit_options *options, struct audit_report *ret);
void audit_report_done(struct audit_report *report);
