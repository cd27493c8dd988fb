/* SPDX-License-Identifier: MIT */
#pragma once

/* The permit protocol's scripts against a model of its rules (R1-R14, R16). One virtual time, nobody sleeps: virtual hosts do
 * what store-redis-*.c does (their clocks run at rates up to 1 % apart), a virtual network delays and loses calls, answers and
 * pushes, a virtual operator crashes, wipes, restores, steps clocks and changes limits. The scripts are the real ones on a real
 * Redis; a prelude gives them the virtual time and replication id, and hands out what they publish.
 *
 *   model-bridge.c  the scripts on a redis-server: composed with the prelude, called, snapshots, the look into Redis
 *   model-rules.c   the model: what must become of each call; model-rules-session.c and -claim.c: verb by verb
 *   model-limits.c  the limit in force, overrides
 *   model-clock.c   the pace and the lead of the clock
 *   model-check.c   what must be true at each instant, and in Redis' data
 *   model-host.c    the virtual host's session and connections; model-hello.c: hello and sync; model-beat.c: heartbeats
 *   model-claim.c   its claims and processes; model-ask.c: what it asks for them, together where it is alike
 *   model-world.c   time and network
 *   model-steps.c   claims, faults, administrators
 *   model-run.c     sequences: made from a seed, run, shrunk, printed
 *   model-main.c    the programs that run them */

#include <stdbool.h>
#include <stdint.h>

/* A change that the model must notice: in the scripts' text, or in the virtual host. */
struct model_mutation {
    const char *name;
    uint64_t seed;             /* of a sequence that is known to notice it; 0: none is */
    const char *from, *to;     /* each occurrence in a script; NULL: none */
    bool early_expiry;         /* hosts call others dead after 3/4 of a lease */
    bool deadline_from_answer; /* hosts count their lease from the answer, not from the call */
    bool no_ageing;            /* hosts do not age the clock that they remember */
    bool any_epoch;            /* hosts take pushes of any epoch */
    bool no_chain;             /* hosts do not look whether a push was missed */
    bool age_from_hearing;     /* a number's age counts from when a host heard of it, however late that was */
    bool own_expiry;           /* hosts that were refused call others dead by their own lease */
};

/* Runs sequences of these seeds, until one fails: that is shrunk and told on standard output if `tell`. Returns the number of
 * sequences that were run; *ret_failed says whether the last one failed. Negative errno if there is no Redis to run it with, or
 * -ENOENT if the mutation's text is in no script. */
int model_run(uint64_t first_seed, unsigned n, const struct model_mutation *mutation, bool tell, bool *ret_failed);

/* A program that runs n sequences from this seed on, unless the environment says otherwise (SEED, SEQUENCES). */
int model_main(int argc, char **argv, uint64_t first_seed, unsigned n);
