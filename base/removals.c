/* SPDX-License-Identifier: MIT */
#include "base/removals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define AGAIN USEC_PER_SEC

struct removals {
    sd_event_source *timer; /* on while there is anything */
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

static void arm(struct removals *r) {
    /* Neither fails for a source that exists. */
    (void) sd_event_source_set_time_relative(r->timer, AGAIN);
    (void) sd_event_source_set_enabled(r->timer, r->n > 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static int removals_on_timer(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
    struct removals *r = userdata;

    try_all(r);
    arm(r);
    return 0;
}

int removals_new(struct removals **ret, sd_event *event) {
    _cleanup_(removals_freep) struct removals *r = calloc(1, sizeof(*r));
    int k;

    if (!r)
        return -ENOMEM;
    k = sd_event_add_time(event, &r->timer, CLOCK_BOOTTIME, USEC_INFINITY, USEC_PER_MSEC, removals_on_timer, r);
    if (k >= 0)
        k = sd_event_source_set_enabled(r->timer, SD_EVENT_OFF);
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
    sd_event_source_disable_unref(r->timer);
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
    arm(r);
    return k;
}
