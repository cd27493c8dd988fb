/* SPDX-License-Identifier: MIT */
#include "base/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/timer.h"

#define ACCEPTS_A_TURN 64
#define RETRY (200 * USEC_PER_MSEC)

struct listener {
    listener_fn fn;
    void *userdata;
    sd_event_source *source;
    struct timer timer; /* on while the socket is paused */
};

static void listener_on_retry(void *userdata) {
    struct listener *l = userdata;

    (void) sd_event_source_set_enabled(l->source, SD_EVENT_ON);
}

static void listener_pause(struct listener *l) {
    (void) sd_event_source_set_enabled(l->source, SD_EVENT_OFF);
    timer_set_in(&l->timer, RETRY);
}

static int listener_on_io(_unused_ sd_event_source *source, int listen_fd, _unused_ uint32_t revents, void *userdata) {
    struct listener *l = userdata;

    for (unsigned i = 0; i < ACCEPTS_A_TURN; i++) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            l->fn(fd, l->userdata);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != ECONNABORTED && errno != EINTR) {
            listener_pause(l);
            break;
        }
    }
    return 0;
}

int listener_new(struct listener **ret, sd_event *event, int fd, int64_t priority, listener_fn fn, void *userdata) {
    _cleanup_(listener_freep) struct listener *l = calloc(1, sizeof(*l));
    int r;

    if (!l)
        return -ENOMEM;
    l->fn = fn;
    l->userdata = userdata;
    r = sd_event_add_io(event, &l->source, fd, EPOLLIN, listener_on_io, l);
    if (r >= 0)
        r = sd_event_source_set_priority(l->source, priority);
    if (r >= 0)
        r = timer_init(&l->timer, event, SD_EVENT_PRIORITY_NORMAL, listener_on_retry, l);
    if (r < 0)
        return r;
    *ret = steal_pointer(&l);
    return 0;
}

struct listener *listener_free(struct listener *l) {
    if (!l)
        return NULL;
    sd_event_source_disable_unref(l->source);
    timer_done(&l->timer);
    free(l);
    return NULL;
}
