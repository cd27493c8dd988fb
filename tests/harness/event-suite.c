/* SPDX-License-Identifier: MIT */
#include "tests/harness/event-suite.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "tests/harness/test.h"

static sd_event *event;
static char order[64]; /* one letter a call */

struct step { /* userdata of a source */
    char letter;
    sd_event_source *source, *other; /* the callback drops this source */
    int answer;
};

static void note(const struct step *step) {
    strncat(order, (char[]) {step->letter, '\0'}, sizeof(order) - strlen(order) - 1);
    if (step->letter == 'Z')
        (void) sd_event_exit(event, 7);
}

static int on_defer(_unused_ sd_event_source *s, void *userdata) {
    struct step *step = userdata;

    note(step);
    step->other = sd_event_source_disable_unref(step->other);
    return step->answer;
}

static int on_io(_unused_ sd_event_source *s, int fd, uint32_t revents, void *userdata) {
    struct step *step = userdata;
    char byte;

    note(step);
    CU_ASSERT(revents & (EPOLLIN | EPOLLHUP));
    if (read(fd, &byte, 1) != 1)
        (void) sd_event_exit(event, 9);
    return step->answer;
}

static int on_time(_unused_ sd_event_source *s, uint64_t usec, void *userdata) {
    CU_ASSERT(usec <= clock_boottime());
    return on_defer(s, userdata);
}

static int on_signal(_unused_ sd_event_source *s, const struct signalfd_siginfo *info, void *userdata) {
    CU_ASSERT(info->ssi_signo == SIGUSR1 || info->ssi_signo == SIGUSR2);
    TEST_INT(info->ssi_pid, getpid());
    TEST_INT(info->ssi_code, SI_USER);
    return on_defer(s, userdata);
}

static void begin(void) {
    order[0] = '\0';
    CU_ASSERT_FATAL(sd_event_new(&event) >= 0);
}

/* Runs until 'Z', and expects these calls. */
static void run(const char *expected) {
    TEST_INT(sd_event_loop(event), 7);
    TEST_STRING(order, expected);
    event = sd_event_unref(event);
}

static void defer(struct step *step, char letter, int64_t priority) {
    *step = (struct step) {.letter = letter};
    CU_ASSERT_FATAL(sd_event_add_defer(event, &step->source, on_defer, step) >= 0);
    CU_ASSERT(sd_event_source_set_priority(step->source, priority) >= 0);
}

static void drop(struct step *step) {
    step->source = sd_event_source_disable_unref(step->source);
}

/* The most urgent source is first; equal ones take turns. */
static void priorities(void) {
    struct step a, b, c, z;

    begin();
    defer(&z, 'Z', 10);
    defer(&b, 'b', 0);
    defer(&a, 'a', -10);
    defer(&c, 'c', 5);
    run("abcZ");
    drop(&a), drop(&b), drop(&c), drop(&z);
}

/* A source that is switched off or dropped while it is pending is not called. */
static void dropped(void) {
    struct step a, b, z;

    begin();
    defer(&a, 'a', 0);
    defer(&b, 'b', 1);
    defer(&z, 'Z', 2);
    a.other = steal_pointer(&b.source);
    run("aZ");
    drop(&a), drop(&z);
}

/* A callback may drop its source. */
static void drops_itself(void) {
    struct step a, z;

    begin();
    defer(&a, 'a', 0);
    defer(&z, 'Z', 1);
    a.other = steal_pointer(&a.source);
    run("aZ");
    drop(&z);
}

/* Readable as long as there is something to read. */
static void io(void) {
    struct step a = {.letter = 'a'}, z;
    int fds[2];

    CU_ASSERT_FATAL(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0 && write(fds[1], "xyz", 3) == 3);
    begin();
    CU_ASSERT_FATAL(sd_event_add_io(event, &a.source, fds[0], EPOLLIN, on_io, &a) >= 0);
    defer(&z, 'Z', 1);
    run("aaaZ");
    drop(&a), drop(&z);
    close_fd(fds[0]), close_fd(fds[1]);
}

/* A negative result switches the source off; the end of a pipe is reported. */
static void io_failed(void) {
    struct step a = {.letter = 'a', .answer = -EIO}, b = {.letter = 'b'};
    int fds[2], other;

    CU_ASSERT_FATAL(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0 && write(fds[1], "xyz", 3) == 3);
    other = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
    begin();
    CU_ASSERT_FATAL(sd_event_add_io(event, &a.source, fds[0], EPOLLIN, on_io, &a) >= 0);
    CU_ASSERT_FATAL(sd_event_add_io(event, &b.source, other, EPOLLIN, on_io, &b) >= 0);
    CU_ASSERT(sd_event_source_set_priority(b.source, 1) >= 0);
    close_fd(fds[1]);
    TEST_INT(sd_event_loop(event), 9);
    TEST_STRING(order, "abbb"); /* the last one reads the end */
    TEST_INT(sd_event_source_get_enabled(a.source, NULL), 0);
    event = sd_event_unref(event);
    drop(&a), drop(&b);
    close_fd(fds[0]), close_fd(other);
}

static void add_time(struct step *step, char letter, uint64_t usec) {
    *step = (struct step) {.letter = letter};
    CU_ASSERT_FATAL(sd_event_add_time(event, &step->source, CLOCK_BOOTTIME, usec, 1, on_time, step) >= 0);
}

/* Timers that are due at once, later, and never; each is called once. */
static void times(void) {
    usec_t now = clock_boottime(), turn;
    struct step a, b, never, z;

    begin();
    add_time(&z, 'Z', now + 30 * USEC_PER_MSEC);
    CU_ASSERT(sd_event_source_set_priority(z.source, 1) >= 0); /* on a busy machine all may be due */
    add_time(&never, 'n', UINT64_MAX);
    add_time(&b, 'b', UINT64_MAX);
    add_time(&a, 'a', now);
    CU_ASSERT(sd_event_source_set_priority(a.source, -1) >= 0);
    CU_ASSERT(sd_event_source_set_time(b.source, now + 10 * USEC_PER_MSEC) >= 0);
    TEST_INT(sd_event_loop(event), 7);
    TEST_STRING(order, "abZ");
    CU_ASSERT(clock_boottime() >= now + 30 * USEC_PER_MSEC);
    TEST_INT(sd_event_source_get_enabled(a.source, NULL), 0);
    CU_ASSERT(sd_event_source_get_enabled(never.source, NULL) > 0);
    event = sd_event_unref(event);
    drop(&a), drop(&b), drop(&never), drop(&z);
    begin();
    CU_ASSERT(sd_event_now(event, CLOCK_BOOTTIME, &turn) >= 0 && turn >= now && turn <= clock_boottime());
    event = sd_event_unref(event);
}

static int on_clock(_unused_ sd_event_source *s, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
    bool *found = userdata;

    for (int timer = 0; timer < 64 && !*found; timer++) {
        char path[64], text[1024] = "";
        FILE *f;

        (void) snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", timer);
        f = fopen(path, "re");
        if (!f)
            continue;
        *found = fread(text, 1, sizeof(text) - 1, f) > 0 && strstr(text, "clockid: 7\n") && !strstr(text, "it_value: (0, 0)");
        (void) fclose(f);
    }
    return sd_event_exit(event, 7);
}

/* The loop waits by a timer that counts the time in which the machine is suspended (CLOCK_BOOTTIME). */
static void suspended(void) {
    sd_event_source *source;
    bool found = false;
    struct step a;
    int fds[2];

    CU_ASSERT_FATAL(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
    begin();
    add_time(&a, 'a', clock_boottime() + 1000 * USEC_PER_SEC);
    CU_ASSERT_FATAL(sd_event_add_io(event, &source, fds[0], EPOLLIN, on_clock, &found) >= 0);
    TEST_INT(write(fds[1], "x", 1), 1);
    TEST_INT(sd_event_loop(event), 7);
    CU_ASSERT(found);
    source = sd_event_source_disable_unref(source);
    event = sd_event_unref(event);
    drop(&a);
    close_fd(fds[0]), close_fd(fds[1]);
}

/* Blocked signals, by priority, each once; others stay pending. */
static void signals(void) {
    struct step a = {.letter = 'a'}, b = {.letter = 'b'}, z;
    const struct timespec at_once = {0};
    sigset_t mask, before;

    TEST_INT(sigemptyset(&mask) + sigaddset(&mask, SIGUSR1) + sigaddset(&mask, SIGUSR2) + sigaddset(&mask, SIGWINCH), 0);
    TEST_INT(sigprocmask(SIG_BLOCK, &mask, &before), 0);
    begin();
    CU_ASSERT_FATAL(sd_event_add_signal(event, &b.source, SIGUSR1, on_signal, &b) >= 0);
    CU_ASSERT_FATAL(sd_event_add_signal(event, &a.source, SIGUSR2, on_signal, &a) >= 0);
    CU_ASSERT(sd_event_source_set_priority(b.source, 5) >= 0);
    CU_ASSERT(sd_event_source_set_floating(b.source, 1) >= 0);
    b.source = sd_event_source_unref(b.source); /* the loop has it */
    defer(&z, 'Z', 10);
    TEST_INT(kill(getpid(), SIGUSR1) + kill(getpid(), SIGUSR2) + kill(getpid(), SIGWINCH), 0);
    run("abZ");
    drop(&a), drop(&z);
    TEST_INT(sigemptyset(&mask) + sigaddset(&mask, SIGWINCH), 0);
    TEST_INT(sigtimedwait(&mask, NULL, &at_once), SIGWINCH);
    TEST_INT(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

/* --- a loop that waits uses no processor --- */

static long slept_before;
static int n_times;

/* Returns how often this process has slept. */
static long count_sleeps(void) {
    struct rusage usage;

    TEST_INT(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_nvcsw;
}

/* A loop that begins to wait when its time has come does not sleep, so it gets another time. */
static int on_time_asleep(sd_event_source *s, uint64_t usec, void *userdata) {
    if (count_sleeps() == slept_before && ++n_times < 10) {
        CU_ASSERT(sd_event_source_set_time(s, clock_boottime() + 20 * USEC_PER_MSEC) >= 0);
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
    }
    return on_time(s, usec, userdata);
}

/* A busy loop never sleeps, however little of the processor it gets. */
static void wait_idly(void) {
    struct step z = {.letter = 'Z'};

    n_times = 0;
    slept_before = count_sleeps();
    CU_ASSERT_FATAL(sd_event_add_time(event, &z.source, CLOCK_BOOTTIME, clock_boottime() + 20 * USEC_PER_MSEC, 1, on_time_asleep, &z) >= 0);
    run("Z");
    CU_ASSERT(count_sleeps() > slept_before);
    drop(&z);
}

/* Sources that wait: a signal that does not come, a silent pipe, timer and deferred call switched off. */
static void idle(void) {
    struct step a = {.letter = 'a'}, b = {.letter = 'b'}, c, d;
    sigset_t mask, before;
    int fds[2];

    TEST_INT(sigemptyset(&mask) + sigaddset(&mask, SIGUSR1), 0);
    TEST_INT(sigprocmask(SIG_BLOCK, &mask, &before), 0);
    CU_ASSERT_FATAL(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
    begin();
    CU_ASSERT_FATAL(sd_event_add_signal(event, &a.source, SIGUSR1, on_signal, &a) >= 0);
    CU_ASSERT_FATAL(sd_event_add_io(event, &b.source, fds[0], EPOLLIN, on_io, &b) >= 0);
    add_time(&c, 'c', clock_boottime());
    CU_ASSERT(sd_event_source_set_enabled(c.source, SD_EVENT_OFF) >= 0);
    defer(&d, 'd', 0);
    CU_ASSERT(sd_event_source_set_enabled(d.source, SD_EVENT_OFF) >= 0);
    wait_idly();
    drop(&a), drop(&b), drop(&c), drop(&d);
    close_fd(fds[0]), close_fd(fds[1]);
    TEST_INT(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

/* A signal whose source is gone stays pending. */
static void signal_of_nobody(void) {
    struct step a = {.letter = 'a'};
    const struct timespec at_once = {0};
    sigset_t mask, before;

    TEST_INT(sigemptyset(&mask) + sigaddset(&mask, SIGUSR1), 0);
    TEST_INT(sigprocmask(SIG_BLOCK, &mask, &before), 0);
    begin();
    CU_ASSERT_FATAL(sd_event_add_signal(event, &a.source, SIGUSR1, on_signal, &a) >= 0);
    TEST_INT(kill(getpid(), SIGUSR1), 0);
    drop(&a);
    wait_idly();
    TEST_INT(sigtimedwait(&mask, NULL, &at_once), SIGUSR1);
    TEST_INT(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

CU_TestInfo event_suite[] = {
    {"priorities", priorities}, {"dropped", dropped}, {"drops itself", drops_itself},
    {"io", io},                 {"io failed", io_failed}, {"times", times},
    {"suspended", suspended},
    {"signals", signals},       {"idle", idle},     {"signal of nobody", signal_of_nobody}, CU_TEST_INFO_NULL,
};
