/* SPDX-License-Identifier: MIT */
#pragma once

/* The runs that have a guard, or had one: forks guards, sees them end, and sweeps up after one that ended without a report: kills
 * all that is left of its run, and writes the report itself. Survives this runner's end in the files of runner/guard-file.h. */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "conf/settings.h"
#include "runner/access.h"
#include "runner/guard-file.h"

struct runs;

/* A berthd that was taken over must not fill the machine with jobs: so many runs may have a guard, or a report that nobody took. */
#define RUNS_MAX 4096

/* So many of them may be prepared. */
#define RUNS_PREPARED_MAX 12

/* Named answers of runs_start(). */
enum { RUNS_E_OVERLAP = 1, RUNS_E_TOO_MANY, RUNS_E_IN_THE_WAY };

struct runs_handler {
    /* A run is over. Its report may exist, and berthd may not have it yet. A run to be killed that ended by itself has none. */
    void (*on_report)(const char *run, void *userdata);
    /* Processes of a run have outlived their kill; called again each hour. what: one of them, for people. */
    void (*on_stuck)(const char *run, const char *what, void *userdata);
    void (*on_reaped)(void *userdata);                   /* no sweep is under way any more */
    void (*on_withdrawn)(void *userdata);                /* nothing is left of a guard that was prepared */
    void *userdata;
};

/* directory: of the runs; cgroup: where groups may be made, or NULL; access must outlive it. Makes this process a subreaper. */
int runs_new(struct runs **ret, sd_event *event, const char *directory, const char *cgroup, const struct access *access,
             const struct runs_handler *handler);
struct runs *runs_free(struct runs *r); /* leaves guards alone */
DEFINE_CLEANUP(struct runs, runs_free)
/* Finds what an earlier runner left: guards that live, and runs to sweep. Negative errno. */
int runs_recover(struct runs *r);

/* Whether it was started before and is not forgotten; not whether a guard of it is prepared. */
bool runs_exists(const struct runs *r, const char *run);
/* Forks a guard, which listens when this returns. record->cgroup is set here; record->is_prepared: it waits for its grant. RUNS_E_OVERLAP:
 * the job has a run that is not over, and its `overlap` is not "allow"; RUNS_E_TOO_MANY: RUNS_MAX or RUNS_PREPARED_MAX is reached;
 * RUNS_E_IN_THE_WAY: a guard that is prepared would overlap, or is this run's, and was killed: to be tried again after on_withdrawn;
 * negative errno. Then nothing was started. */
int runs_start(struct runs *r, struct guard_file *record, const struct job_settings *job);
/* Which cgroup controllers this job asks for and cannot have here; before runs_start(). */
unsigned runs_prepare(const struct runs *r, const struct job_settings *job);
/* Kills the guard, if it lives; then the run is swept. 0; 1: there is a report already; -ENOENT: nothing is known of this run. */
int runs_kill(struct runs *r, const char *run);
void runs_forget(struct runs *r, const char *run);
/* Kills all guards that are prepared, because berthd has gone. Returns whether there are any that have not ended. */
bool runs_withdraw(struct runs *r);
bool runs_is_reaping(const struct runs *r);
const char *runs_directory(const struct runs *r);
/* Every run that has a guard; every run that has a report. */
void runs_each_guard(const struct runs *r, void (*each)(const char *run, void *userdata), void *userdata);
int runs_each_report(const struct runs *r, void (*each)(const char *run, void *userdata), void *userdata);
