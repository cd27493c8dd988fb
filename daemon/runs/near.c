/* SPDX-License-Identifier: MIT */
#include "daemon/runs/near.h"

#include <string.h>

/* How many waiting runs are searched: older ones may wait for other pools. */
#define LOOK_MAX 512

static bool is_of_same_queue(const struct run *a, const struct run *b) {
    return a->kind == b->kind && a->n_demands > 0 && b->n_demands > 0 && strcmp(a->demands[0].pool, b->demands[0].pool) == 0;
}

static bool has_room(const struct near *near, const struct run *run) {
    size_t in_pool = 0, in_host = 0;

    for (size_t i = 0; i < near->n; i++) {
        in_pool += is_of_same_queue(near->runs[i], run);
        in_host += near->runs[i]->kind == run->kind;
    }
    return run->n_demands > 0 && in_pool < NEAR_POOL_MAX && in_host < NEAR_HOST_MAX;
}

void near_add(struct near *near, struct run *run) {
    if (run->is_near || !has_room(near, run))
        return;
    run->is_near = true;
    near->runs[near->n++] = run;
}

static void replace(struct near *near, const struct run *gone, struct list *waiting) {
    size_t n = 0;

    list_foreach (run, waiting, struct run, link) {
        if (!run->is_near && is_of_same_queue(run, gone)) {
            near_add(near, run);
            if (run->is_near)
                run_changed(run);
            return;
        }
        if (++n == LOOK_MAX)
            return;
    }
}

void near_remove(struct near *near, struct run *run, struct list *waiting) {
    if (!run->is_near)
        return;
    run->is_near = false;
    for (size_t i = 0; i < near->n; i++)
        if (near->runs[i] == run) {
            near->runs[i] = near->runs[--near->n];
            break;
        }
    replace(near, run, waiting);
}
