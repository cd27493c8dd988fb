/* SPDX-License-Identifier: MIT */
#pragma once

/* What goes on while faults are injected: hosts with pools "db", "net" and "tenant/KEY", and always a few
 * runs of every kind waiting and running. The same seed asks for the same runs in the same order. */

#include "tests/harness/host.h"
#include "tests/harness/judge.h"

#define LOAD_HOSTS 3
#define LOAD_DB 3  /* limits */
#define LOAD_NET 2
#define LOAD_TENANT 1 /* of each key */
#define LOAD_KEYS "-p tenant/a -p tenant/b -p tenant/c" /* all permits of all keys */
#define LOAD_LEASE (2 * USEC_PER_SEC)
#define LOAD_ITEMS 600

/* splitmix64 */
uint64_t draw(uint64_t *state);
/* From lowest to highest, both included. */
uint64_t draw_between(uint64_t *state, uint64_t lowest, uint64_t highest);

struct load_item {
    struct child *child; /* NULL: over */
    char id[24];
    char run[ID_TEXT_SIZE]; /* job: the id of its run, as its command knows it; "": unknown */
    size_t host;
    struct demands pools;
    usec_t from, until, head_start;
    int expected, status; /* of its command; -1: none yet */
    bool job, leaves_child, killed /* `berth run` itself */;
};

struct load_host {
    struct host *host;
    bool down, frozen;                 /* by a fault: asks nothing of it */
    struct {
        usec_t from, until;
    } touched[64];                     /* by faults, or without a session */
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
    size_t n_turns, n_minutes;         /* that have passed on its hosts */
    usec_t next_minute;
    usec_t next;                       /* not before */
    bool closed;                       /* no new runs */
    struct witness_watch watch;
    struct judge_limit limits[256];
    size_t n_limits;
    struct judge_excuse excuses[4];
    size_t n_excuses;
};

/* For the config of a host. The text is valid until the next call. */
const char *load_pools(unsigned reload);
/* Adds the hosts without starting them. */
void load_up(struct load *l, uint64_t seed, bool has_schedules);
/* Begins and ends runs as is due, and watches; turns until then. */
void load_turn(struct load *l, usec_t until);
/* Awaits the end of all runs; the number of those that did not end in time. */
size_t load_drain(struct load *l, usec_t within);
/* Starts two runs of this host, first in the queue, that last this long: a fault of that length must stop them. */
void load_begin_long(struct load *l, size_t host, unsigned msec);
/* The waits of this host in that time prove nothing. */
void load_touch(struct load *l, size_t host, usec_t from, usec_t until);
/* Whether a host did it. A pattern: of all keys. */
bool load_set_limit(struct load *l, const char *pool, unsigned limit);
/* A limit may be exceeded by who starts from then on with a token up to this one. */
void load_excuse(struct load *l, usec_t from, uint64_t token);
/* Writes another config and asks for a reload. */
void load_reload(struct load *l, size_t host);

struct verdict {
    struct judgement j;
    size_t n_runs, n_clean;  /* asked for; ended as their command did */
    size_t n_open;           /* not ended yet */
    size_t n_lost;           /* exit statuses that were lost or changed */
    size_t n_jobs, n_jobs_unrecorded;
    size_t n_margins;
    usec_t margins[512];     /* how long before its lease's end the last process was gone, each time that it came to this */
    char first[256];         /* of what went wrong with exit statuses */
    size_t n_due, n_due_lost; /* due times; due times, attempts and hooks that came to nothing, untold */
    char first_due[256];     /* of these */
};
/* The exit status of a job's command. */
int load_exit_of(const char *job);
void load_judge(struct load *l, struct verdict *ret);
void load_done(struct load *l);
