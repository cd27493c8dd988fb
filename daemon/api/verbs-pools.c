/* SPDX-License-Identifier: MIT */

/* Pools as JSON. Host pools come from the host's store, cluster pools from Redis; while Redis is
 * away, from this host's config and runs. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "daemon/api/verbs-internal.h"

struct writer { /* of the list of pools as text */
    struct manager *manager;
    FILE *f;
    json_t *shown; /* the names of its pools */
    struct pools_text *ret;
};

/* Writes an item of a list. Steals it. */
static int write_item(FILE *f, bool is_first, json_t *item) {
    int k = item && (is_first || fputc(',', f) >= 0) ? json_dumpf(item, f, JSON_COMPACT) : -1;

    json_decref(item);
    return k;
}

/* Writes one claim of a list and notes who has it. */
static int write_claim(struct writer *w, bool is_first, json_t *claim) {
    char who[2 * NAME_MAX_LENGTH + 2];

    (void) snprintf(who, sizeof(who), "%s %s", json_string_value(json_object_get(claim, "host")),
                    json_string_value(json_object_get(claim, "name")));
    if (w->ret->names && claim && json_object_set_new(w->ret->names, who, json_true()) < 0) {
        json_decref(claim);
        return -1;
    }
    return write_item(w->f, is_first, claim);
}

/* --- from a snapshot --- */

/* Returns the pid of a run of this berthd, or 0. Redis may have no pid, or an old one: hosts send pids only
 * together with other calls. */
static uint32_t find_pid(struct manager *m, const char *claim) {
    const struct run *r = manager_find_run(m, claim);

    return r && !run_is_over(r) ? (uint32_t) manager_run_pid(r) : 0;
}

static int write_holders(struct writer *w, const struct snapshot_pool *p) {
    struct manager *m = w->manager;
    int k = 0;

    for (size_t i = 0; i < p->n_holders; i++) {
        const struct snapshot_holder *h = &p->holders[i];
        bool own = strcmp(h->host, manager_settings(m)->host) == 0;
        uint32_t pid = own ? find_pid(m, h->claim) : 0;

        k |= write_claim(w, i == 0, json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o}", "claim", h->claim, "host", h->host,
                                              "name", h->name, "permits", (json_int_t) h->permits, "token",
                                              (json_int_t) h->token, "since", json_time(h->since_realtime), "seen_ms",
                                              json_seen(h->seen_usec), "pid", json_number(pid, pid > 0)));
    }
    return k;
}

static int write_queue(struct writer *w, const struct snapshot_pool *p) {
    int k = 0;

    for (size_t i = 0; i < p->n_queue; i++) {
        const struct snapshot_waiter *q = &p->queue[i];

        k |= write_claim(w, i == 0, json_pack("{s:s, s:s, s:s, s:I, s:I, s:o}", "claim", q->claim, "host", q->host, "name",
                                              q->name, "permits", (json_int_t) q->permits, "position",
                                              (json_int_t) q->position, "waiting_ms", json_msec(q->waiting_usec)));
    }
    return k;
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

static int put_snapshot(json_t *pool, const struct snapshot_pool *p) {
    int k = 0;

    k |= json_object_set_new(pool, "limit", json_integer(p->limit));
    k |= json_object_set_new(pool, "override", json_override(p));
    k |= json_object_set_new(pool, "used", json_integer(p->used));
    k |= json_object_set_new(pool, "waiting", json_integer((json_int_t) p->waiting + p->parked));
    k |= json_object_set_new(pool, "keys", json_number(p->n_keys, pool_name_parse(p->name) == POOL_NAME_PATTERN));
    k |= json_object_set_new(pool, "limits_differ", json_boolean(p->limits_differ));
    k |= json_object_set_new(pool, "lowest", json_lowest(p));
    return k | json_object_set_new(pool, "complete", json_boolean(!p->is_cut));
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
                     "pid", json_number(manager_run_pid(r), manager_run_pid(r) > 0));
}

static json_t *own_waiter(struct manager *m, const struct run *r, uint32_t permits) {
    bool is_answered = r->cluster_claim->state != CLAIM_STATE_ASKED;

    return json_pack("{s:s, s:s, s:s, s:I, s:o, s:o}", "claim", r->cluster_claim->id, "host", manager_settings(m)->host, "name",
                     r->name, "permits", (json_int_t) permits, "position", json_number(r->cluster_claim->position, is_answered), "waiting_ms",
                     json_msec(run_wait_usec(r, clock_boottime())));
}

/* Visits the runs with a claim on the pool that wait, or those that hold its permits. Writes some of them with w. Returns
 * how many wait, or the permits held; w->ret->failed: no memory. */
static uint32_t list_own(struct manager *m, const struct pool_settings *p, bool waits, struct writer *w) {
    size_t n_written = 0;
    uint32_t sum = 0, permits;

    for (enum run_state s = RUN_STATE_WAITING; s <= RUN_STATE_DONE; s++)
        list_foreach(r, manager_runs(m, s), struct run, link) {
            if (r->cluster_claim->state == CLAIM_STATE_NONE || !(permits = claim_permits(r->cluster_claim, p->name)) ||
                waits != (s == RUN_STATE_WAITING) || (!waits && !r->granted))
                continue;
            sum += waits ? 1 : permits;
            if (w && n_written < SNAPSHOT_LIST_MAX && write_claim(w, n_written++ == 0, waits ? own_waiter(m, r, permits) : own_holder(m, r, permits)) < 0)
                w->ret->failed = true;
        }
    return sum;
}

static int put_own(struct manager *m, json_t *pool, const struct pool_settings *p) {
    int k = 0;

    k |= json_object_set_new(pool, "limit", json_integer(p->limit));
    k |= json_object_set_new(pool, "override", json_null());
    k |= json_object_set_new(pool, "used", json_integer(list_own(m, p, false, NULL)));
    k |= json_object_set_new(pool, "waiting", json_integer(list_own(m, p, true, NULL)));
    k |= json_object_set_new(pool, "keys", json_null()); /* keys of other hosts are unknown */
    k |= json_object_set_new(pool, "limits_differ", json_false());
    k |= json_object_set_new(pool, "lowest", json_null());
    return k | json_object_set_new(pool, "complete", json_false());
}

/* --- all pools --- */

/* Returns whether the request names the pool. A request without names wants all but pools of jobs. by_pattern: the
 * request may also name its pattern. */
static bool is_wanted(json_t *wanted, const char *name, bool by_pattern) {
    json_t *item;
    size_t i;

    json_array_foreach(wanted, i, item)
        if (strcmp(json_string_value(item), name) == 0 || (by_pattern && pool_name_matches(json_string_value(item), name)))
            return true;
    return !by_pattern && pool_name_parse(name) != POOL_NAME_JOB && (!wanted || json_array_size(wanted) == 0);
}

/* Writes the object, with lists of claims as its last members. */
static int write_pool(struct writer *w, json_t *o, const struct pool_settings *settings, const struct snapshot_pool *snapshot) {
    int k = fputs(json_object_size(w->shown) > 0 ? ",{" : "{", w->f);

    k |= json_dumpf(o, w->f, JSON_COMPACT | JSON_EMBED);
    k |= fputs(",\"holders\":[", w->f);
    if (snapshot)
        k |= write_holders(w, snapshot);
    else
        (void) list_own(w->manager, settings, false, w);
    k |= fputs("],\"queue\":[", w->f);
    if (snapshot)
        k |= write_queue(w, snapshot);
    else
        (void) list_own(w->manager, settings, true, w);
    return k | fputs("]}", w->f);
}

/* One of settings and snapshot may be NULL. has_pattern: a key that no config names in full. */
static int add_pool(struct writer *w, const struct pool_settings *settings, const struct snapshot_pool *snapshot,
                    bool has_pattern) {
    const char *name = snapshot ? snapshot->name : settings ? settings->name : "";
    bool host = settings ? settings->scope == POOL_SCOPE_HOST : snapshot->host_scope;
    char pattern[POOL_NAME_SIZE];
    _cleanup_json_ json_t *o = json_object();
    int k = 0;

    k |= json_object_set_new(o, "name", json_string(name));
    k |= json_object_set_new(o, "pattern", json_text(has_pattern ? pool_name_pattern(name, pattern) : NULL));
    k |= json_object_set_new(o, "scope", json_string(host ? "host" : "cluster"));
    k |= json_object_set_new(o, "configured", json_number(settings ? settings->limit : 0, settings));
    k |= json_object_set_new(o, "description",
                             json_text(settings && settings->description && settings->description[0] ? settings->description : NULL));
    k |= snapshot ? put_snapshot(o, snapshot) : put_own(w->manager, o, settings);
    if (k < 0 || write_pool(w, o, settings, snapshot) < 0)
        return -1;
    w->ret->is_complete &= json_is_true(json_object_get(o, "complete"));
    return json_object_set_new(w->shown, name, json_true());
}

/* Adds a key without claims, or any key while Redis is away. */
static int add_idle_key(struct writer *w, const struct snapshot *snapshot, const struct pool_settings *pattern,
                        const char *name) {
    const struct snapshot_pool *of_pattern = snapshot ? snapshot_find_pool(snapshot, pattern->name) : NULL;
    struct snapshot_pool idle = {.host_scope = true, .limit = of_pattern ? of_pattern->limit : pattern->limit};
    struct pool_settings key = *pattern;

    (void) snprintf(idle.name, sizeof(idle.name), "%s", name);
    (void) snprintf(key.name, sizeof(key.name), "%s", name);
    return add_pool(w, &key, pattern->scope == POOL_SCOPE_HOST ? &idle : NULL, true);
}

/* Adds keys that no config names in full, if the request names them or their pattern. */
static int add_keys(struct writer *w, const struct snapshot *snapshot, enum pool_scope scope, json_t *wanted) {
    const struct settings *s = manager_settings(w->manager);
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
            k |= add_pool(w, settings, p, true);
    }
    json_array_foreach(wanted, i, item) {
        const char *name = json_string_value(item);
        const struct pool_settings *settings = settings_find_pool(s, name);

        if (settings && settings->scope == scope && strcmp(settings->name, name) != 0 && !(snapshot && snapshot_find_pool(snapshot, name)))
            k |= add_idle_key(w, snapshot, settings, name);
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
static int add_former(struct writer *w, const struct snapshot *snapshot, bool cluster, json_t *wanted) {
    int k = 0;

    for (size_t i = 0; snapshot && i < snapshot->n_pools; i++) {
        const struct snapshot_pool *p = &snapshot->pools[i];

        if ((p->is_undefined || (cluster && is_of_host_here(w->manager, p->name))) && p->used + p->waiting + p->parked > 0 &&
            is_wanted(wanted, p->name, false))
            k |= add_pool(w, NULL, p, false);
    }
    return k;
}

static const char *find_unknown(json_t *wanted, const json_t *shown) {
    json_t *item;
    size_t i;

    json_array_foreach(wanted, i, item)
        if (!json_object_get(shown, json_string_value(item)))
            return json_string_value(item);
    return NULL;
}

static int write_pools(struct writer *w, const struct snapshot *host, const struct snapshot *cluster, json_t *wanted) {
    const struct settings *s = manager_settings(w->manager);
    int k = fputs("[", w->f);

    for (size_t i = 0; i < s->n_pools; i++)
        if (is_wanted(wanted, s->pools[i].name, false))
            k |= add_pool(w, &s->pools[i], snapshot_find_pool(s->pools[i].scope == POOL_SCOPE_HOST ? host : cluster, s->pools[i].name),
                          false);
    for (size_t i = 0; cluster && i < cluster->n_pools; i++) { /* pools of other hosts' configs */
        const struct snapshot_pool *p = &cluster->pools[i];
        const struct pool_settings *known = settings_find_pool(s, p->name);

        if (!p->has_pattern && !p->is_undefined && !(known && strcmp(known->name, p->name) == 0) && is_wanted(wanted, p->name, false))
            k |= add_pool(w, known, p, false);
    }
    k |= add_former(w, host, false, wanted);
    k |= add_former(w, cluster, true, wanted);
    k |= add_keys(w, host, POOL_SCOPE_HOST, wanted);
    k |= add_keys(w, cluster, POOL_SCOPE_CLUSTER, wanted);
    return k | fputs("]", w->f);
}

int pools_text_write(struct pools_text *pools, struct manager *m, const struct snapshot *host, const struct snapshot *cluster,
                     json_t *wanted) {
    _cleanup_json_ json_t *shown = json_object();
    struct writer w = {.manager = m, .f = pools->f, .shown = shown, .ret = pools};

    pools->is_complete = true;
    if (!shown || write_pools(&w, host, cluster, wanted) < 0 || pools->failed)
        return -ENOMEM;
    pools->unknown = find_unknown(wanted, shown);
    return 0;
}
