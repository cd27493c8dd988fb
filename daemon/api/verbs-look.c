/* SPDX-License-Identifier: MIT */

/* Look: pools and hosts, once or as a stream of pictures. All clients ask at the same moments and share one
 * snapshot, so a hundred cost Redis as much as one. A client that has not read a picture yet gets no other
 * one; when it has, it gets the newest. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/timer.h"
#include "daemon/api/verbs-internal.h"

#define INTERVAL_MIN_MSEC 1000
#define INTERVAL_MAX_MSEC (3600 * 1000)

struct looker { /* one call */
    struct place place; /* of a stream */
    struct manager *manager;
    struct control_call *call;
    struct show *show;  /* the question under way, or NULL */
    struct timer timer; /* for the next one */
    usec_t interval;
    json_t *pools;      /* names, or NULL */
    bool hosts;
    bool is_due;        /* a picture is due when the client has taken the one before */
};

static struct list places = {&places, &places};

static struct looker *looker_free(struct looker *l) {
    if (!l)
        return NULL;
    list_unlink(&l->place.link);
    if (l->show)
        verbs_forget(l->show);
    timer_done(&l->timer);
    json_decref(l->pools);
    free(l);
    return NULL;
}
DEFINE_CLEANUP(struct looker, looker_free)

static void looker_on_gone(_unused_ struct control_call *call, void *userdata) {
    looker_free(userdata);
}

/* Sets the timer to the next moment at which all clients with this interval ask. */
static void wait_for_next(struct looker *l) {
    usec_t now = clock_boottime();

    timer_set(&l->timer, usec_add(now - now % l->interval, l->interval));
}

static void looker_on_seen(const struct snapshot *host, const struct snapshot *cluster, void *userdata) {
    struct looker *l = userdata;
    _cleanup_(pools_text_done) struct pools_text pools = {};
    bool is_made = pools_text_make(&pools, l->manager, host, cluster, l->pools) == 0;
    json_t *hosts = is_made && l->hosts ? json_hosts(l->manager, cluster) : NULL, *picture = NULL;
    const struct control_member member = {"pools", pools.text};

    l->show = NULL;
    if (pools.unknown) {
        json_decref(hosts);
        (void) verbs_no_such_pool(l->call, l->manager, pools.unknown);
        looker_free(l);
        return;
    }
    if (is_made && (hosts || !l->hosts))
        picture = json_picture(l->manager, cluster, &pools, hosts);
    if (l->interval > 0) {
        (void) control_call_notify_with(l->call, picture, &member);
        wait_for_next(l);
        return;
    }
    (void) control_call_answer_with(l->call, picture, &member);
    looker_free(l);
}

/* Without memory this picture is skipped. */
static void ask(struct looker *l) {
    l->is_due = false;
    l->show = verbs_ask(l->manager, l->pools, looker_on_seen, l);
    if (!l->show)
        wait_for_next(l);
}

static void looker_on_time(void *userdata) {
    struct looker *l = userdata;

    l->is_due = control_call_count_waiting(l->call) > 0;
    if (!l->is_due)
        ask(l);
}

static void looker_on_room(void *userdata) {
    struct looker *l = userdata;

    if (l->is_due)
        ask(l);
}

int verbs_look_on(struct control_call *call, json_t *params, void *userdata) {
    struct manager *m = userdata;
    _cleanup_(looker_freep) struct looker *l = NULL;
    json_int_t interval = INTERVAL_MIN_MSEC;
    json_t *pools = NULL;
    bool hosts = false;
    const struct param table[] = {{"pools", PARAM_STRINGS, false, &pools, 0, 0},
                                  {"hosts", PARAM_BOOL, false, &hosts, 0, 0},
                                  {"interval_ms", PARAM_INT, false, &interval, INTERVAL_MIN_MSEC,
                                   INTERVAL_MAX_MSEC}};
    int r = params_read(call, params, table, ELEMENTSOF(table));

    if (r != 0)
        return r;
    l = calloc(1, sizeof(*l));
    if (!l)
        return -ENOMEM;
    list_init(&l->place.link);
    l->manager = m;
    l->call = call;
    l->pools = json_incref(pools);
    l->hosts = hosts;
    r = timer_init(&l->timer, manager_event(m), SD_EVENT_PRIORITY_NORMAL, looker_on_time, l);
    if (r < 0)
        return r;
    r = control_call_wants_more(call) ? places_take(&places, &l->place, call, "look") : 0;
    if (r != 0)
        return r < 0 ? r : 0;
    l->show = verbs_ask(m, l->pools, looker_on_seen, l);
    if (!l->show)
        return -ENOMEM;
    if (control_call_wants_more(call)) {
        l->interval = (usec_t) interval * USEC_PER_MSEC;
        control_call_await_room(call, looker_on_room);
    }
    control_call_keep(call, looker_on_gone, steal_pointer(&l));
    return 0;
}
