/* SPDX-License-Identifier: MIT */
#pragma once

/* Shared by the parts of the audit: the runs, hosts and pools of one namespace, made from its events.
 *
 * Numbers are those of the namespace's clock (R7): tickets, tokens, versions of overrides, BERTH_CLOCK.
 * Redis draws them one after the other, so they order events whatever any other clock showed. 0: not known.
 * If only a host's clock is known, audit_hosts_time() makes a number of its time (numbers are near Redis's
 * time in µs). */

#include "cli/audit/check.h"
#include "cli/audit/index.h"
#include "cli/audit/names.h"
#include "cli/audit/event-index.h"

struct audit_moment { /* an event that the host wrote about itself */
    usec_t time;
    const struct entry *entry;
    size_t order;     /* index in the audit's events */
    size_t next_boot; /* index of the next event of another boot, both known; n_moments or more: none */
};

struct audit_absence { /* numbers between which a host's claims up to `claimed_until` may be in no queue */
    uint64_t from, to, claimed_until;
};

struct audit_host {
    const char *name;
    int64_t offset; /* µs, upper bound of its clock's lead over Redis's; time - offset is the earliest possible */
    int64_t lowest, highest; /* bounds known so far; INT64_MIN, INT64_MAX: none */
    struct audit_moment *moments; /* by time; at least one */
    size_t n_moments;
    const struct entry *last;
    const struct entry *first_of_other;     /* of another process than the first; NULL: none */
    const struct entry *last_of_other_boot; /* of another boot than the last; NULL: none */
    usec_t answer_lost; /* the latest time at which a reply may have been lost (lost-answers.c); 0: never */
    struct audit_absence *absences; /* by `from` */
    size_t n_absences;
    uint64_t last_number; /* while queue-presence.c reads events: the highest logged so far */
    bool is_away;         /* likewise: it is not connected to Redis */
    struct maxima ends; /* `to` of each */
};

struct audit_process { /* a berthd, or several in a row with one pid; one for each host that it names */
    const char *process, *host;
    const char *writer; /* the host of its first event */
    size_t order;
    usec_t last, last_loss; /* of all its events, of those that report a loss of Redis */
};

struct audit_limits_step { /* in force after this number */
    uint64_t number;
    uint64_t order;   /* of its entry, for pools of one host */
    bool none;        /* an override ended; of a key on a host: the limit of its pattern is in force again */
    uint32_t limit;
};

struct audit_limits_steps {
    struct audit_limits_step *items;
    size_t n;
};

struct audit_pool {
    const char *name;
    const char *host; /* NULL: scope cluster; else the only host */
    size_t pattern;   /* of a key: the pool that gives it a limit unless it has its own; else SIZE_MAX */
    struct audit_limits_steps declared, overrides; /* by number; of a host pool, `declared` has those in force */
    struct audit_limits_steps connections; /* of a cluster pool: the redis-connected that declare it */
    struct audit_limits_steps in_order; /* of a host pool: the same by order */
    const struct audit_limit *given;
    bool complained;   /* its missing limit was reported */
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

struct audit_stand { /* of a claim in its queues, from its ticket or a move to the next move */
    const struct audit_run *run;
    uint64_t from;  /* number of the ticket, or of the move */
    uint64_t score; /* ticket minus head start */
    bool is_unsure; /* Redis may have lost the move before the host of the run received it */
};

struct audit_stands {
    struct audit_stand *items; /* by `from` */
    size_t n;
};

struct audit_run {
    const char *id;
    const struct entry **events; /* all; those of its host in log order */
    size_t n_events;
    struct audit_end *ends;      /* by clock */
    size_t n_ends;
    const struct entry *queued, *granted, *started, *exited, *released, *reclaimed, *withdrawn, *revoked,
        *fenced; /* the first of each; not a release after which it waited again */
    size_t first_order, order, end_order; /* of its first event, its grant and its end in the log; 0: none */
    bool continues;
    const char *of_host;     /* its pools and numbers are those of this host; NULL: of the cluster */
    bool has_place;          /* `ticket` is a number of that clock */
    struct audit_use *uses;  /* the cluster's pools first, then by pool */
    size_t n_uses, n_cluster;
    uint64_t ticket;
    struct audit_stands stands; /* none without a place */
    uint64_t until;          /* it certainly waited from its ticket to this number; 0: not known */
};

struct audit_hold { /* permits from a grant to their end; a run that continues after a lost lease has several */
    const struct audit_run *run;
    const struct entry *entry; /* the entry of the grant, or else of its end */
    uint64_t token;
    uint64_t end;              /* held up to this number; UINT64_MAX: not ended */
    uint64_t there;            /* reclaimed: its processes existed up to this number, by its host's clock */
    uint64_t unlogged_after;   /* after this number it may have ended unlogged; 0: its end would be logged */
    const char *why;           /* ... the reason */
    bool renewed;              /* may exceed the limit */
    bool again;                /* claimed again by the next berthd, with another ticket */
};

struct audit {
    const struct audit_options *options;
    struct audit_report *report;
    const struct entry **events; /* of this namespace, by berthd and BERTH_SEQ */
    size_t n_events;
    struct audit_host *hosts;   /* by name */
    size_t n_hosts;
    struct audit_moment *moments; /* storage of hosts[].moments */
    struct audit_process *processes; /* by process and host */
    size_t n_processes;
    const struct entry **boots; /* the last event of each boot of each host, by both */
    size_t n_boots;
    struct event_index connections; /* of each host, by time */
    struct event_index sessions_lost; /* of each process, by BERTH_SEQ */
    struct audit_pool *pools;
    size_t n_pools;
    struct audit_names pool_names; /* on each host, and in the cluster (host NULL); also of unused pools */
    struct audit_run *runs;      /* sorted by id */
    size_t n_runs;
    struct {                     /* storage of runs[].events and .ends */
        const struct entry **events;
        struct audit_end *ends;
    } of_runs;
    struct {
        struct audit_stand *items;
        size_t n;
    } stands;
    struct audit_hold *holds;    /* of the cluster's pools, by token */
    size_t n_holds;
    usec_t lead;                 /* the largest known lead of a number over Redis's time */
    usec_t last_wipe;            /* of the last loss of Redis's data, by the clock of the host that logged it */
};

#define AUDIT_SILENT "its host has been silent since, and its expiry may have gone unlogged"

/* model.c. -ENOMEM. */
int audit_model_make(struct audit *a);
void audit_model_done(struct audit *a);
/* Returns the run's host. */
const char *audit_run_host(const struct audit_run *r);
uint32_t audit_run_permits(const struct audit_run *r, size_t pool);
/* Returns whether the entry is a release before the start, after which the run waits again. */
bool audit_event_gives_back(const struct entry *e);
bool audit_run_gave_back(const struct audit_run *r, uint64_t token); /* whether this grant was so released */
bool audit_run_waits_again(const struct audit_run *r);               /* whether its last grant was so released */
/* 0 if both need the same cluster pools; else an order. */
int audit_compare_cluster_pools(const struct audit_run *x, const struct audit_run *y);

/* moves.c. -ENOMEM. After the runs are made. */
int audit_moves_make(struct audit *a);
bool audit_event_is_move(const struct entry *e);
static inline uint64_t audit_run_score(const struct audit_run *r) { /* when it was queued; 0: not known */
    return r->stands.n > 0 ? r->stands.items[0].score : 0;
}

/* hosts.c. -ENOMEM. */
int audit_hosts_make(struct audit *a);
void audit_hosts_done(struct audit *a);
void audit_hosts_learn_clocks(struct audit *a); /* from the holds */
struct audit_host *audit_hosts_find(const struct audit *a, const char *name); /* NULL: no entries */
/* Returns the earliest possible time by Redis's clock; the latest number that can have been drawn then. */
usec_t audit_hosts_time(const struct audit *a, const struct entry *e);
usec_t audit_hosts_time_latest(const struct audit *a, const struct entry *e);
/* Returns the first event of a later boot of the host, which ends all its runs; 0: none. */
usec_t audit_hosts_next_boot(const struct audit *a, const struct entry *e);
/* Returns the last event that the host itself wrote in the boot of this event. */
const struct entry *audit_hosts_last_of_boot(const struct audit *a, const struct entry *e);
/* Return whether the host (in another boot), or this berthd (without a loss of Redis), existed long enough
 * to log what was due after this event. */
bool audit_hosts_other_boot_goes_on(const struct audit *a, const struct entry *after);
bool audit_hosts_process_goes_on(const struct audit *a, const struct entry *after);
/* Returns whether an earlier berthd of this host has entries. */
bool audit_hosts_have_earlier_berthd(const struct audit *a, const struct entry *e);

/* pools.c. -ENOMEM. */
int audit_pools_read_names(struct audit *a);
size_t audit_pools_find(const struct audit *a, const char *name, const char *host); /* index; SIZE_MAX: not used */
/* As audit_pools_find(), by the pool's scope on this host at this place of the log. */
int audit_pools_find_or_add(struct audit *a, const char *name, const char *host, size_t order, size_t *ret);
void audit_pools_done(struct audit *a);
/* The users of each pool among some runs. */
struct audit_pool_users {
    uint64_t *items; /* those of pool p are [first[p]] to [first[p + 1] - 1], ascending */
    size_t *first;
    size_t n;
};
int audit_pools_make_users(const struct audit *a, const struct audit_run *const *runs, size_t n, struct audit_pool_users *ret);
/* Returns the index in `items` of the pool's first user that is `item` or a later one; first[pool + 1]: none. */
size_t audit_pools_find_user(const struct audit_pool_users *u, size_t pool, uint64_t item);
void audit_pools_users_done(struct audit_pool_users *u);

/* lost-answers.c: ends without an entry. -ENOMEM. */
int lost_answers_make(struct audit *a);
void lost_answers_done(struct audit *a);
/* Returns whether this grant was never used: its berthd was killed before the start, and the next one
 * withdrew the claim or claimed again. *ret: the number by which it was released. */
bool lost_answers_is_unused(const struct audit *a, const struct audit_hold *h, uint64_t *ret);
bool lost_answers_is_unused_run(const struct audit_run *r); /* whether its withdrawal after a grant was of this kind */
/* Returns the time of the host's last event in the boot of this grant, if its expiry may have gone unlogged;
 * else 0. */
uint64_t lost_answers_silent_since(const struct audit *a, const struct entry *granted);
/* Returns whether the host of this waiting run was silent at this number, until another berthd of it wrote, and its expiry
 * may have gone unlogged. */
bool lost_answers_was_away(const struct audit *a, const struct audit_run *r, uint64_t number);
/* Sets `unlogged_after` and `why`: the next berthd of the host may not have known the grant, or the host was
 * silent. */
void lost_answers_set_unlogged_end(const struct audit *a, struct audit_hold *h);

/* queue-presence.c: when hosts were absent, and until when each claim waited. Needs runs, hosts and clocks.
 * -ENOMEM. */
int queue_presence_make(struct audit *a);
/* Returns whether a waiting claim may have been in no queue at this number. */
bool queue_presence_is_absent(const struct audit *a, const struct audit_run *r, uint64_t number);

/* limits.c. -ENOMEM. Scopes and limits of pools as logged. */
int audit_limits_read_names(struct audit *a);
int audit_limits_make(struct audit *a);
/* Stores the limit of a cluster pool in force when this number was drawn. False: not known. */
bool audit_limits_at(const struct audit *a, size_t pool, uint64_t number, uint32_t *ret);
/* Returns the last number at which this limit is certainly in force, without a change since `number`. */
uint64_t audit_limits_until(const struct audit *a, size_t pool, uint64_t number);
/* Stores the bounds of a host pool's limit at the run's grant. False: not known. */
bool audit_limits_of_host_at(const struct audit *a, size_t pool, const struct audit_run *r, uint32_t *ret_lowest, uint32_t *ret_highest);

/* check.c. Report an entry as a possible violation; as a violation. */
void audit_report_unproved(struct audit *a, enum audit_kind kind, const struct entry *entry, const char *format, ...) _printf_(4, 5);
void audit_report_violation(struct audit *a, enum audit_kind kind, const struct entry *entry, const char *format, ...) _printf_(4, 5);

/* The checks, each in the file of its name. -ENOMEM. */
int limits_check(struct audit *a);
int order_check(struct audit *a);
int missing_hosts_check(struct audit *a);
int due_check(struct audit *a);
void lifecycle_check(struct audit *a);
