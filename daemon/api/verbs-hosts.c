/* SPDX-License-Identifier: MIT */

/* Hosts and the state of Redis as JSON. While Redis is away, only this host is known. */

#include "daemon/api/verbs-internal.h"

static json_t *json_session(const struct snapshot_session *session) {
    _cleanup_json_ json_t *limits = json_array(), *jobs = json_array();
    _cleanup_json_ json_t *there = json_array(), *here = json_array();
    int k = 0;

    for (size_t i = 0; i < session->n_limits; i++) {
        const struct snapshot_limit *limit = &session->limits[i];

        if (limit->differs)
            k |= json_array_append_new(limits, json_pack("{s:s, s:I}", "pool", limit->pool, "limit", (json_int_t) limit->limit));
        if (limit->is_due_otherwise)
            k |= json_array_append_new(jobs, json_string(limit->pool + 1));
        if (limit->is_only_there)
            k |= json_array_append_new(there, json_string(limit->pool));
        if (limit->is_only_here)
            k |= json_array_append_new(here, json_string(limit->pool));
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
        k |= json_array_append_new(hosts, json_session(&cluster->sessions[i]));
    if (!cluster)
        k |= json_array_append_new(hosts, json_own_host(m));
    return json_complete(hosts, k);
}

json_t *json_malformed(const struct snapshot *cluster) {
    json_t *list = json_array();
    int k = 0;

    for (size_t i = 0; cluster && i < cluster->n_malformed; i++) {
        const struct snapshot_malformed *m = &cluster->malformed[i];

        k |= json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "key", m->key, "id", m->id, "record", m->record));
    }
    return json_complete(list, k);
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
