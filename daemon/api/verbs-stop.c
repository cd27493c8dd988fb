/* SPDX-License-Identifier: MIT */

/* Stop. For a job that hosts share it also ends open turns: Redis answers which attempts these were, and
 * which other hosts have a run of the job. With `wait` the reply comes when the runs here are over. */

#include <errno.h>
#include <string.h>

#include "daemon/api/verbs-internal.h"

struct stop { /* a call that waits for Redis, or for the ends of the runs */
    struct manager *manager;
    struct control_call *call; /* NULL: the client has gone */
    size_t n_asked;            /* jobs without an answer */
    size_t n_stopped;          /* runs here, and attempts that no host had */
    struct list ends;          /* of struct awaited_end */
    bool wait, is_beginning;
    bool lacks_memory;         /* to await the end of a run */
    bool is_unsure;            /* Redis did not answer for a job */
    bool is_in_grace;
    json_t *elsewhere;
};

struct awaited_end { /* of a run */
    struct run_watch watch;
    struct stop *stop;
    struct list link;
};

static void awaited_end_free(struct awaited_end *e) {
    run_watch_remove(&e->watch);
    list_unlink(&e->link);
    free(e);
}

static struct stop *stop_free(struct stop *stop) {
    if (!stop)
        return NULL;
    list_foreach_safe (e, &stop->ends, struct awaited_end, link)
        awaited_end_free(e);
    json_decref(stop->elsewhere);
    free(stop);
    return NULL;
}

static bool is_pending(const struct stop *stop) {
    return stop->is_beginning || stop->n_asked > 0 || !list_is_empty(&stop->ends);
}

/* Answers and frees the call, unless it still waits. */
static int conclude(struct stop *stop) {
    char buffer[VERBS_AWAY_SIZE];
    const char *why = stop->is_in_grace ? "Redis is in a grace period"
                                        : verbs_explain_away(stop->manager, buffer);
    int k = 0;

    if (is_pending(stop))
        return 0;
    if (stop->call && stop->is_unsure && stop->n_stopped == 0)
        k = verbs_error(stop->call, "io.berth.Away",
                        "%s: nothing was stopped here, and runs on other hosts are unknown", why);
    else if (stop->call)
        k = control_call_answer(stop->call, json_pack("{s:I, s:o, s:s?}", "stopped", (json_int_t) stop->n_stopped,
                                                      "elsewhere", json_incref(stop->elsewhere), "unsure",
                                                      stop->is_unsure ? why : NULL));
    stop_free(stop);
    return k;
}

static void stop_on_gone(_unused_ struct control_call *call, void *userdata) {
    struct stop *stop = userdata;

    stop->call = NULL;
    list_foreach_safe (e, &stop->ends, struct awaited_end, link)
        awaited_end_free(e);
    (void) conclude(stop);
}

static void stop_on_change(struct run_watch *watch, struct run *run) {
    struct awaited_end *e = list_entry(watch, struct awaited_end, watch);
    struct stop *stop = e->stop;

    if (!run_is_over(run))
        return;
    awaited_end_free(e);
    (void) conclude(stop);
}

/* Called for each run that is being stopped. */
static void stop_on_run(struct run *run, void *userdata) {
    struct stop *stop = userdata;
    struct awaited_end *e = stop->wait ? calloc(1, sizeof(*e)) : NULL;

    stop->n_stopped++;
    stop->lacks_memory |= stop->wait && !e;
    if (!e)
        return;
    e->stop = stop;
    e->watch.on_change = stop_on_change;
    run_watch_add(run, &e->watch);
    list_append(&stop->ends, &e->link);
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
    stop->n_asked--;
    (void) conclude(stop);
}

/* Asks Redis about a job that hosts share, or all such jobs of a template. Returns 0 or -ENOMEM: nothing was asked. */
static int ask(struct stop *stop, const char *target) {
    const struct settings *s = manager_settings(stop->manager);

    for (size_t i = 0; i < s->n_jobs; i++) {
        const struct job_settings *job = &s->jobs[i];
        int r;

        if (job->triggers.sharing.on != JOB_ON_ANY ||
            (strcmp(job->name, target) != 0 && !job_name_matches(target, job->name)))
            continue;
        r = manager_stop_turns(stop->manager, job->name, stop_on_answer, stop);
        if (r == -ENOMEM && stop->n_asked == 0)
            return r;
        if (r < 0)
            note_unsure(stop, r);
        else
            stop->n_asked++;
    }
    return 0;
}

/* Stops what is here, and asks about the rest. Returns 0, VERBS_ANSWERED or -ENOMEM: the call has no reply yet. */
static int begin(struct stop *stop, const char *target, json_t *params) {
    bool is_id = id_is_valid(target);
    int k = manager_stop_target(stop->manager, target, stop_on_run, stop);

    if (k == MANAGER_E_UNKNOWN)
        k = is_id ? verbs_no_such_run(stop->call, target) : verbs_no_such_job(stop->call, stop->manager, target);
    else {
        verbs_record(stop->call, stop->manager, params,
                     &(struct change){.run = is_id ? target : NULL, .job = is_id ? NULL : target});
        if (k == 0)
            return stop->lacks_memory ? -ENOMEM : ask(stop, target);
        k = verbs_refused(stop->call, k);
    }
    return k < 0 ? k : VERBS_ANSWERED;
}

int verbs_stop(struct control_call *call, json_t *params, void *userdata) {
    const char *target = NULL;
    struct stop *stop;
    bool wait = false;
    const struct param table[] = {{"target", PARAM_STRING, true, &target, 0, 0}, {"wait", PARAM_BOOL, false, &wait, 0, 0}};
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k;
    if (params_check_job(call, "job or run", target) != 0 || verbs_check_stop(call, userdata, target) != 0)
        return 0;
    stop = calloc(1, sizeof(*stop));
    if (!stop)
        return -ENOMEM;
    *stop = (struct stop){.manager = userdata, .call = call, .wait = wait, .is_beginning = true, .elsewhere = json_array()};
    list_init(&stop->ends);
    k = begin(stop, target, params);
    stop->is_beginning = false;
    if (k != 0) {
        stop_free(stop);
        return k < 0 ? k : 0;
    }
    if (is_pending(stop))
        control_call_keep(call, stop_on_gone, stop);
    return conclude(stop);
}
