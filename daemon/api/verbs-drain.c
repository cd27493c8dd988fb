/* SPDX-License-Identifier: MIT */

/* Drain and Undrain: a drained host begins no runs. With `wait` the call is kept until the last run is
 * over. */

#include <errno.h>

#include "daemon/api/verbs-internal.h"

struct drainer { /* a waiting client */
    struct manager_idle_watch watch;
    struct control_call *call;
};

static void drainer_on_idle(struct manager_idle_watch *watch) {
    struct drainer *d = list_entry(watch, struct drainer, watch);

    (void) control_call_done(d->call);
    free(d);
}

static void drainer_on_gone(_unused_ struct control_call *call, void *userdata) {
    struct drainer *d = userdata;

    list_unlink(&d->watch.link);
    free(d);
}

int verbs_drain(struct control_call *call, json_t *params, void *userdata) {
    struct manager *m = userdata;
    bool wait = false;
    struct drainer *d;
    const struct param table[] = {{"wait", PARAM_BOOL, false, &wait, 0, 0}};
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k;
    k = manager_drain(m, control_call_peer(call)->uid, verbs_on_behalf(params));
    if (k < 0)
        return k;
    if (!wait || manager_is_idle(m))
        return control_call_done(call);
    d = calloc(1, sizeof(*d));
    if (!d)
        return -ENOMEM;
    d->call = call;
    d->watch.on_idle = drainer_on_idle;
    manager_watch_idle(m, &d->watch);
    control_call_keep(call, drainer_on_gone, d);
    return 0;
}

int verbs_undrain(struct control_call *call, json_t *params, void *userdata) {
    int k = params_read(call, params, NULL, 0);

    if (k != 0)
        return k;
    k = manager_undrain(userdata, control_call_peer(call)->uid, verbs_on_behalf(params));
    return k < 0 ? k : control_call_done(call);
}
