/* SPDX-License-Identifier: MIT */
#include "tests/bench/race.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COMMAND_USEC "3000"

static const char *const kind_names[RACE_KINDS] = {
    "flock", "the floor of two hosts", "the floor of a host pool", "berth run over two hosts", "berth run, host pool", "jobs over two hosts"};

static void fill(struct race *race) {
    for (size_t w = 0; w < RACE_WORKERS; w++) {
        const char *own = race->fleet.daemons[0].socket, *socket = race->fleet.daemons[w % 2].socket;
        const char *const argv[RACE_KINDS][12] = {
            {"flock", race->lock, race->span, race->fleet.spans, COMMAND_USEC},
            {race->floor, "run", race->floors[w % 2].socket, race->span, race->fleet.spans, COMMAND_USEC},
            {race->floor, "run", race->floors[2].socket, race->span, race->fleet.spans, COMMAND_USEC},
            {"berth", "--socket", socket, "run", "-p", "one", "--", race->span, race->fleet.spans, COMMAND_USEC},
            {"berth", "--socket", own, "run", "-p", "own", "--", race->span, race->fleet.spans, COMMAND_USEC},
            {"berth", "--socket", socket, "start", "span", "--wait"},
        };

        for (size_t k = 0; k < RACE_KINDS; k++)
            memcpy(race->argv[k][w], argv[k], sizeof(argv[k]));
    }
}

/* name: of a host that shares the lock in Redis; NULL: a lock of its own. */
static void floor_start(struct race *race, struct floor_host *host, const char *name) {
    const char *const argv[] = {race->floor, "host", host->socket, name ? race->fleet.redis.socket : NULL, name, NULL};
    const char *const probe[] = {race->floor, "run", host->socket, "/bin/true", NULL};
    usec_t end = clock_boottime() + 10 * USEC_PER_SEC;

    snprintf(host->socket, sizeof(host->socket), "%s/floor-%s", race->fleet.folder, name ? name : "own");
    host->pid = command_start(argv);
    while (command_time(probe) < 0) {
        if (clock_boottime() > end)
            rig_fail("%s does not answer", host->socket);
        (void) poll(NULL, 0, 20);
    }
}

void race_up(struct race *race) {
    int fd;

    fleet_up(&race->fleet, 2);
    (void) build_path("tests/bench/tools/span", race->span);
    (void) build_path("tests/bench/tools/floor", race->floor);
    floor_start(race, &race->floors[0], "a");
    floor_start(race, &race->floors[1], "b");
    floor_start(race, &race->floors[2], NULL);
    snprintf(race->lock, sizeof(race->lock), "%s/lock", race->fleet.folder);
    fd = open(race->fleet.spans, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct spans)) < 0)
        rig_fail("cannot make %s", race->fleet.spans);
    race->spans = mmap(NULL, sizeof(struct spans), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close_fd(fd);
    if (race->spans == MAP_FAILED)
        rig_fail("cannot map %s", race->fleet.spans);
    fill(race);
}

void race_down(struct race *race) {
    (void) munmap(race->spans, sizeof(struct spans));
    for (size_t i = 0; i < ELEMENTSOF(race->floors); i++) {
        (void) kill(race->floors[i].pid, SIGKILL);
        (void) command_wait(race->floors[i].pid);
    }
    fleet_down(&race->fleet);
}

struct worker {
    const char *const *argv;
    struct spans *spans;
};

static void work(void *userdata) {
    const struct worker *w = userdata;

    while (atomic_fetch_add(&w->spans->asked, 1) < RACE_COMMANDS)
        if (command_time(w->argv) < 0)
            _exit(1);
}

static int by_begin(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

    return (x > y) - (x < y);
}

static void check(const struct race *race, const char *name) {
    if (race->spans->n != RACE_COMMANDS)
        rig_fail("%s: %u of %d commands ran", name, race->spans->n, RACE_COMMANDS);
    qsort(race->spans->of, RACE_COMMANDS, sizeof(race->spans->of[0]), by_begin);
    for (size_t i = 1; i < RACE_COMMANDS; i++)
        if (race->spans->of[i].began < race->spans->of[i - 1].ended)
            rig_fail("%s: two commands ran at once", name);
}

void race_round(struct race *race, enum race_kind kind) {
    struct worker workers[RACE_WORKERS];
    pid_t pids[RACE_WORKERS];

    memset(race->spans, 0, sizeof(*race->spans));
    for (size_t i = 0; i < RACE_WORKERS; i++) {
        workers[i] = (struct worker) {race->argv[kind][i], race->spans};
        pids[i] = command_fork(work, &workers[i]);
    }
    for (size_t i = 0; i < RACE_WORKERS; i++)
        if (command_wait(pids[i]) != 0)
            rig_fail("%s: a command failed", kind_names[kind]);
    check(race, kind_names[kind]);
}

void race_for(struct race *race, enum race_kind kind, usec_t time, struct race_gaps *gaps) {
    usec_t end = clock_boottime() + time;

    while (clock_boottime() < end && gaps->n + RACE_GAPS <= RACE_GAPS_MAX) {
        race_round(race, kind);
        for (size_t i = RACE_FIRST; i < RACE_END; i++)
            gaps->usec[gaps->n++] = (double) (race->spans->of[i].began - race->spans->of[i - 1].ended) / 1000;
    }
}

/* --- a busy machine --- */

static void spin(_unused_ void *userdata) {
    for (;;)
        __asm__ volatile("");
}

void spinners_start(struct spinners *s) {
    long n = sysconf(_SC_NPROCESSORS_ONLN) + 1;

    for (s->n = 0; s->n < ELEMENTSOF(s->pids) && (long) s->n < n; s->n++)
        s->pids[s->n] = command_fork(spin, NULL);
}

void spinners_end(const struct spinners *s) {
    for (size_t i = 0; i < s->n; i++)
        (void) kill(s->pids[i], SIGKILL);
    for (size_t i = 0; i < s->n; i++)
        (void) command_wait(s->pids[i]);
}
