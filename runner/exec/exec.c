/* SPDX-License-Identifier: MIT */
/* The child between fork and exec: a table of steps. It drops its privileges and checks that they cannot be
 * regained. Only then does it open files that a user could have prepared (output file, directory,
 * program). */

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <syslog.h>
#include <unistd.h>

#include "base/journal/journal-stream.h"
#include "base/process/supervise.h"
#include "runner/exec/exec-internal.h"

static int exec_open_null(int flags) {
    int fd = open("/dev/null", flags | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* Moves a descriptor to another number. Returns 0 or a negative errno; a negative fd is one already. */
static int exec_place(int fd, int place) {
    _cleanup_close_ _unused_ int owned = fd == place ? -1 : fd;

    if (fd < 0)
        return fd;
    if (fd == place)
        return fcntl(fd, F_SETFD, 0) < 0 ? -errno : 0;
    return dup2(fd, place) < 0 ? -errno : 0;
}

/* ---- the steps ---- */

/* A command that signals its process group must not reach the guard. */
static int exec_session(_unused_ struct exec_context *context) {
    return setsid() < 0 ? -errno : 0;
}

static int exec_open_journal(struct exec_context *context) {
    const struct job_settings *job = context->plan->job;

    if (job->output.kind == JOB_OUTPUT_JOURNAL)
        context->journal_fd = journal_stream_open(job->name, context->plan->record->run, LOG_INFO);
    return 0;
}

/* Joins a new session keyring: jobs that share one could use each other's keys (keyrings(7)). As in systemd
 * (setup_keyring() of exec-invoke.c), the job runs without one if the kernel has no keyrings, they are
 * forbidden here, or the user has too many keys. */
static int exec_keyring(_unused_ struct exec_context *context) {
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) >= 0)
        return 0;
    return errno == ENOSYS || errno == EPERM || errno == EACCES || errno == EDQUOT ? 0 : -errno;
}

static int exec_user_keyring(struct exec_context *context) {
    return context->plan->changes_user ? exec_keyring(context) : 0;
}

static int exec_guard(struct exec_context *context) {
    return -supervise_child_die_with_parent(context->plan->parent);
}

/* A prepared child waits here. The later steps run after the grant, so they see the machine as it is
 * then. */
static int exec_gate(struct exec_context *context) {
    return -gate_wait(context->plan->gate);
}

/* Returns r, and if it is an error, names the option of the config and the path that it is about. */
static int exec_name_path(struct exec_context *context, int r, const char *option, const char *path) {
    if (r < 0)
        return exec_explain(context, r, "%s %.200s: %s", option, path,
                            r == -ELOOP ? "a symbolic link that another user could have made" : strerror(-r));
    return r;
}

static int exec_open_input(const char *path) {
    int fd = exec_open_file(path, O_RDONLY);
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close_fd(fd);
        return -EISDIR;
    }
    return fd;
}

static int exec_input(struct exec_context *context) {
    const char *path = context->plan->job->input.file;

    if (path && *path)
        return exec_place(exec_name_path(context, exec_open_input(path), "stdin", path), STDIN_FILENO);
    return exec_place(exec_open_null(O_RDONLY), STDIN_FILENO);
}

static int exec_output(struct exec_context *context) {
    const struct job_output *output = &context->plan->job->output;
    int r = -EINVAL;

    (void) umask(context->plan->job->umask);
    switch (output->kind) {
    case JOB_OUTPUT_JOURNAL:
        r = exec_place(context->journal_fd, STDOUT_FILENO);
        break;
    case JOB_OUTPUT_FILE:
        r = exec_open_file(output->path, O_WRONLY | O_APPEND | O_CREAT);
        r = exec_place(exec_name_path(context, r, "output", output->path), STDOUT_FILENO);
        break;
    case JOB_OUTPUT_NULL:
        r = exec_place(exec_open_null(O_WRONLY), STDOUT_FILENO);
        break;
    }
    if (r == 0 && dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
        r = -errno;
    return r;
}

static int exec_directory(struct exec_context *context) {
    const char *directory = context->plan->job->directory;
    const char *path = strcmp(directory, "~") == 0 ? context->plan->home : directory;

    return exec_name_path(context, chdir(path) < 0 ? -errno : 0, "directory", path);
}

/* The kernel's struct: handler (0: SIG_DFL), flags, restorer, mask. The C library does not let us set its two
 * internal signals, but its posix_spawn(), as used by make and shells, leaves them ignored in children. */
static void reset(int signal) {
    const unsigned long standard[4] = {0};

    (void) syscall(SYS_rt_sigaction, signal, standard, NULL, (size_t) (NSIG - 1) / 8);
}

/* SIGPIPE stays ignored until exec_signal_mask(): a module of the name service may write to a service that has ended. */
static int exec_signals(_unused_ struct exec_context *context) {
    for (int signal = 1; signal < NSIG; signal++) /* fails for KILL and STOP, which nobody can ignore */
        if (signal != SIGPIPE)
            reset(signal);
    return 0;
}

static int exec_signal_mask(_unused_ struct exec_context *context) {
    sigset_t none;

    reset(SIGPIPE);
    return sigemptyset(&none) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

/* The command gets only the descriptors 0, 1 and 2 (CVE-2012-6097, CVE-2024-21626). exec closes the others:
 * one of them is the pipe that reports a failed exec. */
static int exec_descriptors(_unused_ struct exec_context *context) {
    return close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ? -errno : 0;
}

static int exec_deadline(struct exec_context *context) {
    return -supervise_child_check_deadline(context->plan->term);
}

static int exec_command(struct exec_context *context) {
    const struct job_settings *job = context->plan->job;
    char *script[] = {job->command.shell, (char[]) {"-c"}, job->command.script, (char *) (uintptr_t) job->name, NULL};
    char *const *argv = job->command.script && *job->command.script ? script : job->command.argv;

    int error;

    execve(argv[0], argv, context->environment.items);
    error = errno;
    if (error == ENOENT && access(argv[0], F_OK) == 0)
        return exec_explain(context, -error, "exec %.180s: its interpreter or loader does not exist (does the #! line end in CR?)", argv[0]);
    return exec_explain(context, -error, "exec %.200s: %s", argv[0], strerror(error));
}

/* The safety depends on this order. */
static const struct {
    const char *stage; /* of the failure, for berthd and the journal */
    int (*run)(struct exec_context *context);
} steps[] = {
    {"session", exec_session},
    {"guard", exec_guard}, /* dies with the guard, also at the gate */
    {"signals", exec_signals},
    {"gate", exec_gate},
    {"user", exec_look_up},
    {"credentials", exec_credentials}, /* these two: as root, who can read them, without the job's limits */
    {"environment", exec_environment},
    {"limits", exec_set_rlimits},
    {"nice", exec_set_nice},
    {"oom-score", exec_set_oom_score},
    {"io-class", exec_set_io_class},
    {"output", exec_open_journal}, /* as root: journald accepts the name of the unit from root alone */
    {"keyring", exec_keyring},     /* before the drop: a user with a full key quota would keep root's */
    {"user", exec_set_ids},
    {"capabilities", exec_drop_capabilities},
    {"user", exec_verify_ids},
    {"keyring", exec_user_keyring}, /* one that belongs to the job's user */
    {"guard", exec_guard},          /* again: setresuid() clears it (prctl(2)) */
    {"input", exec_input},
    {"output", exec_output}, /* from here on, files that a user could have prepared */
    {"directory", exec_directory},
    {"signals", exec_signal_mask},
    {"descriptors", exec_descriptors},
    {"limits", exec_set_late_rlimits},
    {"deadline", exec_deadline}, /* earlier steps may have been slow */
    {"privileges", exec_set_no_new_privileges},
    {"exec", exec_command},
};

int exec_explain(struct exec_context *context, int r, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(context->plan->text, sizeof(context->plan->text), format, arguments);
    va_end(arguments);
    return r;
}

int exec_child(void *userdata, const char **ret_stage) {
    struct exec_context context = {.plan = userdata, .journal_fd = -1, .stage = ret_stage};
    int r = 0;

    for (size_t i = 0; i < ELEMENTSOF(steps) && r == 0; i++) {
        *ret_stage = steps[i].stage;
        r = steps[i].run(&context);
    }
    return -r;
}
