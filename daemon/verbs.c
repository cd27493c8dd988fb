/* SPDX-License-Identifier: MIT */

/* The methods of io.berth: the table, and those that answer at once. */

#include "daemon/verbs.h"

#include <errno.h>
#include <string.h>

#include "daemon/verbs-internal.h"

static const char description[] = ""
#include "daemon/io.berth.varlink.inc"
    ;

static int verbs_version(struct control_call *call, json_t *params, void *userdata) {
    const struct settings *s = manager_settings(userdata);
    int k = params_read(call, params, NULL, 0);

    if (k != 0)
        return k < 0 ? k : 0;
    return control_call_answer(call, json_pack("{s:s, s:s, s:s, s:i}", "version", VERSION, "host", s->host, "namespace",
                                              s->namespace, "pid", (int) getpid()));
}

static int verbs_jobs(struct control_call *call, json_t *params, void *userdata) {
    const struct settings *s = manager_settings(userdata);
    json_t *jobs;
    int k = params_read(call, params, NULL, 0);

    if (k != 0)
        return k < 0 ? k : 0;
    jobs = json_array();
    for (size_t i = 0; i < s->n_jobs; i++)
        k |= json_array_append_new(jobs, json_job(userdata, &s->jobs[i]));
    if (k < 0) {
        json_decref(jobs);
        return -ENOMEM;
    }
    return control_call_answer(call, json_pack("{s:i, s:b, s:o}", "schema", 1, "gathering", manager_is_gathering(userdata), "jobs", jobs));
}

static int verbs_stop(struct control_call *call, json_t *params, void *userdata) {
    const char *target = NULL;
    size_t n = 0;
    const struct param table[] = {{"target", PARAM_STRING, true, &target, 0, 0}};
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k < 0 ? k : 0;
    if (params_check_name(call, "job or run", target) != 0)
        return 0;
    k = manager_stop_target(userdata, target, &n);
    if (k == MANAGER_E_UNKNOWN)
        return id_is_valid(target) ? verbs_no_such_run(call, target) : verbs_no_such_job(call, userdata, target);
    return k != 0 ? verbs_refused(call, k) : control_call_answer(call, json_pack("{s:I}", "stopped", (json_int_t) n));
}

static int config_refused(struct control_call *call, const struct settings_errors *errors) {
    json_t *lines = json_array();

    for (size_t i = 0; i < errors->n; i++)
        (void) json_array_append_new(lines, json_string(errors->lines[i]));
    return control_call_error(call, "io.berth.ConfigRefused", json_pack("{s:o}", "errors", lines));
}

static int verbs_reload(struct control_call *call, json_t *params, void *userdata) {
    struct settings_errors errors = {};
    int k = params_read(call, params, NULL, 0);

    if (k != 0)
        return k < 0 ? k : 0;
    k = manager_reload(userdata, &errors);
    if (k == 0)
        k = control_call_reply(call, NULL);
    else if (k == SETTINGS_E_INVALID)
        k = config_refused(call, &errors);
    settings_errors_done(&errors);
    return k;
}

static const struct control_method methods[] = {
    {"io.berth.Version", verbs_version, false},
    {"io.berth.Pools", verbs_pools, false},
    {"io.berth.Hosts", verbs_hosts, false},
    {"io.berth.Jobs", verbs_jobs, false},
    {"io.berth.Runs", verbs_runs, false},
    {"io.berth.Start", verbs_start, true},
    {"io.berth.Await", verbs_await, false},
    {"io.berth.Stop", verbs_stop, true},
    {"io.berth.Reload", verbs_reload, true},
    {"io.berth.Drain", verbs_drain, true},
    {"io.berth.Undrain", verbs_undrain, true},
    {"io.berth.SetLimit", verbs_set_limit, true},
    {"io.berth.ClearLimit", verbs_clear_limit, true},
    {"io.berth.Pause", verbs_pause, true},
    {"io.berth.Resume", verbs_resume, true},
    {"io.berth.Revoke", verbs_revoke, true},
    {"io.berth.EndGrace", verbs_end_grace, true},
    {"io.berth.Hold", verbs_hold, true},
    {"io.berth.Started", verbs_started, true},
    {"io.berth.Ended", verbs_ended, true},
    {NULL, NULL, false},
};

int verbs_new_control(struct control **ret, sd_event *event, struct manager *m, const char *path, int listen_fd) {
    return control_new(ret, event, path, listen_fd, methods, description, m);
}
