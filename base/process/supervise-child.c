/* SPDX-License-Identifier: MIT */
#include "base/process/supervise-child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/process/cgroup.h"
#include "base/deadline.h"
#include "base/failpoint.h"

/* Sent through the pipe by a child that could not exec. Smaller than PIPE_BUF, so never sent in part. */
struct supervise_failure {
    int error;
    char stage[SUPERVISE_STAGE_SIZE];
    char text[SUPERVISE_TEXT_SIZE];
};

int supervise_term_new(struct supervise_term **ret, const struct supervise_options *options) {
    struct supervise_term *term =
        mmap(NULL, sizeof(*term), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (term == MAP_FAILED)
        return -errno;
    term->stop_timeout = options->stop_timeout;
    atomic_init(&term->deadline, options->deadline);
    *ret = term;
    return 0;
}

int supervise_child_die_with_parent(pid_t parent) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return errno;
    /* The signal is not sent for a parent that ended before the call. */
    if (getppid() != parent)
        (void) raise(SIGKILL);
    return 0;
}

int supervise_child_check_deadline(const struct supervise_term *term) {
    return deadline_leaves_time(atomic_load(&term->deadline), term->stop_timeout, clock_boottime()) ? 0 : ETIME;
}

static int child_run(const struct supervise_birth *birth, bool must_enter, const char **ret_stage) {
    int r;

    *ret_stage = "cgroup";
    r = must_enter ? cgroup_enter(birth->cgroup) : 0;
    if (r > 0)
        return r;
    *ret_stage = "deadline";
    r = supervise_child_check_deadline(birth->term);
    if (r > 0)
        return r;
    FAILPOINT("command-before-exec");
    *ret_stage = "exec";
    return birth->child(birth->userdata, ret_stage);
}

static _Noreturn void child_main(const struct supervise_birth *birth, bool must_enter, int pipe_fd) {
    struct supervise_failure failure = {0};
    const char *stage = "";

    failure.error = child_run(birth, must_enter, &stage);
    strncpy(failure.stage, stage, sizeof(failure.stage) - 1);
    if (birth->text)
        (void) snprintf(failure.text, sizeof(failure.text), "%s", birth->text);
    while (write(pipe_fd, &failure, sizeof(failure)) < 0 && errno == EINTR)
        ;
    _exit(failure.error == ENOENT ? 127 : 126);
}

pid_t supervise_fork(const struct supervise_birth *birth, int pipe_fd) {
    pid_t pid = birth->cgroup ? cgroup_fork(birth->cgroup) : -ENOENT;
    bool must_enter = birth->cgroup && pid < 0;

    if (pid < 0)
        pid = fork();
    if (pid == 0)
        child_main(birth, must_enter, pipe_fd);
    return pid < 0 ? -errno : pid;
}

int supervise_read_failure(int pipe_fd, struct supervise_result *result) {
    struct supervise_failure failure = {0};
    ssize_t n = read(pipe_fd, &failure, sizeof(failure));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return -errno;
    if (n != sizeof(failure))
        return 0;
    failure.stage[sizeof(failure.stage) - 1] = failure.text[sizeof(failure.text) - 1] = '\0';
    result->exec_errno = failure.error;
    memcpy(result->stage, failure.stage, sizeof(result->stage));
    memcpy(result->text, failure.text, sizeof(result->text));
    return 1;
}
