/* SPDX-License-Identifier: MIT */
#pragma once

/* When a waiting claim probably starts: the queues are played 200 times, with times drawn from the last runs
 * of each name. The same queues give the same estimate. */

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/explain/queue.h"
#include "base/explain/usual.h"

#define ESTIMATE_SAMPLES 200
#define ESTIMATE_CHANCE 0.8
#define ESTIMATE_WHY_SIZE 200

struct estimate_view { /* what is known of the queues now; borrowed */
    struct queue *q;
    const json_t *pools; /* of io.berth.Pool */
    const struct usuals *usuals;
    usec_t now; /* realtime */
};

struct estimate {
    bool is_known;
    char why[ESTIMATE_WHY_SIZE];        /* why it is not known */
    json_int_t low_ms, mid_ms, high_ms; /* from low to high in 8 of 10 cases */
    bool is_open;                       /* a holder has held for longer than ever, so the start may be later */
    json_t *basis;                      /* owned: a list of {"host", "name", "runs", "basis"} */
};

/* Of all estimates of one view: what is known of each claim is looked up once. */
struct estimator;
struct estimator *estimator_new(const struct estimate_view *view); /* NULL: no memory */
struct estimator *estimator_free(struct estimator *s);
DEFINE_CLEANUP(struct estimator, estimator_free)

/* change: NULL: none. -ENOMEM. */
int estimate_make(struct estimate *ret, struct estimator *s, const struct queue_change *change, const char *claim);
void estimate_done(struct estimate *e);
/* Returns for how many ms a holder has held. */
double estimate_age(const json_t *holder, usec_t now);
