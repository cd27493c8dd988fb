/* SPDX-License-Identifier: MIT */
#pragma once

/* What the parts of the audit share: the runs, hosts and pools of one namespace, made from its events. */

#include "cli/audit-check.h"

struct audit_host {
    const char *name;
    int64_t offset;  /* µs that its clock is ahead of Redis's at most: taken from a time it gives the earliest that it can be */
    int64_t lowest, highest; /* bounds found; INT64_MIN, INT64_MAX: none */
};

struct audit_change { /* of a limit */
    usec_t time;      /* Redis's */
    const char *host; /* who declares; NULL: an override */
    bool none;        /* not any more */
    bool anew;        /* by a new berthd: overrides of a host's own pools are forgotten */
    uint32_t limit;
};

struct audit_pool {
    char name[NAME_MAX_LENGTH + 1];
    const char *host; /* NULL: scope cluster; else of this host alone */
    struct audit_change *changes;
    size_t n_changes;
    const struct audit_limit *given;
    bool complained;  /* that there is no limit */
};

struct audit_use {
    size_t pool;
    uint32_t permits;
};

struct audit_run {
    const char *id;
    const struct entry *queued, *granted, *started, *exited, *released, *reclaimed, *withdrawn;
    size_t order, end_order; /* of its grant and its end in the journals; 0: no end */
    bool parked, continues;
    struct audit_use *uses;
    size_t n_uses;
    uint64_t token, ticket, score; /* score: ticket minus head start */
    usec_t end;                    /* Redis's time; USEC_INFINITY: none */
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
    struct audit_run *runs; /* sorted by id */
    size_t n_runs;
    struct audit_run **granted; /* those with a token, by token */
    size_t n_granted;
};

int audit_model_make(struct audit *a);
void audit_model_done(struct audit *a);

struct audit_host *audit_find_host(const struct audit *a, const char *name); /* NULL: it wrote nothing */
/* The earliest that this can have been by Redis's clock. */
usec_t audit_time(const struct audit *a, const struct entry *e);
/* The pool's; SIZE_MAX if nobody used it. */
size_t audit_find_pool(const struct audit *a, const char *name, const char *host);

void audit_find(struct audit *a, enum audit_kind kind, const struct entry *entry, const char *format, ...) _printf_(4, 5);

/* The checks. -ENOMEM. */
int audit_check_use(struct audit *a);
int audit_check_order(struct audit *a);
void audit_check_ends(struct audit *a);
