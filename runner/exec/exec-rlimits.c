/* SPDX-License-Identifier: MIT */
#include "runner/exec/exec-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IO_CLASS_SHIFT 13       /* ioprio_set(2), IOPRIO_PRIO_VALUE(); older systems lack the header */
#define IO_PRIORITY_DEFAULT 4   /* the kernel's */
#define IO_OF_PROCESS 1         /* IOPRIO_WHO_PROCESS */
#define OOM_SCORE_FILE "/proc/self/oom_score_adj"

/* Whether to set this limit late. While the guard's descriptors are open, no number below the limit may be
 * free. */
static bool is_late(const struct rlimit_setting *limit) {
    struct rlimit now;

    return limit->resource == RLIMIT_NOFILE && getrlimit(RLIMIT_NOFILE, &now) == 0 && limit->value < now.rlim_cur;
}

static int set_rlimits(const struct rlimits *limits, bool late) {
    for (size_t i = 0; i < limits->n; i++) {
        const struct rlimit_setting *limit = &limits->items[i];
        const struct rlimit both = {limit->value, limit->value};

        if (is_late(limit) == late && setrlimit((__rlimit_resource_t) limit->resource, &both) < 0)
            return -errno;
    }
    return 0;
}

int exec_set_rlimits(struct exec_context *context) {
    return set_rlimits(&context->plan->job->process.rlimits, false);
}

int exec_set_late_rlimits(struct exec_context *context) {
    return set_rlimits(&context->plan->job->process.rlimits, true);
}

int exec_set_nice(struct exec_context *context) {
    int nice = context->plan->job->process.nice;

    return nice != JOB_INHERIT && setpriority(PRIO_PROCESS, 0, nice) < 0 ? -errno : 0;
}

int exec_set_oom_score(struct exec_context *context) {
    _cleanup_close_ int fd = -1;
    int score = context->plan->job->process.oom_score_adjust, n;
    char text[16];

    if (score == JOB_INHERIT)
        return 0;
    n = snprintf(text, sizeof(text), "%d", score);
    fd = open(OOM_SCORE_FILE, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, text, (size_t) n) < 0 ? -errno : 0; /* all bytes or none */
}

int exec_set_io_class(struct exec_context *context) {
    const struct job_process *process = &context->plan->job->process;
    int priority = process->io_priority == JOB_INHERIT ? IO_PRIORITY_DEFAULT : process->io_priority;

    if (process->io_class == JOB_IO_CLASS_NONE)
        return 0;
    if (process->io_class == JOB_IO_CLASS_IDLE)
        priority = 0;
    return syscall(SYS_ioprio_set, IO_OF_PROCESS, 0, (int) process->io_class << IO_CLASS_SHIFT | priority) < 0 ? -errno : 0;
}
