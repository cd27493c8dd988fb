/* SPDX-License-Identifier: MIT */
#pragma once

/* What the parts of the audit share: the runs, hosts and pools of one namespace, made from its events.
 *
 * Numbers are those of the namespace's clock (R7): tickets, tokens, versions of overrides, BERTH_CLOCK. Redis draws them one after the
 * other, so they tell what was before what whatever any clock said. A number that is not known is 0. Where only a host's clock tells
 * when something was, audit_hosts_time() makes a number of it (numbers are near Redis's time in µs). */

#include "cli/audit/check.h"
#include "cli/audit/index.h"
#include "cli/audit/names.h"
#include "cli/audit/event-index.h"

struct audit_moment { /* an event of the host that it is kept for, written by itself */
    usec_t time;
    const struct entry *entry;
    size_t order;     /* in the audit's events */
    size_t next_boot; /* the next of another boot than this one's, where both are known; not below n_moments: none */
};

struct audit_absence { /* numbers: from one to the other what a host had asked for up to `asked` may be in no queue */
    uint64_t from, to, asked;
};

struct audit_host {
    const char *name;
    int64_t offset;  /* µs that its clock is ahead of Redis's at most: taken from a time it gives the earliest that it can be */
    int64_t lowest, highest; /* bounds found; INT64_MIN, INT64_MAX: none */
    struct audit_moment *moments; /* by time; at least one */
    size_t n_moments;
    const struct entry *last;
    const struct entry *first_of_other;     /* by another process than that of the first; NULL: none */
    const struct entry *last_of_other_boot; /* than that of the last; NULL: none */
    usec_t answer_lost; /* the latest that it may not have heard an answer of Redis, see lost-answers.c; 0: never */
    struct audit_absence *absences; /* by `from` */
    size_t n_absences, absences_allocated;
    struct maxima ends; /* `to` of each */
};

struct audit_process { /* a berthd, or several in a row that had one pid; of a process that names two hosts there are two */
    const char *process, *host;
    const char *writer; /* the host of the first event of the process */
    size_t order;
    usec_t last, last_loss; /* times of its last events: any; one that tells of a loss of Redis */
};

struct audit_limits_step { /* from this number on (not with it) */
    uint64_t number;
    uint64_t order;   /* of its entry, for pools of one host */
    bool none;        /* an override that ended */
    uint32_t limit;
};

struct audit_limits_steps {
    struct audit_limits_step *items;
    size_t n, allocated;
};

struct audit_pool {
    const char *name;
    const char *host; /* NULL: scope cluster; else of this host alone */
    struct audit_limits_steps declared, overrides; /* by number; a host's own pool: what is in force is in `declared` */
    struct audit_limits_steps in_order; /* a host's own pool: the same by order */
    const struct audit_limit *given;
    size_t overridden; /* the order of the last redis-connected that tells of an override */
    bool complained;   /* that there is no limit */
};

struct audit_use {
    size_t pool;
    uint32_t permits;
    bool of_host;
};

struct audit_end { /* of a grant: released or reclaimed */
    uint64_t clock;
    size_t order; /* among the run's events */
    const struct entry *entry;
};

struct audit_run {
    const char *id;
    const struct entry **events; /* all of them; those of its host in their order */
    size_t n_events;
    struct audit_end *ends;      /* by clock */
    size_t n_ends;
    const struct entry *queued, *granted, *started, *exited, *released, *reclaimed, *withdrawn, *revoked,
        *fenced; /* the first of each; released: not those with which it waited again */
    size_t order, end_order; /* of its grant and its end in the journals; 0: none */
    bool continues;
    const char *of_host;     /* all its pools are this host's own, and so are its numbers; NULL: the cluster's */
    bool has_place;          /* ticket is one of the numbers above */
    struct audit_use *uses;  /* the cluster's pools first, then by pool */
    size_t n_uses, n_cluster;
    uint64_t ticket, score;  /* score: ticket minus head start */
    uint64_t until;          /* it certainly waited for all numbers after its ticket up to this one; 0: not known */
};

struct audit_hold { /* permits from a grant to their end; a run that goes on after a lost lease has several */
    const struct audit_run *run;
    const struct entry *entry; /* that tells of it */
    uint64_t token;
    uint64_t end;              /* held for all numbers up to this one; UINT64_MAX: still */
    uint64_t there;            /* taken back: its processes were there at all numbers up to this one, as its host's clock tells */
    uint64_t unlogged_after;           /* after this number it may have ended and nobody can have told it; 0: somebody would have */
    const char *why;           /* ... in words */
    bool renewed;              /* beyond the limit if need be */
    bool again;                /* asked for anew, with another ticket, by the next berthd */
};

struct audit {
    const struct audit_options *options;
    struct audit_report *report;
    const struct entry **events; /* of this namespace; each start of a berthd in a row, by BERTH_SEQ */
    size_t n_events;
    struct audit_host *hosts;   /* by name */
    size_t n_hosts;
    struct audit_moment *moments; /* what hosts[].moments point into */
    struct audit_process *processes; /* by process and host */
    size_t n_processes;
    const struct entry **boots; /* the last event of each boot of each host, by both */
    size_t n_boots;
    struct event_index connections; /* of each host, by time */
    struct event_index sessions_lost; /* of each process, by BERTH_SEQ */
    struct audit_pool *pools;
    size_t n_pools, pools_allocated;
    struct audit_names pool_names; /* on each host and (host NULL) in the cluster, whether they are there or not */
    struct audit_run *runs;      /* sorted by id */
    size_t n_runs;
    const struct entry **run_events; /* what runs[].events point into */
    struct audit_end *run_ends;      /* what runs[].ends point into */
    struct audit_hold *holds;    /* of the cluster's pools, by token */
    size_t n_holds;
    usec_t last_wipe;            /* when a host last told that Redis had lost its data, by that one's clock */
};

#define AUDIT_SILENT "its host is silent since, and whoever took it for dead may not have heard of it"

/* audit-model.c. -ENOMEM. */
int audit_model_make(struct audit *a);
void audit_model_done(struct audit *a);
/* The host that the run is on. */
const char *audit_run_host(const struct audit_run *r);
uint32_t audit_run_permits(const struct audit_run *r, size_t pool);
/* A release of what was granted and could not be begun with: its run waits again. */
bool audit_event_gives_back(const struct entry *e);
bool audit_run_gave_back(const struct audit_run *r, uint64_t token); /* this grant was */
bool audit_run_waits_again(const struct audit_run *r);               /* its last grant was */
/* 0 if they want permits of the same pools of the cluster; else in some order. */
int audit_compare_cluster_pools(const struct audit_run *x, const struct audit_run *y);

/* audit-hosts.c. -ENOMEM. */
int audit_hosts_make(struct audit *a);
void audit_hosts_done(struct audit *a);
void audit_hosts_learn_clocks(struct audit *a); /* from the holds */
struct audit_host *audit_hosts_find(const struct audit *a, const char *name); /* NULL: it wrote nothing */
/* Entries of these events name another host than the one that writes. */
bool audit_event_is_of_another(const struct entry *e);
/* The earliest that this can have been by Redis's clock, and the latest. */
usec_t audit_hosts_time(const struct audit *a, const struct entry *e);
usec_t audit_hosts_time_latest(const struct audit *a, const struct entry *e);
/* A host that was booted anew runs nothing of what it ran before: when its first word was, of another boot than this event's, after it;
 * 0: there is none. */
usec_t audit_hosts_next_boot(const struct audit *a, const struct entry *e);
/* The last word of the host and boot of this event, which its host wrote itself. */
const struct entry *audit_hosts_last_of_boot(const struct audit *a, const struct entry *e);
/* Whether the host, in another boot, or this berthd without a loss of Redis, had the time to tell what was to be told after this event. */
bool audit_hosts_other_boot_goes_on(const struct audit *a, const struct entry *after);
bool audit_hosts_process_goes_on(const struct audit *a, const struct entry *after);
/* Whether what another berthd of this host wrote before is there. */
bool audit_hosts_have_earlier_berthd(const struct audit *a, const struct entry *e);

/* audit-pools.c. -ENOMEM. */
int audit_pools_read_names(struct audit *a);
size_t audit_pools_find(const struct audit *a, const char *name, const char *host); /* the pool's index, SIZE_MAX if nobody used it */
int audit_pools_find_or_add(struct audit *a, const char *name, const char *host, size_t *ret); /* as what it is on this host */
void audit_pools_done(struct audit *a);
/* Which of some runs use each pool, by their indexes. */
struct audit_pool_users {
    uint64_t *items; /* those of pool p are [first[p]] to [first[p + 1] - 1], ascending */
    size_t *first;
    size_t n;
};
int audit_pools_make_users(const struct audit *a, const struct audit_run *const *runs, size_t n, struct audit_pool_users *ret);
void audit_pools_users_done(struct audit_pool_users *u);

/* lost-answers.c: ends that nobody could tell. -ENOMEM. */
int lost_answers_make(struct audit *a);
void lost_answers_done(struct audit *a);
/* Whether this grant was never used: its berthd was killed before the start, and the next one knew of no command, so that it withdrew the
 * claim or asked anew. From when on it was given back is in *ret, in favour of the hosts. */
bool lost_answers_is_unused(const struct audit *a, const struct audit_hold *h, uint64_t *ret);
bool lost_answers_is_unused_run(const struct audit_run *r); /* its withdrawal after its grant was that */
/* The last word of the host of this grant in its boot, if whoever took it for dead since may not have heard of it; else 0. */
uint64_t lost_answers_silent_since(const struct audit *a, const struct entry *granted);
/* Sets hold.untold and hold.why: the next berthd of its host may not have known of it, or its host is silent. */
void lost_answers_set_unlogged_end(const struct audit *a, struct audit_hold *h);

/* audit-waits.c: when hosts were gone, and until when each claim waited: after the runs, hosts and clocks were made. -ENOMEM. */
int queue_presence_make(struct audit *a);
/* Whether a waiting claim may have been in no queue at this number. */
bool queue_presence_is_absent(const struct audit *a, const struct audit_run *r, uint64_t number);

/* audit-limits.c. -ENOMEM. What hosts tell of which pools are theirs; and limits. */
int audit_limits_read_names(struct audit *a);
int audit_limits_make(struct audit *a);
/* What was in force of a pool of the cluster when this number was drawn. False: nothing tells. */
bool audit_limits_at(const struct audit *a, size_t pool, uint64_t number, uint32_t *ret);
/* Of a host's own pool, for a grant whose entry has this order: the highest and the lowest that it can have been. */
bool audit_limits_of_host_at(const struct audit *a, size_t pool, const struct audit_run *r, uint32_t *ret_lowest, uint32_t *ret_highest);

/* audit-check.c. Of this entry it is not known whether it breaks a rule, and this is why. */
void audit_report_unproved(struct audit *a, enum audit_kind kind, const struct entry *entry, const char *format, ...) _printf_(4, 5);
void audit_report_violation(struct audit *a, enum audit_kind kind, const struct entry *entry, const char *format, ...) _printf_(4, 5);

/* The checks, of the files that they are named after. -ENOMEM. */
int limits_check(struct audit *a);
int order_check(struct audit *a);
int missing_hosts_check(struct audit *a);
void lifecycle_check(struct audit *a);
