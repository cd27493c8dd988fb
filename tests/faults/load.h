/* SPDX-License-Identifier: MIT */
#pragma once

/* The load during faults: hosts with pools "db", "net" and "tenant/KEY", and always a few runs of every kind
 * that wait and run. The same seed gives the same runs in the same order. */

#include "tests/harness/draw.h"
#include "tests/harness/host/host.h"
#include "tests/harness/judge/judge.h"

#define LOAD_HOSTS 3
#define LOAD_DB 3  /* limits */
#define LOAD_NET 2
#define LOAD_TENANT 1 /* of each key */
#define LOAD_KEYS "-p tenant/a -p tenant/b -p tenant/c" /* all permits of all keys */
#define LOAD_LEASE (2 * USEC_PER_SEC)
#define LOAD_ITEMS 600

struct load_item {
    struct child *child; /* NULL: over */
    char id[24];
    char run[ID_TEXT_SIZE]; /* id of a job's run, as its command knows it; "": unknown */
    size_t host;
    struct demands pools;
    usec_t from, until, head_start;
    int expected, status; /* of its command; -1: none yet */
    bool job, leaves_child, killed /* `berth run` itself */;
};

struct load_host {
    struct host *host;
    bool down, frozen;                 /* by a fault: the load asks nothing of the host */
    struct {
        usec_t from, until;
    } touched[64];                     /* broken by faults, or without a session */
    size_t n_touched;
    unsigned reload;
    bool has_schedules;
};

struct load {
    uint64_t random;
    struct load_host hosts[LOAD_HOSTS];
    struct load_item items[LOAD_ITEMS];
    size_t n;
    size_t width;                      /* runs at once */
    bool focus;                        /* mostly jobs of the first host */
    bool has_schedules;                /* tests/faults/due.h */
    size_t n_turns, n_minutes;         /* that have passed on the hosts */
    usec_t next_minute;
    usec_t next;                       /* not before */
    bool closed;                       /* no new runs */
    struct witness_watch watch;
    struct judge_limit limits[256];
    size_t n_limits;
    struct judge_excuse excuses[4];
    size_t n_excuses;
};

/* Returns the text of a host's config, until the next call. */
const char *load_pools(unsigned reload);
/* Adds the hosts without starting them. */
void load_up(struct load *l, uint64_t seed, bool has_schedules);
/* Begins and ends runs as they are due, and watches, until a time. */
void load_turn(struct load *l, usec_t until);
/* Awaits the end of all runs. Returns how many did not end in time. */
size_t load_drain(struct load *l, usec_t within);
/* Starts two runs of this host, first in the queue, that last so long that the fault must stop them. */
void load_begin_long(struct load *l, size_t host, unsigned msec);
/* Excuses the waits of this host in that time. */
void load_touch(struct load *l, size_t host, usec_t until);
/* Sets a limit; of a pattern: that of all keys. Returns whether a host did it. */
bool load_set_limit(struct load *l, const char *pool, unsigned limit);
/* Runs that start from then on with a token up to this one may exceed a limit. */
void load_excuse(struct load *l, usec_t from, uint64_t token);
/* Writes the config of a host, which another fault may have broken. */
void load_write_config(struct load *l, size_t host);
/* Writes another config and asks for a reload. */
void load_reload(struct load *l, size_t host);

struct verdict {
    struct judgement j;
    size_t n_runs, n_clean;  /* requested; ended as their command did */
    size_t n_open;           /* not ended yet */
    size_t n_lost;           /* exit statuses that were lost or changed */
    size_t n_jobs, n_jobs_unrecorded;
    size_t n_unreported;     /* statuses of `berth run` that no journal has */
    size_t n_margins;
    usec_t margins[512];     /* times from the end of the last process to the end of the lease */
    char first[256];         /* of what went wrong with exit statuses */
    size_t n_due, n_due_lost; /* due times; lost due times, attempts and hooks without an event */
    char first_due[256];     /* of these */
};
/* Returns the exit status of a job's command. */
int load_exit_of(const char *job);
void load_judge(struct load *l, struct verdict *ret);
void load_done(struct load *l);
