/* SPDX-License-Identifier: MIT */

/* Methods that change a store. The call is kept until the store has answered. */

#include <errno.h>
#include <string.h>

#include "daemon/api/verbs-internal.h"

struct act { /* one such call */
    struct manager *manager;
    struct control_call *call; /* NULL: the client has gone; the change goes on */
    bool is_claim;             /* the name is a claim's, else a pool's */
    char name[POOL_NAME_SIZE]; /* also long enough for a claim's id */
};

static void act_on_gone(_unused_ struct control_call *call, void *userdata) {
    struct act *act = userdata;

    act->call = NULL;
}

static int answer_unknown(const struct act *act) {
    if (!act->is_claim)
        return verbs_no_such_pool(act->call, act->manager, act->name);
    return verbs_no_such_claim(act->call, act->name);
}

static void act_on_reply(int r, void *userdata) {
    struct act *act = userdata;
    char why[VERBS_AWAY_SIZE];

    if (!act->call)
        ;
    else if (r == 0)
        (void) control_call_done(act->call);
    else if (r == STORE_E_UNKNOWN)
        (void) answer_unknown(act);
    else if (r == STORE_E_CONFLICT)
        (void) verbs_error(act->call, "io.berth.Conflict",
                           "changed by another client at the same time; check, then try again");
    else if (r == STORE_E_NOT_KEPT)
        (void) verbs_error(act->call, "io.berth.Internal",
                           "%s: changed, but not for the next berthd, because the runtime directory cannot be "
                           "written",
                           act->name);
    else if (r == -ENOTCONN || r == -ETIMEDOUT)
        (void) verbs_error(act->call, "io.berth.Away", "%s: nothing was changed",
                           verbs_explain_away(act->manager, why));
    else
        (void) verbs_error(act->call, "io.berth.Internal", "%s", strerror(r < 0 ? -r : EPROTO));
    free(act);
}

static int act_new(struct act **ret, struct control_call *call, struct manager *m, bool is_claim, const char *name) {
    struct act *act = calloc(1, sizeof(*act));

    if (!act)
        return -ENOMEM;
    act->manager = m;
    act->call = call;
    act->is_claim = is_claim;
    snprintf(act->name, sizeof(act->name), "%s", name);
    *ret = act;
    return 0;
}

/* k: what the store returned for the request. Steals the act. */
static int act_begin(struct act *act, int k) {
    if (k < 0) {
        free(act);
        return k;
    }
    control_call_keep(act->call, act_on_gone, act);
    return 0;
}

/* --- overrides --- */

/* Returns the store that grants permits of a pool; NULL: no such pool. The config of another host may have a
 * pool that this one lacks. */
static struct store *store_of_pool(struct manager *m, const char *pool) {
    const struct pool_settings *p = settings_find_pool(manager_settings(m), pool);

    return p && p->scope == POOL_SCOPE_HOST ? manager_host_store(m) : manager_cluster_store(m);
}

static int override(struct control_call *call, struct manager *m, const json_t *params, const struct store_override *o) {
    struct store *s = store_of_pool(m, o->pool);
    struct act *act = NULL;
    int k;

    if (params_check_pool(call, o->pool) != 0 || params_check_reason(call, o->reason) != 0)
        return 0;
    if (manager_is_recovering(m)) /* the declared limits must be logged before an override */
        return verbs_refused(call, MANAGER_E_RECOVERING);
    if (!s)
        return verbs_no_such_pool(call, m, o->pool);
    verbs_record(call, m, params, &(struct change){.pool = o->pool, .reason = o->reason});
    k = act_new(&act, call, m, false, o->pool);
    return k < 0 ? k : act_begin(act, store_override(s, o, act_on_reply, act));
}

/* 0: until cleared. */
static usec_t duration_of(json_int_t for_ms) {
    return for_ms > 0 ? (usec_t) for_ms * USEC_PER_MSEC : USEC_INFINITY;
}

int verbs_set_limit(struct control_call *call, json_t *params, void *userdata) {
    struct store_override o = {};
    json_int_t limit = 0, for_ms = 0;
    const struct param table[] = {
        {"pool", PARAM_STRING, true, &o.pool, 0, 0},
        {"limit", PARAM_INT, true, &limit, 0, POOL_LIMIT_MAX},
        {"for_ms", PARAM_INT, false, &for_ms, 1, VERBS_MSEC_MAX},
        {"reason", PARAM_STRING, false, &o.reason, 0, 0},
    };
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k;
    o.limit = (uint32_t) limit;
    o.for_usec = duration_of(for_ms);
    return override(call, userdata, params, &o);
}

static int end_override(struct control_call *call, json_t *params, struct manager *m, struct store_override o) {
    const struct param table[] = {{"pool", PARAM_STRING, true, &o.pool, 0, 0}};
    int k = params_read(call, params, table, ELEMENTSOF(table));

    o.for_usec = USEC_INFINITY;
    return k != 0 ? k : override(call, m, params, &o);
}

int verbs_clear_limit(struct control_call *call, json_t *params, void *userdata) {
    return end_override(call, params, userdata, (struct store_override) {.clear = true});
}

int verbs_pause(struct control_call *call, json_t *params, void *userdata) {
    struct store_override o = {.pause = true};
    json_int_t for_ms = 0;
    const struct param table[] = {
        {"pool", PARAM_STRING, true, &o.pool, 0, 0},
        {"for_ms", PARAM_INT, false, &for_ms, 1, VERBS_MSEC_MAX},
        {"reason", PARAM_STRING, false, &o.reason, 0, 0},
    };
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k;
    o.for_usec = duration_of(for_ms);
    return override(call, userdata, params, &o);
}

int verbs_resume(struct control_call *call, json_t *params, void *userdata) {
    return end_override(call, params, userdata, (struct store_override) {.resume = true});
}

/* --- claims and grace --- */

/* Returns whether only this host's own store has the claim. Other claims may be of any host. */
static bool is_host_claim(struct manager *m, const char *claim) {
    const struct run *r = manager_find_run(m, claim);

    return r && r->host_claim->state != CLAIM_STATE_NONE && r->cluster_claim->state == CLAIM_STATE_NONE;
}

int verbs_revoke(struct control_call *call, json_t *params, void *userdata) {
    struct manager *m = userdata;
    struct store *s = manager_cluster_store(m);
    const char *claim = NULL, *reason = NULL;
    struct act *act = NULL;
    const struct param table[] = {
        {"claim", PARAM_STRING, true, &claim, 0, 0},
        {"reason", PARAM_STRING, false, &reason, 0, 0},
    };
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k;
    if (params_check_run(call, claim) != 0 || params_check_reason(call, reason) != 0)
        return 0;
    if (manager_is_recovering(m))
        return verbs_refused(call, MANAGER_E_RECOVERING);
    if (is_host_claim(m, claim))
        s = manager_host_store(m);
    if (!s)
        return verbs_no_such_claim(call, claim);
    verbs_record(call, m, params, &(struct change){.run = claim, .reason = reason});
    k = act_new(&act, call, m, true, claim);
    return k < 0 ? k : act_begin(act, store_revoke(s, claim, reason, act_on_reply, act));
}

int verbs_end_grace(struct control_call *call, json_t *params, void *userdata) {
    struct manager *m = userdata;
    struct store *s = manager_cluster_store(m);
    struct act *act = NULL;
    int k = params_read(call, params, NULL, 0);

    if (k != 0)
        return k;
    if (!s)
        return verbs_bad_request(call, "no grace period without Redis: the config has no redis section");
    verbs_record(call, m, params, &(struct change){});
    k = act_new(&act, call, m, false, "");
    return k < 0 ? k : act_begin(act, store_end_grace(s, act_on_reply, act));
}
