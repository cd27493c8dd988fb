/* SPDX-License-Identifier: MIT */

/* Metrics: the figures of `berth metrics`, without text. A metric that this host cannot know has no
 * sample. */

#include "base/journal/event.h"
#include "base/journal/event-ring.h"
#include "daemon/api/verbs-internal.h"
#include "store/status.h"

#define SECONDS(usec) ((double) (usec) / USEC_PER_SEC)

/* --- samples --- */

static int add_sample(json_t *metrics, enum metric metric, json_t *sample) {
    const char *name = metric_get(metric)->name;
    json_t *samples = json_object_get(metrics, name);

    if (!samples && json_object_set_new(metrics, name, samples = json_array()) < 0)
        samples = NULL;
    if (!samples) {
        json_decref(sample);
        return -1;
    }
    return json_array_append_new(samples, sample);
}

int metrics_put(json_t *metrics, enum metric metric, json_t *labels, double value) {
    return add_sample(metrics, metric, json_pack("{s:o, s:f}", "labels", labels, "value", value));
}

static int put(json_t *metrics, enum metric metric, double value) {
    return metrics_put(metrics, metric, json_object(), value);
}

static int put_histogram(json_t *metrics, enum metric metric, json_t *labels, const struct histogram *h,
                         const struct histogram_bounds *bounds) {
    json_t *upper = json_array(), *counts = json_array();
    int k = 0;

    for (size_t i = 0; i <= bounds->n; i++) {
        if (i < bounds->n)
            k |= json_array_append_new(upper, json_real(SECONDS(bounds->upper[i])));
        k |= json_array_append_new(counts, json_integer((json_int_t) h->counts[i]));
    }
    return k | add_sample(metrics, metric,
                          json_pack("{s:o, s:o, s:o, s:f}", "labels", labels, "bounds", upper, "counts",
                                    counts, "sum", SECONDS(h->sum_usec)));
}

static json_t *label(const char *name, const char *value) {
    return json_pack("{s:s}", name, value);
}

/* --- berthd --- */

static int put_daemon(json_t *metrics, struct control_call *call, struct manager *m) {
    const struct settings *s = manager_settings(m);
    const struct counters *c = manager_counters(m);
    struct events *events = manager_events(m);
    int k = metrics_put(
        metrics, METRIC_IS_BUILD_INFO,
        json_pack("{s:s, s:s, s:s}", "version", VERSION, "namespace", s->namespace, "host", s->host), 1);

    k |= put(metrics, METRIC_IS_START_TIME_SECONDS, SECONDS(c->started_realtime));
    k |= put(metrics, METRIC_IS_RECOVERING, manager_is_recovering(m));
    k |= put(metrics, METRIC_IS_DRAINED, manager_is_drained(m));
    k |= put(metrics, METRIC_IS_CONFIG_LAST_RELOAD_SUCCESSFUL, !c->is_refused);
    k |= put(metrics, METRIC_IS_CONFIG_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS, SECONDS(c->loaded_realtime));
    k |= put(metrics, METRIC_IS_LEASE_SECONDS, SECONDS(s->lease_usec));
    k |= put(metrics, METRIC_IS_HEARTBEAT_INTERVAL_SECONDS, SECONDS(s->heartbeat_usec));
    k |= put(metrics, METRIC_IS_CLIENTS, (double) control_call_count_clients(call));
    k |= put(metrics, METRIC_IS_WATCHERS, (double) event_ring_readers(events_get_ring(events)));
    return k | put(metrics, METRIC_IS_JOURNAL_ERRORS_TOTAL,
                   (double) journal_count_lost(events_get_journal(events)));
}

static int put_events(json_t *metrics, const struct events *events) {
    static const struct {
        enum metric metric;
        enum event_type event;
    } counted[] = {
        {METRIC_IS_LEASE_LOST_TOTAL, EVENT_LEASE_LOST},
        {METRIC_IS_FENCED_TOTAL, EVENT_FENCED},
        {METRIC_IS_RECLAIMED_TOTAL, EVENT_RECLAIMED},
        {METRIC_IS_OVERCOMMITTED_TOTAL, EVENT_OVERCOMMITTED},
    };
    int k = 0;

    for (size_t i = 0; i < ELEMENTSOF(counted); i++)
        k |= put(metrics, counted[i].metric, (double) events_count(events, counted[i].event));
    for (enum event_type type = 0; type < EVENT_TYPES; type++)
        k |= metrics_put(metrics, METRIC_IS_EVENTS_TOTAL, label("event", event_name(type)),
                         (double) events_count(events, type));
    return k;
}

int metrics_put_clock(json_t *metrics, const struct redis_clock *clock) {
    int k = 0;

    if (clock->is_known)
        k |= put(metrics, METRIC_IS_CLOCK_OFFSET_SECONDS, (double) clock->offset_usec / USEC_PER_SEC);
    if (clock->has_rate)
        k |= put(metrics, METRIC_IS_CLOCK_RATE_ERROR_RATIO, clock->rate_ppm / 1e6);
    return k;
}

static int put_redis(json_t *metrics, struct manager *m) {
    static const char *const classes[STATUS_ERRORS] = {"retry", "reload", "redirect", "fatal"};
    const struct store *s = manager_cluster_store(m);
    struct redis_counts counts;
    struct redis_status status;
    int k;

    if (!s)
        return 0;
    store_redis_get_counts(s, &counts);
    store_redis_get_status(s, &status);
    k = put(metrics, METRIC_IS_REDIS_CONNECTED, s->state != STORE_STATE_AWAY);
    k |= put(metrics, METRIC_IS_REDIS_GRACE_SECONDS, SECONDS(status.grace_usec));
    k |= put_histogram(metrics, METRIC_IS_REDIS_ROUND_TRIP_SECONDS, json_object(), &counts.round_trips,
                       &status_round_trip_bounds);
    k |= put(metrics, METRIC_IS_REDIS_CONNECTS_TOTAL,
             (double) events_count(manager_events(m), EVENT_REDIS_CONNECTED));
    for (enum status_error i = 0; i < STATUS_ERRORS; i++)
        k |= metrics_put(metrics, METRIC_IS_REDIS_ERRORS_TOTAL, label("class", classes[i]),
                         (double) counts.errors[i]);
    k |= put(metrics, METRIC_IS_VIEW_CALLS_TOTAL, (double) counts.view_calls);
    k |= put(metrics, METRIC_IS_VIEW_SECONDS_TOTAL, SECONDS(counts.view_usec));
    k |= metrics_put_clock(metrics, &status.clock);
    if (counts.heartbeat_age_usec != USEC_INFINITY)
        k |= put(metrics, METRIC_IS_HEARTBEAT_AGE_SECONDS, SECONDS(counts.heartbeat_age_usec));
    return k;
}

/* --- runs --- */

static int put_finished(json_t *metrics, const struct counters_job *job) {
    int k = 0;

    for (enum run_result i = RUN_RESULT_SUCCESS; i < RUN_RESULTS; i++)
        if (job->finished[i] > 0)
            k |= metrics_put(metrics, METRIC_IS_RUNS_FINISHED_TOTAL,
                             json_pack("{s:s, s:s}", "job", job->name, "result", run_result_name(i)),
                             (double) job->finished[i]);
    return k;
}

static int put_runs(json_t *metrics, struct manager *m) {
    const struct counters *c = manager_counters(m);
    int k = 0;

    for (enum run_state state = RUN_STATE_RETRYING; state < RUN_STATE_DONE; state++) {
        size_t n = 0;

        list_foreach (r, manager_runs(m, state), struct run, link)
            n++;
        k |= metrics_put(metrics, METRIC_IS_RUNS, label("state", run_state_name(state)), (double) n);
    }
    for (size_t i = 0; i < c->n_jobs; i++)
        k |= put_finished(metrics, &c->jobs[i]);
    k |= put_finished(metrics, &c->others) | put_finished(metrics, &c->adhoc);
    for (enum counters_refusal i = 0; i < COUNTERS_REFUSALS; i++)
        k |= metrics_put(metrics, METRIC_IS_CLAIMS_REFUSED_TOTAL, label("reason", counters_refusal_name(i)),
                         (double) c->refused[i]);
    for (size_t i = 0; i < c->n_pools; i++) {
        const struct counters_pool *pool = &c->pools[i];

        k |= put_histogram(metrics, METRIC_IS_WAIT_SECONDS, label("pool", pool->name), &pool->wait,
                           &counters_bounds);
        k |= put_histogram(metrics, METRIC_IS_HOLD_SECONDS, label("pool", pool->name), &pool->hold,
                           &counters_bounds);
    }
    return k;
}

/* --- the method --- */

static int metrics_answer(struct control_call *call, struct manager *m, const struct snapshot *host,
                          const struct snapshot *cluster) {
    json_t *metrics = json_object();
    int k = put_daemon(metrics, call, m) | put_events(metrics, manager_events(m)) | put_redis(metrics, m) |
            put_runs(metrics, m);

    k |= metrics_put_pools(metrics, m, host, cluster);
    if (cluster)
        k |= metrics_put_hosts(metrics, m, cluster);
    if (k < 0) {
        json_decref(metrics);
        return control_call_answer(call, NULL); /* no memory: the client is dropped */
    }
    return control_call_answer(call, json_pack("{s:i, s:o}", "schema", 1, "metrics", metrics));
}

int verbs_metrics(struct control_call *call, json_t *params, void *userdata) {
    bool cluster = false;
    const struct param table[] = {{"cluster", PARAM_BOOL, false, &cluster, 0, 0}};
    int k = params_read(call, params, table, ELEMENTSOF(table));

    return k != 0 ? k : verbs_look(call, userdata, cluster, metrics_answer);
}
