/* SPDX-License-Identifier: MIT */

/* How long runs hold their permits: stored for the next berthd, and sent to other hosts. Both happen every 5
 * minutes if there is something new. When a name gets enough runs for an estimate, they happen a lease after
 * the last time. */

#include <string.h>

#include "daemon/manager-internal.h"

#define PERIOD (300 * USEC_PER_SEC)

static usec_t longest_run(const char *name, void *userdata) {
    const struct manager *m = userdata;
    const struct job_settings *job = settings_find_job(m->settings, name);

    return job ? usec_add(job->timeout_usec, job->timeout_usec == USEC_INFINITY ? 0 : job->stop_timeout_usec)
               : USEC_INFINITY;
}

char *manager_format_times(struct manager *m) {
    return times_format(&m->times.known, TIMES_TEXT_MAX, longest_run, m);
}

void manager_times_store(struct manager *m) {
    _cleanup_free_ char *text = m->times.is_changed ? times_save(&m->times.known) : NULL;

    if (text)
        state_save_times(&m->state, text);
    m->times.is_changed = false;
}

static void times_on_due(void *userdata) {
    struct manager *m = userdata;
    char *text = m->cluster_store ? times_format(&m->times.known, STORE_PUBLISHED_MAX, longest_run, m) : NULL;

    manager_times_store(m);
    m->times.sent = clock_boottime();
    m->times.is_urgent = false;
    if (text)
        store_publish(m->cluster_store, text);
}

static void arm(struct manager *m) {
    usec_t pause = m->times.sent == 0 ? 0 : m->times.is_urgent ? m->settings->lease_usec : PERIOD;

    timer_set(&m->times.timer, usec_add(m->times.sent, pause));
}

void manager_times_add(struct run *r, usec_t held_usec) {
    struct manager *m = manager_of(r);

    switch (r->end.result) {
    case RUN_RESULT_SUCCESS:
    case RUN_RESULT_FAILURE:
    case RUN_RESULT_TIMEOUT:
        break;
    case RUN_RESULT_NONE:
    case RUN_RESULT_STOPPED:
    case RUN_RESULT_LEASE_LOST:
    case RUN_RESULT_QUEUE_TIMEOUT:
    case RUN_RESULT_NOT_STARTED:
    case RUN_RESULT_GUARD_DIED:
    case RUN_RESULT_HOST_LOST:
        return;
    }
    m->times.is_urgent |= times_add(&m->times.known, r->name, held_usec) == RUN_TIMES_ENOUGH;
    m->times.is_changed = true;
    arm(m);
}

int manager_times_init(struct manager *m) {
    _cleanup_free_ char *text = state_load_times(&m->state);
    int k = timer_init(&m->times.timer, m->event, SD_EVENT_PRIORITY_IDLE, times_on_due, m);

    if (k < 0)
        return k;
    if (text && times_load(&m->times.known, text) == -EBADMSG)
        manager_log(m, LOG_WARNING, "state/times: not a valid state file; some run times are lost");
    if (m->times.known.n > 0)
        arm(m);
    return 0;
}

void manager_times_done(struct manager *m) {
    timer_done(&m->times.timer);
}
