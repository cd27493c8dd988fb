/* SPDX-License-Identifier: MIT */

/* berthd's root: new, start, free; what clients see and do. */

#include "daemon/manager.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/manager-internal.h"

/* --- new and free --- */

static void job_begin(struct run *run, _unused_ void *userdata) {
    manager_run_begin(run);
}

static void job_on_begin_due(struct run *run) {
    scheduler_begin_attempt(manager_of(run)->scheduler, run, manager_now());
}

static void job_await(struct run *run, usec_t boottime, _unused_ void *userdata) {
    run_arm(run, boottime, job_on_begin_due);
}

static void job_withdraw(struct run *run, const char *reason, _unused_ void *userdata) {
    manager_run_withdraw(run, RUN_RESULT_STOPPED, reason);
}

static void job_stop(struct run *run, const char *reason, _unused_ void *userdata) {
    manager_stop_run(run, reason);
}

static void job_lost(struct run *run, _unused_ void *userdata) {
    run_log_exited(run, RUN_RESULT_HOST_LOST);
    manager_run_end(run, RUN_RESULT_HOST_LOST);
}

static int make_scheduler(struct manager *m, struct journal *journal) {
    struct scheduler_handler handler = {
        .begin = job_begin,
        .withdraw = job_withdraw,
        .await = job_await,
        .stop = job_stop,
        .lost = job_lost,
        .now = manager_now,
        .may_ask = manager_may_ask,
        .pass = manager_pass,
        .decided = manager_turns_decided,
        .userdata = m,
    };
    int k = scheduler_new(&m->scheduler, m->event, &m->runs, &m->state, journal, &handler);

    if (k < 0)
        return k;
    scheduler_set_drained(m->scheduler, m->drained);
    return scheduler_update(m->scheduler, m->settings, manager_now());
}

/* A hung guard does not enforce its deadline, so the runner must kill it before the lease ends. The last heartbeat was answered before
 * this berthd started; half a lease is a safe bound. Without leases: longer than a machine stalls. */
static usec_t guard_silence_max(const struct settings *settings) {
    return settings->redis ? settings->lease_usec / 2 : 10 * USEC_PER_SEC;
}

static int make_executor(struct manager *m, struct journal *journal, const struct manager_options *options) {
    const struct settings *settings = m->settings;
    struct executor_handler handler = manager_executor_handler;
    struct executor_options o = {
        .directory = settings->runtime_directory,
        .namespace = settings->namespace,
        .host = settings->host,
        .with_runner = options->with_runner,
        .config = options->config,
        .margin_usec = settings_margin(settings->lease_usec),
        .silence_usec = guard_silence_max(settings),
    };

    handler.userdata = m;
    return executor_new(&m->executor, m->event, journal, &m->runs, &o, &handler);
}

static int make_adhoc(struct manager *m, struct journal *journal) {
    struct adhoc_handler handler = manager_adhoc_handler;
    struct adhoc_options options = {
        .lease_usec = m->settings->lease_usec,
        .margin_usec = settings_margin(m->settings->lease_usec),
    };

    handler.userdata = m;
    return adhoc_new(&m->adhoc, m->event, journal, &m->runs, &m->state, &options, &handler);
}

static void manager_on_run_change(struct run_table *table) {
    struct manager *m = list_entry(table, struct manager, runs);

    manager_service_changed(m);
    if (m->executor)
        executor_prepare(m->executor);
}

int manager_new(struct manager **ret, sd_event *event, struct journal *journal, struct settings *settings,
                const struct manager_options *options) {
    _cleanup_(manager_freep) struct manager *m = calloc(1, sizeof(*m));
    int k;

    if (!m) {
        settings_free(settings);
        return -ENOMEM;
    }
    m->settings = settings;
    m->state.lock_fd = -1;
    m->event = sd_event_ref(event);
    list_init(&m->idle_watches);
    list_init(&m->moves);
    counters_start(&m->counters, clock_realtime());
    m->has_service_manager = getenv("NOTIFY_SOCKET") != NULL;
    m->config = strdup(options->config);
    if (!m->config)
        return -ENOMEM;
    k = manager_find_accounts(journal, settings);
    if (k == 0)
        k = events_new(&m->events, journal, settings->host, settings->namespace);
    if (k == 0)
        k = removals_new(&m->removals, event);
    if (k == 0)
        k = run_table_init(&m->runs, event, manager_on_run_change);
    m->runs.events = m->events;
    if (k >= 0)
        k = make_executor(m, journal, options);
    if (k >= 0)
        k = make_adhoc(m, journal);
    if (k >= 0)
        k = state_open(&m->state, settings->runtime_directory, journal, m->removals);
    if (k == 0) {
        m->drained = state_is_drained(&m->state);
        k = manager_make_stores(m);
    }
    if (k == 0)
        k = manager_times_init(m);
    if (k == 0)
        k = make_scheduler(m, journal);
    if (k < 0)
        return k;
    *ret = steal_pointer(&m);
    return 0;
}

/* Guards and holds stay there for the next berthd. */
static void detach_runs(struct manager *m) {
    run_table_foreach(r, &m->runs, RUN_STATE_RETRYING, RUN_STATE_DONE) {
        executor_detach(r);
        adhoc_detach(r);
    }
}

struct manager *manager_free(struct manager *m) {
    if (!m)
        return NULL;
    m->executor = executor_free(m->executor);
    m->cluster_store = store_free(m->cluster_store);
    m->host_store = store_free(m->host_store);
    if (m->runs.on_change)
        detach_runs(m);
    run_table_done(&m->runs);
    m->scheduler = scheduler_free(m->scheduler);
    removals_free(m->removals);
    manager_times_store(m);
    manager_times_done(m);
    sd_event_source_disable_unref(m->status_timer);
    sd_event_source_disable_unref(m->exit_timer);
    m->adhoc = adhoc_free(m->adhoc);
    events_free(m->events);
    settings_free(m->settings);
    state_close(&m->state);
    sd_event_unref(m->event);
    free(m->config);
    free(m);
    return NULL;
}

int manager_start(struct manager *m) {
    int k;

    k = manager_recover(m);
    if (k < 0)
        return k;
    return executor_connect(m->executor);
}

/* --- what others see --- */

const struct settings *manager_settings(const struct manager *m) {
    return m->settings;
}
sd_event *manager_event(struct manager *m) {
    return m->event;
}
struct store *manager_host_store(struct manager *m) {
    return m->host_store;
}
struct store *manager_cluster_store(struct manager *m) {
    return m->cluster_store;
}
struct events *manager_events(struct manager *m) {
    return m->events;
}
const struct counters *manager_counters(const struct manager *m) {
    return &m->counters;
}
bool manager_is_recovering(const struct manager *m) {
    return m->phase == MANAGER_PHASE_RECOVERING;
}
pid_t manager_run_pid(const struct run *r) {
    return r->kind == RUN_KIND_ADHOC && !run_is_over(r) ? adhoc_get_pid(r) : r->started.pid;
}

struct run *manager_find_run(struct manager *m, const char *id) {
    return run_table_find(&m->runs, id);
}
struct list *manager_runs(struct manager *m, enum run_state state) {
    return &m->runs.lists[state];
}

void manager_ask_guards(struct manager *m) {
    executor_ask_guards(m->executor);
}

static int adhoc_answer(int k) {
    switch (k) {
    case ADHOC_E_UNKNOWN:
        return MANAGER_E_UNKNOWN;
    case ADHOC_E_INVALID:
        return MANAGER_E_INVALID;
    case ADHOC_E_QUOTA:
        return MANAGER_E_QUOTA;
    default:
        return k;
    }
}

static void begin_adhoc(struct manager *m, struct run *run) {
    if (m->phase == MANAGER_PHASE_READY)
        manager_run_begin(run);
    else if (run->terms.nowait)
        manager_run_withdraw(run, RUN_RESULT_NOT_STARTED,
                             executor_is_connected(m->executor)
                                 ? "berthd is still recovering"
                                 : "berthd is still recovering, and cannot reach berth-runner");
    else
        manager_arm_queue_timeout(run);
}

/* Returns whether the client may be inside a run whose guard or `berth run` berthd has not met again since its start. A claim
 * of its own would wait for the permits of that run, and that run for this client. */
static bool may_be_inside(struct manager *m, const struct adhoc_request *request) {
    const struct run *around = request->nested ? run_table_find(&m->runs, request->nested) : NULL;

    if (!request->nested || request->nowait)
        return false;
    return m->phase < MANAGER_PHASE_READY || (around && adhoc_is_client_due(around));
}

int manager_hold(struct manager *m, const struct adhoc_request *request, struct run **ret, bool *ret_nested, const char **ret_text) {
    struct run *outer;
    int k;

    *ret_nested = false;
    *ret_text = m->text;
    if (m->phase >= MANAGER_PHASE_STOPPING)
        return MANAGER_E_STOPPING;
    k = adhoc_check_pools(request, m->settings, m->text);
    if (k != 0)
        return adhoc_answer(k);
    outer = adhoc_find_outer(&m->runs, request, executor_guard_pid);
    if (outer && adhoc_is_covered(outer, request)) {
        *ret = outer;
        *ret_nested = true;
        return 0;
    }
    if (!outer && may_be_inside(m, request))
        return MANAGER_E_RECOVERING;
    if (m->drained) {
        counters_refuse(&m->counters, COUNTERS_REFUSAL_DRAINED);
        return MANAGER_E_DRAINED;
    }
    k = adhoc_check_admission(&m->runs, request, outer, m->settings, m->text);
    if (k == 0)
        k = adhoc_add_run(&m->runs, request, m->settings, manager_now(), ret);
    if (k == 0)
        begin_adhoc(m, *ret);
    return adhoc_answer(k);
}

int manager_attach(struct manager *m, const char *id, uid_t uid, pid_t pid, struct run **ret) {
    struct run *run = run_table_find(&m->runs, id);

    if (!run) /* a waiting one is recovered last: a client that came before that would lose its place */
        return m->phase < MANAGER_PHASE_READY ? MANAGER_E_RECOVERING : MANAGER_E_UNKNOWN;
    if (adhoc_attach(m->adhoc, run, uid, pid) != 0)
        return MANAGER_E_UNKNOWN;
    if (run->state == RUN_STATE_WAITING)
        manager_arm_queue_timeout(run);
    *ret = run;
    return 0;
}

void manager_client_gone(struct run *run) {
    adhoc_client_gone(manager_of(run)->adhoc, run);
}

int manager_take_hold_fd(struct run *run) {
    return adhoc_take_hold_fd(run);
}

void manager_client_started(struct run *run, pid_t pid, usec_t started) {
    adhoc_client_started(manager_of(run)->adhoc, run, pid, started);
}

void manager_client_stuck(struct run *run, const char *what) {
    adhoc_client_stuck(manager_of(run)->adhoc, run, what);
}

void manager_client_ended(struct run *run, const struct adhoc_report *report) {
    adhoc_client_ended(manager_of(run)->adhoc, run, report);
}
