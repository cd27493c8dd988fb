/* SPDX-License-Identifier: MIT */
#pragma once

/* Runs the permit protocol's scripts against a model of its rules (R1-R14, R16, R18) in one virtual time. Virtual hosts do what
 * store/redis does; their clocks run at rates up to 1 % apart. A virtual network delays and loses calls, replies and pushes.
 * A virtual operator crashes, wipes, restores, steps clocks and changes limits. The scripts are the real ones on a real Redis.
 * A prelude gives them the virtual time and replication id, and returns what they publish.
 *
 *   model-bridge.c     the scripts on a redis-server: composed with the prelude, called; snapshots and inspection of Redis
 *   model-rules.c      what each call must do; model-rules-session.c, -claim.c and -move.c: verb by verb
 *   model-limits.c     the limit in force, overrides
 *   model-clock.c      the pace and the lead of the clock
 *   model-check.c      what must be true at each instant, and in Redis's data
 *   model-host.c       the virtual host's session and connections
 *   model-hello.c      hello and sync
 *   model-heartbeat.c  heartbeats
 *   model-claim.c      the virtual host's claims and processes
 *   model-turn.c       its turns: when it asks, commits, gives back; model-turn-answer.c: what it learns;
 *                      model-rules-turn.c: what must become of them
 *   model-batch.c      its calls for claims, combined where they are alike
 *   model-world.c      time and network
 *   model-steps.c      claims, faults, administrators
 *   model-sequence.c   sequences: made from a seed; model-scenes.c: written by hand
 *   model-run.c        sequences: run, shrunk, printed
 *   model-main.c       the programs that run them */

#include <stdbool.h>
#include <stdint.h>

/* Seeds with this bit make sequences with keyed pools. */
#define MODEL_KEYS (UINT64_C(1) << 32)
/* ... with turns (R18). */
#define MODEL_TURNS (UINT64_C(1) << 33)
/* ... with moves of claims (R2). */
#define MODEL_MOVES (UINT64_C(1) << 34)

/* A change that the model must notice: in the scripts' text, or in the virtual host. */
struct model_mutation {
    const char *name;
    uint64_t seed;             /* of a sequence that is known to notice it; 0: none is */
    const char *scene;         /* notices it, and no sequence from a seed is tried; NULL: none is known */
    const char *from, *to;     /* each occurrence in a script; NULL: none */
    bool has_keys;             /* sequences with keyed pools notice it */
    bool early_expiry;         /* hosts expire others after 3/4 of a lease */
    bool deadline_from_answer; /* hosts count their lease from the reply, not from the call */
    bool no_ageing;            /* hosts do not age the clock that they remember */
    bool any_epoch;            /* hosts accept pushes of any epoch */
    bool no_chain;             /* hosts do not check whether a push was missed */
    bool age_from_hearing;     /* a number's age counts from when a host received it, however late that was */
    bool turns;                /* sequences with turns notice it */
    bool moves;                /* sequences with moves notice it */
    bool commit_late;          /* hosts start a process before they commit its turn */
    bool no_marks;             /* hosts do not report their marks after a new epoch */
    bool idle_skips;           /* idle hosts skip two heartbeats of three */
    bool own_expiry;           /* refused hosts expire others by their own lease */
};

/* Runs sequences of these seeds until one fails. Shrinks that one, and prints it if `tell`. Returns the number of
 * sequences that were run; *ret_failed: whether the last one failed. Negative errno if there is no Redis to run it with, or
 * -ENOENT if the mutation's text is in no script. */
int model_run(uint64_t first_seed, unsigned n, const struct model_mutation *mutation, bool tell, bool *ret_failed);

/* Runs the scene of this name (model-scenes.c). As above; -ENOENT also if there is no such scene. */
int model_run_scene(const char *name, const struct model_mutation *mutation, bool tell, bool *ret_failed);

/* A program that runs n sequences from this seed on, or as SEED and SEQUENCES in the environment set. */
int model_main(int argc, char **argv, uint64_t first_seed, unsigned n);
