/* SPDX-License-Identifier: MIT */
#pragma once

/* The child's half of base/process/supervise.c: from fork to exec. */

#include "base/process/supervise.h"

struct supervise_birth { /* what the child needs */
    const char *cgroup;  /* NULL: none */
    const struct supervise_term *term;
    supervise_child_fn child;
    const char *text; /* of supervise_options */
    void *userdata;
};

/* Maps the memory that parent and child share; to be unmapped. 0 or a negative errno. */
int supervise_term_new(struct supervise_term **ret, const struct supervise_options *options);
/* Forks the child, from its first instruction in its cgroup if the kernel can do that. pipe_fd: close-on-exec; the
 * child alone writes to it. Returns, in the parent alone, the child's pid or a negative errno. */
pid_t supervise_fork(const struct supervise_birth *birth, int pipe_fd);
/* Reads the other end of that pipe without blocking, and sets exec_errno, stage and text. 1: the child could not exec; 0:
 * the pipe ended without data, so the child did, or was killed before; -EAGAIN or -EINTR: not known yet. */
int supervise_read_failure(int pipe_fd, struct supervise_result *result);
