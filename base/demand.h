/* SPDX-License-Identifier: MIT */
#pragma once

/* The permits that a claim requests of pools. The text form is "db:2,net:1", as in BERTH_POOLS. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/pool-name.h"

#define DEMAND_PERMITS_MAX 1000 /* of a claim in all its pools together (R15) */
#define DEMAND_POOLS_MAX 32     /* pools of one claim */

struct demand {
    char pool[POOL_NAME_SIZE]; /* no pattern */
    uint32_t permits; /* at least 1 */
};

struct demand_ref { /* a demand whose owner has the text of the pool's name: a ninth of the memory */
    const char *pool;
    uint32_t permits;
};

struct demands {
    size_t n;
    struct demand items[DEMAND_POOLS_MAX];
};

enum {
    /* named answers of demands_add() */
    DEMAND_E_SYNTAX = 1, /* not pool[:permits] */
    DEMAND_E_NAME,       /* the pool's name is not valid */
    DEMAND_E_PATTERN,    /* it is a pattern, whose keys can be claimed alone */
    DEMAND_E_PERMITS,    /* not 1 to DEMAND_PERMITS_MAX, or too many in all */
    DEMAND_E_TWICE,      /* the pool occurs twice */
    DEMAND_E_MANY,       /* more than DEMAND_POOLS_MAX pools */
};

/* Adds one "pool" or "pool:permits" of a user, who may not name the pool of a job. 0, or a DEMAND_E_* without any
 * effect. */
int demands_add(struct demands *d, const char *text);
/* Returns an error text for a DEMAND_E_*, e.g. "permits must be 1 to 1000". */
const char *demands_explain(int answer);
/* Returns the permits requested of a pool; 0: none. */
uint32_t demands_get(const struct demands *d, const char *pool);

/* Parses a list "db:2,net:1", as demands_format() writes it; "": no pools. 0 or DEMAND_E_*. */
int demands_parse(const char *text, struct demands *ret);
#define DEMANDS_TEXT_SIZE (DEMAND_POOLS_MAX * (POOL_NAME_MAX_LENGTH + 6) + 1)
const char *demands_format(const struct demands *d, char buffer[static DEMANDS_TEXT_SIZE]);
/* Fills d->n elements, which are valid as long as d. */
void demands_get_refs(const struct demands *d, struct demand_ref ret[static DEMAND_POOLS_MAX]);
const char *demands_format_refs(const struct demand_ref *refs, size_t n, char buffer[static DEMANDS_TEXT_SIZE]);
