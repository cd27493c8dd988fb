/* SPDX-License-Identifier: MIT */
#pragma once

/* What the parts of the audit share: the runs, hosts and pools of one namespace, made from its events.
 *
 * Numbers are those of the namespace's clock (R7): tickets, tokens, versions of overrides, BERTH_CLOCK. Redis draws them one after the
 * other, so they tell what was before what whatever any clock said. A number that is not known is 0. Where only a host's clock tells
 * when something was, audit_time() makes a number of it (numbers are near Redis's time in µs). */

#include "cli/audit-check.h"

struct audit_host {
    const char *name;
    int64_t offset;  /* µs that its clock is ahead of Redis's at most: taken from a time it gives the earliest that it can be */
    int64_t lowest, highest; /* bounds found; INT64_MIN, INT64_MAX: none */
    struct audit_absence *absences;
    size_t n_absences;
};

struct audit_absence { /* numbers: from one to the other what a host had asked for up to `asked` may be in no queue */
    uint64_t from, to, asked;
};

struct audit_limits_step { /* from this number on (not with it) */
    uint64_t number;
    size_t order;     /* of its entry, for pools of one host */
    bool none;        /* an override that ended */
    uint32_t limit;
};

struct audit_limits_steps {
    struct audit_limits_step *items;
    size_t n;
};

struct audit_pool {
    char name[NAME_MAX_LENGTH + 1];
    const char *host; /* NULL: scope cluster; else of this host alone */
    struct audit_limits_steps declared, overrides; /* a host's own pool: what is in force is in `declared` */
    const struct audit_limit *given;
    bool complained;  /* that there is no limit */
};

struct audit_use {
    size_t pool;
    uint32_t permits;
};

struct audit_run {
    const char *id;
    const struct entry **events; /* all of them; those of its host in their order */
    size_t n_events;
    const struct entry *queued, *granted, *started, *exited, *released, *reclaimed, *withdrawn, *revoked,
        *fenced; /* the first of each */
    size_t order, end_order; /* of its grant and its end in the journals; 0: none */
    bool continues;
    const char *of_host;     /* all its pools are this host's own, and so are its numbers; NULL: the cluster's */
    bool has_place;          /* ticket is one of the numbers above */
    struct audit_use *uses;
    size_t n_uses;
    uint64_t ticket, score;  /* score: ticket minus head start */
    uint64_t until;          /* it certainly waited for all numbers after its ticket up to this one; 0: not known */
};

struct audit_hold { /* permits from a grant to their end; a run that goes on after a lost lease has several */
    const struct audit_run *run;
    const struct entry *entry; /* that tells of it */
    uint64_t token;
    uint64_t end;              /* held for all numbers up to this one; UINT64_MAX: still */
    uint64_t there;            /* taken back: its processes were there at all numbers up to this one, as its host's clock tells */
    uint64_t untold;           /* after this number it may have ended and nobody can have told it; 0: somebody would have */
    const char *why;           /* ... in words */
    bool renewed;              /* beyond the limit if need be */
    bool again;                /* asked for anew, with another ticket, by the next berthd */
};

struct audit {
    const struct audit_options *options;
    struct audit_report *report;
    const struct entry **events; /* of this namespace; each start of a berthd in a row, by BERTH_SEQ */
    size_t n_events;
    struct audit_host *hosts;
    size_t n_hosts;
    struct audit_pool *pools;
    size_t n_pools;
    struct audit_run *runs;      /* sorted by id */
    size_t n_runs;
    const struct entry **run_events; /* what runs[].events point into */
    struct audit_hold *holds;    /* of the cluster's pools, by token */
    size_t n_holds;
};

#define AUDIT_SILENT "its host is silent since, and whoever took it for dead may not have heard of it"

int audit_model_make(struct audit *a);
void audit_model_done(struct audit *a);

struct audit_host *audit_find_host(const struct audit *a, const char *name); /* NULL: it wrote nothing */
/* Entries of these events name another host than the one that writes. */
bool audit_is_of_another(const struct entry *e);
/* The earliest that this can have been by Redis's clock, and the latest. */
usec_t audit_time(const struct audit *a, const struct entry *e);
usec_t audit_time_latest(const struct audit *a, const struct entry *e);
/* The host that the run is on; the pool's index, SIZE_MAX if nobody used it. */
const char *audit_run_host(const struct audit_run *r);
size_t audit_find_pool(const struct audit *a, const char *name, const char *host);
uint32_t audit_permits(const struct audit_run *r, size_t pool);

/* audit-untold.c: ends that nobody could tell. Whether this grant was never used: its berthd was killed before the start, and the next one
 * knew of no command, so that it withdrew the claim or asked anew. From when on it was given back is in *ret, in favour of the hosts. */
bool audit_is_unused(const struct audit *a, const struct audit_hold *h, uint64_t *ret);
bool audit_is_unused_run(const struct audit_run *r); /* its withdrawal after its grant was that */
/* The last word of the host of this grant in its boot, if whoever took it for dead since may not have heard of it; else 0. */
uint64_t audit_silent_since(const struct audit *a, const struct entry *granted);
/* Sets hold.untold and hold.why: the next berthd of its host may not have known of it, or its host is silent. */
void audit_set_untold(const struct audit *a, struct audit_hold *h);

/* When hosts were gone, and until when each claim waited: after the runs, hosts and clocks were made. -ENOMEM. */
int audit_make_absences(struct audit *a);
/* Whether a waiting claim may have been in no queue at this number. */
bool audit_is_absent(const struct audit *a, const struct audit_run *r, uint64_t number);

/* audit-limits.c. -ENOMEM. */
int audit_make_limits(struct audit *a);
/* What was in force of a pool of the cluster when this number was drawn. False: nothing tells. */
bool audit_limit_at(const struct audit *a, size_t pool, uint64_t number, uint32_t *ret);
/* Of a host's own pool, for a grant whose entry has this order: the highest and the lowest that it can have been. */
bool audit_host_limit_at(const struct audit *a, size_t pool, const struct audit_run *r, uint32_t *ret_lowest, uint32_t *ret_highest);
/* Whether this text of BERTH_LIMITS names the pool, and if so whether as one of scope host. */
bool audit_limits_name(const char *text, const char *pool, bool *ret_host);

/* Of this entry it is not known whether it breaks a rule, and this is why. */
void audit_doubt(struct audit *a, enum audit_kind kind, const struct entry *entry, const char *format, ...) _printf_(4, 5);
void audit_find(struct audit *a, enum audit_kind kind, const struct entry *entry, const char *format, ...) _printf_(4, 5);

/* The checks. -ENOMEM. */
int audit_check_use(struct audit *a);
int audit_check_order(struct audit *a);
int audit_check_unseen(struct audit *a);
void audit_check_lives(struct audit *a);
