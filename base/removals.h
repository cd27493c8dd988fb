/* SPDX-License-Identifier: MIT */
#pragma once

/* Files that must be gone and cannot be removed now, because their file system is read-only or their folder is not ours for the moment: a
 * record that stays would be taken for true by whoever starts next. Tried again each second, and when this is freed. */

#include <systemd/sd-event.h>

#include "base/cleanup.h"

struct removals;

/* 0 or a negative errno. */
int removals_new(struct removals **ret, sd_event *event);
struct removals *removals_free(struct removals *r);
DEFINE_CLEANUP(struct removals, removals_free)

/* Removes it now (0, also if it is not there), or later: the negative errno why not now. A name that is never used again. */
int removals_remove(struct removals *r, const char *path);
