/* SPDX-License-Identifier: MIT */
#pragma once

/* Files that must be removed but cannot be removed now, as on a file system that is read-only for a while. A
 * state file that stays would mislead the next berthd. Each removal is retried every second, and when the
 * object is freed. */

#include <systemd/sd-event.h>

#include "base/cleanup.h"

struct removals;

/* 0 or a negative errno. */
int removals_new(struct removals **ret, sd_event *event);
struct removals *removals_free(struct removals *removals);
DEFINE_CLEANUP(struct removals, removals_free)

/* Removes the file now (0, also without such a file), or later (the negative errno of the first attempt).
 * The name must not be used again. */
int removals_remove(struct removals *removals, const char *path);
