/* SPDX-License-Identifier: MIT */

/* Metrics of pools and hosts. Without a snapshot of the cluster, cluster pools have only what this host
 * knows of them. Keys count for their pattern, and pools of jobs are left out: their series would have no
 * bound. */

#include <stdlib.h>
#include <string.h>

#include "base/silence.h"
#include "daemon/api/verbs-internal.h"

#define POOLS_MAX COUNTERS_POOLS_MAX
#define HOSTS_MAX 100

static json_t *labels_of(const char *pool, bool is_host_scoped) {
    return json_pack("{s:s, s:s}", "pool", pool, "scope", is_host_scoped ? "host" : "cluster");
}

static usec_t oldest_in(const struct snapshot_pool *p) {
    usec_t oldest = 0;

    for (size_t i = 0; i < p->n_queue; i++)
        if (p->queue[i].waiting_usec > oldest)
            oldest = p->queue[i].waiting_usec;
    return oldest;
}

/* Returns the longest wait in a pool, or in the keys of a pattern. A snapshot of the cluster has those keys
 * for which this host waits. */
static usec_t oldest_wait(const struct snapshot *s, const struct snapshot_pool *p) {
    bool is_pattern = pool_name_parse(p->name) == POOL_NAME_PATTERN;
    usec_t oldest = oldest_in(p), of_key;

    for (size_t i = 0; is_pattern && i < s->n_pools; i++)
        if (pool_name_matches(p->name, s->pools[i].name) && (of_key = oldest_in(&s->pools[i])) > oldest)
            oldest = of_key;
    return oldest;
}

static int put_snapshot(json_t *metrics, const struct snapshot *s, const struct snapshot_pool *p,
                        bool host) {
    const struct {
        enum metric metric;
        double value;
        bool has_scope;
    } values[] = {
        {METRIC_IS_POOL_PERMITS_LIMIT, p->limit, true},
        {METRIC_IS_POOL_PERMITS_USED, p->used, true},
        {METRIC_IS_POOL_CLAIMS_WAITING, p->waiting, true},
        {METRIC_IS_POOL_CLAIMS_PARKED, p->parked, true},
        {METRIC_IS_POOL_OLDEST_WAIT_SECONDS, (double) oldest_wait(s, p) / USEC_PER_SEC, true},
        {METRIC_IS_POOL_PAUSED, p->has_override && p->override_limit == 0, false},
        {METRIC_IS_POOL_OVERRIDDEN, p->has_override, false},
        {METRIC_IS_POOL_LIMITS_DIFFER, p->limits_differ, false},
    };
    int k = 0;

    for (size_t i = 0; i < ELEMENTSOF(values); i++)
        k |=
            metrics_put(metrics, values[i].metric,
                        values[i].has_scope ? labels_of(p->name, host) : json_pack("{s:s}", "pool", p->name),
                        values[i].value);
    return k;
}

static void add_held(const struct settings *s, const char *pool, uint32_t permits, uint64_t *held) {
    const struct pool_settings *p = settings_find_pool(s, pool);

    if (p && strcmp(p->name, pool) == 0)
        held[p - s->pools] += permits;
}

/* Returns how many permits of each pool of the config this host holds, to be freed; NULL: no memory. Permits
 * of a key count for its pattern as well. */
static uint64_t *count_held(struct manager *m) {
    const struct settings *s = manager_settings(m);
    uint64_t *held = calloc(s->n_pools + 1, sizeof(*held));
    char pattern[POOL_NAME_SIZE];

    for (enum run_state state = RUN_STATE_STARTING; held && state <= RUN_STATE_DONE; state++)
        list_foreach (r, manager_runs(m, state), struct run, link)
            for (size_t i = 0; r->granted && i < r->n_demands; i++) {
                add_held(s, r->demands[i].pool, r->demands[i].permits, held);
                if (pool_name_pattern(r->demands[i].pool, pattern))
                    add_held(s, pattern, r->demands[i].permits, held);
            }
    return held;
}

static int put_own(json_t *metrics, const struct pool_settings *p, uint64_t held) {
    return metrics_put(metrics, METRIC_IS_POOL_PERMITS_CONFIGURED,
                       labels_of(p->name, p->scope == POOL_SCOPE_HOST), p->limit) |
           metrics_put(metrics, METRIC_IS_POOL_HOST_PERMITS_USED, json_pack("{s:s}", "pool", p->name),
                       (double) held);
}

/* Returns whether a pool is shown although this host's config does not name it. */
static bool is_foreign(const struct settings *s, const struct snapshot_pool *p) {
    const struct pool_settings *known = settings_find_pool(s, p->name);

    return !p->has_pattern && pool_name_parse(p->name) != POOL_NAME_JOB &&
           !(known && strcmp(known->name, p->name) == 0);
}

int metrics_put_pools(json_t *metrics, struct manager *m, const struct snapshot *host,
                      const struct snapshot *cluster) {
    const struct settings *s = manager_settings(m);
    _cleanup_free_ uint64_t *held = count_held(m);
    size_t n = 0;
    int k = held ? 0 : -1;

    for (size_t i = 0; held && i < s->n_pools; i++) {
        bool is_host_scoped = s->pools[i].scope == POOL_SCOPE_HOST;
        const struct snapshot_pool *p = snapshot_find_pool(is_host_scoped ? host : cluster, s->pools[i].name);

        if (pool_name_parse(s->pools[i].name) == POOL_NAME_JOB || n++ >= POOLS_MAX)
            continue;
        k |= put_own(metrics, &s->pools[i], held[i]);
        if (p)
            k |= put_snapshot(metrics, is_host_scoped ? host : cluster, p, is_host_scoped);
    }
    for (size_t i = 0; cluster && i < cluster->n_pools; i++)
        if (is_foreign(s, &cluster->pools[i]) && n++ < POOLS_MAX)
            k |= put_snapshot(metrics, cluster, &cluster->pools[i], cluster->pools[i].host_scope);
    return k | metrics_put(metrics, METRIC_IS_DROPPED, json_object(),
                           n > POOLS_MAX ? (double) (n - POOLS_MAX) : 0);
}

/* --- hosts --- */

struct host_claims {
    const char *host;
    uint32_t claims;
};

static int compare_names(const void *a, const void *b) {
    return strcmp(((const struct host_claims *) a)->host, ((const struct host_claims *) b)->host);
}

static int compare_claims(const void *a, const void *b) {
    const struct host_claims *x = a, *y = b;

    return x->claims != y->claims ? (x->claims < y->claims ? 1 : -1) : strcmp(x->host, y->host);
}

/* Merges the sessions of a host that came back before its session expired. Returns the number of hosts. */
static size_t merge_sessions(const struct snapshot *cluster, struct host_claims *hosts) {
    size_t n = 0;

    for (size_t i = 0; i < cluster->n_sessions; i++)
        hosts[i] = (struct host_claims){cluster->sessions[i].host, cluster->sessions[i].claims};
    qsort(hosts, cluster->n_sessions, sizeof(*hosts), compare_names);
    for (size_t i = 0; i < cluster->n_sessions; i++)
        if (n > 0 && strcmp(hosts[n - 1].host, hosts[i].host) == 0)
            hosts[n - 1].claims += hosts[i].claims;
        else
            hosts[n++] = hosts[i];
    qsort(hosts, n, sizeof(*hosts), compare_claims);
    return n;
}

int metrics_put_hosts(json_t *metrics, struct manager *m, const struct snapshot *cluster) {
    _cleanup_free_ struct host_claims *hosts = calloc(cluster->n_sessions + 1, sizeof(*hosts));
    const struct settings *settings = manager_settings(m);
    usec_t silent_usec = silence_bound(settings->lease_usec, settings->heartbeat_usec);
    size_t n_silent = 0, n;
    int k = 0;

    if (!hosts)
        return -1;
    n = merge_sessions(cluster, hosts);
    for (size_t i = 0; i < cluster->n_sessions; i++)
        n_silent +=
            cluster->sessions[i].seen_usec != USEC_INFINITY && cluster->sessions[i].seen_usec > silent_usec;
    for (size_t i = 0; i < n && i < HOSTS_MAX; i++)
        k |= metrics_put(metrics, METRIC_IS_HOST_CLAIMS, json_pack("{s:s}", "host", hosts[i].host),
                         hosts[i].claims);
    k |= metrics_put(metrics, METRIC_IS_HOSTS, json_object(), (double) n);
    return k | metrics_put(metrics, METRIC_IS_HOSTS_SILENT, json_object(), (double) n_silent);
}
