/* SPDX-License-Identifier: MIT */
#pragma once

/* When this host asks for the due times of jobs that hosts share (R18). Decisions only: no clock, no
 * descriptor. */

#include "conf/settings.h"

#define TURNS_STEP (2 * USEC_PER_SEC)           /* from one preferred host to the next, then to the others */
#define TURNS_SPREAD USEC_PER_SEC               /* in which the other hosts ask */
#define TURNS_AHEAD_EVERY (3600 * USEC_PER_SEC) /* between two events clock-ahead */

/* Returns how long after the begin of a due time (seconds since 1970) this host asks for its turn. Each due
 * time has another order of hosts. */
usec_t turns_wait(const struct settings *settings, const struct job_settings *job, int64_t due);
