/* SPDX-License-Identifier: MIT */
#pragma once

/* How long runs usually hold their permits, from the Usuals of io.berth; draws times from them. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/run-times.h"

#define USUAL_POOL_ENOUGH 20 /* runs of all names of a pool, for a name with too few */

struct usual { /* of one name on one host */
    const char *host, *name;
    json_int_t runs;
    double q_msec[RUN_TIMES_QUANTILES]; /* of RUN_TIMES_PERCENTS */
    double cap_msec;                /* its time limit; INFINITY: none */
};

struct usuals {
    struct usual *items;
    size_t n;
};

/* list: of Usual; must outlive the result; NULL: nothing is known. Malformed items are left out. -ENOMEM. */
int usuals_make(struct usuals *ret, const json_t *list);
void usuals_done(struct usuals *u);
/* Returns NULL if nothing is known about the name on the host. */
const struct usual *usuals_find(const struct usuals *u, const char *host, const char *name);

struct basis {               /* from which the time of a claim is drawn */
    const struct usual **of; /* owned array; n 0: too little is known */
    double *within;          /* owned array: the share of its runs that were shorter than the age */
    size_t n;
    double age_msec;         /* for how long the claim has held; 0: it starts */
    json_int_t runs; /* of all of them */
    bool is_pool;    /* they are those of all names in its pool */
};

/* Makes the basis of names with too few runs: the runs of all names in a pool (io.berth.Pool). -ENOMEM. */
int basis_make_of_pool(struct basis *ret, const struct usuals *u, const json_t *pool);
/* of_pool: of the claim's pool. -ENOMEM. */
int basis_make(struct basis *ret, const struct usuals *u, const json_t *claim, const struct basis *of_pool,
               double age_msec);
void basis_done(struct basis *b);

/* State of a random number generator; any seed is good. */
struct chance {
    uint64_t state;
};
double chance_draw(struct chance *c); /* in [0, 1) */

/* Returns whether the claim has held for longer than any run of its basis. */
bool basis_is_overdue(const struct basis *b);
/* Draws how long the claim still holds. For an overdue claim that is a share of its age. */
double basis_draw(const struct basis *b, struct chance *c);
