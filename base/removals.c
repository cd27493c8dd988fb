/* SPDX-License-Identifier: MIT */
#include "base/removals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
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

static void try_all(struct removals *removals) {
    size_t kept = 0;

    for (size_t i = 0; i < removals->n; i++)
        if (remove_one(removals->paths[i]) < 0)
            removals->paths[kept++] = removals->paths[i];
        else
            free(removals->paths[i]);
    removals->n = kept;
}

static void removals_on_timer(void *userdata) {
    struct removals *removals = userdata;

    try_all(removals);
    if (removals->n > 0)
        timer_set_in(&removals->timer, RETRY);
}

int removals_new(struct removals **ret, sd_event *event) {
    _cleanup_(removals_freep) struct removals *removals = calloc(1, sizeof(*removals));
    int r;

    if (!removals)
        return -ENOMEM;
    r = timer_init(&removals->timer, event, SD_EVENT_PRIORITY_NORMAL, removals_on_timer, removals);
    if (r < 0)
        return r;
    *ret = steal_pointer(&removals);
    return 0;
}

struct removals *removals_free(struct removals *removals) {
    if (!removals)
        return NULL;
    try_all(removals);
    for (size_t i = 0; i < removals->n; i++)
        free(removals->paths[i]);
    free(removals->paths);
    timer_done(&removals->timer);
    free(removals);
    return NULL;
}

int removals_remove(struct removals *removals, const char *path) {
    int r = remove_one(path);

    if (r == 0 || !array_grow(removals->paths, removals->n))
        return r;
    removals->paths[removals->n] = strdup(path);
    if (removals->paths[removals->n])
        removals->n++;
    if (removals->n > 0)
        timer_set_in(&removals->timer, RETRY);
    return r;
}
