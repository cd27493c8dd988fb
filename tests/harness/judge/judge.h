/* SPDX-License-Identifier: MIT */
#pragma once

/* Judges commands by the witness's records, the waiting times, and the limits over time. It knows nothing of
 * berth: except for tickets its input was observed from outside. Times are boottime µs. */

#include "tests/harness/judge/witness.h"

struct judge_limit { /* from this time on, until the next limit of the same pool */
    char pool[NAME_MAX_LENGTH + 1];
    usec_t at;
    unsigned limit;
};

/* Redis lost grants without a trace: a command that starts after `from` with a token up to `token` may
 * exceed a limit. */
struct judge_excuse {
    usec_t from;
    uint64_t token;
};

struct judge_wait { /* a waiter, from its request until its command started or it left */
    char id[64];
    struct demands pools;
    usec_t from, until;
    usec_t head_start; /* head start of the request */
    /* Its ticket, which its host logged at `ticketed`. Before that, and without a ticket (0), the order is
     * known except for the time that a request takes. */
    uint64_t ticket;
    usec_t ticketed;
    uint64_t token; /* of its grant, as its command reports it; 0: none */
    bool displaced; /* its session ended meanwhile, so others may have taken its place */
    bool excused; /* its host, network or Redis was broken: its wait proves nothing, but others may wait behind it */
};

struct judge {
    const struct witness *w; /* after witness_watch_apply() */
    const struct judge_limit *limits;
    size_t n_limits;
    const struct judge_wait *waits;
    size_t n_waits;
    const struct judge_excuse *excuses;
    size_t n_excuses;
    /* A lowered limit counts this long after the request: a run that was granted before may start a little later. */
    usec_t slack;
};

struct judgement {
    size_t n_overlaps;        /* starts beyond the limit */
    usec_t worst_overlap;     /* the longest time beyond the limit; at least 1 if there was any */
    size_t n_excused;         /* other starts beyond the limit */
    char overlap[768];        /* the first one, in words */
    usec_t overlap_from, overlap_until; /* the first one, and the end of the last one */
    size_t n_doubled;         /* ids that started twice */
    usec_t longest_idle;      /* longest wait of a first claim whose permits were free */
    char idle[128];           /* the name of that waiter */
    usec_t idle_from;
    size_t n_overtaken;       /* waiters that were overtaken by a later one of the same pool */
    char overtaken[192];      /* the first one, in words */
    size_t n_served;          /* waits that ended with a start */
};

void judge(const struct judge *j, struct judgement *ret);
