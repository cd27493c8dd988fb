/* SPDX-License-Identifier: MIT */
#pragma once

/* Records of claims that snapshots have read. Most claims are in one picture after the other, and reading a
 * record costs Redis more than finding its claim. */

#include "base/clock.h"
#include "base/name.h"

#define KNOWN_CLAIMS_MAX 2000 /* with some 200 bytes each */
/* Short, because a claim that is given back and granted again between two pictures shows its former token. */
#define KNOWN_CLAIMS_AGE (10 * USEC_PER_SEC)

struct known_claim {
    char id[ID_TEXT_SIZE];
    char *record;
};

struct known_claims {        /* all zero: none */
    struct known_claim *all; /* in order of their ids */
    size_t n;
    usec_t since; /* boottime of the oldest record */
};

/* Drops all records if the oldest is older than KNOWN_CLAIMS_AGE, or if n more have no room. */
void known_claims_make_room(struct known_claims *k, size_t n, usec_t now);
/* Returns the record, or NULL. It is borrowed until the next call of another function. */
const char *known_claims_find(const struct known_claims *k, const char *id);
/* Adds or replaces the records of n different claims. Both are borrowed. A record may be NULL: then the
 * claim has none. 0 or -ENOMEM. */
int known_claims_add(struct known_claims *k, const char (*ids)[ID_TEXT_SIZE], const char *const *records,
                     size_t n, usec_t now);
void known_claims_drop(struct known_claims *k);
