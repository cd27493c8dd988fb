/* SPDX-License-Identifier: MIT */
#pragma once

/* A sequence of steps, made from a seed: calls of hosts and operators, and faults of hosts, network and
 * Redis. A step has its time, and numbers whose meaning its kind decides (model-steps.c). */

#include "tests/model/model-internal.h"

enum step_kind {
    STEP_CLAIM, STEP_CLAIMS, STEP_WITHDRAW, STEP_CRASH, STEP_REBOOT, STEP_LOSE_FILE, STEP_FREEZE, STEP_CUT, STEP_LOSE_CALL,
    STEP_LOSE_ANSWER, STEP_STALL_CALL, STEP_STALL_ANSWER, STEP_LOSE_PUSH, STEP_STALL_PUSH, STEP_TWICE, STEP_RECONNECT, STEP_BYE, STEP_WIPE, STEP_FLUSH,
    STEP_RESTART, STEP_SAVE, STEP_RESTORE, STEP_REDIS_FROZEN, STEP_CLOCK, STEP_LIMIT, STEP_OVERRIDE, STEP_CLEAR, STEP_PAUSE,
    STEP_RESUME, STEP_REVOKE, STEP_GRACE, STEP_DISASTER, STEP_FULL, STEP_REPLICA, STEP_SCOPE, STEP_NAME, STEP_LEASE,
    STEP_AGAIN, STEP_BACK,
    STEP_DRAIN, STEP_STOP, STEP_HOSTS, /* with turns alone */
    STEP_MOVE,  /* with moves alone */
    STEPS
};

struct step {
    enum step_kind kind;
    usec_t at;
    unsigned host;
    uint64_t a, b, c, d;
};

/* A sequence that is written by hand, because none from a seed reaches its state for sure. */
struct scene {
    const char *name;
    unsigned n_hosts, n_pools;
    uint32_t limits[POOLS_MAX]; /* that all hosts declare at first */
    bool tight;                 /* the lowest bounds */
    bool has_turns;             /* due times of pool a are 5 s apart; runs may queue (overlap) */
    struct step steps[16];      /* up to one with at = 0 */
};

struct sequence {
    uint64_t seed;
    const struct scene *scene; /* NULL: made from the seed */
    struct step steps[STEPS_MAX];
    size_t n;
    usec_t length;
};

/* The world in which the sequence of this seed begins. */
void sequence_make_world(struct world *w, struct bridge *bridge, const struct model_mutation *mutation, uint64_t seed);
void sequence_make(struct sequence *q, uint64_t seed, const struct world *w);
/* A world of this setup, whose hosts start one after the other, with clocks of one rate. */
void sequence_begin_world(struct world *w, struct bridge *bridge, const struct model_mutation *mutation,
                          const struct world_setup *setup);

/* --- model-scenes.c --- */
const struct scene *scene_find(const char *name); /* NULL: unknown */
void scene_make_world(struct world *w, struct bridge *bridge, const struct model_mutation *mutation,
                      const struct scene *scene);
void scene_make(struct sequence *q, const struct scene *scene);
const char *step_name(enum step_kind kind);
