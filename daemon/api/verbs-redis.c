/* SPDX-License-Identifier: MIT */

/* Redis: what this host knows of its Redis, without asking it. AcceptNamespace. */

#include <time.h>

#include "base/duration.h"
#include "daemon/api/verbs-internal.h"
#include "store/status.h"

#define FAILOVER_LASTS (5 * USEC_PER_SEC) /* after the sentinels considered the master down */
#define NO_REDIS "there is no Redis: the config has no redis section"

static usec_t longest_stop_timeout(const struct settings *s) {
    usec_t longest = s->n_jobs > 0 ? 0 : settings_stop_timeout_default(s);

    for (size_t i = 0; i < s->n_jobs; i++)
        if (s->jobs[i].stop_timeout_usec > longest)
            longest = s->jobs[i].stop_timeout_usec;
    return longest;
}

/* Returns how long jobs go on without Redis. The last heartbeat may be an interval old when Redis goes away,
 * and all commands must be gone a margin before the lease ends (R8). */
static usec_t outage_of(const struct settings *s) {
    usec_t spent = usec_add(settings_margin(s->lease_usec), usec_add(s->heartbeat_usec, longest_stop_timeout(s)));

    return usec_sub(s->lease_usec, spent);
}

static json_t *json_outage(const struct settings *s) {
    return json_pack("{s:o, s:o, s:o, s:o}", "outage_ms", json_msec(outage_of(s)), "lease_ms",
                     json_msec(s->lease_usec), "heartbeat_ms", json_msec(s->heartbeat_usec), "stop_timeout_ms",
                     json_msec(longest_stop_timeout(s)));
}

/* Warns of a failover that takes so long that it stops all jobs. */
static void add_failover_warning(const struct settings *s, struct redis_status *status) {
    char down_after[DURATION_TEXT_SIZE], outage[DURATION_TEXT_SIZE];

    if (status->down_after == 0 || status->n_warnings >= STATUS_WARNINGS_MAX ||
        usec_add(status->down_after, FAILOVER_LASTS) <= outage_of(s))
        return;
    (void) snprintf(status->warnings[status->n_warnings++], STATUS_WARNING_SIZE,
                    "the sentinels consider the master down after %s, and jobs go on for %s without Redis: "
                    "a failover stops them; lower down-after-milliseconds, or raise the lease",
                    duration_format(status->down_after, down_after), duration_format(outage_of(s), outage));
}

static json_t *json_known(const char *text) {
    return json_text(text[0] ? text : NULL);
}

static json_t *json_tls(const struct redis_status *status) {
    char until[16] = "";
    struct tm tm;

    if (!status->tls_version[0])
        return json_null();
    if (status->tls_until > 0)
        (void) strftime(until, sizeof(until), "%Y-%m-%d", gmtime_r(&status->tls_until, &tm));
    return json_pack("{s:s, s:o}", "version", status->tls_version, "until", json_known(until));
}

static json_t *json_server(const struct redis_status *status) {
    json_t *replicas = json_number(status->replicas.count, status->replicas.has_count),
           *good_replicas = json_number(status->replicas.good, status->replicas.has_good),
           *clients = json_number(status->clients, status->clients > 0),
           *clients_max = json_number(status->clients_max, status->clients_max > 0);

    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "server",
                     json_known(status->server), "version", json_known(status->version), "tls",
                     json_tls(status), "role", json_known(status->role), "replicas", replicas,
                     "good_replicas", good_replicas, "policy", json_known(status->policy), "clients", clients,
                     "clients_max", clients_max, "slot", json_number(status->slot, status->is_cluster), "scripts",
                     json_number(status->scripts, status->has_scripts));
}

static json_t *json_memory(const struct redis_status *status) {
    const struct redis_data *data = &status->data;

    if (data->memory_used == 0)
        return json_null();
    return json_pack("{s:I, s:o, s:I}", "used", (json_int_t) data->memory_used, "max",
                     json_number((json_int_t) data->memory_max, data->memory_max > 0), "evicted", (json_int_t) data->evicted);
}

static json_t *json_persistence(const struct redis_status *status) {
    const struct redis_data *data = &status->data;

    if (!status->version[0])
        return json_null();
    return json_pack("{s:b, s:b, s:b, s:I, s:o}", "snapshot_failed", data->snapshot_failed, "append_failed",
                     data->append_failed, "appends", data->appends, "unsaved", (json_int_t) data->unsaved, "saved_ms",
                     data->saved == USEC_INFINITY ? json_null() : json_msec(data->saved));
}

static json_t *json_clock(const struct redis_status *status) {
    const struct redis_clock *clock = &status->clock;

    if (!clock->is_known)
        return json_null();
    return json_pack("{s:f, s:f, s:o}", "offset_ms", (double) clock->offset_usec / USEC_PER_MSEC, "error_ms",
                     (double) clock->error_usec / USEC_PER_MSEC, "rate_ppm",
                     clock->has_rate ? json_real(clock->rate_ppm) : json_null());
}

static json_t *json_standstill(const struct store *s) {
    struct redis_counts counts;

    store_redis_get_counts(s, &counts);
    if (counts.standstill.at == 0)
        return json_null();
    return json_pack("{s:o, s:o}", "ago_ms", json_msec(usec_sub(clock_boottime(), counts.standstill.at)), "lasted_ms",
                     json_msec(counts.standstill.lasted));
}

/* What monitoring judges. */
static json_t *json_health(const struct store *s, const struct redis_status *status) {
    return json_pack("{s:o, s:o, s:o, s:o}", "memory", json_memory(status), "persistence", json_persistence(status),
                     "clock", json_clock(status), "standstill", json_standstill(s));
}

static json_t *json_warnings(const struct redis_status *status) {
    json_t *list = json_array();
    int k = 0;

    for (unsigned i = 0; list && i < status->n_warnings; i++)
        k |= json_array_append_new(list, json_string(status->warnings[i]));
    return json_complete(list, k);
}

static const char *describe_way(const struct redis_status *status) {
    return status->is_cluster ? "cluster" : status->master[0] ? "sentinels" : "url";
}

static json_t *json_connection(const struct store *s, const struct redis_status *status) {
    bool is_away = s->state == STORE_STATE_AWAY;
    json_t *round_trip = status->round_trip_usec > 0
                             ? json_real((double) status->round_trip_usec / USEC_PER_MSEC)
                             : json_null();

    return json_pack("{s:i, s:s, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "schema", 1, "state",
                     !is_away           ? "connected"
                     : s->is_connecting ? "connecting"
                                        : "away",
                     "reason", json_text(is_away && s->away_why[0] ? s->away_why : NULL), "since",
                     json_time(is_away ? s->away_since : 0), "address", json_known(status->address), "via",
                     describe_way(status), "master_name", json_known(status->master),
                     "rtt_ms", round_trip, "grace_ms",
                     is_away ? json_null() : json_msec(status->grace_usec), "margin_ms",
                     is_away ? json_null() : json_msec(status->failover_margin), "warnings", json_warnings(status));
}

int verbs_accept_namespace(struct control_call *call, json_t *params, void *userdata) {
    struct store *s = manager_cluster_store(userdata);
    int k = params_read(call, params, NULL, 0);

    if (k != 0)
        return k;
    if (!s)
        return verbs_bad_request(call, NO_REDIS);
    verbs_record(call, userdata, params, &(struct change){});
    if (store_redis_accept(s) != 0)
        return verbs_bad_request(call, "nothing to accept: Redis has no other namespace than the one of this host");
    return control_call_done(call);
}

int verbs_redis(struct control_call *call, json_t *params, void *userdata) {
    const struct store *s = manager_cluster_store(userdata);
    _cleanup_json_ json_t *server = NULL, *health = NULL, *outage = NULL;
    json_t *answer;
    struct redis_status status;
    int k = params_read(call, params, NULL, 0);

    if (k != 0)
        return k;
    if (!s)
        return verbs_bad_request(call, NO_REDIS);
    store_redis_get_status(s, &status);
    add_failover_warning(manager_settings(userdata), &status);
    server = json_server(&status);
    health = json_health(s, &status);
    outage = json_outage(manager_settings(userdata));
    answer = json_connection(s, &status);
    if (!server || !health || !outage || !answer || json_object_update(answer, server) < 0 ||
        json_object_update(answer, health) < 0 ||
        json_object_update(answer, outage) < 0) {
        json_decref(answer);
        return -ENOMEM;
    }
    return control_call_answer(call, answer);
}
