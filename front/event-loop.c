/* SPDX-License-Identifier: MIT */
/* The part of sd-event that `berth run` uses, with the same names and the same behaviour. libsystemd loads
 * seven libraries, which takes longer than all else that `berth run` does before it sends its claim. So
 * build/berth is linked with this and event-source.c; all other programs have libsystemd.
 * tests/harness/event-suite.h tests both. */
#include "front/event-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>

#include "base/cleanup.h"
#include "base/clock.h"

int sd_event_new(sd_event **ret) {
    sd_event *e = calloc(1, sizeof(*e));

    if (!e)
        return -ENOMEM;
    e->n_ref = 1;
    e->signal_fd = e->timer_fd = -1;
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

        event_detach(s);
        if (is_floating)
            (void) sd_event_source_unref(s);
    }
    close_fd(e->signal_fd);
    close_fd(e->timer_fd);
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
    size_t n = 2;

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

/* Returns when the source is due without its descriptor. 0: at once; USEC_INFINITY: never. */
static uint64_t due(const sd_event_source *s) {
    if (s->pending_since > 0 || s->kind == KIND_DEFER)
        return 0;
    return s->kind == KIND_TIME ? s->usec : USEC_INFINITY;
}

/* Fills e->polled and sets the time until which the loop may sleep. Returns the number of entries. */
static size_t prepare(sd_event *e, uint64_t *ret_until) {
    size_t n = 0;

    *ret_until = USEC_INFINITY;
    e->polled[n++] = (struct pollfd) {.fd = e->signal_fd, .events = POLLIN};
    e->polled[n++] = (struct pollfd) {.fd = e->timer_fd, .events = POLLIN};
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

/* Sets the timer. A timeout of ppoll(2) does not count the time of a suspend, so a command could run on
 * after its deadline. */
static int arm(sd_event *e, uint64_t until) {
    struct itimerspec when = {.it_value = {.tv_sec = (time_t) (until / USEC_PER_SEC),
                                           .tv_nsec = (long) (until % USEC_PER_SEC * 1000)}};

    if (until == USEC_INFINITY)
        when = (struct itimerspec) {0};
    if (e->timer_fd < 0 && until < USEC_INFINITY) {
        e->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        if (e->timer_fd < 0)
            return -errno;
    }
    return e->timer_fd >= 0 && timerfd_settime(e->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) < 0 ? -errno : 0;
}

static int wait_for(sd_event *e) {
    const struct timespec at_once = {0};
    uint64_t until;
    size_t n;
    int r = reserve(e);

    if (r < 0)
        return r;
    n = prepare(e, &until);
    if (until > 0) {
        r = arm(e, until);
        if (r < 0)
            return r;
        e->polled[1].fd = e->timer_fd;
    }
    if (ppoll(e->polled, n, until > 0 ? NULL : &at_once, NULL) < 0) {
        if (errno != EINTR)
            return -errno;
        for (size_t i = 0; i < n; i++)
            e->polled[i].revents = 0;
    }
    e->now = clock_boottime();
    return 0;
}

/* Returns whether the source is pending now. polled: advances past the entry of a source for io. */
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
    polled++; /* the timer's: sources know their time */
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

/* Returns the most urgent pending source, of several the one that is pending for the longest time, or
 * NULL. */
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
