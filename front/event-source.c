/* SPDX-License-Identifier: MIT */
/* Sources of the event loop that event-loop.c describes. */
#include "front/event-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/signalfd.h>

#include "base/cleanup.h"
#include "base/clock.h"

static int watch_signals(sd_event *e) {
    int fd = signalfd(e->signal_fd, &e->signals, SFD_CLOEXEC | SFD_NONBLOCK);

    if (fd < 0)
        return -errno;
    e->signal_fd = fd;
    return 0;
}

void event_detach(sd_event_source *s) {
    sd_event *e = s->event;

    if (!e)
        return;
    list_unlink(&s->link);
    s->event = NULL;
    s->enabled = SD_EVENT_OFF;
    if (s->kind != KIND_SIGNAL)
        return;
    (void) sigdelset(&e->signals, s->signal); /* a pending one would keep the loop busy */
    (void) watch_signals(e);
}

sd_event_source *sd_event_source_unref(sd_event_source *s) {
    if (s && --s->n_ref == 0) {
        event_detach(s);
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
    s->n_ref += is_floating ? 1 : -1U; /* never the last one: the caller has one as well */
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
