/* SPDX-License-Identifier: MIT */
#pragma once

/* The attempts of a job: which end of a run is good, whether another attempt follows it, and when. Decisions
 * alone: no clock, no descriptor. The rules are those of `retry` and `restart` in berth.conf(5). */

#include <stdbool.h>

#include "base/clock.h"
#include "base/name.h"
#include "conf/settings.h"
#include "daemon/runs/run.h"

struct chain { /* the place of a run among the attempts */
    char first_run[ID_TEXT_SIZE];
    usec_t queued_realtime; /* of the first run */
    uint32_t attempt;       /* from 1 */
};

/* NEUTRAL: an operator or a drain ended the run, which does not count for the job. */
enum chain_end { CHAIN_END_GOOD, CHAIN_END_BAD, CHAIN_END_NEUTRAL };
enum chain_end chain_judge(enum run_result result);
/* Returns the result that success-on makes of this one. exit_code: -1 for none. */
enum run_result chain_result(const struct job_retry *retry, enum run_result result, int exit_code);

/* Why no further attempt is made. */
enum chain_reason {
    CHAIN_REASON_ATTEMPTS,
    CHAIN_REASON_NOT_RETRIED, /* retry-on does not have this result */
    CHAIN_REASON_WITHIN,
    CHAIN_REASON_SUPERSEDED,
    CHAIN_REASON_STOPPED,
};
const char *chain_reason_name(enum chain_reason reason);

enum chain_next {
    CHAIN_NEXT_NOTHING, /* the run ended well, or its job has no retries */
    CHAIN_NEXT_RETRY,
    CHAIN_NEXT_GIVE_UP,
};

struct chain_decision {
    enum chain_next next;
    enum chain_reason reason; /* of GIVE_UP */
    usec_t delay_usec;        /* of RETRY: from the end to the begin of the next attempt */
};

/* Returns what follows the end of an attempt. */
struct chain_decision chain_decide(const struct job_retry *retry, const struct chain *chain,
                                   const struct run_end *end, usec_t now_realtime);
/* Returns whether an attempt that begins at this time is beyond retry-within. */
bool chain_is_late(const struct job_retry *retry, const struct chain *chain, usec_t begin_realtime);

/* Returns the delay from the loss of this attempt's host to the next attempt. USEC_INFINITY: none
 * follows. */
usec_t chain_again(const struct job_retry *retry, const struct chain *chain, usec_t now_realtime);

/* Returns the delay after attempt k, from 1: between half and all of retry-delay * 2^(k-1), at most
 * retry-delay-max. Calls with the same first run and k return the same. */
usec_t chain_delay(const struct job_retry *retry, const char *first_run, uint32_t k);

/* Returns whether `restart` begins another run after this result. */
bool chain_restarts(const struct job_retry *retry, enum run_result result);
/* Returns how many ends in a row came less than retry-delay-max after their start; 0: this one came later.
 * run_usec: from start to end; 0: it never started. */
uint32_t chain_count_quick(const struct job_retry *retry, uint32_t n_quick, usec_t run_usec);
/* Returns the delay from the end of a run to the next one. */
usec_t chain_restart_delay(const struct job_retry *retry, const char *run, uint32_t n_quick);
