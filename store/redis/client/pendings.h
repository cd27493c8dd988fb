/* SPDX-License-Identifier: MIT */
#pragma once

/* The commands of a connection whose replies are awaited. Redis answers in order, so the place of a command among all
 * commands of its connection is its serial number. */

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"
#include "store/redis/client/subscription.h"

struct redis_pending {
    struct list link;
    usec_t deadline; /* boottime */
    redis_reply_fn fn;
    void *userdata;
    bool subscription;
};

struct redis_pendings {
    struct list list;               /* oldest first */
    uint64_t n_commands, n_replies; /* so far */
};

void redis_pendings_init(struct redis_pendings *pendings);
void redis_pendings_done(struct redis_pendings *pendings);
/* Adds a copy. -ENOMEM. */
int redis_pendings_add(struct redis_pendings *pendings, const struct redis_pending *pending);
/* Removes the one that was added last: its command is not sent. */
void redis_pendings_drop_last(struct redis_pendings *pendings);
/* Moves the oldest one to *ret: its reply has come. There must be one. */
void redis_pendings_take(struct redis_pendings *pendings, struct redis_pending *ret);
/* Returns the oldest, or NULL. Lent until it is taken. */
const struct redis_pending *redis_pendings_first(const struct redis_pendings *pendings);
