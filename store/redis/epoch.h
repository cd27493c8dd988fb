/* SPDX-License-Identifier: MIT */
#pragma once

/* The epoch of the namespace and its grace period (R10). */

#include <stdbool.h>

#include "base/clock.h"
#include "store/redis/replies.h"

#define EPOCH_LENGTH 16 /* digits of an epoch's random id */

struct store_redis;

/* Data of the epoch that Redis has lost. */
enum data_loss {
    DATA_LOSS_NONE,
    DATA_LOSS_SEEN, /* Redis lacks something that this host received from it */
    DATA_LOSS_HALF, /* a script failed, possibly halfway */
};

struct epoch {
    char id[REPLY_NUMBER_TEXT_SIZE]; /* "0": none yet */
    usec_t known_since;              /* boottime */
    bool in_grace;
    enum data_loss data_loss; /* reported by the next hello */
};

void epoch_init(struct store_redis *store);
/* Returns whether this is the current epoch. */
bool epoch_is(const struct store_redis *store, const char *id);
/* Takes the epoch of a reply. A new one makes heartbeat counts and numbers of the old one void. */
void epoch_observe(struct store_redis *store, const char *id);
/* Notes whether grace lasts, and logs its begin and end. */
void epoch_set_grace(struct store_redis *store, bool in_grace);
void epoch_note_data_loss(struct store_redis *store, enum data_loss loss);
