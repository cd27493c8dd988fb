/* SPDX-License-Identifier: MIT */
/* What the child does between fork and exec, in the order that keeps it safe: first it gives up what it is, each step checked and
 * shown not to come back, and only then touches what a user could have prepared (output file, directory, program). */

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <syslog.h>
#include <unistd.h>

#include "base/journal/journal-stream.h"
#include "base/process/supervise.h"
#include "runner/exec-internal.h"

static int exec_open(const char *path, int flags) {
    int fd = open(path, flags | O_CLOEXEC, 0666);

    return fd < 0 ? -errno : fd;
}

/* Puts a descriptor in the place of another, and closes it. A negative errno instead of a descriptor is passed on. */
static int exec_place(int fd, int place) {
    int r = 0;

    if (fd < 0)
        return -fd;
    if (fd == place)
        return fcntl(fd, F_SETFD, 0) < 0 ? errno : 0;
    if (dup2(fd, place) < 0)
        r = errno;
    close_fd(fd);
    return r;
}

/* journal: the stream that was opened for it. */
static int exec_output(const struct job_settings *job, int journal) {
    int r = EINVAL;

    switch (job->output.kind) {
    case JOB_OUTPUT_JOURNAL:
        r = exec_place(journal, STDOUT_FILENO);
        break;
    case JOB_OUTPUT_FILE:
        r = exec_place(exec_open_output(job->output.path), STDOUT_FILENO);
        break;
    case JOB_OUTPUT_NULL:
        r = exec_place(exec_open("/dev/null", O_WRONLY), STDOUT_FILENO);
        break;
    }
    if (r == 0 && dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
        r = errno;
    return r;
}

static int exec_signals(void) {
    /* The kernel's struct: handler (0: SIG_DFL), flags, restorer, mask. The C library refuses to set the two signals that it keeps for
     * itself, and its posix_spawn() leaves these ignored in whatever a shell or make has started, us included. */
    const unsigned long standard[4] = {0};
    sigset_t none;

    for (int signal = 1; signal < NSIG; signal++) /* KILL and STOP cannot be set and need not */
        (void) syscall(SYS_rt_sigaction, signal, standard, NULL, (size_t) (NSIG - 1) / 8);
    if (sigemptyset(&none) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
        return errno;
    return 0;
}

/* Nothing but 0, 1 and 2 goes to the command (CVE-2012-6097, CVE-2024-21626). Close-on-exec, not closed: the pipe that tells of a
 * failed exec is among them. */
static int exec_descriptors(void) {
    return close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ? errno : 0;
}

/* A fresh session keyring, or the keys that a job leaves there would be every other job's (keyrings(7)). Systemd goes on in the same cases
 * without one (setup_keyring() of exec-invoke.c): there are no keyrings, or they are forbidden here, or this user has too many keys. */
static int exec_keyring(void) {
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) >= 0)
        return 0;
    return errno == ENOSYS || errno == EPERM || errno == EACCES || errno == EDQUOT ? 0 : errno;
}

int exec_child(void *userdata, const char **ret_stage) {
    const struct exec_plan *plan = userdata;
    const struct job_settings *job = plan->job;
    bool is_journal = false;
    int r, journal = -1;

    /* A session of its own: a command that signals its process group must not reach the guard. */
    *ret_stage = "session";
    if (setsid() < 0)
        return errno;
    r = exec_bounds(plan, ret_stage);
    if (r > 0)
        return r;
    if (job->output.kind == JOB_OUTPUT_JOURNAL) /* as root, or journald would not believe which unit it is of */
        journal = journal_stream_open(job->name, LOG_INFO, &is_journal);
    *ret_stage = "keyring"; /* before the drop: a user whose keys are all used up must not get ours */
    r = exec_keyring();
    if (r > 0)
        return r;
    r = exec_drop(plan, ret_stage);
    if (r > 0)
        return r;
    *ret_stage = "keyring"; /* and one that belongs to the job's user */
    r = plan->changes_user ? exec_keyring() : 0;
    if (r > 0)
        return r;
    *ret_stage = "guard"; /* setresuid clears it, hence not before (prctl(2)) */
    r = supervise_child_die_with_parent(plan->parent);
    if (r > 0)
        return r;
    (void) umask(job->umask);
    *ret_stage = "input";
    r = exec_place(exec_open("/dev/null", O_RDONLY), STDIN_FILENO);
    if (r > 0)
        return r;
    *ret_stage = "output";
    r = exec_output(job, journal);
    if (r > 0)
        return r;
    if (is_journal)
        journal_stream_begin(STDOUT_FILENO);
    *ret_stage = "directory";
    if (chdir(job->directory) < 0)
        return errno;
    *ret_stage = "signals";
    r = exec_signals();
    if (r > 0)
        return r;
    *ret_stage = "descriptors";
    r = exec_descriptors();
    if (r > 0)
        return r;
    r = exec_bounds_late(plan, ret_stage);
    if (r > 0)
        return r;
    *ret_stage = "deadline"; /* opening and changing to things may have taken its time */
    r = supervise_child_check_deadline(plan->term);
    if (r > 0)
        return r;
    r = exec_renounce(plan, ret_stage);
    if (r > 0)
        return r;
    *ret_stage = "exec";
    execve(job->command[0], job->command, plan->environment);
    return errno;
}
