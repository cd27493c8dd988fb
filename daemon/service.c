/* SPDX-License-Identifier: MIT */

/* berthd as a service: notifications to the service manager (sd_notify(3)), draining, and the end. */

#include <string.h>
#include <systemd/sd-daemon.h>

#include "daemon/manager-internal.h"

#define STATUS_DELAY USEC_PER_SEC           /* of the status line: a burst of runs is one notification */
#define EXIT_SLACK (4 * USEC_PER_SEC)       /* after the longest stop timeout; then berthd exits */
#define STOP_EXTRA_USEC (15 * USEC_PER_SEC) /* after it, for reports and the end of the session */

/* --- the service manager --- */

static int manager_on_status_timer(_unused_ sd_event_source *source, _unused_ uint64_t usec,
                                   void *userdata) {
    struct manager *m = userdata;
    const char *error = manager_state_error(m);
    size_t waiting = run_table_count(&m->runs, RUN_STATE_PENDING, RUN_STATE_WAITING);
    size_t running = run_table_count(&m->runs, RUN_STATE_STARTING, RUN_STATE_STOPPING);

    (void) sd_notifyf(0, "STATUS=%s%s%zu running, %zu waiting%s%s", m->drained ? "Drained; " : "",
                      manager_is_recovering(m) ? "Recovering: waiting for berth-runner and guards; " : "",
                      running, waiting, error[0] ? "; the state directory cannot be written: " : "", error);
    return 0;
}

void manager_service_changed(struct manager *m) {
    usec_t due = usec_add(clock_boottime(), STATUS_DELAY);
    int enabled;

    if (!m->has_service_manager)
        return;
    if (!m->status_timer) {
        (void) sd_event_add_time(m->event, &m->status_timer, CLOCK_BOOTTIME, due, STATUS_DELAY,
                                 manager_on_status_timer, m);
        return;
    }
    if (sd_event_source_get_enabled(m->status_timer, &enabled) == 0 && enabled == SD_EVENT_OFF) {
        (void) sd_event_source_set_time(m->status_timer, due);
        (void) sd_event_source_set_enabled(m->status_timer, SD_EVENT_ONESHOT);
    }
}

void manager_service_ready(struct manager *m) {
    (void) sd_notify(0, "READY=1");
    manager_service_changed(m);
}

void manager_service_reloading(void) {
    /* systemd ignores a reload without the time (sd_notify(3)). */
    (void) sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_monotonic());
}

static void notify_stopping(usec_t longest) {
    (void) sd_notifyf(0, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64, usec_add(longest, STOP_EXTRA_USEC));
}

/* --- draining --- */

/* Changes it on disk and in the declaration of this host to Redis, or, on a negative errno, in neither. */
static int set_drained(struct manager *m, bool drained) {
    int k = state_set_drained(&m->state, drained);

    if (k < 0)
        return k;
    m->drained = drained;
    k = m->cluster_store ? manager_declare(m, m->cluster_store) : 0;
    if (k < 0) {
        m->drained = !drained;
        (void) state_set_drained(&m->state, !drained);
        return k;
    }
    scheduler_set_drained(m->scheduler, drained);
    return 0;
}

int manager_drain(struct manager *m, uid_t uid, const char *on_behalf) {
    int k;

    if (m->drained)
        return 0;
    k = set_drained(m, true);
    if (k < 0)
        return k;
    event_emit(m->events, &(struct event){.type = EVENT_DRAINED, .caller = {.has_uid = true, .uid = uid, .on_behalf = on_behalf}},
               "this host is drained: it takes nothing new until `berth undrain`");
    run_table_foreach (r, &m->runs, RUN_STATE_PENDING, RUN_STATE_WAITING)
        manager_run_withdraw(r, RUN_RESULT_STOPPED, "drained");
    manager_service_changed(m);
    return 0;
}

int manager_undrain(struct manager *m, uid_t uid, const char *on_behalf) {
    int k;

    if (!m->drained)
        return 0;
    k = set_drained(m, false);
    if (k < 0)
        return k;
    event_emit(m->events, &(struct event){.type = EVENT_UNDRAINED, .caller = {.has_uid = true, .uid = uid, .on_behalf = on_behalf}},
               "this host takes work again");
    if (m->phase == MANAGER_PHASE_READY)
        scheduler_start(m->scheduler, manager_now());
    manager_service_changed(m);
    return 0;
}

bool manager_is_drained(const struct manager *m) {
    return m->drained;
}

bool manager_is_idle(const struct manager *m) {
    return !manager_is_recovering(m) && run_table_is_empty(&m->runs, RUN_STATE_PENDING, RUN_STATE_STOPPING);
}

/* --- stopping --- */

static void exit_loop(struct manager *m) {
    if (m->phase == MANAGER_PHASE_EXITING)
        (void) sd_event_exit(m->event, 0);
}

static void store_on_stopped(int r, void *userdata) {
    struct manager *m = userdata;

    if (r == 0) /* the session is over, so the next berthd need not give back its turns */
        run_table_foreach (run, &m->runs, RUN_STATE_DONE, RUN_STATE_DONE)
            state_remove_run(&m->state, run);
    if (--m->n_stores_stopping == 0)
        exit_loop(m);
}

/* Stops the stores once a stopping berthd is idle. */
static void stop_check(struct manager *m) {
    if (m->phase != MANAGER_PHASE_STOPPING || !manager_is_idle(m))
        return;
    m->phase = MANAGER_PHASE_EXITING;
    m->n_stores_stopping = 1 + (m->cluster_store ? 1 : 0);
    if (m->cluster_store)
        store_stop(m->cluster_store, store_on_stopped, m);
    store_stop(m->host_store, store_on_stopped, m);
}

/* berthd cannot stop the runs that are left: a `berth run` was killed and the runner does not find its processes, or a client
 * or the runner hangs. The session does not end, so their permits stay held, and the next berthd recovers
 * them. */
static int manager_on_exit_due(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
    struct manager *m = userdata;

    if (m->phase != MANAGER_PHASE_STOPPING)
        return 0;
    run_table_foreach (r, &m->runs, RUN_STATE_PENDING, RUN_STATE_STOPPING)
        manager_log(m, LOG_WARNING, "run %s (%s): cannot be stopped, its permits stay held", r->id, r->name);
    m->phase = MANAGER_PHASE_EXITING;
    exit_loop(m);
    return 0;
}

static usec_t longest_stop(const struct manager *m) {
    usec_t longest = 0;

    run_table_foreach (r, &m->runs, RUN_STATE_STARTING, RUN_STATE_STOPPING)
        if (r->terms.stop_timeout_usec > longest)
            longest = r->terms.stop_timeout_usec;
    return longest;
}

void manager_expect_stop(struct manager *m) {
    m->stop_jobs_wanted = true;
}

bool manager_stops_jobs(const struct manager *m) {
    return m->stop_jobs_wanted || !m->has_service_manager;
}

static void stop_all(struct manager *m, enum run_state last) {
    /* First: if the stop takes too long and berthd is killed, the next start is still one of the service. */
    scheduler_forget_service(m->scheduler);
    run_table_foreach (r, &m->runs, RUN_STATE_PENDING, last)
        manager_stop_run(r, "shutdown");
}

static void begin_stop(struct manager *m) {
    usec_t longest = longest_stop(m);

    m->phase = MANAGER_PHASE_STOPPING;
    scheduler_stop(m->scheduler);
    notify_stopping(longest);
    if (sd_event_add_time(m->event, &m->exit_timer, CLOCK_BOOTTIME,
                          usec_add(clock_boottime(), usec_add(longest, EXIT_SLACK)), USEC_PER_MSEC,
                          manager_on_exit_due, m) < 0)
        manager_log(m, LOG_ERR, "stop: out of memory; it has no time limit");
    stop_all(m, RUN_STATE_STOPPING);
    stop_check(m);
}

void manager_stop(struct manager *m, bool stop_jobs) {
    if (m->phase >= MANAGER_PHASE_STOPPING) {
        (void) sd_event_exit(m->event, 0); /* a second request: exits at once, and guards stop the runs */
        return;
    }
    event_emit(m->events, &(struct event){.type = EVENT_STOPPING_DAEMON}, "berthd stops%s",
               stop_jobs ? "; so do its runs" : "; its runs go on");
    if (stop_jobs && m->phase == MANAGER_PHASE_READY) {
        begin_stop(m);
        return;
    }
    if (stop_jobs) /* during recovery; runs that are still unknown end at their deadline */
        stop_all(m, RUN_STATE_PENDING);
    m->phase = MANAGER_PHASE_EXITING;
    scheduler_stop(m->scheduler);
    exit_loop(m);
}

/* --- idle --- */

void manager_watch_idle(struct manager *m, struct manager_idle_watch *watch) {
    list_init(&watch->link);
    list_append(&m->idle_watches, &watch->link);
}

void manager_idle_check(struct manager *m) {
    if (!manager_is_idle(m))
        return;
    list_foreach_safe (w, &m->idle_watches, struct manager_idle_watch, link) {
        list_unlink(&w->link);
        w->on_idle(w);
    }
    stop_check(m);
}
