/* SPDX-License-Identifier: MIT */
#pragma once

#include "store/memory/pool.h"
#include "store/snapshot.h"

/* The contents of the pools. All claims are this host's, which is alive (seen 0). The two
 * clocks are read at the same moment; now is the one of pools_expire(). 0 or -ENOMEM. */
int pools_snapshot(struct pools *p, const char *host, usec_t now, usec_t now_realtime,
                   struct snapshot **ret);
