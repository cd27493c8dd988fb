/* SPDX-License-Identifier: MIT */
#include "base/removals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/timer.h"

#define RETRY USEC_PER_SEC

struct removals {
    struct timer timer; /* on while there are paths */
    char **paths;
    size_t n;
};

static int remove_one(const char *path) {
    return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

static void try_all(struct removals *r) {
    size_t kept = 0;

    for (size_t i = 0; i < r->n; i++)
        if (remove_one(r->paths[i]) < 0)
            r->paths[kept++] = r->paths[i];
        else
            free(r->paths[i]);
    r->n = kept;
}

static void removals_on_timer(void *userdata) {
    struct removals *removals = userdata;

    try_all(removals);
    if (removals->n > 0)
        timer_set_in(&removals->timer, RETRY);
}

int removals_new(struct removals **ret, sd_event *event) {
    _cleanup_(removals_freep) struct removals *r = calloc(1, sizeof(*r));
    int k;

    if (!r)
        return -ENOMEM;
    k = timer_init(&r->timer, event, SD_EVENT_PRIORITY_NORMAL, removals_on_timer, r);
    if (k < 0)
        return k;
    *ret = steal_pointer(&r);
    return 0;
}

struct removals *removals_free(struct removals *r) {
    if (!r)
        return NULL;
    try_all(r);
    for (size_t i = 0; i < r->n; i++)
        free(r->paths[i]);
    free(r->paths);
    timer_done(&r->timer);
    free(r);
    return NULL;
}

int removals_remove(struct removals *r, const char *path) {
    int k = remove_one(path);
    char **grown;

    if (k == 0)
        return 0;
    grown = reallocarray(r->paths, r->n + 1, sizeof(*grown));
    if (!grown)
        return k;
    r->paths = grown;
    r->paths[r->n] = strdup(path);
    if (r->paths[r->n])
        r->n++;
    if (r->n > 0)
        timer_set_in(&r->timer, RETRY);
    return k;
}
