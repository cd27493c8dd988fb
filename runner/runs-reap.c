/* SPDX-License-Identifier: MIT */
/* Reaps after guards that ended without a report: kills all processes of their runs and writes reports. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/process/process-describe.h"
#include "base/process/process-environ.h"
#include "base/process/process-tree.h"
#include "base/protocol.h"
#include "runner/exec/credentials.h"
#include "runner/leftovers.h"
#include "runner/runs-internal.h"

/* A look takes long, a second with hundreds of runs, so it comes after all requests and ends of guards that are
 * pending. No stream of these postpones it for longer than this. */
#define LATE (500 * USEC_PER_MSEC)
#define REAP_RETRY_MIN (5 * USEC_PER_MSEC)
#define REAP_RETRY_MAX USEC_PER_SEC

/* Kills all descendants of this process that are not below a living guard: the subreaper inherited them.
 * Returns how many there were, or a negative errno. */
static int reap_inherited(const struct runs *r) {
    _cleanup_free_ pid_t *guards = NULL;
    size_t n = 0;

    list_foreach(e, &r->entries, struct entry, link)
        n++;
    guards = calloc(n + 1, sizeof(*guards));
    if (!guards)
        return -ENOMEM;
    n = 0;
    list_foreach(e, &r->entries, struct entry, link)
        if (!e->is_reaping && e->pid > 0)
            guards[n++] = e->pid;
    return process_tree_signal(getpid(), SIGKILL, guards, n);
}

/* Removes a run that has no process. */
static void entry_gone(struct entry *e) {
    struct runs *r = e->runs;
    char run[ID_TEXT_SIZE];
    bool was_prepared = e->is_prepared, must_report = e->must_die;

    memcpy(run, e->run, sizeof(run));
    guard_file_remove(r->directory, run);
    entry_free(e);
    if (must_report)
        r->handler.on_report(run, r->handler.userdata);
    if (was_prepared)
        r->handler.on_withdrawn(r->handler.userdata);
}

/* Removes a run whose guard ended before it had noted a grant: its command has not run. berthd may have sent the grant. */
static void entry_not_begun(struct entry *e) {
    struct runs *r = e->runs;
    char run[ID_TEXT_SIZE];
    bool must_report = e->must_die;

    memcpy(run, e->run, sizeof(run));
    e->must_die = false;
    entry_gone(e);
    if (must_report)
        r->handler.on_not_begun(run, r->handler.userdata);
}

static void adhoc_gone(struct entry *e) {
    struct runs *r = e->runs;
    char run[ID_TEXT_SIZE];

    memcpy(run, e->run, sizeof(run));
    entry_free(e);
    r->handler.on_adhoc_reaped(run, r->handler.userdata);
}

static size_t count_adhoc(const struct runs *r) {
    size_t n = 0;

    list_foreach(e, &r->entries, struct entry, link)
        n += e->is_adhoc;
    return n;
}

static void reap_cgroups(const struct runs *r) {
    list_foreach(e, &r->entries, struct entry, link) {
        int k = e->is_reaping && !e->is_adhoc ? leftovers_kill(r->directory, e->run) : LEFTOVERS_E_SOME;

        e->is_empty = k == 0;
        e->is_sought = e->is_adhoc || k == LEFTOVERS_E_NO_CGROUP;
    }
}

/* Kills the processes of all runs that only their environment identifies. Hundreds of guards or `berth run` may
 * be frozen, and their leases end soon, so one walk looks for all. */
static void reap_sought(const struct runs *r) {
    _cleanup_free_ struct environ_run *wanted = NULL;
    size_t n = 0;

    list_foreach(e, &r->entries, struct entry, link)
        n += e->is_sought;
    wanted = n > 0 ? calloc(n, sizeof(*wanted)) : NULL;
    if (!wanted)
        return;
    n = 0;
    list_foreach(e, &r->entries, struct entry, link)
        if (e->is_sought)
            wanted[n++] = (struct environ_run) {.run = e->run, .token = e->token};
    if (process_environ_kill(wanted, n) < 0)
        return;
    n = 0;
    list_foreach(e, &r->entries, struct entry, link)
        if (e->is_sought)
            e->is_empty = wanted[n++].n_found == 0;
}

/* Reports the end of a run of which nothing is left. */
static void reaped(struct entry *e) {
    struct runs *r = e->runs;
    char run[ID_TEXT_SIZE];

    if (e->is_adhoc) {
        adhoc_gone(e);
        return;
    }
    credentials_remove(r->directory, e->run);
    if (entry_is_prepared(e)) {
        entry_not_begun(e);
        return;
    }
    if (leftovers_write_report(r->directory, e->run) < 0)
        return;
    memcpy(run, e->run, sizeof(run));
    guard_file_remove(r->directory, run);
    entry_free(e);
    r->handler.on_report(run, r->handler.userdata);
}

/* Describes a process that is left. One that cleared its environment is found among our descendants
 * alone. */
static void describe_left(const char *run, char text[static PROCESS_TEXT_SIZE]) {
    pid_t pid = process_environ_find(run);

    if (pid <= 0)
        pid = process_tree_find(getpid(), NULL, 0);
    text[0] = '\0';
    if (pid > 0)
        process_describe(pid, text);
    if (!text[0])
        (void) snprintf(text, PROCESS_TEXT_SIZE, "a process that berth-runner cannot look at");
}

static void report_stuck(struct entry *e) {
    char text[PROCESS_TEXT_SIZE];
    usec_t now = clock_boottime();

    if (!e->is_reaping || entry_is_prepared(e) || now < e->stuck_due)
        return;
    e->stuck_due = usec_add(now, PROCESS_STUCK_AGAIN);
    describe_left(e->run, text);
    e->runs->handler.on_stuck(e->run, text, e->runs->handler.userdata);
}

static bool has_processes_left(const struct runs *r) {
    list_foreach(e, &r->entries, struct entry, link)
        if (e->is_reaping)
            return true;
    return false;
}

void runs_look_at(struct runs *r, usec_t boottime) {
    timer_set(&r->timer, boottime);
    timer_set(&r->late, usec_add(boottime, LATE));
}

bool runs_reap(struct runs *r) {
    bool was_reaping = runs_is_reaping(r), is_nothing_inherited;

    r->reap_due = 0;
    timer_off(&r->late);
    if (!has_processes_left(r))
        return false;
    reap_cgroups(r);
    is_nothing_inherited = was_reaping && reap_inherited(r) == 0;
    reap_sought(r);
    list_foreach_safe(e, &r->entries, struct entry, link)
        if (e->is_empty && (e->is_adhoc || is_nothing_inherited))
            reaped(e);
    list_foreach(e, &r->entries, struct entry, link)
        report_stuck(e);
    if (was_reaping && !runs_is_reaping(r))
        r->handler.on_reaped(r->handler.userdata);
    if (!has_processes_left(r))
        return false;
    runs_look_at(r, usec_add(clock_boottime(), r->again));
    r->again = r->again < REAP_RETRY_MAX / 2 ? 2 * r->again : REAP_RETRY_MAX;
    return true;
}

void runs_reap_adhoc(struct runs *r, const char *run, uint64_t token) {
    struct entry *e = entry_find(r, run) || count_adhoc(r) >= RUNS_MAX ? NULL : entry_new(r, run, "");

    if (!e) /* berthd requests it again */
        return;
    e->is_adhoc = true;
    e->token = token;
    entry_reap(e);
}

void entry_reap(struct entry *e) {
    struct runs *r = e->runs;

    e->source = sd_event_source_disable_unref(e->source);
    e->is_reaping = true;
    e->stuck_due = usec_add(clock_boottime(), PROCESS_STUCK_AFTER);
    r->again = REAP_RETRY_MIN;
    if (r->reap_due == 0) /* more of them may follow at once, but never postpone this one */
        r->reap_due = usec_add(clock_boottime(), REAP_RETRY_MIN);
    runs_look_at(r, r->reap_due);
}

void entry_ended(struct entry *e) {
    struct runs *r = e->runs;
    char path[GUARD_FILE_PATH_SIZE];

    FAILPOINT("runner-guard-ended");

    if (access(guard_file_path(path, r->directory, e->run, GUARD_FILE_SUFFIX), F_OK) == 0 &&
        access(guard_file_path(path, r->directory, e->run, PROTOCOL_REPORT_SUFFIX), F_OK) < 0) {
        entry_reap(e);
        return;
    }
    /* Also without a report a berthd that requested the kill awaits the end: an earlier berthd took the
     * report. */
    if (access(guard_file_path(path, r->directory, e->run, PROTOCOL_REPORT_SUFFIX), F_OK) == 0)
        e->must_die = true;
    entry_gone(e);
}

int entry_on_end(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
    entry_ended(userdata);
    return 0;
}
