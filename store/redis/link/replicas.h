/* SPDX-License-Identifier: MIT */
#pragma once

/* A master that has too few replicas for min-replicas-to-write refuses all scripts. After a failover each master does so
 * until another replica has found it. */

#include <stdbool.h>

#include "base/clock.h"

struct store_redis;

struct missing_replicas {
    usec_t awaited_since; /* boottime of the first refusal on the present connections; 0: none */
};

void replicas_reset(struct store_redis *store);
/* If this error says that replicas are missing, calls again on the same connections after a pause, and returns true.
 * Returns false after two seconds, because another server may be the master now. */
bool replicas_wait(struct store_redis *store, const char *error, const char *why);
bool replicas_are_awaited(const struct store_redis *store);
