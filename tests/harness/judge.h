/* SPDX-License-Identifier: MIT */
#pragma once

/* Judges a whole run of commands from the witness's records, from who waited when, and from the limits over time. It knows nothing of
 * berth: what it is given was seen from outside, but for tickets. Times are boottime µs. */

#include "tests/harness/witness.h"

struct judge_limit { /* from this time on, until the next one of the same pool */
    char pool[NAME_MAX_LENGTH + 1];
    usec_t at;
    unsigned limit;
};

/* Redis had forgotten grants, and nobody could know: who starts after `from` with a token up to `token` may exceed a limit. */
struct judge_excuse {
    usec_t from;
    uint64_t token;
};

struct judge_wait { /* somebody who was there to be served from `from` on, until his command started or he went away */
    char id[64];
    struct demands pools;
    usec_t from, until;
    usec_t head_start; /* as if he had asked so much earlier */
    /* His place in the queue, as his host told it at `ticketed`. Until then, and where none was told (0), who asked first is known but for
     * the time that asking takes. */
    uint64_t ticket;
    usec_t ticketed;
    uint64_t token; /* of his grant, as his command told it; 0: he has none */
    bool excused; /* what he waited with was being broken: his waiting proves nothing, but others may have to wait behind him */
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
    usec_t worst_overlap;     /* the longest time beyond the limit after one of them; at least 1 if there was any */
    size_t n_excused;         /* other starts beyond the limit */
    char overlap[768];        /* the first one, in words */
    usec_t overlap_from, overlap_until; /* the first one, and the end of the last one */
    size_t n_doubled;         /* ids that started twice */
    usec_t longest_idle;      /* that somebody waited although all that he asked for was free and nobody was ahead of him */
    char idle[128];           /* who it was */
    usec_t idle_from;
    size_t n_overtaken;       /* those who wait, and somebody behind them who wants of the same pool is served first */
    char overtaken[192];      /* the first one, in words */
    size_t n_served;          /* waits that ended with a start */
};

void judge(const struct judge *j, struct judgement *ret);
