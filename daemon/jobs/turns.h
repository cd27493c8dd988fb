/* SPDX-License-Identifier: MIT */
#pragma once

/* When this host asks for the due times of jobs that hosts share (R18). Decisions only: no clock, no
 * descriptor. */

#include "conf/settings.h"

#define TURNS_STEP                                                                                          \
    (2 * USEC_PER_SEC)            /* between the preferred hosts, and from the last of them to the others */
#define TURNS_SPREAD USEC_PER_SEC /* within which the others ask */
#define TURNS_AHEAD_EVERY (3600 * USEC_PER_SEC) /* between two events clock-ahead */

/* The part of the wait that is this host's own, for this due time (seconds since 1970): it asks so much
 * later than the job begins. The order of the hosts is another one for each due time. */
usec_t turns_wait(const struct settings *settings, const struct job_settings *job, int64_t due);
