/* SPDX-License-Identifier: MIT */
#pragma once

/* The runs of berth-runner and their guards. It forks guards and watches them. If a guard ends without a
 * report, it kills all processes of the run and writes the report itself. The files of runner/guard-file.h
 * outlive the runner. */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "conf/settings.h"
#include "runner/access.h"
#include "runner/guard-file.h"

struct runs;

/* How many runs may have a guard or an untaken report: a compromised berthd must not fill the machine with
 * jobs. */
#define RUNS_MAX 4096

/* How many of them may be prepared. */
#define RUNS_PREPARED_MAX 12

/* Named answers of runs_start(). */
enum { RUNS_E_OVERLAP = 1, RUNS_E_TOO_MANY, RUNS_E_IN_THE_WAY };

struct runs_handler {
    /* A run is over. It has a report that berthd may not have yet, or none if an earlier berthd took it. */
    void (*on_report)(const char *run, void *userdata);
    /* A run was killed before its guard had noted a grant: its command has not run. */
    void (*on_not_begun)(const char *run, void *userdata);
    /* Processes of a run have outlived their kill; called again each hour. what: one of them, for people. */
    void (*on_stuck)(const char *run, const char *what, void *userdata);
    void (*on_adhoc_reaped)(const char *run, void *userdata); /* no process of a `berth run` is left */
    void (*on_reaped)(void *userdata);    /* no run of a job is being reaped any more */
    void (*on_withdrawn)(void *userdata); /* nothing is left of a prepared guard */
    void *userdata;
};

/* directory: of the runs; cgroup: where groups may be made, or NULL; access must outlive it. Makes this process a subreaper. */
int runs_new(struct runs **ret, sd_event *event, const char *directory, const char *cgroup, const struct access *access,
             const struct runs_handler *handler);
struct runs *runs_free(struct runs *r); /* leaves guards alone */
DEFINE_CLEANUP(struct runs, runs_free)
/* Finds what an earlier runner left: guards that live, and runs to reap. Returns 0 or a negative errno. */
int runs_recover(struct runs *r);

/* Returns whether the run was started and is not forgotten. A prepared run was not started. */
bool runs_exists(const struct runs *r, const char *run);
/* Forks a guard, which listens when this returns, and sets record->cgroup. With record->is_prepared the
 * guard waits for its grant. Returns 0; else nothing was started, and the answer is a negative errno or
 * RUNS_E_OVERLAP: the job has a run that is not over, and its `overlap` is not "allow";
 * RUNS_E_TOO_MANY: RUNS_MAX or RUNS_PREPARED_MAX is reached;
 * RUNS_E_IN_THE_WAY: a prepared guard was in the way and was killed; try again after on_withdrawn. */
int runs_start(struct runs *r, struct guard_file *record, const struct job_settings *job);
/* Enables cgroup controllers for the job. Returns those that it needs and cannot have here. Before
 * runs_start(). */
unsigned runs_prepare(const struct runs *r, const struct job_settings *job);
/* Kills the guard, if it lives; then the run is reaped. Returns 0; 1: there is a report already; -ENOENT:
 * the run is unknown. */
int runs_kill(struct runs *r, const char *run);
/* Kills the processes of a `berth run`, which has no guard and no report, until none is left. token: only those of this grant;
 * 0: all. Does nothing without memory, or if RUNS_MAX are being killed: berthd requests it again. */
void runs_reap_adhoc(struct runs *r, const char *run, uint64_t token);
/* Removes the report of a run. */
void runs_forget(struct runs *r, const char *run);
/* Kills all prepared guards. Returns whether any has not ended yet. */
bool runs_withdraw(struct runs *r);
/* Returns whether a run of a job is being reaped. */
bool runs_is_reaping(const struct runs *r);
const char *runs_directory(const struct runs *r);
/* Call `each` for every run that has a guard, or a report. */
void runs_each_guard(const struct runs *r, void (*each)(const char *run, void *userdata), void *userdata);
int runs_each_report(const struct runs *r, void (*each)(const char *run, void *userdata), void *userdata);
