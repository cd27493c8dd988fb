/* SPDX-License-Identifier: MIT */
#include "base/clock-watch.h"

#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LATEST 9000000000 /* s: year 2255, because the kernel counts 2^63 ns */

/* A set clock cancels a timer on it (timerfd_create(2)), which stays armed. */
static int clock_watch_on_readable(_unused_ sd_event_source *source, int fd, _unused_ uint32_t events,
                                   void *userdata) {
    struct clock_watch *watch = userdata;
    uint64_t n;

    if (read(fd, &n, sizeof(n)) < 0 && errno == ECANCELED)
        watch->fn(watch->userdata);
    return 0;
}

int clock_watch_init(struct clock_watch *watch, sd_event *event, clock_watch_fn fn, void *userdata) {
    const struct itimerspec when = {.it_value.tv_sec = LATEST};
    int r;

    *watch = (struct clock_watch) {.fd = -1, .fn = fn, .userdata = userdata};
    watch->fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (watch->fd < 0)
        return -errno;
    r = timerfd_settime(watch->fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when, NULL) < 0 ? -errno : 0;
    if (r == 0)
        r = sd_event_add_io(event, &watch->source, watch->fd, EPOLLIN, clock_watch_on_readable, watch);
    if (r < 0)
        clock_watch_done(watch);
    return r < 0 ? r : 0;
}

void clock_watch_done(struct clock_watch *watch) {
    watch->source = sd_event_source_disable_unref(watch->source);
    if (watch->fn) /* otherwise the watch is all zero and has no descriptor */
        watch->fd = close_fd(watch->fd);
    watch->fn = NULL;
}
