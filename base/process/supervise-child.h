/* SPDX-License-Identifier: MIT */
#pragma once

/* The child's half of base/process/supervise.c: from fork to exec. */

#include "base/process/supervise.h"

struct supervise_birth { /* what the child knows */
    const char *cgroup;  /* NULL: none */
    const sigset_t *mask;
    const struct supervise_term *term;
    supervise_child_fn child;
    void *userdata;
};

struct supervise_failure { /* through the pipe, when it did not get to exec */
    int error;
    char stage[16];
};

/* Forks it, in its cgroup from its first instruction on if the kernel can do that. pipe_fd: close-on-exec, written to by the child alone.
 * Its pid, or a negative errno; returns in the parent alone. */
pid_t supervise_fork(const struct supervise_birth *birth, int pipe_fd);
