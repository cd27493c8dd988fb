/* SPDX-License-Identifier: MIT */

/* Runs, jobs and names as JSON (daemon/api/io.berth.varlink has the types). */

#include <errno.h>
#include <string.h>

#include "daemon/api/verbs-internal.h"

json_t *json_complete(json_t *o, int k) {
    if (k >= 0)
        return o;
    json_decref(o);
    return NULL;
}

json_t *json_text(const char *text) {
    return text ? json_string(text) : json_null();
}

json_t *json_time(usec_t realtime) {
    char text[CLOCK_TEXT_SIZE];

    return realtime > 0 ? json_string(clock_format(realtime, text)) : json_null();
}

json_t *json_msec(usec_t usec) {
    return json_integer((json_int_t) (usec / USEC_PER_MSEC));
}

json_t *json_seen(usec_t usec) {
    return usec == USEC_INFINITY ? json_null() : json_msec(usec);
}

json_t *json_number(json_int_t n, bool known) {
    return known ? json_integer(n) : json_null();
}

/* --- names --- */

static int unknown(struct control_call *call, const char *error, const char *name, json_t *known) {
    return control_call_error(call, error, json_pack("{s:s, s:o}", "name", name, "known", known));
}

int verbs_no_such_pool(struct control_call *call, struct manager *m, const char *name) {
    const struct settings *s = manager_settings(m);
    json_t *known = json_array();

    for (size_t i = 0; i < s->n_pools; i++)
        (void) json_array_append_new(known, json_string(s->pools[i].name));
    return unknown(call, "io.berth.NoSuchPool", name, known);
}

int verbs_no_such_job(struct control_call *call, struct manager *m, const char *name) {
    const struct settings *s = manager_settings(m);
    json_t *known = json_array(), *instances = json_array();
    const struct job_settings *job;
    char template[NAME_MAX_LENGTH + 1];

    if (!job_name_template(name, template))
        snprintf(template, sizeof(template), "%s", job_name_parse(name) == JOB_NAME_TEMPLATE ? name : "");
    for (size_t i = 0; (job = settings_get_job(s, i)); i++) {
        (void) json_array_append_new(known, json_string(job->name));
        if (job_name_matches(template, job->name))
            (void) json_array_append_new(instances, json_string(job->name));
    }
    if (json_array_size(instances) > 0 ||
        settings_find_open_template(s, name)) { /* a template itself has no runs */
        json_decref(known);
        return unknown(call, "io.berth.NoSuchJob", name, instances);
    }
    json_decref(instances);
    return unknown(call, "io.berth.NoSuchJob", name, known);
}

int verbs_no_such_run(struct control_call *call, const char *name) {
    return control_call_error(call, "io.berth.NoSuchRun", json_pack("{s:s}", "name", name));
}

int verbs_no_such_claim(struct control_call *call, const char *name) {
    return control_call_error(call, "io.berth.NoSuchClaim", json_pack("{s:s}", "name", name));
}

const char *verbs_explain_away(struct manager *m, char buffer[static VERBS_AWAY_SIZE]) {
    const struct store *s = manager_cluster_store(m);
    bool is_known = s && s->away_why[0];

    (void) snprintf(buffer, VERBS_AWAY_SIZE, is_known ? "Redis is away (%s)" : "berthd is connecting to Redis",
                    is_known ? s->away_why : "");
    return buffer;
}

int verbs_refused(struct control_call *call, int answer) {
    switch (answer) {
    case MANAGER_E_STOPPING:
        return control_call_error(call, "io.berth.Stopping", NULL);
    case MANAGER_E_DRAINED:
        return control_call_error(call, "io.berth.NoPermit", json_pack("{s:s}", "reason", "this host is drained"));
    case MANAGER_E_RECOVERING:
        return verbs_error(call, "io.berth.Away", "berthd has just started and does not yet know all runs");
    default:
        return answer < 0 ? answer : -EPROTO;
    }
}

/* --- runs and jobs --- */

static json_t *json_demands(const struct demand_ref *demands, size_t n) {
    json_t *pools = json_object();
    int k = 0;

    for (size_t i = 0; i < n; i++)
        k |= json_object_set_new(pools, demands[i].pool, json_integer(demands[i].permits));
    return json_complete(pools, k);
}

/* Returns the attempts by the job's present definition; 0: not known. */
static uint32_t count_attempts(const struct settings *settings, const struct run *r) {
    const struct job_settings *job =
        r->kind == RUN_KIND_JOB ? settings_find_job(settings, r->name) : NULL;

    return job ? job->retry.retries + 1 : 0;
}

static int set_origin(json_t *o, const struct settings *settings, const struct run *r) {
    const struct run_origin *origin = &r->job.origin;
    bool is_job = r->kind == RUN_KIND_JOB;
    int k = 0;

    k |= json_object_set_new(o, "instance", json_text(is_job ? job_name_instance(r->name) : NULL));
    k |= json_object_set_new(o, "set", json_set(origin->set));
    k |= json_object_set_new(o, "trigger", json_text(run_trigger_name(origin->trigger)));
    k |= json_object_set_new(o, "due", json_text(origin->due[0] ? origin->due : NULL));
    k |= json_object_set_new(o, "attempt", json_number(origin->attempt, is_job));
    k |= json_object_set_new(o, "attempts", json_number(count_attempts(settings, r), count_attempts(settings, r) > 0));
    k |= json_object_set_new(o, "first_run", json_text(is_job ? origin->first_run : NULL));
    k |= json_object_set_new(o, "not_before", json_time(r->state == RUN_STATE_RETRYING ? r->job.begin_realtime : 0));
    k |= json_object_set_new(o, "of", origin->of ? json_pack("{s:o, s:o}", "job", json_text(origin->of->job[0] ? origin->of->job : NULL), "run",
                                                             json_text(origin->of->run[0] ? origin->of->run : NULL))
                                                 : json_null());
    return k;
}

/* The number of a move is a time by Redis's clock (R7). */
static json_t *json_moved(const struct run *r) {
    const struct claim *c = r->cluster_claim->moved > 0 ? r->cluster_claim : r->host_claim;

    if (c->moved == 0)
        return json_null();
    return json_pack("{s:o, s:o}", "at", json_time(c->moved), "head_start_ms", json_msec(claim_head_start(c)));
}

json_t *json_run(const struct settings *settings, const struct run *r, json_t *position, const char *blocked_by) {
    usec_t now = clock_boottime();
    json_t *o = json_object();
    int k = 0;

    k |= json_object_set_new(o, "run", json_string(r->id));
    k |= json_object_set_new(o, "name", json_string(r->name));
    k |= json_object_set_new(o, "kind", json_string(r->kind == RUN_KIND_JOB ? "job" : "adhoc"));
    k |= json_object_set_new(o, "state", json_string(run_state_name(r->state)));
    k |= json_object_set_new(o, "pools", json_demands(r->demands, r->n_demands));
    k |= json_object_set_new(o, "position", position ? position : json_null());
    k |= json_object_set_new(o, "blocked_by", json_text(blocked_by));
    k |= json_object_set_new(o, "token", json_number((json_int_t) run_token(r), run_token(r) > 0));
    k |= json_object_set_new(o, "pid", json_number(manager_run_pid(r), manager_run_pid(r) > 0));
    k |= json_object_set_new(o, "queued", json_time(r->queued.realtime));
    k |= json_object_set_new(o, "started", json_time(r->started.realtime));
    k |= json_object_set_new(o, "ended", json_time(r->end.realtime));
    k |= json_object_set_new(o, "wait_ms", json_msec(run_wait_usec(r, now)));
    k |= json_object_set_new(o, "run_ms",
                             r->started.realtime > 0 ? json_msec(run_time_usec(r, now)) : json_null());
    k |= json_object_set_new(o, "result", json_text(run_result_name(r->end.result)));
    k |= json_object_set_new(o, "exit_code", json_number(r->end.exit_code, r->end.exit_code >= 0));
    k |= json_object_set_new(o, "signal", json_number(r->end.signal, r->end.signal >= 0));
    k |= json_object_set_new(o, "reason", json_text(r->reason[0] ? r->reason : NULL));
    k |= json_object_set_new(o, "stuck", json_text(run_is_over(r) ? NULL : r->end.stuck));
    k |= json_object_set_new(o, "moved", json_moved(r));
    k |= set_origin(o, settings, r);
    return json_complete(o, k);
}

static json_t *json_due(const struct manager_job *job, int64_t due) {
    char text[SCHEDULE_TEXT_SIZE];

    return due == 0 || !job->zone ? json_null() : json_string(schedule_format(job->zone, due, text));
}

static json_t *json_schedule(const struct schedule *schedule) {
    json_t *texts = json_array();
    int k = 0;

    for (size_t i = 0; i < schedule->n_entries; i++)
        k |= json_array_append_new(texts, json_string(schedule->entries[i].text));
    return json_complete(texts, k);
}

static json_t *json_missed(const struct manager_job *job) {
    return json_pack("{s:I, s:o}", "count", (json_int_t) job->n_missed, "last", json_due(job, job->last_missed));
}

json_t *json_job(struct manager *m, const struct job_settings *settings) {
    const char *description = settings->description && settings->description[0] ? settings->description : NULL;
    bool has_schedule = !schedule_is_empty(&settings->triggers.schedule);
    char template[NAME_MAX_LENGTH + 1];
    struct demand_ref pools[DEMAND_POOLS_MAX];
    struct manager_job job;
    json_t *o = json_object();
    int k = 0;

    demands_get_refs(&settings->pools, pools);
    manager_get_job(m, settings, &job);
    k |= json_object_set_new(o, "name", json_string(settings->name));
    k |= json_object_set_new(o, "instance_of", json_text(job_name_template(settings->name, template)));
    k |= json_object_set_new(o, "state", json_string(job.run ? run_state_name(job.run->state) : job.is_stopped ? "stopped" : "idle"));
    k |= json_object_set_new(o, "run", json_text(job.run ? job.run->id : NULL));
    k |= json_object_set_new(o, "runs", json_integer((json_int_t) job.n_runs));
    k |= json_object_set_new(o, "pools", json_demands(pools, settings->pools.n));
    k |= json_object_set_new(o, "description", json_text(description));
    k |= json_object_set_new(o, "last_started", json_time(job.last_started_realtime));
    k |= json_object_set_new(o, "last_ended", json_time(job.last_ended_realtime));
    k |= json_object_set_new(o, "last_result", json_text(run_result_name(job.last_result)));
    k |= json_object_set_new(o, "last_exit_code", json_number(job.last_exit_code, job.last_exit_code >= 0));
    k |= json_object_set_new(o, "last_signal", json_number(job.last_signal, job.last_signal >= 0));
    k |= json_object_set_new(o, "next", json_time(job.next_realtime));
    k |= json_object_set_new(o, "on", json_string(settings->triggers.sharing.on == JOB_ON_ANY ? "any" : "each"));
    k |= json_object_set_new(o, "schedule", json_schedule(&settings->triggers.schedule));
    k |= json_object_set_new(o, "zone", json_text(has_schedule ? settings->triggers.zone.name : NULL));
    k |= json_object_set_new(o, "zone_error", json_text(job.zone_error));
    k |= json_object_set_new(o, "next_due", json_due(&job, job.next_due));
    k |= json_object_set_new(o, "backlog", json_integer((json_int_t) job.n_queued));
    k |= json_object_set_new(o, "missed", json_missed(&job));
    k |= json_object_set_new(o, "broken", json_boolean(job.is_broken));
    k |= json_object_set_new(o, "bad", json_integer(job.n_bad));
    k |= json_object_set_new(o, "last_success", json_time(job.last_success_realtime));
    k |= json_object_set_new(o, "attempt", json_number(job.run ? job.run->job.origin.attempt : 0, job.run != NULL));
    k |= json_object_set_new(o, "drained", json_boolean(manager_is_drained(m)));
    return json_complete(o, k);
}
