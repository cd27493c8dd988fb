/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=open,--wrap=open64,--wrap=opendir,--wrap=pidfd_open,--wrap=malloc,--wrap=calloc,--wrap=reallocarray */

/* A guard has died and left its command behind, and berth-runner sweeps while it lacks descriptors or
 * memory for a while. A report means that nothing of the run is left, so it may come only when that is
 * true. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "runner/runs.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"
#include "tests/harness/wrap.h"

#define CALLS 40 /* of each kind; their number grows with the processes of this machine */
#define PATIENCE (10 * USEC_PER_SEC)

/* The folder of the command in /proc, where so many opens fail. */
static char hidden[32];
static unsigned n_hidden;

static bool is_hidden(const char *path) {
    if (n_hidden == 0 || !strstr(path, hidden))
        return false;
    n_hidden--;
    errno = EMFILE;
    return true;
}

WRAP(FAULT_DESCRIPTOR, NULL, DIR *, opendir, (const char *path), (path))
WRAP(FAULT_DESCRIPTOR, -1, int, pidfd_open, (pid_t pid, unsigned flags), (pid, flags))
WRAP(FAULT_MEMORY, NULL, void *, malloc, (size_t size), (size))
WRAP(FAULT_MEMORY, NULL, void *, calloc, (size_t n, size_t size), (n, size))
WRAP(FAULT_MEMORY, NULL, void *, reallocarray, (void *old, size_t n, size_t size), (old, n, size))

int __real_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode) {
    return is_hidden(path) || fault_meets(FAULT_DESCRIPTOR) ? -1 : __real_open(path, flags, mode);
}
int __wrap_open64(const char *path, int flags, mode_t mode) {
    return __wrap_open(path, flags, mode);
}

/* The run's id belongs to this program alone: the sweep reads the environments of all processes, and
 * other tests run at the same time. */
static char run[ID_TEXT_SIZE];
static char directory[32];
static int command; /* pidfd of what the guard left */
static bool reported;

static bool command_is_alive(void) {
    struct pollfd p = {.fd = command, .events = POLLIN};

    return poll(&p, 1, 0) == 0;
}

static void on_report(const char *id, _unused_ void *userdata) {
    TEST_STRING(id, run);
    CU_ASSERT_FALSE(command_is_alive());
    reported = true;
}

static void on_reaped(_unused_ void *userdata) {
}

static void on_stuck(_unused_ const char *id, _unused_ const char *what, _unused_ void *userdata) {
}

/* The cgroup in the record that is left. */
static const char *record_cgroup = "";

/* Starts a command of a run. An orphan is no descendant of this process, like a command that an earlier
 * runner left. */
static pid_t start_command(const char *of, bool orphan) {
    char variable[ID_TEXT_SIZE + 16];
    pid_t pid;
    int fds[2];

    snprintf(variable, sizeof(variable), "BERTH_RUN=%s", of);
    CU_ASSERT_FATAL(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) == 0 && pipe2(fds, O_CLOEXEC) == 0);
    pid = fork();
    if (pid == 0 && orphan && (pid = fork()) != 0)
        _exit(write(fds[1], &pid, sizeof(pid)) == sizeof(pid) ? 0 : 1);
    if (pid == 0)
        _exit(execle("/bin/sleep", "sleep", "60", (char *) NULL, (char *[]) {variable, NULL}));
    close_fd(fds[1]);
    if (orphan) {
        (void) waitpid(pid, NULL, 0);
        CU_ASSERT_FATAL(read(fds[0], &pid, sizeof(pid)) == sizeof(pid));
    }
    CU_ASSERT_FATAL(read(fds[0], hidden, 1) == 0); /* it has called exec: its environment is its own */
    close_fd(fds[0]);
    command = __real_pidfd_open(pid, 0);
    snprintf(hidden, sizeof(hidden), "/proc/%d/", (int) pid);
    CU_ASSERT_FATAL(command >= 0);
    return pid;
}

/* Leaves a record whose lock no process holds, with the pid of this guard, or 0. */
static void leave_record(pid_t guard) {
    struct guard_file record = {.job = "job", .namespace = "berth", .host = "here", .hash = "0123456789abcdef",
                                  .pools = "slot:1", .scopes = "h", .deadline = USEC_INFINITY};
    int fd;

    snprintf(record.cgroup, sizeof(record.cgroup), "%s", record_cgroup);
    memcpy(record.run, run, sizeof(record.run));
    fd = guard_file_create(&record, directory);

    CU_ASSERT_FATAL(fd >= 0 && (guard == 0 || guard_file_add_guard(fd, guard) == 0));
    close_fd(fd);
}

static void remove_report(void) {
    char path[128];

    snprintf(path, sizeof(path), "%s/%s.report", directory, run);
    TEST_INT(unlink(path), reported ? 0 : -1);
}

/* Sweeps while these calls fail. Returns whether one failed. */
static bool sweep(enum fault_kind kind, unsigned from, unsigned count, bool orphan) {
    static const struct access access = {0};
    const struct runs_handler handler = {.on_report = on_report, .on_stuck = on_stuck, .on_reaped = on_reaped};
    _cleanup_(sd_event_unrefp) sd_event *event = NULL;
    usec_t until = clock_boottime() + PATIENCE;
    struct runs *runs = NULL;
    bool met;
    pid_t pid = start_command(run, orphan);
    int k;

    leave_record(0);
    reported = false;
    CU_ASSERT_FATAL(sd_event_new(&event) >= 0);
    CU_ASSERT_EQUAL_FATAL(runs_new(&runs, event, directory, NULL, &access, &handler), 0);
    fault_begin(kind, from, count);
    k = runs_recover(runs);
    while (k == 0 && !reported && clock_boottime() < until)
        CU_ASSERT_FATAL(sd_event_run(event, USEC_PER_SEC) >= 0);
    met = fault_end();
    runs_free(runs);
    CU_ASSERT(k < 0 || reported); /* or the runner ends, and the next one recovers */
    (void) pidfd_send_signal(command, SIGKILL, NULL, 0);
    (void) waitpid(pid, NULL, 0);
    command = close_fd(command);
    guard_file_remove(directory, run);
    remove_report();
    return met;
}

static void check(enum fault_kind kind) {
    unsigned from = 1;

    while (from < CALLS && sweep(kind, from, 1, false))
        from++;
    CU_ASSERT(from > 2);
    (void) sweep(kind, 1, 10, false);
}

static void test_descriptors(void) {
    check(FAULT_DESCRIPTOR);
}
static void test_memory(void) {
    check(FAULT_MEMORY);
}

/* Each pass over /proc finds the command, and cannot look at it. */
static void test_hidden(void) {
    n_hidden = 12;
    (void) sweep(FAULT_MEMORY, 0, 0, false);
    TEST_INT(n_hidden, 0);
}

/* The guard could not make the cgroup that the record names, and the runner above the command is gone,
 * too. Only the command's environment shows its run. */
static void test_no_such_cgroup(void) {
    record_cgroup = "/nonexistent/berth";
    (void) sweep(FAULT_MEMORY, 0, 0, true);
    record_cgroup = "";
}

static void on_report_of_other(const char *id, _unused_ void *userdata) {
    TEST_STRING(id, run);
    reported = true;
}

/* The guard is gone, another process has its pid, and the lock of the record cannot be tested for the
 * moment. */
static void test_pid_of_another(void) {
    static const struct access access = {0};
    const struct runs_handler handler = {.on_report = on_report_of_other, .on_stuck = on_stuck, .on_reaped = on_reaped};
    _cleanup_(sd_event_unrefp) sd_event *event = NULL;
    usec_t until = clock_boottime() + PATIENCE;
    struct runs *runs = NULL;
    char other[ID_TEXT_SIZE];

    reported = false;
    id_make(other);
    CU_ASSERT_FATAL(sd_event_new(&event) >= 0);
    leave_record(start_command(other, true));
    CU_ASSERT_EQUAL_FATAL(runs_new(&runs, event, directory, NULL, &access, &handler), 0);
    fault_begin(FAULT_DESCRIPTOR, 4, 1); /* after the folder, the record, and the pidfd */
    TEST_INT(runs_recover(runs), 0);
    CU_ASSERT(fault_end());
    TEST_INT(runs_kill(runs, run), 0);
    while (!reported && clock_boottime() < until)
        CU_ASSERT_FATAL(sd_event_run(event, USEC_PER_SEC) >= 0);
    runs_free(runs);
    CU_ASSERT(command_is_alive());
    CU_ASSERT(reported);
    (void) pidfd_send_signal(command, SIGKILL, NULL, 0);
    command = close_fd(command);
    guard_file_remove(directory, run);
    remove_report();
}

static void on_adhoc_reaped(const char *id, _unused_ void *userdata) {
    reported = reported || strcmp(id, run) == 0;
}

/* The requests of a hostile berthd neither end nor postpone the kill that it requested first. */
static void test_stream_of_requests(void) {
    static const struct access access = {0};
    const struct runs_handler handler = {.on_stuck = on_stuck, .on_reaped = on_reaped, .on_adhoc_reaped = on_adhoc_reaped};
    _cleanup_(sd_event_unrefp) sd_event *event = NULL;
    struct runs *runs = NULL;
    pid_t pid = start_command(run, false);
    char other[ID_TEXT_SIZE];

    reported = false;
    CU_ASSERT_FATAL(sd_event_new(&event) >= 0);
    CU_ASSERT_EQUAL_FATAL(runs_new(&runs, event, directory, NULL, &access, &handler), 0);
    runs_reap_adhoc(runs, run, 0);
    for (unsigned n = 0; n < 100 && !reported; n++) {
        id_make(other);
        runs_reap_adhoc(runs, other, 0);
        CU_ASSERT_FATAL(sd_event_run(event, USEC_PER_MSEC) >= 0);
            }
    CU_ASSERT(reported);
    CU_ASSERT_FALSE(command_is_alive());
    runs_free(runs);
    (void) pidfd_send_signal(command, SIGKILL, NULL, 0);
    (void) waitpid(pid, NULL, 0);
    command = close_fd(command);
}

static int up(void) {
    snprintf(directory, sizeof(directory), "/tmp/berth-runs-XXXXXX");
    id_make(run);
    return mkdtemp(directory) ? 0 : 1;
}
static int down(void) {
    place_remove(directory);
    return 0;
}

static CU_TestInfo tests[] = {
    {"descriptors", test_descriptors},
    {"memory", test_memory},
    {"a command that cannot be looked at", test_hidden},
    {"a cgroup that was never made", test_no_such_cgroup},
    {"a pid of another process", test_pid_of_another},
    {"a stream of requests", test_stream_of_requests},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "runs, failing", .pInitFunc = up, .pCleanupFunc = down, .pTests = tests});
