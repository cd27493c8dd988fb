/* SPDX-License-Identifier: MIT */
#include "base/wall-timer.h"

#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LATEST ((usec_t) 9000000000 * USEC_PER_SEC) /* year 2255: the kernel counts 2^63 ns */

/* A set clock cancels the timer once: read(2) or timerfd_settime(2) fails with ECANCELED, whichever comes
 * first. The timer stays armed. */
static int arm(const struct wall_timer *timer, usec_t realtime) {
    usec_t at = realtime < LATEST ? realtime : LATEST;
    struct itimerspec when = {
        .it_value.tv_sec = (time_t) (at / USEC_PER_SEC),
        .it_value.tv_nsec = (long) (at % USEC_PER_SEC) * 1000,
    };

    if (when.it_value.tv_sec == 0 && when.it_value.tv_nsec == 0)
        when.it_value.tv_nsec = 1; /* all zero would disarm */
    return timerfd_settime(timer->fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when, NULL) < 0 ? -errno
                                                                                                    : 0;
}

static int wall_timer_on_readable(_unused_ sd_event_source *source, int fd, _unused_ uint32_t events,
                                  void *userdata) {
    struct wall_timer *timer = userdata;
    uint64_t n;
    bool clock_was_set = timer->clock_was_set;

    if (read(fd, &n, sizeof(n)) < 0) {
        if (errno != ECANCELED)
            return 0;
        clock_was_set = true;
    }
    timer->clock_was_set = false;
    timer->fn(clock_was_set, timer->userdata);
    return 0;
}

int wall_timer_init(struct wall_timer *timer, sd_event *event, wall_timer_fn fn, void *userdata) {
    int r;

    *timer = (struct wall_timer){.fd = -1, .fn = fn, .userdata = userdata};
    timer->fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (timer->fd < 0)
        return -errno;
    r = arm(timer, USEC_INFINITY);
    if (r == 0)
        r = sd_event_add_io(event, &timer->source, timer->fd, EPOLLIN, wall_timer_on_readable, timer);
    if (r < 0)
        wall_timer_done(timer);
    return r < 0 ? r : 0;
}

void wall_timer_set(struct wall_timer *timer, usec_t realtime) {
    if (!timer->source || arm(timer, realtime) != -ECANCELED)
        return;
    timer->clock_was_set = true;
    (void) arm(timer, 0); /* reports it at once */
}

void wall_timer_done(struct wall_timer *timer) {
    timer->source = sd_event_source_disable_unref(timer->source);
    if (timer->fn) /* otherwise the timer is all zero and has no descriptor */
        timer->fd = close_fd(timer->fd);
    timer->fn = NULL;
}
