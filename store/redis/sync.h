/* SPDX-License-Identifier: MIT */
#pragma once

/* The sync: reports all claims of this session to Redis, in parts (R11). */

#include <stdbool.h>
#include <stddef.h>

struct store_redis;
struct claim_entry;

struct sync {
    struct claim_entry **entries; /* held ones first, then by ticket */
    size_t n, at;
    bool is_begun, is_answered; /* the first part was sent, was answered */
    uint64_t last_number;       /* the last one given to this session, by the first reply */
};

void sync_start(struct store_redis *store);
void sync_reset(struct store_redis *store);
