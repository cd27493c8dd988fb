/* SPDX-License-Identifier: MIT */
#pragma once

#include "store/memory/pool.h"
#include "store/snapshot.h"

/* Returns the contents of the pools. All claims are this host's, which is alive (seen 0). now, by the clock of
 * pools_expire(), and now_realtime are of the same moment. 0 or -ENOMEM. */
int pools_snapshot(struct pools *p, const char *host, usec_t now, usec_t now_realtime,
                   struct snapshot **ret);
