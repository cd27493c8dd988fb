/* SPDX-License-Identifier: MIT */

/* Sequences that are written by hand: each reaches a state that few sequences from seeds reach. The lease is 10 s, and
 * grace is over after 12 s. All faults end after the last step, so that one may be there for its time alone. */

#include <string.h>

#include "tests/model/model-sequence.h"

#define MS(n) ((n) * USEC_PER_MSEC)
#define POOL_B(n) ((n) << 8) /* permits of a claim */

static const struct scene scenes[] = {
    /* Redis's clock was set back, so the lead lasts while a claim waits: one that is parked at pool b, which no host
     * declares any more. The last claim of pool a is the next to draw a ticket. */
    {.name = "parked where no host declares the pool",
     .n_hosts = 2,
     .n_pools = 2,
     .limits = {1, 2},
     .steps = {{STEP_LIMIT, .at = MS(15000), .host = 1, .a = 1, .b = 1},
               {STEP_CLAIM, .at = MS(16000), .a = 1, .d = MS(30000)},
               {STEP_CLOCK, .at = MS(17000), .a = MS(5000), .b = 1},
               {STEP_CLAIM, .at = MS(18000), .a = POOL_B(2), .d = MS(1000)},
               {STEP_LIMIT, .at = MS(19000), .host = 0, .a = 1, .b = 0},
               {STEP_LIMIT, .at = MS(19500), .host = 1, .a = 1, .b = 0},
               {STEP_CLAIM, .at = MS(22000), .a = 1, .d = MS(1000)},
               {STEP_RECONNECT, .at = MS(23000)}}},
    /* A host was rebooted and its new session ends the one before, two claims in each call. A hello of the one before
     * was long on its way, and arrives while the end is under way. */
    {.name = "a late hello of a session that is being ended",
     .n_hosts = 2,
     .n_pools = 1,
     .limits = {1},
     .tight = true,
     .steps = {{STEP_CLAIMS, .at = MS(15000), .c = 4, .d = MS(30000)},
               {STEP_CLAIMS, .at = MS(15100), .c = 4, .d = MS(30000)},
               {STEP_CLAIMS, .at = MS(15200), .c = 4, .d = MS(30000)},
               {STEP_CLAIMS, .at = MS(15300), .c = 4, .d = MS(30000)},
               {STEP_STALL_CALL, .at = MS(19000), .a = MS(2100)},
               {STEP_LIMIT, .at = MS(19001), .a = 0, .b = 2},
               {STEP_REBOOT, .at = MS(21000), .a = MS(1)},
               {STEP_FREEZE, .at = MS(21050), .host = 0, .a = MS(1000)},
               {STEP_FREEZE, .at = MS(21050), .host = 1, .a = MS(1000)},
               {STEP_RECONNECT, .at = MS(23000)}}},
    /* The run of a due time waits for another run, and its drained host gives the turn back without a delay. Until then
     * Redis's clock is an hour ahead, and nobody asks before it is right again. */
    {.name = "a clock that is set back after a turn was given back",
     .n_hosts = 2,
     .n_pools = 1,
     .limits = {1},
     .has_turns = true,
     .steps = {{STEP_CLOCK, .at = MS(15000), .a = MS(3600000), .b = 0},
               {STEP_CLAIM, .at = MS(16000), .a = 1, .d = MS(60000)},
               {STEP_DRAIN, .at = MS(40000), .host = 0, .a = MS(1000)},
               {STEP_DRAIN, .at = MS(40000), .host = 1, .a = MS(1000)},
               {STEP_CLOCK, .at = MS(40100), .a = MS(3600000), .b = 1},
               {STEP_RECONNECT, .at = MS(45000)}}},
    /* A host stands still until its session is over, and again from its next hello on. It receives the reply 30 s later. In
     * between another host draws numbers. That host and Redis's data are lost, and Redis's clock is set back. */
    {.name = "a reply that is received late",
     .n_hosts = 2,
     .n_pools = 1,
     .limits = {1},
     .steps = {{STEP_FREEZE, .at = MS(15000), .a = MS(11000)},
               {STEP_FREEZE, .at = MS(26005), .a = MS(30000)},
               {STEP_CLAIM, .at = MS(54000), .host = 1, .a = 1, .d = MS(200)},
               {STEP_REBOOT, .at = MS(54800), .host = 1, .a = MS(60000)},
               {STEP_WIPE, .at = MS(54900), .a = 1},
               {STEP_CLOCK, .at = MS(54901), .a = MS(3600000), .b = 1},
               {STEP_CLAIM, .at = MS(60000), .a = 1, .d = MS(200)},
               {STEP_RECONNECT, .at = MS(75000)}}},
};

const struct scene *scene_find(const char *name) {
    for (size_t i = 0; i < ELEMENTSOF(scenes); i++)
        if (strcmp(scenes[i].name, name) == 0)
            return &scenes[i];
    return NULL;
}

void scene_make_world(struct world *w, struct bridge *bridge, const struct model_mutation *mutation,
                      const struct scene *scene) {
    struct world_setup setup = {.seed = 1,
                                .n_hosts = scene->n_hosts,
                                .n_pools = scene->n_pools,
                                .lease = 10 * USEC_PER_SEC,
                                .heartbeat = 10 * USEC_PER_SEC / 6,
                                .tight = scene->tight,
                                .sync_part = 200};

    memcpy(setup.limits, scene->limits, sizeof(setup.limits));
    sequence_begin_world(w, bridge, mutation, &setup);
    w->turns.is_on = scene->has_turns;
    if (!scene->has_turns)
        return;
    vturn_init(w);
    w->turns.overlap = "queue";
    for (unsigned k = 0; k < w->turns.n_dues; k++)
        w->turns.dues[k].at = MS(7000) + k * MS(5000);
    for (unsigned i = 0; i < scene->n_hosts; i++)
        w->hosts[i].turns.skew = 0;
}

void scene_make(struct sequence *q, const struct scene *scene) {
    memset(q, 0, sizeof(*q));
    q->scene = scene;
    while (scene->steps[q->n].at > 0) {
        q->steps[q->n] = scene->steps[q->n];
        q->n++;
    }
}
