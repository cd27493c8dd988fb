/* SPDX-License-Identifier: MIT */

/* Stop. For a job that hosts share it also ends open turns: Redis answers which attempts these were, and
 * which other hosts have a run of the job. */

#include <errno.h>
#include <string.h>

#include "daemon/api/verbs-internal.h"

struct stop { /* a call that waits for Redis */
    struct manager *manager;
    struct control_call *call; /* NULL: the client has gone */
    size_t n_asked;            /* jobs without an answer */
    size_t n_stopped;          /* runs here, and attempts that no host had */
    bool is_unsure;            /* Redis did not answer for a job */
    bool is_in_grace;
    json_t *elsewhere;
};

/* Answers and frees the call. */
static int conclude(struct stop *stop) {
    char buffer[VERBS_AWAY_SIZE];
    const char *why = stop->is_in_grace ? "Redis is in a grace period"
                                        : verbs_explain_away(stop->manager, buffer);
    int k = 0;

    if (stop->call && stop->is_unsure && stop->n_stopped == 0)
        k = verbs_error(stop->call, "io.berth.Away",
                        "%s: nothing was stopped here, and runs on other hosts are unknown", why);
    else if (stop->call)
        k = control_call_answer(stop->call, json_pack("{s:I, s:o, s:s?}", "stopped", (json_int_t) stop->n_stopped,
                                                      "elsewhere", json_incref(stop->elsewhere), "unsure",
                                                      stop->is_unsure ? why : NULL));
    json_decref(stop->elsewhere);
    free(stop);
    return k;
}

static void stop_on_gone(_unused_ struct control_call *call, void *userdata) {
    struct stop *stop = userdata;

    stop->call = NULL;
}

static void note_unsure(struct stop *stop, int r) {
    stop->is_unsure = true;
    stop->is_in_grace |= r == -EAGAIN;
}

static void stop_on_answer(int r, const char *job, const struct store_ended_turns *ended, void *userdata) {
    struct stop *stop = userdata;

    if (r < 0)
        note_unsure(stop, r);
    else
        stop->n_stopped += ended->n_turns;
    for (size_t i = 0; r == 0 && i < ended->n_runs; i++)
        (void) json_array_append_new(stop->elsewhere,
                                     json_pack("{s:s, s:s, s:s, s:b}", "job", job, "run", ended->runs[i].run, "host",
                                               ended->runs[i].host, "waits", ended->runs[i].waits));
    if (--stop->n_asked == 0)
        (void) conclude(stop);
}

/* Asks Redis about a job that hosts share, or all such jobs of a template. */
static int ask(struct stop *stop, const char *target) {
    const struct settings *s = manager_settings(stop->manager);

    for (size_t i = 0; i < s->n_jobs; i++) {
        const struct job_settings *job = &s->jobs[i];
        int r;

        if (job->triggers.sharing.on != JOB_ON_ANY ||
            (strcmp(job->name, target) != 0 && !job_name_matches(target, job->name)))
            continue;
        r = manager_stop_turns(stop->manager, job->name, stop_on_answer, stop);
        if (r == -ENOMEM && stop->n_asked == 0) {
            stop->call = NULL;
            (void) conclude(stop);
            return r;
        }
        if (r < 0)
            note_unsure(stop, r);
        else
            stop->n_asked++;
    }
    if (stop->n_asked == 0)
        return conclude(stop);
    control_call_keep(stop->call, stop_on_gone, stop);
    return 0;
}

int verbs_stop(struct control_call *call, json_t *params, void *userdata) {
    const char *target = NULL;
    size_t n = 0;
    struct stop *stop;
    bool is_id;
    const struct param table[] = {{"target", PARAM_STRING, true, &target, 0, 0}};
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k;
    if (params_check_job(call, "job or run", target) != 0 || verbs_check_stop(call, userdata, target) != 0)
        return 0;
    is_id = id_is_valid(target);
    k = manager_stop_target(userdata, target, &n);
    if (k == MANAGER_E_UNKNOWN)
        return is_id ? verbs_no_such_run(call, target) : verbs_no_such_job(call, userdata, target);
    if (k == 0 || k == MANAGER_E_RECOVERING)
        verbs_record(call, userdata, params,
                     &(struct change){.run = is_id ? target : NULL, .job = is_id ? NULL : target});
    if (k != 0)
        return verbs_refused(call, k);
    stop = calloc(1, sizeof(*stop));
    if (!stop)
        return -ENOMEM;
    *stop = (struct stop){.manager = userdata, .call = call, .n_stopped = n, .elsewhere = json_array()};
    return ask(stop, target);
}
