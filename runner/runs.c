/* SPDX-License-Identifier: MIT */
#include "runner/runs-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/protocol.h"
#include "runner/resource-control.h"
#include "runner/guard.h"
#include "runner/leftovers.h"

#define CGROUP_PREFIX "berth-"
#define LET_GO_MSEC 500 /* time for a prepared guard to end */

/* --- entries --- */

struct entry *entry_find(const struct runs *r, const char *run) {
    list_foreach(e, &r->entries, struct entry, link)
        if (strcmp(e->run, run) == 0)
            return e;
    return NULL;
}

struct entry *entry_new(struct runs *r, const char *run, const char *job) {
    struct entry *e = calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    e->runs = r;
    e->pidfd = -1;
    memcpy(e->run, run, sizeof(e->run));
    snprintf(e->job, sizeof(e->job), "%s", job);
    list_append(&r->entries, &e->link);
    return e;
}

void entry_free(struct entry *e) {
    list_unlink(&e->link);
    sd_event_source_disable_unref(e->source);
    close_fd(e->pidfd);
    free(e);
}

/* pid is the guard's for certain: a child that was not waited for, or the guard file was locked after pidfd
 * was opened. */
int entry_watch(struct entry *e, pid_t pid, int pidfd) {
    int k = sd_event_add_io(e->runs->event, &e->source, pidfd, EPOLLIN, entry_on_end, e);

    if (k < 0) {
        close_fd(pidfd);
        return k;
    }
    e->pid = pid;
    e->pidfd = pidfd;
    return 0;
}

/* --- what berthd wants --- */

bool runs_exists(const struct runs *r, const char *run) {
    struct entry *e = entry_find(r, run);
    char path[GUARD_FILE_PATH_SIZE];

    if (e)
        return !entry_is_prepared(e);
    return access(guard_file_path(path, r->directory, run, GUARD_FILE_SUFFIX), F_OK) == 0 ||
           access(guard_file_path(path, r->directory, run, PROTOCOL_REPORT_SUFFIX), F_OK) == 0;
}

/* --- how many --- */

static void count_report(_unused_ const char *run, void *userdata) {
    ++*(size_t *) userdata;
}

/* Counts only after `room` starts, because it reads the directory. */
static bool runs_has_room(struct runs *r) {
    size_t n = 0;

    if (r->room > 0)
        return true;
    list_foreach(e, &r->entries, struct entry, link)
        n++;
    if (guard_file_each(r->directory, PROTOCOL_REPORT_SUFFIX, count_report, &n) == 0 && n < RUNS_MAX)
        r->room = RUNS_MAX - n;
    return r->room > 0;
}

/* A run whose guard file cannot be read counts as running. A guard removes the file when it ends. */
static bool entry_is_over(const struct entry *e) {
    struct guard_file record;
    int k = e->is_reaping ? 0 : guard_file_load(&record, e->runs->directory, e->run);

    return !e->is_reaping && (k == -ENOENT || (k == 0 && record.is_over));
}

static bool is_beside(const struct entry *e, const struct job_settings *job) {
    return job->triggers.overlap != JOB_OVERLAP_ALLOW && !job->hooks.is_hook && strcmp(e->job, job->name) == 0;
}

static bool runs_overlaps(const struct runs *r, const struct job_settings *job) {
    list_foreach(e, &r->entries, struct entry, link)
        if (is_beside(e, job) && !entry_is_over(e))
            return true;
    return false;
}

/* --- guards that are prepared --- */

bool entry_is_prepared(struct entry *e) {
    struct guard_file record;
    int k = e->is_prepared ? guard_file_load(&record, e->runs->directory, e->run) : 0;

    if (k == 0 && e->is_prepared)
        e->is_prepared = record.is_prepared; /* once it is not, never again */
    return e->is_prepared && (k == 0 || k == -ENOENT);
}

static void entry_kill(struct entry *e) {
    if (!e->is_reaping && e->pidfd >= 0)
        (void) pidfd_send_signal(e->pidfd, SIGKILL, NULL, 0);
}

/* Kills prepared guards in the way of a granted run: its own, which berthd has lost, and one of the same
 * job. */
static bool runs_clear(struct runs *r, const struct guard_file *record, const struct job_settings *job) {
    bool any = false;

    list_foreach(e, &r->entries, struct entry, link)
        if ((strcmp(e->run, record->run) == 0 || is_beside(e, job)) && entry_is_prepared(e)) {
            e->is_withdrawn = true;
            entry_kill(e);
            any = true;
        }
    return any;
}

bool runs_withdraw(struct runs *r) {
    bool any = false;

    list_foreach(e, &r->entries, struct entry, link)
        if (entry_is_prepared(e)) {
            e->is_withdrawn = true;
            entry_kill(e);
            any = true;
        }
    return any;
}

static bool runs_may_prepare(const struct runs *r) {
    size_t n = 0;

    list_foreach(e, &r->entries, struct entry, link)
        n += entry_is_prepared(e);
    return n < RUNS_PREPARED_MAX;
}

static int runs_choose_cgroup(const struct runs *r, struct guard_file *record) {
    int n = r->cgroup ? snprintf(record->cgroup, sizeof(record->cgroup), "%s/" CGROUP_PREFIX "%s", r->cgroup, record->run) : 0;

    return n < 0 || (size_t) n >= sizeof(record->cgroup) ? -ENAMETOOLONG : 0;
}

static int entry_fork(struct entry *e, const struct guard_start *start) {
    pid_t pid = fork();
    int k, pidfd;

    if (pid < 0)
        return -errno;
    if (pid == 0)
        guard_main(start);
    FAILPOINT("runner-guard-forked");
    pidfd = pidfd_open(pid, 0);
    k = pidfd < 0 ? -errno : entry_watch(e, pid, pidfd);
    if (k < 0) { /* a guard that cannot be watched must not live; its command may have started already */
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        entry_reap(e);
    }
    return 0;
}

unsigned runs_prepare(const struct runs *r, const struct job_settings *job) {
    return resource_control_prepare(r->cgroup, resource_control_needed(job));
}

int runs_start(struct runs *r, struct guard_file *record, const struct job_settings *job) {
    _cleanup_close_ int listener = -1, lock = -1;
    char path[GUARD_FILE_PATH_SIZE];
    struct entry *e;
    int k;

    FAILPOINT("runner-start-seen");
    if (!record->is_prepared && runs_clear(r, record, job))
        return RUNS_E_IN_THE_WAY;
    if (runs_overlaps(r, job) || entry_find(r, record->run))
        return RUNS_E_OVERLAP;
    if (!runs_has_room(r) || (record->is_prepared && !runs_may_prepare(r)))
        return RUNS_E_TOO_MANY;
    k = runs_choose_cgroup(r, record);
    if (k < 0)
        return k;
    listener = access_listen(r->access, guard_file_path(path, r->directory, record->run, PROTOCOL_SOCKET_SUFFIX));
    if (listener < 0)
        return listener;
    FAILPOINT("runner-socket-made");
    e = entry_new(r, record->run, record->job);
    lock = e ? guard_file_create(record, r->directory) : -ENOMEM;
    FAILPOINT("runner-record-made");
    k = lock;
    if (k >= 0) {
        const struct guard_start start = {.record = record, .job = job, .access = r->access, .directory = r->directory,
                                          .lifeline_fd = record->is_prepared ? r->lifeline[0] : -1, .listen_fd = listener, .record_fd = lock};

        e->is_prepared = record->is_prepared;
        k = entry_fork(e, &start);
    }
    if (k < 0) {
        guard_file_remove(r->directory, record->run);
        if (e)
            entry_free(e);
        return k;
    }
    r->room--;
    return 0;
}

int runs_kill(struct runs *r, const char *run) {
    struct entry *e = entry_find(r, run);
    char path[GUARD_FILE_PATH_SIZE];

    if (e) {
        e->must_die = true;
        entry_kill(e);
        leftovers_kill_cgroup(r->directory, run); /* before the guards of other runs have ended */
        return 0;
    }
    return access(guard_file_path(path, r->directory, run, PROTOCOL_REPORT_SUFFIX), F_OK) == 0 ? 1 : -ENOENT;
}

void runs_forget(struct runs *r, const char *run) {
    char path[GUARD_FILE_PATH_SIZE];

    (void) unlink(guard_file_path(path, r->directory, run, PROTOCOL_REPORT_SUFFIX));
}

bool runs_is_reaping(const struct runs *r) {
    list_foreach(e, &r->entries, struct entry, link)
        if (e->is_reaping && !e->is_adhoc)
            return true;
    return false;
}

const char *runs_directory(const struct runs *r) {
    return r->directory;
}

void runs_each_guard(const struct runs *r, void (*each)(const char *run, void *userdata), void *userdata) {
    list_foreach(e, &r->entries, struct entry, link)
        if (!e->is_reaping && !entry_is_prepared(e))
            each(e->run, userdata);
}

int runs_each_report(const struct runs *r, void (*each)(const char *run, void *userdata), void *userdata) {
    return guard_file_each(r->directory, PROTOCOL_REPORT_SUFFIX, each, userdata);
}

/* --- the module --- */

/* Only removes zombies, also of orphans: the pidfds report the ends of guards. */
static int runs_on_sigchld(_unused_ sd_event_source *source, _unused_ const struct signalfd_siginfo *info, _unused_ void *userdata) {
    siginfo_t child;

    do
        child.si_pid = 0;
    while (waitid(P_ALL, 0, &child, WEXITED | WNOHANG) == 0 && child.si_pid != 0);
    return 0;
}

static int runs_add_sources(struct runs *r) {
    sigset_t mask;
    int k;

    if (sigemptyset(&mask) < 0 || sigaddset(&mask, SIGCHLD) < 0 || sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
        return -errno;
    k = sd_event_add_signal(r->event, &r->signal, SIGCHLD, runs_on_sigchld, r);
    if (k >= 0)
        k = timer_init(&r->timer, r->event, SD_EVENT_PRIORITY_NORMAL + 10, runs_on_timer, r);
    if (k >= 0)
        k = timer_init(&r->late, r->event, SD_EVENT_PRIORITY_NORMAL, runs_on_timer, r);
    return k;
}

int runs_new(struct runs **ret, sd_event *event, const char *directory, const char *cgroup, const struct access *access,
             const struct runs_handler *handler) {
    _cleanup_(runs_freep) struct runs *r = calloc(1, sizeof(*r));
    int k;

    if (!r)
        return -ENOMEM;
    list_init(&r->entries);
    r->event = sd_event_ref(event);
    r->handler = *handler;
    r->access = access;
    r->lifeline[0] = r->lifeline[1] = -1;
    r->directory = strdup(directory);
    r->cgroup = cgroup ? strdup(cgroup) : NULL;
    if (!r->directory || (cgroup && !r->cgroup))
        return -ENOMEM;
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || pipe2(r->lifeline, O_CLOEXEC) < 0)
        return -errno;
    k = runs_add_sources(r);
    if (k < 0)
        return k;
    *ret = steal_pointer(&r);
    return 0;
}

/* Closes the lifeline, which ends all prepared guards, and waits for them. */
static void runs_let_go(struct runs *r) {
    r->lifeline[1] = close_fd(r->lifeline[1]);
    list_foreach(e, &r->entries, struct entry, link) {
        struct pollfd p = {.fd = e->pidfd, .events = POLLIN};

        if (e->pidfd >= 0 && entry_is_prepared(e))
            (void) poll(&p, 1, LET_GO_MSEC);
    }
}

struct runs *runs_free(struct runs *r) {
    if (!r)
        return NULL;
    runs_let_go(r);
    close_fd(r->lifeline[0]);
    list_foreach_safe(e, &r->entries, struct entry, link)
        entry_free(e);
    timer_done(&r->timer);
    timer_done(&r->late);
    sd_event_source_disable_unref(r->signal);
    free(r->directory);
    free(r->cgroup);
    sd_event_unref(r->event);
    free(r);
    return NULL;
}
