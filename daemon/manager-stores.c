/* SPDX-License-Identifier: MIT */

/* The stores of this host: makes them, declares pools to them, and passes their deadline and state to
 * runs. */

#include <string.h>

#include "daemon/manager-internal.h"

static uint32_t hash_of_job(const struct settings *settings, const char *name) {
    const struct job_settings *job = settings_find_job(settings, name);

    return job ? (uint32_t) job->triggers.schedule_hash : 0;
}

int manager_declare(struct manager *m, struct store *s) {
    _cleanup_free_ struct store_pool *pools = calloc(m->settings->n_pools + 1, sizeof(*pools));
    bool host = s == m->host_store;
    size_t n = 0;

    if (!pools)
        return -ENOMEM;
    for (size_t i = 0; i < m->settings->n_pools; i++) {
        const struct pool_settings *p = &m->settings->pools[i];
        bool cluster = p->scope == POOL_SCOPE_CLUSTER;

        pools[n].is_former = host && cluster && p->host_limit == 0; /* runs may still wait for an earlier host-limit */
        pools[n].is_host_scoped = !host && !cluster;
        memcpy(pools[n].name, p->name, sizeof(pools[n].name));
        pools[n].limit = host && cluster && p->host_limit > 0 ? p->host_limit : p->limit;
        if (pool_name_parse(p->name) == POOL_NAME_JOB)
            pools[n].due_hash = hash_of_job(m->settings, p->name + 1);
        pools[n++].queue_limit = p->queue_limit;
    }
    return store_declare(s, pools, n, m->drained);
}

static void store_on_deadline(_unused_ struct store *s, _unused_ usec_t deadline, void *userdata) {
    struct manager *m = userdata;

    run_table_foreach (r, &m->runs, RUN_STATE_STARTING, RUN_STATE_STOPPING) {
        if (manager_run_deadline(r) == USEC_INFINITY)
            continue;
        if (r->kind == RUN_KIND_JOB)
            executor_push_deadline(m->executor, r);
        else
            run_changed(r);
    }
}

static void store_on_state(_unused_ struct store *s, enum store_state state, void *userdata) {
    struct manager *m = userdata;

    run_table_foreach (r, &m->runs, RUN_STATE_WAITING, RUN_STATE_WAITING)
        if (r->cluster_claim->n_demands > 0)
            run_changed(r);
    if (state == STORE_STATE_READY && m->scheduler)
        scheduler_ask_turns(m->scheduler);
}

int manager_make_stores(struct manager *m) {
    struct store_listener listener = manager_listener;
    char session_path[STATE_PATH_SIZE], overrides_path[STATE_PATH_SIZE], boot[STATE_BOOT_SIZE];
    struct store_redis_options options = {
        .redis = m->settings->redis,
        .host = m->settings->host,
        .namespace = m->settings->namespace,
        .version = VERSION,
        .lease_usec = m->settings->lease_usec,
        .heartbeat_usec = m->settings->heartbeat_usec,
        .session_path = state_session_path(&m->state, session_path),
    };
    int k;

    listener.on_deadline = store_on_deadline;
    listener.on_state = store_on_state;
    listener.userdata = m;
    k = store_memory_new(&m->host_store, m->event, m->events, m->settings->host, &listener);
    if (k == 0)
        k = manager_declare(m, m->host_store);
    if (k == 0)
        k = store_memory_keep_overrides(m->host_store, state_overrides_path(&m->state, overrides_path), state_get_boot(boot));
    if (k < 0 || !m->settings->redis)
        return k;
    options.redis_hash = settings_hash_redis(m->settings->redis);
    k = store_redis_new(&m->cluster_store, m->event, m->events, &options, &listener);
    if (k == 0)
        k = manager_declare(m, m->cluster_store);
    return k;
}
