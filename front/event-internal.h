/* SPDX-License-Identifier: MIT */
#pragma once

/* Shared by event-source.c and event-loop.c; not included elsewhere. */

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/list.h"

enum kind { KIND_IO, KIND_TIME, KIND_SIGNAL, KIND_DEFER };

struct sd_event_source {
    unsigned n_ref;
    struct sd_event *event; /* NULL: detached, waits for its last unref */
    struct list link;       /* on event->sources */
    enum kind kind;
    int enabled;            /* SD_EVENT_OFF, _ON, _ONESHOT */
    int64_t priority;
    uint64_t pending_since; /* turn; 0: not pending */
    bool is_floating;       /* the event owns the reference */
    int fd;                 /* io */
    uint32_t events, revents;
    uint64_t usec;          /* time: when it elapses */
    int signal;
    union {
        sd_event_io_handler_t io;
        sd_event_time_handler_t time;
        sd_event_signal_handler_t signal;
        sd_event_handler_t defer;
    } fn;
    void *userdata;
};

struct sd_event {
    unsigned n_ref;
    struct list sources;
    int signal_fd;         /* readable while one of the signals is pending; -1: no source of a signal yet */
    sigset_t signals;
    int timer_fd;          /* -1: the loop has not waited for a time yet */
    struct pollfd *polled; /* signal_fd, timer_fd, then the descriptor of each source for io, in order */
    size_t n_polled;
    uint64_t turn, now; /* now: boottime of this turn; 0: none yet */
    bool is_exiting;
    int exit_code;
};

/* Removes the source from its event, which no longer calls it. */
void event_detach(sd_event_source *s);
