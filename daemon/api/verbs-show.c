/* SPDX-License-Identifier: MIT */

/* What is shown from snapshots of the stores: the call is kept until both have told; without Redis what is known is told at once,
 * and marked as stale. */

#include <errno.h>
#include <string.h>

#include "daemon/api/verbs-internal.h"

struct look { /* one such call */
    struct manager *manager;
    struct control_call *call;   /* NULL: the client has gone */
    unsigned n_pending;          /* stores that have not told yet */
    struct snapshot *host, *cluster;
    int (*answer)(struct look *look);
    json_t *wanted;              /* Pools: names, or NULL */
    bool all;                    /* Runs */
};

static struct look *look_free(struct look *look) {
    if (!look)
        return NULL;
    snapshot_free(look->host);
    snapshot_free(look->cluster);
    json_decref(look->wanted);
    free(look);
    return NULL;
}
DEFINE_CLEANUP(struct look, look_free)

static void look_on_gone(_unused_ struct control_call *call, void *userdata) {
    struct look *look = userdata;

    look->call = NULL; /* the stores answer all the same */
}

static void look_finish(struct look *look) {
    struct control_call *call = look->call;
    int k = call ? look->answer(look) : 0;

    if (k < 0 && look->call)
        (void) control_call_error(call, "io.berth.Internal", json_pack("{s:s}", "text", strerror(-k)));
    look_free(look);
}

static void look_told(struct look *look) {
    if (--look->n_pending == 0)
        look_finish(look);
}

static void look_on_host(int r, struct snapshot *snapshot, void *userdata) {
    struct look *look = userdata;

    look->host = r == 0 ? snapshot : snapshot_free(snapshot);
    look_told(look);
}

static void look_on_cluster(int r, struct snapshot *snapshot, void *userdata) {
    struct look *look = userdata;

    look->cluster = r == 0 ? snapshot : snapshot_free(snapshot);
    look_told(look);
}

/* Takes the look over. Stores answer later, never from inside store_inspect(). */
static int look_begin(struct look *look) {
    struct store *host = manager_host_store(look->manager), *cluster = manager_cluster_store(look->manager);
    int k = 0;

    if (store_inspect(host, look_on_host, look) == 0)
        look->n_pending++;
    else
        k = -ENOMEM;
    if (k == 0 && cluster && store_inspect(cluster, look_on_cluster, look) == 0)
        look->n_pending++;
    if (look->n_pending == 0) {
        look_free(look);
        return k;
    }
    control_call_keep(look->call, look_on_gone, look);
    return 0;
}

static int look_new(struct look **ret, struct control_call *call, struct manager *m, int (*answer)(struct look *look)) {
    struct look *look = calloc(1, sizeof(*look));

    if (!look)
        return -ENOMEM;
    look->manager = m;
    look->call = call;
    look->answer = answer;
    *ret = look;
    return 0;
}

static bool look_is_stale(const struct look *look) {
    return manager_cluster_store(look->manager) && !look->cluster;
}

/* Ends the look's call. what: stolen. */
static int look_reply(struct look *look, const char *name, json_t *what) {
    struct control_call *call = steal_pointer(&look->call);

    return control_call_answer(call, json_pack("{s:i, s:s, s:o, s:b, s:b, s:o, s:o}", "schema", 1, "host",
                                              manager_settings(look->manager)->host, "redis",
                                              json_redis(look->manager, look->cluster), "stale", look_is_stale(look), "recovering",
                                              manager_is_recovering(look->manager), name, what, "malformed",
                                              json_malformed(look->cluster)));
}

/* --- pools and hosts --- */

static int pools_answer(struct look *look) {
    const char *unknown = NULL;
    json_t *pools = json_pools(look->manager, look->host, look->cluster, look->wanted, &unknown);

    if (!pools)
        return -ENOMEM;
    if (unknown) {
        json_decref(pools);
        return verbs_no_such_pool(steal_pointer(&look->call), look->manager, unknown);
    }
    return look_reply(look, "pools", pools);
}

int verbs_pools(struct control_call *call, json_t *params, void *userdata) {
    struct look *look = NULL;
    json_t *wanted = NULL;
    const struct param table[] = {{"pools", PARAM_STRINGS, false, &wanted, 0, 0}};
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k < 0 ? k : 0;
    k = look_new(&look, call, userdata, pools_answer);
    if (k < 0)
        return k;
    look->wanted = json_incref(wanted);
    return look_begin(look);
}

static int hosts_answer(struct look *look) {
    return look_reply(look, "hosts", json_hosts(look->manager, look->cluster));
}

int verbs_hosts(struct control_call *call, json_t *params, void *userdata) {
    struct look *look = NULL;
    int k = params_read(call, params, NULL, 0);

    if (k != 0)
        return k < 0 ? k : 0;
    k = look_new(&look, call, userdata, hosts_answer);
    return k < 0 ? k : look_begin(look);
}

/* --- runs --- */

static int compare_positions(const void *a, const void *b) {
    const struct snapshot_position *x = a, *y = b;
    int r = strcmp(x->claim, y->claim);

    return r != 0 ? r : strcmp(x->pool, y->pool);
}

static void sort_positions(struct snapshot *s) {
    if (s && s->n_mine > 1)
        qsort(s->mine, s->n_mine, sizeof(*s->mine), compare_positions);
}

/* A view of the snapshot with the positions of one claim alone: thousands may wait, and each is looked up. s is sorted. */
static const struct snapshot *narrow(const struct snapshot *s, const struct claim *c, struct snapshot *view) {
    size_t low = 0, high;

    if (!s)
        return NULL;
    for (high = s->n_mine; low < high;) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(s->mine[middle].claim, c->id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (high = low; high < s->n_mine && strcmp(s->mine[high].claim, c->id) == 0;)
        high++;
    *view = *s;
    view->mine = s->mine ? s->mine + low : NULL;
    view->n_mine = high - low;
    return view;
}

static int put_positions(json_t *position, const struct snapshot *view) {
    int k = 0;

    for (size_t i = 0; view && i < view->n_mine; i++)
        k |= json_object_set_new(position, view->mine[i].pool, json_integer(view->mine[i].position));
    return k;
}

static json_t *json_run_looked_up(struct look *look, const struct run *r) {
    struct snapshot host_view, cluster_view;
    const struct snapshot *host = narrow(look->host, &r->host_claim, &host_view);
    const struct snapshot *cluster = narrow(look->cluster, &r->cluster_claim, &cluster_view);
    json_t *position;
    char why[MANAGER_WHY_SIZE];

    if (r->state != RUN_STATE_WAITING)
        return json_run(r, NULL, manager_blocked_by(look->manager, r, NULL, NULL, why, sizeof(why)));
    position = json_object();
    if (put_positions(position, r->host_claim.state == CLAIM_STATE_WAITING ? host : NULL) < 0 ||
        put_positions(position, r->cluster_claim.state == CLAIM_STATE_WAITING ? cluster : NULL) < 0) {
        json_decref(position);
        return NULL;
    }
    return json_run(r, position, manager_blocked_by(look->manager, r, host, cluster, why, sizeof(why)));
}

/* Roughly in the order of time: what is over, what runs, what waits. */
static int runs_answer(struct look *look) {
    static const enum run_state order[] = {RUN_STATE_DONE,     RUN_STATE_STOPPING, RUN_STATE_RUNNING,
                                           RUN_STATE_STARTING, RUN_STATE_WAITING,  RUN_STATE_PENDING};
    struct control_call *call;
    json_t *runs = json_array();
    int k = 0;

    sort_positions(look->host);
    sort_positions(look->cluster);
    for (size_t i = look->all ? 0 : 1; i < ELEMENTSOF(order); i++)
        list_foreach(r, manager_runs(look->manager, order[i]), struct run, link)
            k |= json_array_append_new(runs, json_run_looked_up(look, r));
    if (k < 0) {
        json_decref(runs);
        return -ENOMEM;
    }
    call = steal_pointer(&look->call);
    return control_call_answer(call, json_pack("{s:i, s:b, s:o}", "schema", 1, "recovering", manager_is_recovering(look->manager),
                                              "runs", runs));
}

int verbs_runs(struct control_call *call, json_t *params, void *userdata) {
    struct manager *m = userdata;
    _cleanup_(look_freep) struct look *look = NULL;
    bool all = false;
    const struct param table[] = {{"all", PARAM_BOOL, false, &all, 0, 0}};
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k < 0 ? k : 0;
    k = look_new(&look, call, m, runs_answer);
    if (k < 0)
        return k;
    look->all = all;
    if (!list_is_empty(manager_runs(m, RUN_STATE_WAITING)))
        return look_begin(steal_pointer(&look));
    return runs_answer(look); /* nobody waits: the stores need not be asked */
}
