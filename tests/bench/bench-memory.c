/* SPDX-License-Identifier: MIT */

/* Memory of real programs: berthd with many waiting claims, a guard. */

#include "tests/bench/benches.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "tests/bench/daemon.h"

#define GUARDS 20
#define RUNS 200
#define STARTS 50 /* jobs named in one `berth start`: their answers wait in berthd, too, and are not what is measured */

/* Returns the kilobytes in a line of /proc/PID/FILE; 0: no such line. */
static double proc_kib(pid_t pid, const char *file, const char *key) {
    char path[64], line[256];
    _cleanup_fclose_ FILE *f = NULL;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, file);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, key, strlen(key)) == 0)
            return strtod(line + strlen(key), NULL);
    return 0;
}

/* Lists the children of a process; returns their number. */
static size_t children(pid_t parent, pid_t *ret, size_t size) {
    DIR *d = opendir("/proc");
    size_t n = 0;

    for (const struct dirent *e; d && (e = readdir(d));) {
        pid_t pid = (pid_t) strtol(e->d_name, NULL, 10);

        if (pid > 0 && n < size && (pid_t) proc_kib(pid, "status", "PPid:") == parent)
            ret[n++] = pid;
    }
    if (d)
        closedir(d);
    return n;
}

static void start_jobs(const struct fleet *f, const char *job, size_t n) {
    const char *argv[STARTS + 5] = {"berth", "--socket", f->daemons[0].socket, "start"};

    while (n > 0) {
        size_t now = n < STARTS ? n : STARTS;

        for (size_t i = 0; i < now; i++)
            argv[4 + i] = job;
        argv[4 + now] = NULL;
        if (command_time(argv) < 0)
            rig_fail("berth start %s failed", job);
        n -= now;
    }
}

static void guards(struct report *r, const struct fleet *f) {
    double sum = 0;
    size_t counted = 0;
    pid_t runners[4], all[GUARDS + 8];

    start_jobs(f, "sleeper", GUARDS);
    for (usec_t end = clock_boottime() + 10 * USEC_PER_SEC; counted < GUARDS && clock_boottime() < end; (void) poll(NULL, 0, 50)) {
        sum = 0;
        counted = 0;
        for (size_t i = children(f->daemons[0].pid, runners, ELEMENTSOF(runners)); i > 0; i--)
            for (size_t k = children(runners[i - 1], all, ELEMENTSOF(all)); k > 0; k--) {
                pid_t command;
                double kib = proc_kib(all[k - 1], "smaps_rollup", "Private_Clean:") + proc_kib(all[k - 1], "smaps_rollup", "Private_Dirty:");

                if (children(all[k - 1], &command, 1) == 1) { /* has started it */
                    sum += kib;
                    counted++;
                }
            }
    }
    if (counted == GUARDS)
        report_add(r, &(struct figure) {"a guard's private memory", sum / (double) counted, "KiB", NULL, 0, GOAL_VALUE_AT_MOST, 300});
    else
        report_skip(r, "a guard's private memory", "the guards were not found");
}

static void memory(struct report *r, const struct fleet *f) {
    static const size_t waiting[] = {0, 1000, 10000};
    pid_t pid = f->daemons[0].pid;
    double idle = 0, rss;
    size_t asked = 0;

    for (size_t i = 0; i < ELEMENTSOF(waiting); i++) {
        char name[80];

        start_jobs(f, "waiter", waiting[i] - asked);
        asked = waiting[i];
        rss = proc_kib(pid, "status", "VmRSS:");
        idle = i == 0 ? rss : idle;
        snprintf(name, sizeof(name), "berthd's RSS with %zu waiting claims", waiting[i]);
        report_add(r, &(struct figure) {name, rss, "KiB", NULL, 0, i == 0 ? GOAL_VALUE_AT_MOST : GOAL_NONE, 8192});
        if (waiting[i] > 0) {
            snprintf(name, sizeof(name), "  for each of the %zu", waiting[i]);
            report_add(r, &(struct figure) {name, (rss - idle) / (double) waiting[i], "KiB", NULL, 0, GOAL_VALUE_AT_MOST, 1});
        }
    }
}

static size_t count_files(const char *folder) {
    DIR *d = opendir(folder);
    size_t n = 0;

    for (const struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

/* A waiting `berth run` has a connection besides its claim. */
static void waiting_runs(struct report *r, const struct fleet *f) {
    const struct bench_daemon *d = &f->daemons[0];
    const char *const run[] = {"berth", "--socket", d->socket, "run", "-p", "none", "--", "true", NULL};
    double idle = proc_kib(d->pid, "status", "VmRSS:");
    usec_t end = clock_boottime() + 60 * USEC_PER_SEC;
    pid_t pids[RUNS];
    char folder[80], name[80];

    snprintf(folder, sizeof(folder), "%s/waiting", d->folder);
    for (size_t i = 0; i < RUNS; i++)
        pids[i] = command_start(run);
    while (count_files(folder) < RUNS) {
        if (clock_boottime() > end)
            rig_fail("only %zu of %d berth runs wait", count_files(folder), RUNS);
        (void) poll(NULL, 0, 20);
    }
    snprintf(name, sizeof(name), "berthd's RSS for each of %d waiting berth run", RUNS);
    report_add(r, &(struct figure) {name, (proc_kib(d->pid, "status", "VmRSS:") - idle) / RUNS, "KiB", NULL, 0, GOAL_NONE, 0});
    for (size_t i = 0; i < RUNS; i++) {
        (void) kill(pids[i], SIGTERM);
        (void) command_wait(pids[i]);
    }
}

void bench_memory(struct report *r) {
    struct fleet f;

    report_section(r, "memory");
    fleet_up(&f, 1);
    guards(r, &f);
    fleet_down(&f);
    fleet_up(&f, 1);
    memory(r, &f);
    fleet_down(&f);
    fleet_up(&f, 1);
    waiting_runs(r, &f);
    fleet_down(&f);
}
