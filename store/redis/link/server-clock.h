/* SPDX-License-Identifier: MIT */
#pragma once

/* How the clock of Redis differs from the clocks of this host. For people alone: no rule reads it (R9). Pure: each look at the
 * two clocks is passed in. */

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define SERVER_CLOCK_RATES 20
#define SERVER_CLOCK_PAUSE (30 * USEC_PER_SEC) /* between two looks that are compared: all rates span 10 min */

struct server_clock_look {
    usec_t sent, received; /* boottime of the call and of its reply */
    usec_t realtime;       /* of this host, when the reply was received */
    usec_t server;         /* the clock of Redis in between, in µs since 1970; 0: not known */
};

struct server_clock { /* all zero: nothing is known */
    bool is_known;
    int64_t offset_usec; /* Redis's clock minus the wall clock of this host */
    usec_t error_usec;   /* by which the offset may be wrong: half of the round trip */
    usec_t at, server;   /* boottime and Redis's clock at the last look that was compared */
    usec_t at_error;
    double rates[SERVER_CLOCK_RATES]; /* between two such looks, in any order */
    unsigned n_rates;                 /* ever */
};

void server_clock_note(struct server_clock *c, const struct server_clock_look *look);
/* Stores by how much Redis's clock is faster than CLOCK_BOOTTIME of this host, in millionths: the median of the last rates, so that a
 * clock which was set does not count. Returns false while there are too few. */
bool server_clock_rate(const struct server_clock *c, double *ret_ppm);
