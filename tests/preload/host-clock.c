/* SPDX-License-Identifier: MIT */

/* Preloaded into berthd, berth-runner, guards and `berth run` of one host: its clocks are off by what the file named by HOST_CLOCK says,
 * from the moment on that it says so. The file has two 64-bit numbers of µs: for CLOCK_BOOTTIME, which jumps when a machine was
 * suspended, and for CLOCK_REALTIME, which people step. Timers on either fire when the clock that they are on says so, also when it
 * jumps while a program waits: each wait is cut into slices, between which timers are armed anew. CLOCK_MONOTONIC, by which witnesses
 * tell what ran when, is left alone. */

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SLICE_MSEC 5
#define NSEC_PER_SEC 1000000000LL

enum which { BOOT, REAL, NONE };

static struct timer { /* armed at an absolute time of a clock that may jump */
    enum which which;
    int flags;
    struct itimerspec wanted;
    long long armed_with; /* the offset that it was armed with */
} timers[1024]; /* by descriptor */

static enum which which_of(clockid_t id) {
    return id == CLOCK_BOOTTIME || id == CLOCK_BOOTTIME_ALARM ? BOOT : id == CLOCK_REALTIME || id == CLOCK_REALTIME_ALARM ? REAL : NONE;
}

static const _Atomic int64_t none[2];
static const _Atomic int64_t *offsets = none;

/* Commands of `berth run` get its environment: a witness tells true time. */
__attribute__((constructor)) static void prepare(void) {
    const char *path = getenv("HOST_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(none), PROT_READ, MAP_SHARED, fd, 0);

    if (map != MAP_FAILED)
        offsets = map;
    if (fd >= 0)
        (void) close(fd);
    if (strcmp(program_invocation_short_name, "berth") == 0)
        (void) unsetenv("LD_PRELOAD");
}

static long long offset_of(enum which which) {
    return which == NONE ? 0 : atomic_load(&offsets[which]) * 1000;
}

static void shift(struct timespec *t, long long nsec) {
    long long sum = (long long) t->tv_sec * NSEC_PER_SEC + t->tv_nsec + nsec;

    if (sum < 1)
        sum = 1; /* long ago; 0 would disarm */
    t->tv_sec = sum / NSEC_PER_SEC;
    t->tv_nsec = sum % NSEC_PER_SEC;
}

int clock_gettime(clockid_t id, struct timespec *ts) {
    if (syscall(SYS_clock_gettime, id, ts) < 0)
        return -1;
    if (which_of(id) != NONE)
        shift(ts, offset_of(which_of(id)));
    return 0;
}

/* --- timers --- */

static struct timer *timer_of(int fd) {
    return fd >= 0 && (size_t) fd < sizeof(timers) / sizeof(timers[0]) ? &timers[fd] : NULL;
}

int timerfd_create(clockid_t id, int flags) {
    int fd = (int) syscall(SYS_timerfd_create, id, flags);

    if (timer_of(fd))
        *timer_of(fd) = (struct timer) {.which = which_of(id)};
    return fd;
}

static int arm(int fd, struct timer *t, struct itimerspec *old) {
    struct itimerspec now = t->wanted;

    t->armed_with = offset_of(t->which);
    if (now.it_value.tv_sec != 0 || now.it_value.tv_nsec != 0)
        shift(&now.it_value, -t->armed_with);
    return (int) syscall(SYS_timerfd_settime, fd, t->flags, &now, old);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old) {
    struct timer *t = timer_of(fd);

    if (!t || !(flags & TFD_TIMER_ABSTIME) || t->which == NONE)
        return (int) syscall(SYS_timerfd_settime, fd, flags, new, old);
    t->flags = flags;
    t->wanted = *new;
    return arm(fd, t, old);
}

static void arm_again(void) {
    for (size_t fd = 0; fd < sizeof(timers) / sizeof(timers[0]); fd++)
        if (timers[fd].flags && timers[fd].armed_with != offset_of(timers[fd].which) && arm((int) fd, &timers[fd], NULL) < 0)
            timers[fd].flags = 0; /* it was closed, and the descriptor is something else's */
}

/* --- waiting --- */

int epoll_pwait2(int fd, struct epoll_event *events, int size, const struct timespec *timeout, const sigset_t *mask) {
    long long left = timeout ? (long long) timeout->tv_sec * NSEC_PER_SEC + timeout->tv_nsec : INT64_MAX;

    for (;;) {
        long long slice = left < SLICE_MSEC * 1000000LL ? left : SLICE_MSEC * 1000000LL;
        struct timespec wait = {.tv_nsec = slice};
        int n;

        arm_again();
        n = (int) syscall(SYS_epoll_pwait2, fd, events, size, &wait, mask, 8);
        if (n != 0 || left <= slice)
            return n;
        if (timeout)
            left -= slice;
    }
}

int epoll_pwait(int fd, struct epoll_event *events, int size, int timeout, const sigset_t *mask) {
    struct timespec wait = {.tv_sec = timeout / 1000, .tv_nsec = timeout % 1000 * 1000000L};

    return epoll_pwait2(fd, events, size, timeout < 0 ? NULL : &wait, mask);
}

int epoll_wait(int fd, struct epoll_event *events, int size, int timeout) {
    return epoll_pwait(fd, events, size, timeout, NULL);
}
