/* SPDX-License-Identifier: MIT */
#pragma once

/* For supervise.c (a command from its start to its end) and supervise-start.c (fork, gate, start) alone. */

#include "base/process/gate.h"
#include "base/process/supervise-tree.h"
#include "base/process/supervise.h"
#include "base/timer.h"

struct supervise {
    sd_event_source *signal_source, *pipe_source;
    struct timer timer;
    struct supervise_handler handler;
    struct supervise_result result;

    struct supervise_term *term; /* shared with the child; the parent alone writes it */
    int stop_signal;
    usec_t timeout;
    const char *text;          /* of the options */
    struct gate *gate;         /* of the child that waits there; NULL: none is prepared */
    struct supervise_tree tree;

    pid_t pid;                 /* of the command; 0: no child, or reaped */
    int pidfd, pipe_fd;        /* pipe_fd: -1 once it is known whether exec succeeded */
    bool is_stopping, is_killing, is_done, left_sent; /* left_sent: on_left was called */
    usec_t stop_begun;
    struct supervise_repeat {
        usec_t due, pause; /* of the next time, and between it and the one after it */
    } kill, recheck;       /* recheck: of the cgroup; due is USEC_INFINITY: not needed */
    usec_t stuck_due;          /* killed: of the next on_stuck */
};

/* --- supervise.c --- */
/* Sets the timer. To be called after each change of a time at which something is due. */
void supervise_set_timer(struct supervise *s);
int supervise_on_pipe(sd_event_source *source, int fd, uint32_t revents, void *userdata);
