/* SPDX-License-Identifier: MIT */
#include "runner/runner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "base/process/cgroup-control.h"
#include "base/process/cgroup.h"
#include "base/journal/event.h"
#include "base/protocol.h"
#include "conf/parameter.h"
#include "runner/berthd-link.h"
#include "runner/home.h"
#include "runner/report.h"
#include "runner/resource-control.h"
#include "runner/runs.h"

/* s; a runner of the berthd before ends when it sees its socket closed, and a guard just forked still holds its runner's lock */
#define LOCK_TIME_CHILD 10
#define LOCK_TIME 1

struct runner {
    sd_event *event;
    struct journal *journal;
    char *config;
    struct settings *settings; /* the last good ones */
    struct access access;
    struct runs *runs;
    int lock_fd, listen_fd;
    struct berthd_link *berthd;
    bool ends_with_berthd;     /* on a socketpair */
    bool owes_recovered;       /* berthd waits for `recovered` until no sweep is under way */
};

/* --- to berthd --- */

/* berthd reads all that it missed after its next hello. */
static void runner_say(struct runner *r, const struct message_writer *w) {
    berthd_link_send(r->berthd, w);
}

static void runner_say_run(struct runner *r, const char *verb, const char *run) {
    struct message_writer w;

    message_begin(&w, verb);
    message_put(&w, "run", run);
    runner_say(r, &w);
}

static void runner_refuse(struct runner *r, const char *run, const char *reason, const char *text) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_REFUSED);
    message_put(&w, "run", run);
    message_put(&w, "reason", reason);
    message_put_text(&w, "text", text);
    runner_say(r, &w);
}

/* Of a run that neither guard nor record nor report is left of: nothing of it runs. */
/* killed: the token that berthd wanted killed, or NULL. */
static void runner_say_lost(struct runner *r, const char *run, const char *killed) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_REPORT);
    message_put(&w, "run", run);
    message_put_u64(&w, "ended", clock_realtime());
    message_put(&w, "reason", "none");
    message_put(&w, "lost", "1");
    if (killed)
        message_put(&w, "killed", killed);
    runner_say(r, &w);
}

/* 0, or -ENOENT: there is none. */
static int runner_load_report(struct runner *r, const char *run) {
    struct message_writer w;
    int k;

    if (!berthd_link_is_up(r->berthd))
        return 0;
    k = report_load(&w, runs_directory(r->runs), run);
    if (k == 0)
        runner_say(r, &w);
    else if (k != -ENOENT)
        journal_log(r->journal, LOG_ERR, "the report of run %s cannot be read: %s", run, strerror(-k));
    if (k == -EBADMSG || k == -EFBIG)
        runner_say_lost(r, run, NULL); /* that nothing of it runs is certain: else there were no report */
    else if (k < 0 && k != -ENOENT)
        berthd_link_shut(r->berthd); /* berthd reconnects and gets all states again */
    return k == -ENOENT ? k : 0;
}

static void runner_say_report(const char *run, void *userdata) {
    (void) runner_load_report(userdata, run);
}

static void runner_say_guard(const char *run, void *userdata) {
    runner_say_run(userdata, PROTOCOL_GUARD, run);
}

static void runner_say_recovered(struct runner *r) {
    struct message_writer w;

    /* A run that is being swept has processes, so berthd must not take its permits for free. */
    r->owes_recovered = runs_is_reaping(r->runs);
    if (r->owes_recovered)
        return;
    message_begin(&w, PROTOCOL_RECOVERED);
    runner_say(r, &w);
}

/* --- from berthd --- */

static int runner_on_hello(const struct message *m, void *userdata) {
    struct runner *r = userdata;
    struct message_writer w;
    uint64_t version;

    if (message_get_u64(m, "version", &version) < 0)
        return -EBADMSG;
    message_begin(&w, PROTOCOL_HELLO);
    message_put_u64(&w, "version", PROTOCOL_VERSION);
    message_put_u64(&w, "pid", (uint64_t) getpid());
    runner_say(r, &w);
    runs_each_guard(r->runs, runner_say_guard, r);
    if (runs_each_report(r->runs, runner_say_report, r) < 0)
        return -EIO;
    runner_say_recovered(r);
    return 0;
}

/* Reads the config again, and keeps the one there is if that is bad. */
static void runner_reload(struct runner *r) {
    _cleanup_(settings_freep) struct settings *settings = NULL;
    struct settings_errors errors = {0};
    int k = settings_load(r->config, &settings, &errors);

    for (size_t i = 0; i < errors.n; i++)
        journal_log(r->journal, LOG_ERR, "%s", errors.lines[i]);
    settings_errors_done(&errors);
    if (k != 0) {
        journal_log(r->journal, LOG_ERR, "%s is not taken, the config read before stays in force", r->config);
        return;
    }
    settings_free(r->settings);
    r->settings = steal_pointer(&settings);
}

static bool is_same(const struct job_settings *job, const struct guard_file *record) {
    return job && strcmp(job->hash, record->hash) == 0;
}

/* The job that berthd means, or NULL: it was refused. */
static const struct job_settings *runner_find_job(struct runner *r, const struct guard_file *record) {
    const struct job_settings *job = settings_find_job(r->settings, record->job);

    if (!is_same(job, record)) {
        runner_reload(r);
        job = settings_find_job(r->settings, record->job);
    }
    if (is_same(job, record))
        return job;
    if (job)
        runner_refuse(r, record->run, "config-differs", "the job is defined otherwise in the runner's config");
    else
        runner_refuse(r, record->run, "unknown-job", "the job is not defined in the runner's config");
    return NULL;
}

/* A job that asks for bounds that this host does not have runs without. */
static void runner_warn_of_missing(struct runner *r, const struct guard_file *record, unsigned missing) {
    char names[CGROUP_NAMES_SIZE], text[160];
    const struct journal_field fields[] = {{"BERTH_EVENT", event_name(EVENT_UNBOUNDED)}, {"BERTH_JOB", record->job},
                                           {"BERTH_RUN", record->run},      {"BERTH_HOST", record->host},
                                           {"BERTH_NAMESPACE", record->namespace}, {"BERTH_REASON", names}};

    if (missing == 0)
        return;
    snprintf(text, sizeof(text), "%s runs without the bounds that its config asks for: no cgroup controller here for %s", record->job,
             cgroup_format(missing, names));
    journal_send(r->journal, LOG_WARNING, event_message_id(EVENT_UNBOUNDED), event_name(EVENT_UNBOUNDED), text, fields,
                 ELEMENTSOF(fields));
}

#define STRING(x) #x
#define NUMBER(x) STRING(x)

/* berthd keeps these bounds itself; one that does not may have been taken over. */
static void runner_refuse_more(struct runner *r, const struct guard_file *record, int answer) {
    const char *reason = answer == RUNS_E_OVERLAP ? "overlap" : "too-many-runs";
    const char *text = answer == RUNS_E_OVERLAP ? "a run of the job is not over, and its config does not allow another one beside it"
                                                : "berth-runner starts no more than " NUMBER(RUNS_MAX) " runs at once";

    journal_log(r->journal, LOG_WARNING, "run %s of %s is refused: %s", record->run, record->job, text);
    runner_refuse(r, record->run, reason, text);
}

/* berthd has checked the same. One that sends what it must have refused may have been taken over. */
static bool runner_accepts_sets(struct runner *r, const struct guard_file *record,
                                const struct job_settings *job) {
    const struct parameters parameters = {job->name, job->input.parameters, job->input.environment};
    const char *list[PARAMETERS_MAX + 1];
    char error[PARAMETER_ERROR_SIZE];
    int k = parameters_check(&parameters, sets_list(&record->sets, list), record->sets.n, error);

    if (k == 0)
        return true;
    if (k != -EINVAL)
        snprintf(error, sizeof(error), "%s", strerror(-k));
    journal_log(r->journal, LOG_WARNING, "run %s of %s is refused: %s", record->run, record->job, error);
    runner_refuse(r, record->run, "parameters", error);
    return false;
}

static void runner_start(struct runner *r, struct guard_file *record) {
    const struct job_settings *job = runner_find_job(r, record);
    int k;

    if (!job || !runner_accepts_sets(r, record, job))
        return;
    if (job->on_lease_lost == ON_LEASE_LOST_STOP && clock_boottime() >= record->deadline) {
        runner_refuse(r, record->run, "late", "its deadline had passed when this runner read of it");
        return;
    }
    runner_warn_of_missing(r, record, runs_prepare(r->runs, job));
    k = runs_start(r->runs, record, job);
    if (k > 0) {
        runner_refuse_more(r, record, k);
        return;
    }
    if (k < 0) {
        journal_log(r->journal, LOG_ERR, "run %s of %s cannot be started: %s", record->run, record->job, strerror(-k));
        runner_refuse(r, record->run, "resources", strerror(-k));
        return;
    }
    runner_say_run(r, PROTOCOL_STARTING, record->run);
}

static void runner_take_start(struct runner *r, const char *run, const struct message *m) {
    struct guard_file record;

    if (runs_exists(r->runs, run))
        runner_say_run(r, PROTOCOL_EXISTS, run);
    else if (guard_file_parse(&record, m) < 0 || message_get(m, "cgroup") || message_get(m, "guard"))
        runner_refuse(r, run, "bad-request", "a field is missing or malformed");
    else
        runner_start(r, &record);
}

static void runner_take_kill(struct runner *r, const char *run, const struct message *m) {
    int k = runs_kill(r->runs, run);

    if (k == 1)
        runner_say_report(run, r);
    else if (k == -ENOENT)
        runner_say_lost(r, run, message_get(m, "token"));
}

static int runner_on_message(const struct message *m, void *userdata) {
    struct runner *r = userdata;
    char run[ID_TEXT_SIZE];

    if (message_get_id(m, "run", run) < 0)
        return -EBADMSG;
    if (message_is(m, PROTOCOL_START))
        runner_take_start(r, run, m);
    else if (message_is(m, PROTOCOL_KILL))
        runner_take_kill(r, run, m);
    else if (message_is(m, PROTOCOL_FORGET))
        runs_forget(r->runs, run);
    else
        return -EBADMSG;
    return 0;
}

static void runner_on_bad(void *userdata) {
    const struct runner *r = userdata;

    journal_log(r->journal, LOG_WARNING, "a connection was closed: what came is not a message of berthd");
}

static void runner_on_gone(bool is_berthd, void *userdata) {
    struct runner *r = userdata;

    if (is_berthd)
        r->owes_recovered = false;
    if (r->ends_with_berthd)
        (void) sd_event_exit(r->event, 0);
}

/* --- from the runs --- */

static void runner_on_report(const char *run, void *userdata) {
    if (runner_load_report(userdata, run) == -ENOENT)
        runner_say_lost(userdata, run, NULL);
}

static void runner_on_reaped(void *userdata) {
    struct runner *r = userdata;

    if (r->owes_recovered)
        runner_say_recovered(r);
}

/* --- the module --- */

/* The unit's ExecStopPost= has taken the controllers from runs that go on. */
static void runner_bound_again(const char *run, void *userdata) {
    struct runner *r = userdata;
    const struct job_settings *job;
    struct guard_file record;
    int k;

    if (guard_file_load(&record, runs_directory(r->runs), run) < 0 || !record.cgroup[0])
        return;
    job = settings_find_job(r->settings, record.job);
    if (!is_same(job, &record) || resource_control_needed(job) == 0)
        return;
    runner_warn_of_missing(r, &record, runs_prepare(r->runs, job));
    k = resource_control_apply(record.cgroup, job);
    if (k > 0)
        journal_log(r->journal, LOG_WARNING, "run %s of %s goes on without its bounds: %s: %s", run, record.job, record.cgroup, strerror(k));
}

static int runner_recover(struct runner *r) {
    _cleanup_free_ char *cgroup = NULL;
    const struct runs_handler handler = {.on_report = runner_on_report, .on_reaped = runner_on_reaped, .userdata = r};
    char path[GUARD_FILE_PATH_SIZE];
    int k;

    k = cgroup_find_own(&cgroup);
    if (k < 0)
        journal_log(r->journal, LOG_INFO, "no cgroup may be made here (%s): processes are found by descent", strerror(-k));
    snprintf(path, sizeof(path), "%s/%s", r->settings->runtime_directory, PROTOCOL_RUNS);
    k = runs_new(&r->runs, r->event, path, cgroup, &r->access, &handler);
    if (k == 0)
        k = runs_recover(r->runs);
    if (k == 0)
        runs_each_guard(r->runs, runner_bound_again, r);
    return k;
}

static int runner_listen(struct runner *r) {
    char path[GUARD_FILE_PATH_SIZE];

    snprintf(path, sizeof(path), "%s/%s", r->settings->runtime_directory, PROTOCOL_RUNNER_SOCKET);
    if (r->listen_fd < 0)
        r->listen_fd = access_listen(&r->access, path);
    if (r->listen_fd < 0) {
        journal_log(r->journal, LOG_ERR, "cannot listen on %s: %s", path, strerror(-r->listen_fd));
        return r->listen_fd;
    }
    return berthd_link_listen(r->berthd, r->listen_fd);
}

int runner_new(struct runner **ret, sd_event *event, struct journal *journal, const struct runner_options *options) {
    _cleanup_(runner_freep) struct runner *r = calloc(1, sizeof(*r));
    const struct berthd_link_handler handler = {.on_hello = runner_on_hello, .on_message = runner_on_message, .on_bad = runner_on_bad,
                                                .on_gone = runner_on_gone, .userdata = r};
    _cleanup_close_ int socket_fd = options->socket_fd, listen_fd = options->listen_fd;
    int k;

    if (!r) {
        settings_free(options->settings);
        return -ENOMEM;
    }
    r->event = sd_event_ref(event);
    r->journal = journal;
    r->settings = options->settings;
    r->lock_fd = -1;
    r->listen_fd = steal_fd(&listen_fd);
    r->ends_with_berthd = socket_fd >= 0;
    r->config = strdup(options->config);
    if (!r->config)
        return -ENOMEM;
    access_init(&r->access);
    k = berthd_link_new(&r->berthd, event, &r->access, &handler);
    if (k < 0)
        return k;
    k = home_take(journal, r->settings->runtime_directory, r->ends_with_berthd ? LOCK_TIME_CHILD : LOCK_TIME, &r->lock_fd);
    if (k >= 0)
        k = runner_recover(r);
    if (k >= 0)
        k = r->ends_with_berthd ? berthd_link_add(r->berthd, steal_fd(&socket_fd)) : runner_listen(r);
    if (k < 0)
        return k;
    *ret = steal_pointer(&r);
    return 0;
}

struct runner *runner_free(struct runner *r) {
    if (!r)
        return NULL;
    r->berthd = berthd_link_free(r->berthd);
    close_fd(r->listen_fd);
    runs_free(r->runs);
    close_fd(r->lock_fd);
    settings_free(r->settings);
    free(r->config);
    sd_event_unref(r->event);
    free(r);
    return NULL;
}
