/* SPDX-License-Identifier: MIT */

/* Methods that show snapshots of the stores. The call is kept until both stores have answered. Without Redis
 * the answer comes at once, from what this host knows, and is marked as stale. */

#include <errno.h>
#include <string.h>

#include "daemon/api/verbs-internal.h"

struct show { /* one such call */
    struct manager *manager;
    struct control_call *call;   /* NULL: the client has gone */
    unsigned n_pending;          /* stores that have not answered yet */
    struct snapshot *host, *cluster;
    int (*answer)(struct show *show);
    json_t *wanted;              /* Pools: names, or NULL */
    bool has_times;              /* Pools: with the usual run times of claims in the wanted pools */
    bool has_keys;               /* with the keys of patterns; without them the counts of a pattern are 0 */
    bool all;                    /* Runs: also those that are over */
    bool is_of_host;             /* without the store of the cluster */
    verbs_answer_fn look;        /* of verbs_look() */
    verbs_seen_fn seen;          /* of verbs_ask(); NULL: not asked, or forgotten */
    void *userdata;
};

static struct show *show_free(struct show *show) {
    if (!show)
        return NULL;
    snapshot_free(show->host);
    snapshot_free(show->cluster);
    json_decref(show->wanted);
    free(show);
    return NULL;
}
DEFINE_CLEANUP(struct show, show_free)

static void show_on_gone(_unused_ struct control_call *call, void *userdata) {
    struct show *show = userdata;

    show->call = NULL; /* the stores still answer */
}

static void show_finish(struct show *show) {
    struct control_call *call = show->call;
    int k = call ? show->answer(show) : 0;

    if (show->seen)
        show->seen(show->host, show->cluster, show->userdata);
    if (k < 0 && show->call)
        (void) verbs_error(call, "io.berth.Internal", "%s", strerror(-k));
    show_free(show);
}

static void show_on_snapshot(struct show *show) {
    if (--show->n_pending == 0)
        show_finish(show);
}

static void show_on_host(int r, struct snapshot *snapshot, void *userdata) {
    struct show *show = userdata;

    show->host = r == 0 ? snapshot : snapshot_free(snapshot);
    show_on_snapshot(show);
}

static void show_on_cluster(int r, struct snapshot *snapshot, void *userdata) {
    struct show *show = userdata;

    show->cluster = r == 0 ? snapshot : snapshot_free(snapshot);
    show_on_snapshot(show);
}

/* Asks the stores, which answer later, never from inside store_inspect(). Returns 0, or -ENOMEM: `show` is
 * freed. */
static int show_ask(struct show *show) {
    struct store *host = manager_host_store(show->manager), *cluster = manager_cluster_store(show->manager);
    size_t n_wanted = json_array_size(show->wanted);
    _cleanup_free_ const char **names = calloc(n_wanted + 1, sizeof(*names));
    const struct store_question question = {
        .pools = names, .n_pools = names ? n_wanted : 0, .keys = show->has_keys, .times = show->has_times};
    int k = 0;

    for (size_t i = 0; i < question.n_pools; i++)
        names[i] = json_string_value(json_array_get(show->wanted, i));
    if (store_inspect(host, NULL, show_on_host, show) == 0)
        show->n_pending++;
    else
        k = -ENOMEM;
    if (k == 0 && cluster && !show->is_of_host && store_inspect(cluster, &question, show_on_cluster, show) == 0)
        show->n_pending++;
    if (show->n_pending > 0)
        return 0;
    show_free(show);
    return k;
}

/* Steals `show`. */
static int show_begin(struct show *show) {
    struct control_call *call = show->call;
    int k = show_ask(show);

    if (k == 0)
        control_call_keep(call, show_on_gone, show);
    return k;
}

static int show_new(struct show **ret, struct control_call *call, struct manager *m,
                    int (*answer)(struct show *show)) {
    struct show *show = calloc(1, sizeof(*show));

    if (!show)
        return -ENOMEM;
    show->manager = m;
    show->call = call;
    show->answer = answer;
    *ret = show;
    return 0;
}

/* --- for other methods --- */

static int look_answer(struct show *show) {
    return show->look(steal_pointer(&show->call), show->manager, show->host, show->cluster);
}

int verbs_look(struct control_call *call, struct manager *m, bool with_cluster, verbs_answer_fn answer) {
    struct show *show = NULL;
    int k = show_new(&show, call, m, look_answer);

    if (k < 0)
        return k;
    show->is_of_host = !with_cluster;
    show->has_keys = true;
    show->look = answer;
    return show_begin(show);
}

struct show *verbs_ask(struct manager *m, json_t *pools, verbs_seen_fn seen, void *userdata) {
    struct show *show = NULL;

    if (show_new(&show, NULL, m, NULL) < 0)
        return NULL;
    show->wanted = json_incref(pools);
    show->has_keys = true;
    show->seen = seen;
    show->userdata = userdata;
    return show_ask(show) < 0 ? NULL : show;
}

void verbs_forget(struct show *show) {
    show->seen = NULL;
}

/* --- pools and hosts --- */

static int pools_answer(struct show *show) {
    const struct picture p = {.manager = show->manager, .wanted = show->wanted, .has_times = show->has_times};
    const char *unknown = NULL;
    _cleanup_(control_text_freep) struct control_text *text = picture_make(&p, show->host, show->cluster, &unknown);

    if (unknown)
        return verbs_no_such_pool(steal_pointer(&show->call), show->manager, unknown);
    return text ? control_call_answer_text(steal_pointer(&show->call), text) : -ENOMEM;
}

int verbs_pools(struct control_call *call, json_t *params, void *userdata) {
    struct show *show = NULL;
    json_t *wanted = NULL;
    bool usual = false;
    const struct param table[] = {{"pools", PARAM_STRINGS, false, &wanted, 0, 0}, {"usual", PARAM_BOOL, false, &usual, 0, 0}};
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k;
    k = show_new(&show, call, userdata, pools_answer);
    if (k < 0)
        return k;
    show->wanted = json_incref(wanted);
    show->has_keys = true;
    show->has_times = usual;
    return show_begin(show);
}

static int hosts_answer(struct show *show) {
    json_t *hosts = json_hosts(show->manager, show->cluster);

    return hosts ? control_call_answer(steal_pointer(&show->call), json_picture(show->manager, show->cluster, hosts)) : -ENOMEM;
}

int verbs_hosts(struct control_call *call, json_t *params, void *userdata) {
    struct show *show = NULL;
    int k = params_read(call, params, NULL, 0);

    if (k != 0)
        return k;
    k = show_new(&show, call, userdata, hosts_answer);
    return k < 0 ? k : show_begin(show);
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

/* Returns a view of the sorted snapshot with the positions of one claim. Thousands of claims may wait, and
 * each is looked up. */
static const struct snapshot *narrow(const struct snapshot *s, const char *claim, struct snapshot *view) {
    size_t low = 0, high;

    if (!s)
        return NULL;
    for (high = s->n_mine; low < high;) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(s->mine[middle].claim, claim) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (high = low; high < s->n_mine && strcmp(s->mine[high].claim, claim) == 0;)
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

static json_t *json_run_shown(struct show *show, const struct run *r) {
    struct snapshot host_view, cluster_view;
    const struct snapshot *host = narrow(show->host, r->id, &host_view);
    const struct snapshot *cluster = narrow(show->cluster, r->id, &cluster_view);
    json_t *position;
    char why[MANAGER_WHY_SIZE];

    if (r->state != RUN_STATE_WAITING)
        return json_run(manager_settings(show->manager), r, NULL,
                        manager_blocked_by(show->manager, r, NULL, NULL, why, sizeof(why)));
    position = json_object();
    if (put_positions(position, r->host_claim->state == CLAIM_STATE_WAITING ? host : NULL) < 0 ||
        put_positions(position, r->cluster_claim->state == CLAIM_STATE_WAITING ? cluster : NULL) < 0) {
        json_decref(position);
        return NULL;
    }
    return json_run(manager_settings(show->manager), r, position,
                    manager_blocked_by(show->manager, r, host, cluster, why, sizeof(why)));
}

/* Lists runs in rough order of time: done, running, waiting. */
static int runs_answer(struct show *show) {
    static const enum run_state order[] = {RUN_STATE_DONE,     RUN_STATE_STOPPING, RUN_STATE_RUNNING,
                                           RUN_STATE_STARTING, RUN_STATE_WAITING,  RUN_STATE_PENDING,
                                           RUN_STATE_RETRYING};
    json_t *runs = json_array();
    int k = 0;

    sort_positions(show->host);
    sort_positions(show->cluster);
    for (size_t i = show->all ? 0 : 1; i < ELEMENTSOF(order); i++)
        list_foreach(r, manager_runs(show->manager, order[i]), struct run, link)
            k |= json_array_append_new(runs, json_run_shown(show, r));
    if (k < 0) {
        json_decref(runs);
        return -ENOMEM;
    }
    return control_call_answer(steal_pointer(&show->call),
                               json_pack("{s:i, s:b, s:o}", "schema", 1, "recovering", manager_is_recovering(show->manager), "runs", runs));
}

int verbs_runs(struct control_call *call, json_t *params, void *userdata) {
    struct manager *m = userdata;
    _cleanup_(show_freep) struct show *show = NULL;
    bool all = false;
    const struct param table[] = {{"all", PARAM_BOOL, false, &all, 0, 0}};
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k;
    k = show_new(&show, call, m, runs_answer);
    if (k < 0)
        return k;
    show->all = all;
    manager_ask_guards(m);
    if (!list_is_empty(manager_runs(m, RUN_STATE_WAITING)))
        return show_begin(steal_pointer(&show));
    return runs_answer(show); /* no run waits, so the stores are not needed */
}
