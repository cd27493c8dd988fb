/* SPDX-License-Identifier: MIT */

/* Pools and hosts as JSON. Host pools come from the host's store, cluster pools from Redis; while Redis is
 * away, from this host's config and runs. */

#include <string.h>

#include "base/number.h"
#include "daemon/api/verbs-internal.h"

static int append(json_t *array, json_t *item) {
    return json_array_append_new(array, item);
}

static json_t *json_seen(usec_t usec) {
    return usec == USEC_INFINITY ? json_null() : json_msec(usec);
}

/* --- from a snapshot --- */

/* Returns the pid of a run of this berthd, or 0. Redis may have no pid, or an old one: hosts send pids only
 * together with other calls. */
static uint32_t find_pid(struct manager *m, const char *claim) {
    const struct run *r = manager_find_run(m, claim);

    return r && !run_is_over(r) ? (uint32_t) r->started.pid : 0;
}

static int put_holders(struct manager *m, json_t *pool, const struct snapshot_pool *p) {
    json_t *holders = json_array();
    int k = 0;

    for (size_t i = 0; i < p->n_holders; i++) {
        const struct snapshot_holder *h = &p->holders[i];
        bool own = strcmp(h->host, manager_settings(m)->host) == 0;
        uint32_t pid = own ? find_pid(m, h->claim) : 0;

        k |= append(holders, json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o}", "claim", h->claim, "host", h->host, "name",
                                       h->name, "permits", (json_int_t) h->permits, "token", (json_int_t) h->token, "since",
                                       json_time(h->since_realtime), "seen_ms", json_seen(h->seen_usec), "pid",
                                       json_number(pid, pid > 0)));
    }
    return k | json_object_set_new(pool, "holders", holders);
}

static int put_queue(json_t *pool, const struct snapshot_pool *p) {
    json_t *queue = json_array();
    int k = 0;

    for (size_t i = 0; i < p->n_queue; i++) {
        const struct snapshot_waiter *w = &p->queue[i];

        k |= append(queue, json_pack("{s:s, s:s, s:s, s:I, s:I, s:o}", "claim", w->claim, "host", w->host, "name", w->name,
                                     "permits", (json_int_t) w->permits, "position", (json_int_t) w->position, "waiting_ms",
                                     json_msec(w->waiting_usec)));
    }
    return k | json_object_set_new(pool, "queue", queue);
}

static json_t *json_override(const struct snapshot_pool *p) {
    if (!p->has_override)
        return json_null();
    return json_pack("{s:I, s:o, s:o}", "limit", (json_int_t) p->override_limit, "until",
                     json_time(p->override_until == USEC_INFINITY ? 0 : p->override_until), "reason",
                     json_text(p->override_reason));
}

static json_t *json_lowest(const struct snapshot_pool *p) {
    uint64_t limit = 0;
    bool known = number_parse(p->lowest, UINT32_MAX, &limit) == 0;

    if (!p->lowest[0])
        return json_null();
    return json_pack("{s:o, s:o, s:s}", "limit", json_number((json_int_t) limit, known), "host",
                     json_text(p->lowest_host[0] ? p->lowest_host : NULL), "session", p->lowest_session);
}

static int put_snapshot(struct manager *m, json_t *pool, const struct snapshot_pool *p) {
    int k = 0;

    k |= json_object_set_new(pool, "limit", json_integer(p->limit));
    k |= json_object_set_new(pool, "override", json_override(p));
    k |= json_object_set_new(pool, "used", json_integer(p->used));
    k |= json_object_set_new(pool, "waiting", json_integer((json_int_t) p->waiting + p->parked));
    k |= json_object_set_new(pool, "keys", json_number(p->n_keys, pool_name_parse(p->name) == POOL_NAME_PATTERN));
    k |= json_object_set_new(pool, "limits_differ", json_boolean(p->limits_differ));
    k |= json_object_set_new(pool, "lowest", json_lowest(p));
    k |= json_object_set_new(pool, "complete", json_boolean(!p->is_cut));
    k |= put_holders(m, pool, p);
    return k | put_queue(pool, p);
}

/* --- from what this berthd knows --- */

/* Returns the permits that a claim needs of a pool, or of a key of a pattern. */
static uint32_t claim_permits(const struct claim *c, const char *pool) {
    for (size_t i = 0; i < c->n_demands; i++)
        if (strcmp(c->demands[i].pool, pool) == 0 || pool_name_matches(pool, c->demands[i].pool))
            return c->demands[i].permits;
    return 0;
}

static json_t *own_holder(struct manager *m, const struct run *r, uint32_t permits) {
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:i, s:o}", "claim", r->cluster_claim->id, "host",
                     manager_settings(m)->host, "name", r->name, "permits", (json_int_t) permits, "token",
                     (json_int_t) r->cluster_claim->token, "since",
                     json_time(r->started.realtime ? r->started.realtime : r->queued.realtime), "seen_ms", 0,
                     "pid", json_number(r->started.pid, r->started.pid > 0));
}

static json_t *own_waiter(struct manager *m, const struct run *r, uint32_t permits) {
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:o}", "claim", r->cluster_claim->id, "host", manager_settings(m)->host, "name",
                     r->name, "permits", (json_int_t) permits, "position", (json_int_t) r->cluster_claim->position, "waiting_ms",
                     json_msec(run_wait_usec(r, clock_boottime())));
}

static int put_own(struct manager *m, json_t *pool, const struct pool_settings *p) {
    json_t *holders = json_array(), *queue = json_array();
    uint32_t used = 0, waiting = 0, permits;
    int k = 0;

    for (enum run_state s = RUN_STATE_WAITING; s <= RUN_STATE_DONE; s++)
        list_foreach(r, manager_runs(m, s), struct run, link) {
            if (r->cluster_claim->state == CLAIM_STATE_NONE || !(permits = claim_permits(r->cluster_claim, p->name)))
                continue;
            if (s == RUN_STATE_WAITING) {
                if (waiting++ < SNAPSHOT_LIST_MAX)
                    k |= append(queue, own_waiter(m, r, permits));
            } else if (r->granted) {
                used += permits;
                if (json_array_size(holders) < SNAPSHOT_LIST_MAX)
                    k |= append(holders, own_holder(m, r, permits));
            }
        }
    k |= json_object_set_new(pool, "limit", json_integer(p->limit));
    k |= json_object_set_new(pool, "override", json_null());
    k |= json_object_set_new(pool, "used", json_integer(used));
    k |= json_object_set_new(pool, "waiting", json_integer(waiting));
    k |= json_object_set_new(pool, "keys", json_null()); /* keys of other hosts are unknown */
    k |= json_object_set_new(pool, "limits_differ", json_false());
    k |= json_object_set_new(pool, "lowest", json_null());
    k |= json_object_set_new(pool, "complete", json_false());
    k |= json_object_set_new(pool, "holders", holders);
    return k | json_object_set_new(pool, "queue", queue);
}

/* --- all pools --- */

/* Whether the request names the pool. A request without names wants all but pools of jobs. by_pattern: the
 * request may also name its pattern. */
static bool is_wanted(json_t *wanted, const char *name, bool by_pattern) {
    json_t *item;
    size_t i;

    json_array_foreach(wanted, i, item)
        if (strcmp(json_string_value(item), name) == 0 || (by_pattern && pool_name_matches(json_string_value(item), name)))
            return true;
    return !by_pattern && pool_name_parse(name) != POOL_NAME_JOB && (!wanted || json_array_size(wanted) == 0);
}

/* One of settings and snapshot may be NULL. has_pattern: a key that no config names in full. */
static int add_pool(struct manager *m, json_t *pools, const struct pool_settings *settings, const struct snapshot_pool *snapshot,
                    bool has_pattern) {
    const char *name = snapshot ? snapshot->name : settings ? settings->name : "";
    bool host = settings ? settings->scope == POOL_SCOPE_HOST : snapshot->host_scope;
    char pattern[POOL_NAME_SIZE];
    json_t *o = json_object();
    int k = 0;

    k |= json_object_set_new(o, "name", json_string(name));
    k |= json_object_set_new(o, "pattern", json_text(has_pattern ? pool_name_pattern(name, pattern) : NULL));
    k |= json_object_set_new(o, "scope", json_string(host ? "host" : "cluster"));
    k |= json_object_set_new(o, "configured", json_number(settings ? settings->limit : 0, settings));
    k |= json_object_set_new(o, "description",
                             json_text(settings && settings->description && settings->description[0] ? settings->description : NULL));
    k |= snapshot ? put_snapshot(m, o, snapshot) : settings ? put_own(m, o, settings) : 0;
    return k | append(pools, o);
}

/* Adds a key without claims, or any key while Redis is away. */
static int add_idle_key(struct manager *m, json_t *pools, const struct snapshot *snapshot, const struct pool_settings *pattern,
                        const char *name) {
    const struct snapshot_pool *of_pattern = snapshot ? snapshot_find_pool(snapshot, pattern->name) : NULL;
    struct snapshot_pool idle = {.host_scope = true, .limit = of_pattern ? of_pattern->limit : pattern->limit};
    struct pool_settings key = *pattern;

    (void) snprintf(idle.name, sizeof(idle.name), "%s", name);
    (void) snprintf(key.name, sizeof(key.name), "%s", name);
    return add_pool(m, pools, &key, pattern->scope == POOL_SCOPE_HOST ? &idle : NULL, true);
}

/* Adds keys that no config names in full, if the request names them or their pattern. */
static int add_keys(struct manager *m, json_t *pools, const struct snapshot *snapshot, enum pool_scope scope, json_t *wanted) {
    const struct settings *s = manager_settings(m);
    json_t *item;
    size_t i;
    int k = 0;

    for (i = 0; snapshot && i < snapshot->n_pools; i++) {
        const struct snapshot_pool *p = &snapshot->pools[i];
        const struct pool_settings *settings = settings_find_pool(s, p->name);
        char pattern[POOL_NAME_SIZE];
        bool is_defined = settings ? settings->scope == scope
                                   : scope == POOL_SCOPE_CLUSTER && pool_name_pattern(p->name, pattern) && snapshot_find_pool(snapshot, pattern);

        if (p->has_pattern && is_defined && is_wanted(wanted, p->name, true))
            k |= add_pool(m, pools, settings, p, true);
    }
    json_array_foreach(wanted, i, item) {
        const char *name = json_string_value(item);
        const struct pool_settings *settings = settings_find_pool(s, name);

        if (settings && settings->scope == scope && strcmp(settings->name, name) != 0 && !(snapshot && snapshot_find_pool(snapshot, name)))
            k |= add_idle_key(m, pools, snapshot, settings, name);
    }
    return k;
}

/* Returns whether a pool of the cluster has scope host in this host's config. */
static bool is_of_host_here(const struct manager *m, const char *name) {
    const struct pool_settings *settings = settings_find_pool(manager_settings(m), name);

    return settings && settings->scope == POOL_SCOPE_HOST;
}

/* Adds pools that no config has any more, or that this host's config now has with scope host, whose runs hold permits or
 * wait. */
static int add_former(struct manager *m, json_t *pools, const struct snapshot *snapshot, bool cluster, json_t *wanted) {
    int k = 0;

    for (size_t i = 0; snapshot && i < snapshot->n_pools; i++) {
        const struct snapshot_pool *p = &snapshot->pools[i];

        if ((p->is_undefined || (cluster && is_of_host_here(m, p->name))) && p->used + p->waiting + p->parked > 0 &&
            is_wanted(wanted, p->name, false))
            k |= add_pool(m, pools, NULL, p, false);
    }
    return k;
}

static const char *find_unknown(json_t *wanted, const json_t *pools) {
    json_t *item, *pool;
    size_t i, j;

    json_array_foreach(wanted, i, item) {
        bool found = false;

        json_array_foreach(pools, j, pool)
            found |= strcmp(json_string_value(json_object_get(pool, "name")), json_string_value(item)) == 0;
        if (!found)
            return json_string_value(item);
    }
    return NULL;
}

json_t *json_pools(struct manager *m, const struct snapshot *host, const struct snapshot *cluster, json_t *wanted,
                   const char **ret_unknown) {
    const struct settings *s = manager_settings(m);
    _cleanup_json_ json_t *pools = json_array();
    int k = pools ? 0 : -1;

    for (size_t i = 0; i < s->n_pools; i++)
        if (is_wanted(wanted, s->pools[i].name, false))
            k |= add_pool(m, pools, &s->pools[i], snapshot_find_pool(s->pools[i].scope == POOL_SCOPE_HOST ? host : cluster, s->pools[i].name),
                          false);
    for (size_t i = 0; cluster && i < cluster->n_pools; i++) { /* pools of other hosts' configs */
        const struct snapshot_pool *p = &cluster->pools[i];
        const struct pool_settings *known = settings_find_pool(s, p->name);

        if (!p->has_pattern && !p->is_undefined && !(known && strcmp(known->name, p->name) == 0) && is_wanted(wanted, p->name, false))
            k |= add_pool(m, pools, known, p, false);
    }
    k |= add_former(m, pools, host, false, wanted);
    k |= add_former(m, pools, cluster, true, wanted);
    k |= add_keys(m, pools, host, POOL_SCOPE_HOST, wanted);
    k |= add_keys(m, pools, cluster, POOL_SCOPE_CLUSTER, wanted);
    if (k < 0)
        return NULL;
    *ret_unknown = find_unknown(wanted, pools);
    return steal_pointer(&pools);
}

/* --- hosts --- */

static json_t *json_session(const struct snapshot_session *session) {
    _cleanup_json_ json_t *limits = json_array(), *jobs = json_array();
    _cleanup_json_ json_t *there = json_array(), *here = json_array();
    int k = 0;

    for (size_t i = 0; i < session->n_limits; i++) {
        const struct snapshot_limit *limit = &session->limits[i];

        if (limit->differs)
            k |= append(limits, json_pack("{s:s, s:I}", "pool", limit->pool, "limit", (json_int_t) limit->limit));
        if (limit->is_due_otherwise)
            k |= append(jobs, json_string(limit->pool + 1));
        if (limit->is_only_there)
            k |= append(there, json_string(limit->pool));
        if (limit->is_only_here)
            k |= append(here, json_string(limit->pool));
    }
    if (k < 0)
        return NULL;
    return json_pack("{s:s, s:s, s:s, s:b, s:I, s:o, s:O, s:O, s:O, s:O}", "host", session->host, "session", session->id, "version",
                     session->version, "drained", session->drained, "claims", (json_int_t) session->claims, "seen_ms", json_seen(session->seen_usec), "limits", limits,
                     "jobs_differ", jobs, "pools_only_there", there, "pools_only_here", here);
}

/* Returns this host, as the only one that is known without Redis. */
static json_t *json_own_host(struct manager *m) {
    json_int_t claims = 0;

    for (enum run_state s = RUN_STATE_WAITING; s < RUN_STATE_DONE; s++)
        list_foreach(r, manager_runs(m, s), struct run, link)
            claims += r->n_demands > 0;
    return json_pack("{s:s, s:s, s:s, s:b, s:I, s:i, s:[], s:[], s:[], s:[]}", "host", manager_settings(m)->host, "session", "", "version", VERSION,
                     "drained", manager_is_drained(m), "claims", claims, "seen_ms", 0, "limits", "jobs_differ",
                     "pools_only_there", "pools_only_here");
}

json_t *json_hosts(struct manager *m, const struct snapshot *cluster) {
    json_t *hosts = json_array();
    int k = 0;

    for (size_t i = 0; cluster && i < cluster->n_sessions; i++)
        k |= append(hosts, json_session(&cluster->sessions[i]));
    if (!cluster)
        k |= append(hosts, json_own_host(m));
    if (k < 0) {
        json_decref(hosts);
        return NULL;
    }
    return hosts;
}

json_t *json_malformed(const struct snapshot *cluster) {
    json_t *list = json_array();
    int k = 0;

    for (size_t i = 0; cluster && i < cluster->n_malformed; i++) {
        const struct snapshot_malformed *m = &cluster->malformed[i];

        k |= append(list, json_pack("{s:s, s:s, s:s}", "key", m->key, "id", m->id, "record", m->record));
    }
    if (k < 0) {
        json_decref(list);
        return NULL;
    }
    return list;
}

json_t *json_redis(struct manager *m, const struct snapshot *cluster) {
    const struct store *s = manager_cluster_store(m);
    const char *state = "away";
    bool is_away = s && !cluster && s->state == STORE_STATE_AWAY;

    if (!s)
        state = "none";
    else if (cluster || s->state != STORE_STATE_AWAY) /* cluster: Redis has just answered */
        state = "connected";
    else if (s->is_connecting)
        state = "connecting";

    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "state", state, "grace_ms",
                     json_msec(cluster ? cluster->grace_usec : 0), "lease_ms",
                     json_msec(manager_settings(m)->lease_usec), "error",
                     json_text(is_away && s->away_why[0] ? s->away_why : NULL), "since",
                     json_time(is_away ? s->away_since : 0));
}
