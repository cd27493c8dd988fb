/* SPDX-License-Identifier: MIT */
#pragma once

/* Starts that wait until a guard in their way has ended: one that was prepared for the same run, and which berthd has lost, or for
 * another run of a job that allows no overlap. berthd sends few of them, and each once. */

#include "base/list.h"
#include "runner/guard-file.h"

struct delayed {
    struct list starts;
};

void delayed_init(struct delayed *d);
void delayed_done(struct delayed *d); /* forgets all; it can be used again */
int delayed_add(struct delayed *d, const struct guard_file *record); /* 0 or -ENOMEM */
bool delayed_has(const struct delayed *d, const char *run);
void delayed_remove(struct delayed *d, const char *run); /* if it is there */
/* Takes all off and calls `start` for each, which may add it again. */
void delayed_take(struct delayed *d, void (*start)(struct guard_file *record, void *userdata), void *userdata);
