/* SPDX-License-Identifier: MIT */

/* The methods of io.berth: the table, and those that answer at once. */

#include "daemon/api/verbs.h"

#include <errno.h>
#include <string.h>

#include "daemon/api/verbs-internal.h"

static const char description[] = ""
#include "daemon/api/io.berth.varlink.inc"
    ;

static int verbs_version(struct control_call *call, json_t *params, void *userdata) {
    const struct settings *s = manager_settings(userdata);
    int k = params_read(call, params, NULL, 0);

    if (k != 0)
        return k;
    return control_call_answer(call, json_pack("{s:s, s:s, s:s, s:i, s:b}", "version", VERSION, "host", s->host, "namespace",
                                              s->namespace, "pid", (int) getpid(), "drained", manager_is_drained(userdata)));
}

static int verbs_jobs(struct control_call *call, json_t *params, void *userdata) {
    const struct settings *s = manager_settings(userdata);
    const char *state_error = manager_state_error(userdata);
    const struct job_settings *job;
    json_t *jobs;
    int k = params_read(call, params, NULL, 0);

    if (k != 0)
        return k;
    manager_forget_open(userdata);
    jobs = json_array();
    for (size_t i = 0; (job = settings_get_job(s, i)); i++)
        k |= json_array_append_new(jobs, json_job(userdata, job));
    if (k < 0) {
        json_decref(jobs);
        return -ENOMEM;
    }
    return control_call_answer(call, json_pack("{s:i, s:b, s:s?, s:o}", "schema", 1, "recovering",
                                               manager_is_recovering(userdata), "state_error",
                                               state_error[0] ? state_error : NULL, "jobs", jobs));
}

static int config_refused(struct control_call *call, const struct settings_errors *errors) {
    json_t *lines = json_array();

    for (size_t i = 0; i < errors->n; i++)
        (void) json_array_append_new(lines, json_string(errors->lines[i]));
    return control_call_error(call, "io.berth.ConfigRefused", json_pack("{s:o}", "errors", lines));
}

struct reloader { /* a client that waits until the new settings of Redis are in use */
    struct store_use_watch watch;
    struct control_call *call;
};

static int answer_reload(struct control_call *call, const char *why) {
    return control_call_answer(call, why ? json_pack("{s:[s]}", "warnings", why) : json_pack("{s:[]}", "warnings"));
}

static void reloader_on_used(struct store_use_watch *watch, const char *why) {
    struct reloader *reloader = list_entry(watch, struct reloader, watch);

    (void) answer_reload(reloader->call, why);
    free(reloader);
}

static void reloader_on_gone(_unused_ struct control_call *call, void *userdata) {
    struct reloader *reloader = userdata;

    list_unlink(&reloader->watch.link);
    free(reloader);
}

/* Replies when Redis is connected with the new settings, or when that has failed. */
static int finish_reload(struct control_call *call, struct store *cluster) {
    struct reloader *reloader = calloc(1, sizeof(*reloader));

    if (!reloader)
        return -ENOMEM;
    reloader->call = call;
    reloader->watch.on_used = reloader_on_used;
    if (!cluster || !store_redis_watch_use(cluster, &reloader->watch)) {
        free(reloader);
        return answer_reload(call, NULL);
    }
    control_call_keep(call, reloader_on_gone, reloader);
    return 0;
}

static int verbs_reload(struct control_call *call, json_t *params, void *userdata) {
    struct settings_errors errors = {};
    int k = params_read(call, params, NULL, 0);

    if (k != 0)
        return k;
    verbs_record(call, userdata, params, &(struct change){});
    k = manager_reload(userdata, &errors);
    if (k == 0)
        k = finish_reload(call, manager_cluster_store(userdata));
    else if (k == SETTINGS_E_INVALID)
        k = config_refused(call, &errors);
    settings_errors_done(&errors);
    return k;
}

static const struct settings *verbs_get_settings(void *userdata) {
    return manager_settings(userdata);
}

/* The rights are here and in the text of the interface; a test compares the two. */
static const struct control_method methods[] = {
    {"io.berth.Version", verbs_version, RIGHT_LOOK, "version", false},
    {"io.berth.Pools", verbs_pools, RIGHT_LOOK, "pools", false},
    {"io.berth.Hosts", verbs_hosts, RIGHT_LOOK, "hosts", false},
    {"io.berth.Look", verbs_look_on, RIGHT_LOOK, "look", false},
    {"io.berth.Redis", verbs_redis, RIGHT_LOOK, "redis", false},
    {"io.berth.Metrics", verbs_metrics, RIGHT_LOOK, "metrics", false},
    {"io.berth.Jobs", verbs_jobs, RIGHT_LOOK, "jobs", false},
    {"io.berth.Runs", verbs_runs, RIGHT_LOOK, "runs", false},
    {"io.berth.Next", verbs_next, RIGHT_LOOK, "next", false},
    {"io.berth.Events", verbs_events, RIGHT_LOOK, "watch", false},
    {"io.berth.Find", verbs_find, RIGHT_LOOK, "stop", false},
    {"io.berth.Start", verbs_start, RIGHT_BY_TARGET, "start", true},
    {"io.berth.Await", verbs_await, RIGHT_LOOK, "start", false},
    {"io.berth.Stop", verbs_stop, RIGHT_BY_TARGET, "stop", true},
    {"io.berth.Reload", verbs_reload, RIGHT_OPERATE, "reload", true},
    {"io.berth.Drain", verbs_drain, RIGHT_OPERATE, "drain", true},
    {"io.berth.Undrain", verbs_undrain, RIGHT_OPERATE, "undrain", true},
    {"io.berth.AcceptNamespace", verbs_accept_namespace, RIGHT_OPERATE, "redis", true},
    {"io.berth.SetLimit", verbs_set_limit, RIGHT_OPERATE, "limit", true},
    {"io.berth.ClearLimit", verbs_clear_limit, RIGHT_OPERATE, "limit", true},
    {"io.berth.Pause", verbs_pause, RIGHT_OPERATE, "pause", true},
    {"io.berth.Resume", verbs_resume, RIGHT_OPERATE, "resume", true},
    {"io.berth.Revoke", verbs_revoke, RIGHT_OPERATE, "revoke", true},
    {"io.berth.Move", verbs_move, RIGHT_OPERATE, "move", true},
    {"io.berth.EndGrace", verbs_end_grace, RIGHT_OPERATE, "grace", true},
    /* A user may lose the right to run while a run goes on. The run keeps its lease, and its end is
     * recorded. */
    {"io.berth.Hold", verbs_hold, RIGHT_BY_TARGET, "run", false},
    {"io.berth.Started", verbs_started, RIGHT_BY_TARGET, "run", false},
    {"io.berth.Stuck", verbs_stuck, RIGHT_BY_TARGET, "run", false},
    {"io.berth.Ended", verbs_ended, RIGHT_BY_TARGET, "run", false},
    {NULL, NULL, RIGHT_MISSING, NULL, false},
};

const struct control_service verbs_service = {methods, description, verbs_get_settings};

int verbs_new_control(struct control **ret, sd_event *event, struct manager *m, const char *path, int listen_fd) {
    return control_new(ret, event, path, listen_fd, &verbs_service, m);
}
