/* SPDX-License-Identifier: MIT */

/* Start: triggers a job, and reports the end of its run if the client wants that. Await: reports the end of
 * a run that was started before. */

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "base/timer.h"
#include "daemon/api/verbs-internal.h"

#define UNDECIDED_MAX (2 * USEC_PER_SEC) /* while Redis does not answer */
#define OVER_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10) /* as calls of clients: the end of a run brings grants, which go first */

struct start { /* one call that waits for the end of a run and of the attempts after it */
    struct run_watch watch;
    struct manager *manager;
    struct control_call *call;
    json_t *last; /* the reply about the previous attempt; NULL: none */
    json_t *answer;         /* the last reply, to be sent by `over` */
    struct defer over;
    bool is_undecided;      /* Redis has not answered yet whether another host has a run of the job */
    bool wait;
    struct timer patience;  /* while it is undecided */
    char run[ID_TEXT_SIZE]; /* the undecided run */
};

static struct start *start_free(struct start *s) {
    if (!s)
        return NULL;
    run_watch_remove(&s->watch);
    timer_done(&s->patience);
    defer_done(&s->over);
    json_decref(s->last);
    json_decref(s->answer);
    free(s);
    return NULL;
}

static json_t *pack_run(const struct manager *m, const struct run *r) {
    bool is_behind = r->state == RUN_STATE_PENDING && r->job.queued_by_overlap;

    return json_pack("{s:o}", "run", json_run(manager_settings(m), r, NULL, is_behind ? "overlap" : NULL));
}

static int skipped(struct control_call *call, const char *job, const struct run *run) {
    return control_call_error(call, "io.berth.Skipped", json_pack("{s:s, s:o, s:n}", "job", job, "run", json_text(run ? run->id : NULL), "host"));
}

static void start_on_gone(_unused_ struct control_call *call, void *userdata) {
    start_free(userdata);
}

/* Returns the attempt that follows a run, or NULL. */
static struct run *find_attempt(struct manager *m, const struct run *run) {
    return run->job.next_run ? manager_find_run(m, run->job.next_run) : NULL;
}

static int skipped_elsewhere(struct control_call *call, const struct run *run) {
    const struct run_other *other = run->job.other;

    return control_call_error(call, "io.berth.Skipped",
                              json_pack("{s:s, s:o, s:o}", "job", run->name, "run",
                                        json_text(other && other->run[0] ? other->run : NULL), "host",
                                        json_text(other && other->host[0] ? other->host : NULL)));
}

/* Replies. Returns NULL if that was the last reply; then s is freed. */
static struct start *start_decided(struct start *s, const struct run *run) {
    s->is_undecided = false;
    timer_off(&s->patience);
    if (s->wait) {
        (void) control_call_notify(s->call, pack_run(s->manager, run), -1);
        return s;
    }
    (void) control_call_answer(s->call, pack_run(s->manager, run));
    return start_free(s);
}

static void start_on_patience(void *userdata) {
    struct start *s = userdata;
    const struct run *run = manager_find_run(s->manager, s->run);

    if (run && s->is_undecided)
        (void) start_decided(s, run);
}

static void start_on_over(void *userdata) {
    struct start *s = userdata;

    (void) control_call_answer(s->call, steal_pointer(&s->answer));
    start_free(s);
}

static void start_on_change(struct run_watch *watch, struct run *run) {
    struct start *s = list_entry(watch, struct start, watch);
    struct run *next;

    if (run->job.is_skipped) {
        (void) skipped_elsewhere(s->call, run);
        start_free(s);
        return;
    }
    if (s->is_undecided && !run->job.turn)
        s = start_decided(s, run);
    if (!s || !run_is_over(run))
        return;
    next = find_attempt(s->manager, run);
    if (next) {
        json_decref(s->last);
        s->last = pack_run(s->manager, run);
        run_watch_remove(&s->watch);
        run_watch_add(next, &s->watch);
        return;
    }
    /* An attempt that was given up before it began has no end. */
    s->answer = run->job.begin_due > 0 && s->last ? json_incref(s->last) : pack_run(s->manager, run);
    run_watch_remove(&s->watch);
    defer_set(&s->over);
}

static int start_wait(struct control_call *call, struct manager *m, struct run *run, bool is_undecided, bool wait) {
    struct start *s = calloc(1, sizeof(*s));
    int k;

    if (!s)
        return -ENOMEM;
    s->watch.on_change = start_on_change;
    s->call = call;
    s->manager = m;
    s->is_undecided = is_undecided;
    s->wait = wait;
    memcpy(s->run, run->id, sizeof(s->run));
    run_watch_add(run, &s->watch);
    k = defer_init(&s->over, manager_event(m), OVER_PRIORITY, start_on_over, s);
    if (k >= 0)
        k = is_undecided ? timer_init(&s->patience, manager_event(m), SD_EVENT_PRIORITY_NORMAL, start_on_patience, s)
                     : control_call_notify(call, pack_run(m, run), -1);
    if (k < 0) {
        start_free(s);
        return k;
    }
    timer_set_in(&s->patience, UNDECIDED_MAX);
    control_call_keep(call, start_on_gone, s);
    return 0;
}

static int start(struct control_call *call, struct manager *m, const char *job, char *const *set,
                 bool wait, const json_t *params) {
    struct run *run = NULL;
    int k = manager_start_job(m, job, set, &run);

    switch (k) {
    case 0:
        verbs_record(call, m, params, &(struct change){.job = job});
        if (run_is_over(run) || (!wait && !run->job.turn))
            return control_call_answer(call, pack_run(m, run));
        return start_wait(call, m, run, run->job.turn != NULL, wait);
    case MANAGER_E_UNKNOWN:
        return verbs_no_such_job(call, m, job);
    case MANAGER_E_SKIPPED:
        return skipped(call, job, run);
    default:
        return verbs_refused(call, k);
    }
}

/* Returns 0: the job is known, VERBS_ANSWERED, or a negative errno. */
static int open_job(struct control_call *call, struct manager *m, const char *job) {
    struct settings_errors errors = {};
    char full[160];
    int k = manager_open_job(m, job, &errors);

    if (k == SETTINGS_E_UNKNOWN) {
        k = verbs_no_such_job(call, m, job);
    } else if (k == SETTINGS_E_INVALID) {
        k = verbs_bad_request(call, "%s", errors.n > 0 ? errors.lines[0] : "");
    } else if (k == SETTINGS_E_FULL) {
        snprintf(full, sizeof(full),
                 "%.*s@ has %d instances, which is the most; one without a run in `berth runs --all` is "
                 "forgotten",
                 (int) strcspn(job, "@"), job, INSTANCES_MAX);
        k = control_call_error(call, "io.berth.NoPermit", json_pack("{s:s}", "reason", full));
    } else {
        return k;
    }
    settings_errors_done(&errors);
    return k < 0 ? k : VERBS_ANSWERED;
}

int verbs_start(struct control_call *call, json_t *params, void *userdata) {
    struct manager *m = userdata;
    const char *job = NULL;
    bool wait = false;
    json_t *set = NULL;
    char **list;
    const struct param table[] = {
        {"job", PARAM_STRING, true, &job, 0, 0},
        {"set", PARAM_TEXTS, false, &set, 0, 0},
        {"wait", PARAM_BOOL, false, &wait, 0, 0},
    };
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k;
    if (params_check_job(call, "job", job) != 0 || verbs_check_job(call, m, job) != 0)
        return 0;
    k = open_job(call, m, job);
    if (k != 0)
        return k == VERBS_ANSWERED ? 0 : k;
    list = params_list_set(set);
    k = list ? params_check_set(call, m, job, list) : -ENOMEM;
    if (k == 0)
        k = start(call, m, job, list, wait, params);
    text_free_list(list);
    return k == VERBS_ANSWERED ? 0 : k;
}

/* --- runs that were started before --- */

/* Packs what the job remembers of its last run. Returns NULL without memory. */
static json_t *pack_last(const char *name, const struct manager_job *job) {
    return json_pack("{s:{s:s, s:s, s:s, s:s, s:{}, s:n, s:n, s:o, s:n, s:n, s:o, s:o, s:i, s:n, s:o, s:o, s:o, s:n}}", "run", "run",
                     job->last_run, "name", name, "kind", "job", "state", run_state_name(RUN_STATE_DONE), "pools", "position",
                     "blocked_by", "token", json_number((json_int_t) job->last_token, job->last_token > 0), "pid", "queued", "started",
                     json_time(job->last_started_realtime), "ended", json_time(job->last_ended_realtime), "wait_ms", 0, "run_ms",
                     "result", json_text(run_result_name(job->last_result)), "exit_code",
                     json_number(job->last_exit_code, job->last_exit_code >= 0), "signal",
                     json_number(job->last_signal, job->last_signal >= 0), "reason");
}

static int await_last(struct control_call *call, struct manager *m, const char *id) {
    const struct settings *s = manager_settings(m);
    const struct job_settings *settings;
    struct manager_job job = {};

    for (size_t i = 0; (settings = settings_get_job(s, i)); i++) {
        manager_get_job(m, settings, &job);
        if (strcmp(job.last_run, id) != 0)
            continue;
        return control_call_answer(call, pack_last(settings->name, &job));
    }
    return verbs_no_such_run(call, id);
}

int verbs_await(struct control_call *call, json_t *params, void *userdata) {
    struct manager *m = userdata;
    const char *id = NULL;
    struct run *run;
    const struct param table[] = {{"run", PARAM_STRING, true, &id, 0, 0}};
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k;
    run = manager_find_run(m, id);
    for (struct run *next = run; next; next = run_is_over(run) ? find_attempt(m, run) : NULL)
        run = next;
    if (run && run_is_over(run))
        return control_call_answer(call, pack_run(m, run));
    if (run)
        return start_wait(call, m, run, false, true);
    if (manager_is_recovering(m))
        return verbs_refused(call, MANAGER_E_RECOVERING);
    return await_last(call, m, id);
}
