/* SPDX-License-Identifier: MIT */
#include "runner/runner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "base/process/cgroup-control.h"
#include "base/process/cgroup.h"
#include "base/protocol.h"
#include "conf/parameter.h"
#include "runner/answers.h"
#include "runner/berthd-link.h"
#include "runner/delayed.h"
#include "runner/directories.h"
#include "runner/report.h"
#include "runner/resource-control.h"
#include "runner/runs.h"

/* Seconds to wait for the lock. The runner of an earlier berthd ends when its socket closes, and a guard
 * that was just forked still holds its runner's lock. */
#define LOCK_TIME_CHILD 10
#define LOCK_TIME 1

struct runner {
    sd_event *event;
    struct journal *journal;
    struct job_config *config;
    struct access access;
    struct runs *runs;
    int lock_fd, listen_fd;
    struct berthd_link *berthd;
    bool ends_with_berthd; /* on a socketpair */
    bool owes_recovered;   /* berthd waits for `recovered` until no run is being reaped */
    struct delayed delayed; /* starts that wait for the end of a prepared guard */
};

/* --- reports --- */

/* 0, or -ENOENT: there is none. */
static int runner_load_report(struct runner *runner, const char *run) {
    struct message_writer w;
    int r;

    if (!berthd_link_is_up(runner->berthd))
        return 0;
    r = report_load(&w, runs_directory(runner->runs), run);
    if (r == 0)
        berthd_link_send(runner->berthd, &w);
    else if (r != -ENOENT)
        journal_log(runner->journal, LOG_ERR, "run %s: cannot read its report: %s", run, strerror(-r));
    if (r == -EBADMSG || r == -EFBIG)
        answer_lost(runner->berthd, run, NULL); /* a run with a report has no process left */
    else if (r < 0 && r != -ENOENT)
        berthd_link_shut(runner->berthd); /* berthd reconnects and gets all states again */
    return r == -ENOENT ? r : 0;
}

static void runner_say_report(const char *run, void *userdata) {
    (void) runner_load_report(userdata, run);
}

static void runner_say_guard(const char *run, void *userdata) {
    const struct runner *runner = userdata;

    answer_run(runner->berthd, PROTOCOL_GUARD, run);
}

static void runner_say_recovered(struct runner *runner) {
    /* A run that is being reaped has processes, so berthd must not free its permits. A guard that was
     * prepared for an earlier berthd may be about to read its grant. */
    runner->owes_recovered = runs_withdraw(runner->runs) || runs_is_reaping(runner->runs);
    if (!runner->owes_recovered)
        answer_recovered(runner->berthd);
}

/* --- from berthd --- */

static int runner_on_hello(const struct message *m, void *userdata) {
    struct runner *runner = userdata;
    uint64_t version;

    if (message_get_u64(m, "version", &version) < 0)
        return -EBADMSG;
    answer_hello(runner->berthd);
    runs_each_guard(runner->runs, runner_say_guard, runner);
    if (runs_each_report(runner->runs, runner_say_report, runner) < 0)
        return -EIO;
    runner_say_recovered(runner);
    return 0;
}

/* Returns the job that berthd means, or NULL after it has refused the run. */
static const struct job_settings *runner_find_job(struct runner *runner, const struct guard_file *record) {
    bool is_defined;
    const struct job_settings *job = job_config_find(runner->config, record, &is_defined);

    if (job)
        return job;
    if (is_defined)
        answer_refused(runner->berthd, record->run, "config-differs",
                       "berth-runner's config defines the job differently");
    else
        answer_refused(runner->berthd, record->run, "unknown-job",
                       "berth-runner's config does not define the job");
    return NULL;
}

#define STRING(x) #x
#define NUMBER(x) STRING(x)

/* berthd checks these bounds itself; one that does not may be compromised. */
static void runner_refuse_more(struct runner *runner, const struct guard_file *record, int answer) {
    const char *reason = answer == RUNS_E_OVERLAP ? "overlap" : "too-many-runs";
    const char *text =
        answer == RUNS_E_OVERLAP
            ? "another run of the job is not over, and its config does not allow overlap"
            : "berth-runner starts no more than " NUMBER(RUNS_MAX) " runs at once";

    if (!record->is_prepared) /* else the start logs it */
        journal_log(runner->journal, LOG_WARNING, "run %s of %s is refused: %s", record->run, record->job, text);
    answer_refused(runner->berthd, record->run, reason, text);
}

/* berthd has checked the same; one that has not may be compromised. */
static bool runner_accepts_sets(struct runner *runner, const struct guard_file *record,
                                const struct job_settings *job) {
    const struct parameters parameters = {job->name, job->input.parameters, job->input.environment};
    const char *list[PARAMETERS_MAX + 1];
    char error[PARAMETER_ERROR_SIZE];
    int r = parameters_check(&parameters, sets_list(&record->sets, list), record->sets.n, error);

    if (r == 0)
        return true;
    if (r != -EINVAL)
        snprintf(error, sizeof(error), "%s", strerror(-r));
    journal_log(runner->journal, LOG_WARNING, "run %s of %s is refused: %s", record->run, record->job,
                error);
    answer_refused(runner->berthd, record->run, "parameters", error);
    return false;
}

/* Refuses a run for want of something that all runs share. error: positive. */
static void runner_refuse_without(struct runner *runner, const struct guard_file *record, int error) {
    char text[256];

    snprintf(text, sizeof(text), "%s", strerror(error));
    if (error == ENOSPC || error == EDQUOT || error == EROFS)
        snprintf(text, sizeof(text), "cannot write below %.160s: %s", runs_directory(runner->runs), strerror(error));
    journal_log(runner->journal, LOG_ERR, "run %s of %s cannot be started: %s", record->run, record->job, text);
    answer_refused(runner->berthd, record->run, "resources", text);
}

static void runner_start_job(struct runner *runner, struct guard_file *record,
                             const struct job_settings *job) {
    int r;

    if (!runner_accepts_sets(runner, record, job))
        return;
    if (!record->is_prepared && job->on_lease_lost == ON_LEASE_LOST_STOP && clock_boottime() >= record->deadline) {
        answer_refused(runner->berthd, record->run, "late",
                       "its deadline had passed before berth-runner read the request");
        return;
    }
    resource_control_warn(runner->journal, record, runs_prepare(runner->runs, job));
    r = runs_start(runner->runs, record, job);
    if (r == RUNS_E_IN_THE_WAY) {
        if (delayed_add(&runner->delayed, record) < 0)
            answer_refused(runner->berthd, record->run, "resources", strerror(ENOMEM));
        return;
    }
    if (r > 0) {
        runner_refuse_more(runner, record, r);
        return;
    }
    if (r < 0) {
        runner_refuse_without(runner, record, -r);
        return;
    }
    answer_run(runner->berthd, record->is_prepared ? PROTOCOL_PREPARED : PROTOCOL_STARTING, record->run);
}

static void runner_start(struct runner *runner, struct guard_file *record) {
    const struct job_settings *job = runner_find_job(runner, record);

    if (job)
        runner_start_job(runner, record, job);
    job_config_close(runner->config, record);
}

static void runner_take_start(struct runner *runner, const char *run, const struct message *m) {
    struct guard_file record;

    if (runs_exists(runner->runs, run))
        answer_run(runner->berthd, PROTOCOL_EXISTS, run);
    else if (delayed_has(&runner->delayed, run))
        return; /* sent again */
    else if (guard_file_parse(&record, m) < 0 || message_get(m, "cgroup") || message_get(m, "guard") || message_get(m, "prepared"))
        answer_refused(runner->berthd, run, "bad-request", "a field is missing or malformed");
    else
        runner_start(runner, &record);
}

static void runner_take_kill(struct runner *runner, const char *run, const struct message *m) {
    int r = runs_kill(runner->runs, run);

    delayed_remove(&runner->delayed, run);
    if (r == 1)
        runner_say_report(run, runner);
    else if (r == -ENOENT)
        answer_lost(runner->berthd, run, message_get(m, "token"));
}

static void runner_take_reap(struct runner *runner, const char *run, const struct message *m) {
    uint64_t token = 0;

    (void) message_get_u64(m, "token", &token);
    runs_reap_adhoc(runner->runs, run, token);
}

static int runner_on_message(const struct message *m, void *userdata) {
    struct runner *runner = userdata;
    char run[ID_TEXT_SIZE];

    if (message_get_id(m, "run", run) < 0)
        return -EBADMSG;
    if (message_is(m, PROTOCOL_START) || message_is(m, PROTOCOL_PREPARE))
        runner_take_start(runner, run, m);
    else if (message_is(m, PROTOCOL_KILL))
        runner_take_kill(runner, run, m);
    else if (message_is(m, PROTOCOL_REAP))
        runner_take_reap(runner, run, m);
    else if (message_is(m, PROTOCOL_FORGET))
        runs_forget(runner->runs, run);
    else
        return -EBADMSG;
    return 0;
}

static void runner_on_bad(void *userdata) {
    const struct runner *runner = userdata;

    journal_log(runner->journal, LOG_WARNING,
                "closed a connection: its message was not one of berthd");
}

static void runner_on_gone(bool is_berthd, void *userdata) {
    struct runner *runner = userdata;

    if (is_berthd) {
        runner->owes_recovered = false;
        delayed_done(&runner->delayed); /* the next berthd sends them again */
    }
    if (runner->ends_with_berthd)
        (void) sd_event_exit(runner->event, 0);
}

/* --- from the runs --- */

static void runner_on_report(const char *run, void *userdata) {
    struct runner *runner = userdata;

    if (runner_load_report(runner, run) == -ENOENT)
        answer_lost(runner->berthd, run, NULL);
}

static void runner_on_not_begun(const char *run, void *userdata) {
    const struct runner *runner = userdata;

    answer_not_begun(runner->berthd, run);
}

static void runner_on_stuck(const char *run, const char *what, void *userdata) {
    const struct runner *runner = userdata;

    answer_stuck(runner->berthd, run, what);
}

static void runner_on_adhoc_reaped(const char *run, void *userdata) {
    const struct runner *runner = userdata;

    answer_run(runner->berthd, PROTOCOL_REAPED, run);
}

static void runner_on_reaped(void *userdata) {
    struct runner *runner = userdata;

    if (runner->owes_recovered)
        runner_say_recovered(runner);
}

static void runner_start_delayed(struct guard_file *record, void *userdata) {
    runner_start(userdata, record); /* which may delay it once more */
}

static void runner_on_withdrawn(void *userdata) {
    struct runner *runner = userdata;

    delayed_take(&runner->delayed, runner_start_delayed, runner);
    if (runner->owes_recovered)
        runner_say_recovered(runner);
}

/* --- the module --- */

static void runner_bound_job(struct runner *runner, const struct guard_file *record,
                             const struct job_settings *job) {
    int r;

    resource_control_warn(runner->journal, record, runs_prepare(runner->runs, job));
    r = resource_control_apply(record->cgroup, job);
    if (r > 0)
        journal_log(runner->journal, LOG_WARNING, "run %s of %s goes on without its bounds: %s: %s",
                    record->run, record->job, record->cgroup, strerror(r));
}

/* Sets the bounds of a run again: the unit's ExecStopPost= disabled its controllers. */
static void runner_bound_again(const char *run, void *userdata) {
    struct runner *runner = userdata;
    const struct job_settings *job;
    struct guard_file record;
    bool is_defined;

    if (guard_file_load(&record, runs_directory(runner->runs), run) < 0 || !record.cgroup[0])
        return;
    job = job_config_open(runner->config, &record, &is_defined);
    if (job && resource_control_needed(job) != 0)
        runner_bound_job(runner, &record, job);
    job_config_close(runner->config, &record);
}

static int runner_recover(struct runner *runner) {
    _cleanup_free_ char *cgroup = NULL;
    const struct runs_handler handler = {
        .on_report = runner_on_report, .on_not_begun = runner_on_not_begun, .on_stuck = runner_on_stuck,
        .on_adhoc_reaped = runner_on_adhoc_reaped, .on_reaped = runner_on_reaped, .on_withdrawn = runner_on_withdrawn, .userdata = runner};
    char path[GUARD_FILE_PATH_SIZE];
    int r;

    r = cgroup_find_own(&cgroup);
    if (r < 0)
        journal_log(runner->journal, LOG_INFO,
                    "cannot make cgroups here (%s): processes of a run are found by descent", strerror(-r));
    snprintf(path, sizeof(path), "%s/%s", runner->config->settings->runtime_directory, PROTOCOL_RUNS);
    r = runs_new(&runner->runs, runner->event, path, cgroup, &runner->access, &handler);
    if (r == 0)
        r = runs_recover(runner->runs);
    if (r == 0)
        runs_each_guard(runner->runs, runner_bound_again, runner);
    return r;
}

static int runner_listen(struct runner *runner) {
    char path[GUARD_FILE_PATH_SIZE];

    snprintf(path, sizeof(path), "%s/%s", runner->config->settings->runtime_directory, PROTOCOL_RUNNER_SOCKET);
    if (runner->listen_fd < 0)
        runner->listen_fd = access_listen(&runner->access, path);
    if (runner->listen_fd < 0) {
        journal_log(runner->journal, LOG_ERR, "cannot listen on %s: %s", path, strerror(-runner->listen_fd));
        return runner->listen_fd;
    }
    return berthd_link_listen(runner->berthd, runner->listen_fd);
}

int runner_new(struct runner **ret, sd_event *event, struct journal *journal,
               const struct runner_options *options) {
    _cleanup_(runner_freep) struct runner *runner = calloc(1, sizeof(*runner));
    const struct berthd_link_handler handler = {.on_hello = runner_on_hello,
                                                .on_message = runner_on_message,
                                                .on_bad = runner_on_bad,
                                                .on_gone = runner_on_gone,
                                                .userdata = runner};
    _cleanup_close_ int socket_fd = options->socket_fd, listen_fd = options->listen_fd;
    int r;

    if (!runner)
        return -ENOMEM;
    runner->event = sd_event_ref(event);
    runner->journal = journal;
    runner->lock_fd = -1;
    delayed_init(&runner->delayed);
    runner->listen_fd = steal_fd(&listen_fd);
    runner->ends_with_berthd = socket_fd >= 0;
    runner->config = options->config;
    access_init(&runner->access);
    r = berthd_link_new(&runner->berthd, event, &runner->access, &handler);
    if (r < 0)
        return r;
    r = directories_take(journal, runner->config->settings->runtime_directory,
                  runner->ends_with_berthd ? LOCK_TIME_CHILD : LOCK_TIME, &runner->lock_fd);
    if (r >= 0)
        r = runner_recover(runner);
    if (r >= 0)
        r = runner->ends_with_berthd ? berthd_link_add(runner->berthd, steal_fd(&socket_fd))
                                     : runner_listen(runner);
    if (r < 0)
        return r;
    *ret = steal_pointer(&runner);
    return 0;
}

struct runner *runner_free(struct runner *runner) {
    if (!runner)
        return NULL;
    runner->berthd = berthd_link_free(runner->berthd);
    delayed_done(&runner->delayed);
    close_fd(runner->listen_fd);
    runs_free(runner->runs);
    close_fd(runner->lock_fd);
    sd_event_unref(runner->event);
    free(runner);
    return NULL;
}
