/* SPDX-License-Identifier: MIT */

/* The settings in force. A reload reads the config again and replaces the settings if it has no errors. */

#include "daemon/manager-internal.h"

/* A missing account matches no user. That only takes rights away, so berthd goes on. */
int manager_find_accounts(struct journal *j, struct settings *settings) {
    struct settings_errors missing = {};
    int k = settings_find_accounts(settings, &missing);

    for (size_t i = 0; i < missing.n; i++)
        journal_log(j, LOG_WARNING, "%s", missing.lines[i]);
    settings_errors_done(&missing);
    return k;
}

static void log_refused(struct manager *m, const struct settings_errors *errors) {
    struct event e = {.type = EVENT_CONFIG_REFUSED, .reason = errors->n > 0 ? errors->lines[0] : "cannot be read"};

    counters_reload(&m->counters, true, clock_realtime());
    event_emit(m->events, &e, "%s: refused, the config in force stays", m->config);
    for (size_t i = 1; i < errors->n; i++)
        manager_log(m, LOG_ERR, "%s", errors->lines[i]);
}

static void use_settings(struct manager *m, struct settings *settings) {
    struct settings *old = m->settings;
    bool is_declared;

    m->settings = settings;
    executor_withdraw_prepared(m->executor);
    (void) scheduler_update(m->scheduler, settings, manager_now()); /* limits apply even if a job is lost */
    is_declared = manager_declare(m, m->host_store) == 0;
    if (m->cluster_store && manager_declare(m, m->cluster_store) < 0)
        is_declared = false;
    if (m->cluster_store && settings->redis && store_redis_use(m->cluster_store, settings->redis) < 0)
        manager_log(m, LOG_CRIT, "reload: out of memory; the connection to Redis stays as it was");
    if (!is_declared)
        manager_log(m, LOG_CRIT, "reload: out of memory; some limits stay as they were");
    settings_free(old);
}

static int load_again(struct manager *m, struct settings_errors *errors) {
    _cleanup_free_ char *limits = NULL;
    _cleanup_(settings_freep) struct settings *settings = NULL;
    const char *changed;
    int k;

    k = settings_load(m->config, &settings, errors);
    if (k == 0)
        k = settings_check_zones(settings, ZONE_DIRECTORY, clock_realtime(), errors);
    if (k == 0 && (changed = settings_find_fixed_change(m->settings, settings))) {
        k = settings_errors_add(errors, "%s: %s has changed: restart berthd, a reload cannot change it", m->config, changed);
        k = k < 0 ? k : SETTINGS_E_INVALID;
    }
    if (k == 0)
        k = manager_find_accounts(events_get_journal(m->events), settings);
    if (k != 0) {
        log_refused(m, errors);
        return k;
    }
    use_settings(m, steal_pointer(&settings));
    counters_reload(&m->counters, false, clock_realtime());
    limits = settings_format_limits(m->settings);
    event_emit(m->events, &(struct event) {.type = EVENT_CONFIG_LOADED, .limits = limits}, "%s: %zu pools, %zu jobs", m->config,
               settings_count_pools(m->settings), m->settings->n_jobs);
    store_memory_emit_overrides(m->host_store);
    return 0;
}

int manager_reload(struct manager *m, struct settings_errors *errors) {
    int k;

    if (m->phase != MANAGER_PHASE_READY) /* must not send READY=1, the end of a reload */
        return load_again(m, errors);
    manager_service_reloading();
    k = load_again(m, errors);
    manager_service_ready(m);
    return k;
}

void manager_config_differs(struct manager *m) {
    struct settings_errors errors = {};

    (void) manager_reload(m, &errors);
    settings_errors_done(&errors);
}
