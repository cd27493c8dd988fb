/* SPDX-License-Identifier: MIT */
#pragma once

/* Starts that wait until a prepared guard in their way has ended. Either berthd lost its connection to that
 * guard of the same run, or it belongs to another run of a job that allows no overlap. There are few of
 * them. */

#include "base/list.h"
#include "runner/guard-file.h"

struct delayed {
    struct list starts;
};

void delayed_init(struct delayed *d);
void delayed_done(struct delayed *d); /* removes all; the list can be used again */
int delayed_add(struct delayed *d, const struct guard_file *record); /* 0 or -ENOMEM */
bool delayed_has(const struct delayed *d, const char *run);
void delayed_remove(struct delayed *d, const char *run); /* if it is there */
/* Empties the list and calls `start` for each entry. The call may add it again. */
void delayed_take(struct delayed *d, void (*start)(struct guard_file *record, void *userdata), void *userdata);
