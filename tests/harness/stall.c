/* SPDX-License-Identifier: MIT */
#include "tests/harness/stall.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESSORS_MAX 64
#define STALLS_MAX 1024 /* later ones are not noted */

struct seen { /* shared with the watchers */
    _Atomic usec_t asleep[PROCESSORS_MAX]; /* when each watcher began to sleep */
    atomic_uint n;
    struct {
        _Atomic usec_t from, until; /* `until` is written last; 0: not yet */
    } stalls[STALLS_MAX];
};

static struct seen *seen;
static pid_t watchers[PROCESSORS_MAX];
static size_t n_watchers;

static void note(usec_t from, usec_t until) {
    unsigned i = atomic_fetch_add(&seen->n, 1);

    if (i >= STALLS_MAX)
        return;
    seen->stalls[i].from = from;
    seen->stalls[i].until = until;
}

/* The sleep shows how late the kernel lets this process run again. */
static _Noreturn void watch(pid_t parent, _Atomic usec_t *asleep) {
    const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent) {
        usec_t before = clock_boottime(), after;

        *asleep = before;
        (void) nanosleep(&pause, NULL);
        after = clock_boottime();
        if (after - before > STALL_NOTED)
            note(before, after);
    }
    _exit(0);
}

void stall_start(void) {
    cpu_set_t allowed, one;
    pid_t parent = getpid(), pid;

    stall_stop();
    seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED || sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
        abort();
    for (int cpu = 0; cpu < CPU_SETSIZE && n_watchers < PROCESSORS_MAX; cpu++) {
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        seen->asleep[n_watchers] = clock_boottime();
        pid = fork();
        if (pid < 0)
            abort();
        if (pid == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            (void) sched_setaffinity(0, sizeof(one), &one);
            watch(parent, &seen->asleep[n_watchers]);
        }
        watchers[n_watchers++] = pid;
    }
}

usec_t stall_between(usec_t from, usec_t until) {
    unsigned n = seen ? atomic_load(&seen->n) : 0;
    usec_t longest = 0;

    for (unsigned i = 0; i < n && i < STALLS_MAX; i++) {
        usec_t begin = seen->stalls[i].from, end = seen->stalls[i].until;

        if (end > from && begin < until && end - begin > longest)
            longest = end - begin;
    }
    /* After a stall this process may run before the watchers. */
    for (size_t i = 0; i < n_watchers; i++) {
        usec_t begin = seen->asleep[i], end = clock_boottime();

        if (begin < until && usec_sub(end, begin) > STALL_NOTED && end - begin > longest)
            longest = end - begin;
    }
    return longest;
}

bool stall_excuses(usec_t since) {
    usec_t stall = stall_between(since, USEC_INFINITY);

    if (stall > STALL_BEARABLE)
        printf("the machine stood still for %llu ms, so nothing had to be in time\n", (unsigned long long) (stall / USEC_PER_MSEC));
    return stall > STALL_BEARABLE;
}

void stall_stop(void) {
    while (n_watchers > 0) {
        (void) kill(watchers[--n_watchers], SIGKILL);
        (void) waitpid(watchers[n_watchers], NULL, 0);
    }
    if (seen)
        (void) munmap(seen, sizeof(*seen));
    seen = NULL;
}
