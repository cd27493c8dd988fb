/* SPDX-License-Identifier: MIT */

/* Preloaded into berthd, berth-runner, guards and `berth run` of one host, or into a test. The file that
 * HOST_CLOCK names controls the clocks. It has five 64-bit numbers:
 *
 *   1  µs that CLOCK_BOOTTIME is ahead; it jumps when a machine was suspended
 *   2  µs that CLOCK_REALTIME is ahead; people step it
 *   3  the time in µs at which CLOCK_BOOTTIME stands still; 0: it runs
 *   4  n > 0: berthd is killed before its n-th effect from now, a call that others can observe;
 *      n < 0: the thread that writes to the disk waits before its next effect
 *   5  not 0: SIGKILL reaches only guards, as if other processes waited in the kernel
 *
 * A timer fires by its clock, also when the clock jumps while a program waits: waits are cut into slices,
 * and timers are armed again between them. A timer with TFD_TIMER_CANCEL_ON_SET is canceled when its clock
 * is stepped. On a clock that stands, the next wait sees a due timer before any later event.
 * CLOCK_MONOTONIC is left alone, because witnesses use it. If there is a folder HOST_CLOCK.zones, its
 * files are the time zones. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SLICE_MSEC 5
#define NSEC_PER_SEC 1000000000LL
#define ZONES "/usr/share/zoneinfo/"

enum which { BOOT, REAL, NONE };
#define STANDS 2 /* index in the file, as below */
#define EFFECTS 3
#define LOST 4
#define WORDS 5

static struct timer { /* armed at an absolute time of a clock that may jump */
    enum which which;
    int flags;
    struct itimerspec wanted;
    long long armed_with; /* the offset of the clock then, or the time at which it stood */
    int is_canceled;      /* the clock was stepped, and read() has not returned ECANCELED yet */
} timers[1024]; /* by descriptor */

static enum which which_of(clockid_t id) {
    return id == CLOCK_BOOTTIME || id == CLOCK_BOOTTIME_ALARM ? BOOT : id == CLOCK_REALTIME || id == CLOCK_REALTIME_ALARM ? REAL : NONE;
}

static const _Atomic int64_t none[WORDS];
static const _Atomic int64_t *offsets = none;
static _Atomic int64_t *effects; /* number 4 of the file; NULL: not berthd */

/* Commands of `berth run` get its environment, and must see the true time. */
__attribute__((constructor)) static void prepare(void) {
    const char *path = getenv("HOST_CLOCK");
    int is_berthd = strcmp(program_invocation_short_name, "berthd") == 0;
    int fd = path ? open(path, (is_berthd ? O_RDWR : O_RDONLY) | O_CLOEXEC) : -1;
    void *map = fd < 0 ? MAP_FAILED
                       : mmap(NULL, sizeof(none), is_berthd ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);

    if (map != MAP_FAILED)
        offsets = map;
    if (map != MAP_FAILED && is_berthd)
        effects = (_Atomic int64_t *) map + EFFECTS;
    if (fd >= 0)
        (void) close(fd);
    if (strcmp(program_invocation_short_name, "berth") == 0)
        (void) unsetenv("LD_PRELOAD");
}

/* Returns the time at which the clock stands, or 0 if it runs. */
static long long stands(enum which which) {
    return which == BOOT ? atomic_load(&offsets[STANDS]) * 1000 : 0;
}

static long long offset_of(enum which which) {
    return which == NONE ? 0 : atomic_load(&offsets[which]) * 1000;
}

static long long setting_of(enum which which) {
    return stands(which) ? stands(which) : offset_of(which);
}

static void shift(struct timespec *t, long long nsec) {
    long long sum = (long long) t->tv_sec * NSEC_PER_SEC + t->tv_nsec + nsec;

    if (sum < 1)
        sum = 1; /* long ago; 0 would disarm */
    t->tv_sec = sum / NSEC_PER_SEC;
    t->tv_nsec = sum % NSEC_PER_SEC;
}

int clock_gettime(clockid_t id, struct timespec *ts) {
    enum which which = which_of(id);
    long long stood = stands(which);

    if (syscall(SYS_clock_gettime, id, ts) < 0)
        return -1;
    if (stood)
        *ts = (struct timespec) {.tv_sec = stood / NSEC_PER_SEC, .tv_nsec = stood % NSEC_PER_SEC};
    else if (which != NONE)
        shift(ts, offset_of(which));
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

/* Arms a timer on a clock that stands. A timer that is due can be read when this function returns. */
static int arm_standing(int fd, const struct timer *t, struct itimerspec *old) {
    long long wanted = (long long) t->wanted.it_value.tv_sec * NSEC_PER_SEC + t->wanted.it_value.tv_nsec;
    struct itimerspec now = {.it_value.tv_nsec = wanted > 0 && wanted <= t->armed_with};
    struct pollfd due = {.fd = fd, .events = POLLIN};

    if (syscall(SYS_timerfd_settime, fd, t->flags, &now, old) < 0)
        return -1;
    if (now.it_value.tv_nsec)
        (void) poll(&due, 1, 1000);
    return 0;
}

static int arm(int fd, struct timer *t, struct itimerspec *old) {
    struct itimerspec now = t->wanted;
    long long stood = stands(t->which);

    t->armed_with = stood ? stood : offset_of(t->which);
    if (stood)
        return arm_standing(fd, t, old);
    if (now.it_value.tv_sec != 0 || now.it_value.tv_nsec != 0)
        shift(&now.it_value, -t->armed_with);
    return (int) syscall(SYS_timerfd_settime, fd, t->flags, &now, old);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old) {
    struct timer *t = timer_of(fd);
    int canceled;

    if (!t || !(flags & TFD_TIMER_ABSTIME) || t->which == NONE)
        return (int) syscall(SYS_timerfd_settime, fd, flags, new, old);
    canceled = t->is_canceled || (t->flags & TFD_TIMER_CANCEL_ON_SET && t->armed_with != setting_of(t->which));
    t->flags = flags;
    t->wanted = *new;
    t->is_canceled = 0;
    if (arm(fd, t, old) < 0)
        return -1;
    errno = ECANCELED;
    return canceled && flags & TFD_TIMER_CANCEL_ON_SET ? -1 : 0;
}

/* Makes the timer readable at once. */
static int cancel(int fd, struct timer *t) {
    struct itimerspec now = {.it_value.tv_nsec = 1};

    t->is_canceled = 1;
    t->armed_with = setting_of(t->which);
    return (int) syscall(SYS_timerfd_settime, fd, TFD_TIMER_ABSTIME, &now, NULL);
}

ssize_t read(int fd, void *data, size_t size) {
    struct timer *t = timer_of(fd);
    ssize_t n = syscall(SYS_read, fd, data, size);

    if (n < 0 || !t || !t->is_canceled)
        return n;
    t->is_canceled = 0;
    (void) arm(fd, t, NULL);
    errno = ECANCELED;
    return -1;
}

static void arm_again(void) {
    for (size_t fd = 0; fd < sizeof(timers) / sizeof(timers[0]); fd++) {
        struct timer *t = &timers[fd];

        if (!t->flags || t->armed_with == setting_of(t->which))
            continue;
        if ((t->flags & TFD_TIMER_CANCEL_ON_SET ? cancel((int) fd, t) : arm((int) fd, t, NULL)) < 0)
            *t = (struct timer) {.which = NONE}; /* closed: the descriptor is no timer any more */
    }
}

/* --- kills --- */

static int loses_kills(void) {
    return atomic_load(&offsets[LOST]) != 0;
}

/* Reads the value of the first line with this key in a file of /proc. It is "" if no line has the key. */
static void read_proc(const char *path, const char *key, char value[static 32]) {
    FILE *file = fopen(path, "re");
    char line[128];

    value[0] = '\0';
    while (file && !value[0] && fgets(line, sizeof(line), file))
        if (strncmp(line, key, strlen(key)) == 0)
            (void) sscanf(line + strlen(key), " %31s", value);
    if (file)
        (void) fclose(file);
}

static int is_guard(int pidfd) {
    char path[64], pid[32], name[32];

    (void) snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
    read_proc(path, "Pid:", pid);
    (void) snprintf(path, sizeof(path), "/proc/%.16s/status", pid);
    read_proc(path, "Name:", name);
    return strcmp(name, "berth-guard") == 0;
}

int pidfd_send_signal(int pidfd, int signal, siginfo_t *info, unsigned flags) {
    if (signal == SIGKILL && loses_kills() && !is_guard(pidfd))
        return 0;
    return (int) syscall(SYS_pidfd_send_signal, pidfd, signal, info, flags);
}

/* --- zones --- */

static char zones[256]; /* the test's folder; "": the machine's zones are used */

/* Returns the path of the test's zone file in place of the machine's, or any other path unchanged. */
static const char *zone_path(const char *path, char buffer[static 512]) {
    if (zones[0] == '\0' || strncmp(path, ZONES, sizeof(ZONES) - 1) != 0)
        return path;
    (void) snprintf(buffer, 512, "%s/%s", zones, path + sizeof(ZONES) - 1);
    return buffer;
}

int open64(const char *path, int flags, ...) {
    char buffer[512];
    mode_t mode = 0;
    va_list arguments;

    if (loses_kills() && strstr(path, "/cgroup.kill")) {
        errno = EACCES;
        return -1;
    }
    va_start(arguments, flags);
    if (flags & (O_CREAT | O_TMPFILE))
        mode = va_arg(arguments, mode_t);
    va_end(arguments);
    return (int) syscall(SYS_openat, AT_FDCWD, zone_path(path, buffer), flags, mode);
}

int stat64(const char *path, struct stat64 *ret) {
    char buffer[512];

    return (int) syscall(SYS_newfstatat, AT_FDCWD, zone_path(path, buffer), ret, 0);
}

__attribute__((constructor)) static void find_zones(void) {
    const char *path = getenv("HOST_CLOCK");

    (void) snprintf(zones, sizeof(zones), "%s.zones", path ? path : "");
    if (!path || access(zones, X_OK) < 0)
        zones[0] = '\0';
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

/* --- effects --- */

static void die_in_time(void) {
    int64_t left = effects ? atomic_load(effects) : 0;

    while (left < 0 && syscall(SYS_gettid) != getpid()) {
        (void) poll(NULL, 0, SLICE_MSEC);
        left = atomic_load(effects);
    }
    while (left > 0 && !atomic_compare_exchange_weak(effects, &left, left - 1))
        ;
    if (left == 1)
        (void) raise(SIGKILL);
}

ssize_t write(int fd, const void *data, size_t size) {
    die_in_time();
    return syscall(SYS_write, fd, data, size);
}

ssize_t send(int fd, const void *data, size_t size, int flags) {
    die_in_time();
    return syscall(SYS_sendto, fd, data, size, flags, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    die_in_time();
    return syscall(SYS_sendmsg, fd, message, flags);
}

int fdatasync(int fd) {
    die_in_time();
    return (int) syscall(SYS_fdatasync, fd);
}

int fsync(int fd) {
    die_in_time();
    return (int) syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to) {
    die_in_time();
    return (int) syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path) {
    die_in_time();
    return (int) syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
