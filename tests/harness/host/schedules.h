/* SPDX-License-Identifier: MIT */
#pragma once

/* Schedules, zones and times of texts that must be right. */

#include "base/schedule/schedule.h"

void schedules_add(struct schedule *schedule, const char *entry, const char *except); /* NULL: none */
struct zone *schedules_load_zone(const char *name); /* never NULL */
int64_t schedules_at(const char *text); /* "2027-01-15T08:00:00Z" */
