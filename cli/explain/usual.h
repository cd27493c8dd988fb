/* SPDX-License-Identifier: MIT */
#pragma once

/* How long runs usually hold their permits: from the Usuals of io.berth, and what is drawn from them. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

#define USUAL_QUANTILES 8
#define USUAL_ENOUGH 10      /* runs of a name, with which it counts by itself */
#define USUAL_POOL_ENOUGH 20 /* of all names of a pool, for one that has too few */
#define USUAL_ALL 64         /* as many as are remembered */

struct usual { /* of one name on one host */
    const char *host, *name;
    json_int_t runs;
    double q_msec[USUAL_QUANTILES]; /* 0, 5, 25, 50, 75, 90, 95, 100 % */
    double cap_msec;                /* none takes longer; INFINITY: no such bound */
};

struct usuals {
    struct usual *items;
    size_t n;
};

/* list: of Usual, which must outlive it; NULL: nothing is known. What is malformed is left out. -ENOMEM. */
int usuals_make(struct usuals *ret, const json_t *list);
void usuals_done(struct usuals *u);
/* Returns NULL if nothing is known of the name on the host. */
const struct usual *usuals_find(const struct usuals *u, const char *host, const char *name);

struct basis {               /* what the time of a claim is drawn from */
    const struct usual **of; /* owned; n 0: too little is known */
    size_t n;
    json_int_t runs; /* of all of these */
    bool is_pool;    /* of the names of its pool */
};

/* pool: of io.berth.Pool, the claim's. -ENOMEM. */
int basis_make(struct basis *ret, const struct usuals *u, const json_t *claim, const json_t *pool);
void basis_done(struct basis *b);

/* The state of random numbers: any number to begin with. */
struct chance {
    uint64_t state;
};
double chance_draw(struct chance *c); /* in [0, 1) */

/* Whether the claim has held for longer than any run of its basis. */
bool basis_is_overdue(const struct basis *b, double age_msec);
/* Draws how long a claim that has held for so long (0: it starts then) still holds. Of one that is overdue:
 * a share of its age. */
double basis_draw(const struct basis *b, double age_msec, struct chance *c);
