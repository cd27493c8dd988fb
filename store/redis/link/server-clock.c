/* SPDX-License-Identifier: MIT */
#include "store/redis/link/server-clock.h"

#include <stdlib.h>
#include <string.h>

#define ERROR_MAX 0.001 /* of the time between two looks */
#define PPM 1e6

/* Adds the rate between the last look that was compared and this one. */
static void add_rate(struct server_clock *c, usec_t at, usec_t error, usec_t server) {
    double here = (double) usec_sub(at, c->at), there = (double) server - (double) c->server;

    if ((double) (error + c->at_error) <= ERROR_MAX * here)
        c->rates[c->n_rates++ % SERVER_CLOCK_RATES] = (there - here) / here * PPM;
}

void server_clock_note(struct server_clock *c, const struct server_clock_look *look) {
    usec_t error = usec_sub(look->received, look->sent) / 2, at = look->sent + error;

    if (look->server == 0)
        return;
    c->is_known = true;
    c->offset_usec = (int64_t) look->server - (int64_t) usec_sub(look->realtime, error);
    c->error_usec = error;
    if (c->at > 0 && at < usec_add(c->at, SERVER_CLOCK_PAUSE))
        return;
    if (c->at > 0)
        add_rate(c, at, error, look->server);
    c->at = at;
    c->at_error = error;
    c->server = look->server;
}

static int compare_rates(const void *a, const void *b) {
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

bool server_clock_rate(const struct server_clock *c, double *ret_ppm) {
    double sorted[SERVER_CLOCK_RATES];

    if (c->n_rates < SERVER_CLOCK_RATES)
        return false;
    memcpy(sorted, c->rates, sizeof(sorted));
    qsort(sorted, SERVER_CLOCK_RATES, sizeof(*sorted), compare_rates);
    *ret_ppm = (sorted[SERVER_CLOCK_RATES / 2 - 1] + sorted[SERVER_CLOCK_RATES / 2]) / 2;
    return true;
}
