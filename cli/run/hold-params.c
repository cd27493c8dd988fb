/* SPDX-License-Identifier: MIT */
/* The parameters of io.berth.Hold, from the options of `berth run`. */
#include <errno.h>
#include <stdlib.h>

#include "cli/run/run-adhoc.h"

static int put_msec(json_t *params, const char *key, usec_t usec) {
    return json_object_set_new(params, key,
                               json_integer((json_int_t) ((usec + USEC_PER_MSEC - 1) / USEC_PER_MSEC)));
}

static int put_pools(const struct adhoc *a, json_t *pools) {
    for (size_t i = 0; i < a->options.pools.n; i++) {
        const struct demand *d = &a->options.pools.items[i];

        if (json_array_append_new(pools, json_sprintf("%s:%" PRIu32, d->pool, d->permits)) < 0)
            return -ENOMEM;
    }
    return 0;
}

json_t *run_hold_params(const struct adhoc *a) {
    const struct run_options *o = &a->options;
    const char *around = getenv("BERTH_RUN");
    char time_namespace[CLOCK_NAMESPACE_SIZE];
    json_t *pools = json_array(), *params = json_pack("{s:o, s:s}", "pools", pools, "name", o->name);
    int r = params ? put_pools(a, pools) : -ENOMEM;

    if (o->nowait)
        r |= json_object_set_new(params, "nowait", json_true());
    if (a->connection.wait_deadline != USEC_INFINITY && !o->nowait)
        r |= put_msec(params, "wait_ms", usec_sub(a->connection.wait_deadline, clock_boottime()));
    if (o->head_start_usec > 0)
        r |= put_msec(params, "head_start_ms", o->head_start_usec);
    if (o->on_lease_lost == ON_LEASE_LOST_CONTINUE)
        r |= json_object_set_new(params, "on_lease_lost", json_string("continue"));
    if (o->stop_timeout_usec != USEC_INFINITY)
        r |= put_msec(params, "stop_timeout_ms", o->stop_timeout_usec);
    if (around && id_is_valid(around) && a->phase == ADHOC_PHASE_CLAIMING)
        r |= json_object_set_new(params, "nested", json_string(around));
    clock_namespace(time_namespace);
    if (*time_namespace)
        r |= json_object_set_new(params, "time_namespace", json_string(time_namespace));
    if (a->run[0])
        r |= json_object_set_new(params, "run", json_string(a->run));
    if (r == 0)
        return params;
    json_decref(params);
    return NULL;
}
