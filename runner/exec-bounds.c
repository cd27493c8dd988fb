/* SPDX-License-Identifier: MIT */
#include "runner/exec-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define OOM_SCORE_FILE "/proc/self/oom_score_adj"

/* Descriptors are numbered from the lowest free one: below the limit there may be none while those of the guard are open. */
static bool is_late(const struct rlimit_setting *limit) {
    struct rlimit now;

    return limit->resource == RLIMIT_NOFILE && getrlimit(RLIMIT_NOFILE, &now) == 0 && limit->value < now.rlim_cur;
}

static int set_limits(const struct job_settings *job, bool late) {
    for (size_t i = 0; i < job->process.rlimits.n; i++) {
        const struct rlimit both = {job->process.rlimits.items[i].value, job->process.rlimits.items[i].value};

        if (is_late(&job->process.rlimits.items[i]) == late && setrlimit((__rlimit_resource_t) job->process.rlimits.items[i].resource, &both) < 0)
            return errno;
    }
    return 0;
}

static int set_oom_score(int score) {
    char text[16];
    int n = snprintf(text, sizeof(text), "%d", score), fd = open(OOM_SCORE_FILE, O_WRONLY | O_CLOEXEC), r = 0;

    if (fd < 0)
        return errno;
    if (write(fd, text, (size_t) n) < 0) /* whole or not at all */
        r = errno;
    close_fd(fd);
    return r;
}

int exec_bounds(const struct exec_plan *plan, const char **ret_stage) {
    const struct job_settings *job = plan->job;
    int r;

    *ret_stage = "limits";
    r = set_limits(job, false);
    if (r > 0)
        return r;
    *ret_stage = "nice";
    if (job->process.nice != JOB_INHERIT && setpriority(PRIO_PROCESS, 0, job->process.nice) < 0)
        return errno;
    *ret_stage = "oom-score";
    return job->process.oom_score_adjust != JOB_INHERIT ? set_oom_score(job->process.oom_score_adjust) : 0;
}

int exec_bounds_late(const struct exec_plan *plan, const char **ret_stage) {
    *ret_stage = "limits";
    return set_limits(plan->job, true);
}
