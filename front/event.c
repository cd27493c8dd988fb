/* SPDX-License-Identifier: MIT */
/* The part of sd-event that `berth run` uses, with the same names and the same behaviour. libsystemd loads seven
 * libraries, which takes longer than all else that `berth run` does before its claim is sent. The program build/berth is
 * linked with this file instead; all other programs with libsystemd. tests/harness/event-suite.h has what both must do. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"
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
    int signal_fd;       /* readable while one of the signals is pending; -1: no source has asked for one yet */
    sigset_t signals;
    struct pollfd *polled; /* signal_fd, then that of each source for io, in their order */
    size_t n_polled;
    uint64_t turn, now; /* now: boottime of this turn; 0: none yet */
    bool is_exiting;
    int exit_code;
};

/* --- sources --- */

static int watch_signals(sd_event *e) {
    int fd = signalfd(e->signal_fd, &e->signals, SFD_CLOEXEC | SFD_NONBLOCK);

    if (fd < 0)
        return -errno;
    e->signal_fd = fd;
    return 0;
}

static void detach(sd_event_source *s) {
    sd_event *e = s->event;

    if (!e)
        return;
    list_unlink(&s->link);
    s->event = NULL;
    s->enabled = SD_EVENT_OFF;
    if (s->kind != KIND_SIGNAL)
        return;
    (void) sigdelset(&e->signals, s->signal); /* one that is pending would keep the loop busy */
    (void) watch_signals(e);
}

sd_event_source *sd_event_source_unref(sd_event_source *s) {
    if (s && --s->n_ref == 0) {
        detach(s);
        free(s);
    }
    return NULL;
}

sd_event_source *sd_event_source_disable_unref(sd_event_source *s) {
    if (s)
        (void) sd_event_source_set_enabled(s, SD_EVENT_OFF);
    return sd_event_source_unref(s);
}

static int add(sd_event *e, sd_event_source **ret, enum kind kind, int enabled, void *userdata) {
    sd_event_source *s = calloc(1, sizeof(*s));

    if (!s)
        return -ENOMEM;
    s->n_ref = 1;
    s->event = e;
    s->kind = kind;
    s->enabled = enabled;
    s->fd = -1;
    s->userdata = userdata;
    list_append(&e->sources, &s->link);
    *ret = s;
    return 0;
}

int sd_event_add_io(sd_event *e, sd_event_source **ret, int fd, uint32_t events, sd_event_io_handler_t fn, void *userdata) {
    int r = add(e, ret, KIND_IO, SD_EVENT_ON, userdata);

    if (r < 0)
        return r;
    (*ret)->fd = fd;
    (*ret)->events = events;
    (*ret)->fn.io = fn;
    return 0;
}

int sd_event_add_time(sd_event *e, sd_event_source **ret, clockid_t clock, uint64_t usec, _unused_ uint64_t accuracy,
                      sd_event_time_handler_t fn, void *userdata) {
    int r = clock == CLOCK_BOOTTIME ? add(e, ret, KIND_TIME, SD_EVENT_ONESHOT, userdata) : -EOPNOTSUPP;

    if (r < 0)
        return r;
    (*ret)->usec = usec;
    (*ret)->fn.time = fn;
    return 0;
}

int sd_event_add_signal(sd_event *e, sd_event_source **ret, int signal, sd_event_signal_handler_t fn, void *userdata) {
    int r = sigaddset(&e->signals, signal) < 0 ? -errno : add(e, ret, KIND_SIGNAL, SD_EVENT_ON, userdata);

    if (r < 0)
        return r;
    (*ret)->signal = signal;
    (*ret)->fn.signal = fn;
    r = watch_signals(e);
    if (r < 0)
        *ret = sd_event_source_unref(*ret);
    return r;
}

int sd_event_add_defer(sd_event *e, sd_event_source **ret, sd_event_handler_t fn, void *userdata) {
    int r = add(e, ret, KIND_DEFER, SD_EVENT_ONESHOT, userdata);

    if (r == 0)
        (*ret)->fn.defer = fn;
    return r;
}

int sd_event_source_set_enabled(sd_event_source *s, int enabled) {
    if (!s->event)
        return enabled == SD_EVENT_OFF ? 0 : -ESTALE;
    s->enabled = enabled;
    if (enabled == SD_EVENT_OFF)
        s->pending_since = 0;
    return 0;
}

int sd_event_source_get_enabled(sd_event_source *s, int *ret) {
    if (ret)
        *ret = s->enabled;
    return s->enabled != SD_EVENT_OFF;
}

int sd_event_source_set_priority(sd_event_source *s, int64_t priority) {
    s->priority = priority;
    return 0;
}

int sd_event_source_set_floating(sd_event_source *s, int is_floating) {
    if (s->is_floating == !!is_floating)
        return 0;
    s->is_floating = is_floating;
    s->n_ref += is_floating ? 1 : -1U; /* never the last one: the caller has one, too */
    return 1;
}

int sd_event_source_set_io_events(sd_event_source *s, uint32_t events) {
    s->events = events;
    s->pending_since = 0;
    return 0;
}

int sd_event_source_set_time(sd_event_source *s, uint64_t usec) {
    s->usec = usec;
    s->pending_since = 0;
    return 0;
}

sd_event *sd_event_source_get_event(sd_event_source *s) {
    return s->event;
}

/* --- the loop --- */

int sd_event_new(sd_event **ret) {
    sd_event *e = calloc(1, sizeof(*e));

    if (!e)
        return -ENOMEM;
    e->n_ref = 1;
    e->signal_fd = -1;
    (void) sigemptyset(&e->signals);
    list_init(&e->sources);
    *ret = e;
    return 0;
}

sd_event *sd_event_ref(sd_event *e) {
    e->n_ref++;
    return e;
}

sd_event *sd_event_unref(sd_event *e) {
    if (!e || --e->n_ref > 0)
        return NULL;
    list_foreach_safe (s, &e->sources, struct sd_event_source, link) {
        bool is_floating = s->is_floating;

        detach(s);
        if (is_floating)
            (void) sd_event_source_unref(s);
    }
    close_fd(e->signal_fd);
    free(e->polled);
    free(e);
    return NULL;
}

int sd_event_exit(sd_event *e, int code) {
    e->is_exiting = true;
    e->exit_code = code;
    return 0;
}

int sd_event_now(sd_event *e, _unused_ clockid_t clock, uint64_t *ret) {
    *ret = e->now > 0 ? e->now : clock_boottime();
    return e->now == 0;
}

/* Makes room for a pollfd of each source. 0 or -ENOMEM. */
static int reserve(sd_event *e) {
    struct pollfd *more;
    size_t n = 1;

    list_foreach (s, &e->sources, struct sd_event_source, link)
        n++;
    if (n <= e->n_polled)
        return 0;
    more = reallocarray(e->polled, n, sizeof(*more));
    if (!more)
        return -ENOMEM;
    e->polled = more;
    e->n_polled = n;
    return 0;
}

/* Returns when the source must be called if no descriptor of it becomes ready. 0: at once; USEC_INFINITY: never. */
static uint64_t due(const sd_event_source *s) {
    if (s->pending_since > 0 || s->kind == KIND_DEFER)
        return 0;
    return s->kind == KIND_TIME ? s->usec : USEC_INFINITY;
}

/* Fills e->polled, and sets until when there is nothing to do. */
static size_t prepare(sd_event *e, uint64_t *ret_until) {
    size_t n = 0;

    *ret_until = USEC_INFINITY;
    e->polled[n++] = (struct pollfd) {.fd = e->signal_fd, .events = POLLIN};
    list_foreach (s, &e->sources, struct sd_event_source, link) {
        if (s->enabled == SD_EVENT_OFF)
            continue;
        if (s->kind == KIND_IO)
            e->polled[n++] = (struct pollfd) {.fd = s->fd, .events = (short) s->events};
        if (due(s) < *ret_until)
            *ret_until = due(s);
    }
    return n;
}

static int wait_for(sd_event *e) {
    uint64_t until, wait;
    struct timespec timeout;
    size_t n;
    int r = reserve(e);

    if (r < 0)
        return r;
    n = prepare(e, &until);
    wait = usec_sub(until, clock_boottime());
    timeout = (struct timespec) {.tv_sec = (time_t) (wait / USEC_PER_SEC), .tv_nsec = (long) (wait % USEC_PER_SEC * 1000)};
    if (ppoll(e->polled, n, until == USEC_INFINITY ? NULL : &timeout, NULL) < 0) {
        if (errno != EINTR)
            return -errno;
        for (size_t i = 0; i < n; i++)
            e->polled[i].revents = 0;
    }
    e->now = clock_boottime();
    return 0;
}

/* Whether it is pending now. polled: the next one of a source for io. */
static bool is_pending(sd_event_source *s, const sigset_t *signals, const struct pollfd **polled) {
    switch (s->kind) {
    case KIND_IO:
        s->revents = (uint32_t) (unsigned short) (*polled)++->revents;
        return s->revents != 0;
    case KIND_SIGNAL:
        return sigismember(signals, s->signal) == 1;
    case KIND_TIME:
        return s->usec <= s->event->now;
    case KIND_DEFER:
        return true;
    }
    return false;
}

static void collect(sd_event *e) {
    const struct pollfd *polled = e->polled;
    sigset_t signals;

    (void) sigemptyset(&signals);
    if (polled++->revents != 0)
        (void) sigpending(&signals);
    e->turn++;
    list_foreach (s, &e->sources, struct sd_event_source, link) {
        if (s->enabled == SD_EVENT_OFF)
            continue;
        if (!is_pending(s, &signals, &polled))
            s->pending_since = 0;
        else if (s->pending_since == 0)
            s->pending_since = e->turn;
    }
}

/* Returns the most urgent source; of several the one that has been pending for the longest time. NULL: none. */
static sd_event_source *next(sd_event *e) {
    sd_event_source *first = NULL;

    list_foreach (s, &e->sources, struct sd_event_source, link)
        if (s->pending_since > 0 && (!first || s->priority < first->priority ||
                                     (s->priority == first->priority && s->pending_since < first->pending_since)))
            first = s;
    return first;
}

static int call_signal(sd_event_source *s) {
    const struct timespec at_once = {0};
    siginfo_t info;
    sigset_t mask;

    if (sigemptyset(&mask) < 0 || sigaddset(&mask, s->signal) < 0 || sigtimedwait(&mask, &info, &at_once) < 0)
        return 0;
    return s->fn.signal(s,
                        &(struct signalfd_siginfo) {.ssi_signo = (uint32_t) info.si_signo, .ssi_code = info.si_code,
                                                    .ssi_pid = (uint32_t) info.si_pid, .ssi_uid = info.si_uid},
                        s->userdata);
}

static int call(sd_event_source *s) {
    switch (s->kind) {
    case KIND_IO:
        return s->fn.io(s, s->fd, s->revents, s->userdata);
    case KIND_TIME:
        return s->fn.time(s, s->usec, s->userdata);
    case KIND_DEFER:
        return s->fn.defer(s, s->userdata);
    case KIND_SIGNAL:
        return call_signal(s);
    }
    return 0;
}

static void dispatch(sd_event_source *s) {
    s->n_ref++; /* the callback may drop its source */
    s->pending_since = 0;
    if (s->enabled == SD_EVENT_ONESHOT)
        s->enabled = SD_EVENT_OFF;
    if (call(s) < 0 && s->event)
        s->enabled = SD_EVENT_OFF;
    (void) sd_event_source_unref(s);
}

int sd_event_loop(sd_event *e) {
    while (!e->is_exiting) {
        int r = wait_for(e);
        sd_event_source *s;

        if (r < 0)
            return r;
        collect(e);
        s = next(e);
        if (s)
            dispatch(s);
    }
    return e->exit_code;
}
