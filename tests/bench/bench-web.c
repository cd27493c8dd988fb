/* SPDX-License-Identifier: MIT */

/* berth-web with many browsers: what it takes of memory, what they cost berthd, and how long others wait. Each
 * second a pool's limit changes, so that each frame has news. BENCH_WEB_SECONDS: how long 1000 streams are read, and
 * then stand still. */

#include "tests/bench/benches.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/bench/race.h"
#include "tests/bench/web-load.h"
#include "tests/harness/memory.h"
#include "tests/harness/port.h"

#define SECONDS 10 /* unless BENCH_WEB_SECONDS says otherwise */
#define STREAMS 1000
#define RATE 2000
#define KEPT 20 /* connections of those who send RATE requests a second */
#define ANSWERS_TIME (10 * USEC_PER_SEC)
#define ROUNDS 12
#define ROUND (3 * USEC_PER_SEC)
#define SLOW 1000
#define SLOW_TIME (25 * USEC_PER_SEC) /* more than two of the ten seconds after which a slow request ends */
#define ASK_PERIOD (50 * USEC_PER_MSEC)
#define RSS_MAX_KIB (48 * 1024)
#define START_TIME (30 * USEC_PER_SEC)

struct web {
    struct race *race;
    const struct bench_daemon *berthd; /* the one that it asks */
    char listen[32], path[96];
    unsigned port;
    pid_t pid;
};

/* --- berth-web --- */

static void run_web(void *userdata) {
    const struct web *w = userdata;
    char program[300];

    (void) nice(7); /* as CPUWeight=20 of its unit */
    execl(build_path("berth-web", program), "berth-web", "--listen", w->listen, "--unix", w->path, "--berth",
          w->berthd->socket, (char *) NULL);
    _exit(127);
}

static void web_up(struct web *w, struct race *race) {
    usec_t end = clock_boottime() + START_TIME;

    *w = (struct web) {.race = race, .berthd = &race->fleet.daemons[0], .port = port_reserve()};
    (void) snprintf(w->listen, sizeof(w->listen), "127.0.0.1:%u", w->port);
    (void) snprintf(w->path, sizeof(w->path), "%s/web.sock", race->fleet.folder);
    w->pid = command_fork(run_web, w);
    while (web_load_ask(w->port, "/api/1/overview") < 0) {
        if (clock_boottime() > end)
            rig_fail("berth-web does not answer");
        (void) poll(NULL, 0, 50);
    }
}

static void web_down(const struct web *w) {
    (void) kill(w->pid, SIGTERM);
    if (command_wait(w->pid) != 0)
        rig_fail("berth-web has failed");
}

/* --- streams --- */

struct pass {
    double cpu, cpu_web;   /* shares of a core, in percent: of berthd, of berth-web */
    unsigned long rss_kib; /* of berth-web, the most */
};

static usec_t stream_time(void) {
    const char *text = getenv("BENCH_WEB_SECONDS");
    unsigned long seconds = text ? strtoul(text, NULL, 10) : 0;

    return (seconds > 0 ? seconds : SECONDS) * USEC_PER_SEC;
}

static struct pass pass_time(const struct web *w, usec_t time) {
    usec_t begun = clock_boottime();
    double cpu = process_cpu(w->berthd->pid), cpu_web = process_cpu(w->pid);
    struct pass p = {0};

    for (usec_t next = begun; next < begun + time; next += USEC_PER_SEC) {
        const char *const limit[] = {"berth", "--socket", w->berthd->socket, "limit", "spare",
                                     (next - begun) / USEC_PER_SEC % 2 ? "2" : "3", NULL};
        unsigned long rss;

        if (command_time(limit) < 0)
            rig_fail("no other limit");
        rss = memory_kib(w->pid, "VmRSS");
        p.rss_kib = rss > p.rss_kib ? rss : p.rss_kib;
        while (clock_boottime() < next + USEC_PER_SEC)
            (void) poll(NULL, 0, (int) ((next + USEC_PER_SEC - clock_boottime()) / USEC_PER_MSEC) + 1);
    }
    p.cpu = 100 * (process_cpu(w->berthd->pid) - cpu) * USEC_PER_SEC / (double) (clock_boottime() - begun);
    p.cpu_web = 100 * (process_cpu(w->pid) - cpu_web) * USEC_PER_SEC / (double) (clock_boottime() - begun);
    return p;
}

static struct pass stream(const struct web *w, enum web_load_kind kind, unsigned n, unsigned *ret_closed) {
    struct web_load load = {.kind = kind, .n = n, .path = w->path, .pool = "one"};
    struct pass p;

    web_load_start(&load);
    p = pass_time(w, stream_time());
    *ret_closed = load.counts->n_closed;
    web_load_end(&load);
    web_load_done(&load);
    return p;
}

static void add_pass(struct report *r, const struct pass *p, const struct pass *one, const char *what) {
    char name[160];

    (void) snprintf(name, sizeof(name), "%s, RSS of berth-web at most", what);
    report_add(r, &(struct figure) {name, (double) p->rss_kib, "KiB", "one stream", (double) one->rss_kib,
                                    GOAL_VALUE_AT_MOST, RSS_MAX_KIB});
    report_add(r, &(struct figure) {"  processor time of berthd, more than with one stream", p->cpu - one->cpu, "%",
                                    "one stream", one->cpu, GOAL_VALUE_AT_MOST, 1});
    report_add(r, &(struct figure) {"  processor time of berth-web", p->cpu_web, "%", "one stream", one->cpu_web,
                                    GOAL_NONE, 0});
}

static void streams(struct report *r, const struct web *w) {
    unsigned n_closed, n_broken;
    struct pass one = stream(w, WEB_READERS, 1, &n_closed), many = stream(w, WEB_READERS, STREAMS, &n_broken), stopped;
    char name[160];

    add_pass(r, &many, &one, "1000 streams that are read");
    report_add(r, &(struct figure) {"  streams that berth-web closed", n_broken, "", NULL, 0, GOAL_VALUE_AT_MOST, 0});
    stopped = stream(w, WEB_STOPPERS, STREAMS, &n_closed);
    add_pass(r, &stopped, &one, "1000 streams that nobody reads");
    (void) snprintf(name, sizeof(name), "  closed and opened again within %u s", (unsigned) (stream_time() / USEC_PER_SEC));
    report_add(r, &(struct figure) {name, n_closed, "", NULL, 0, GOAL_NONE, 0});
}

/* --- requests --- */

static void add_answers(struct report *r, const struct web *w) {
    struct web_load load = {.kind = WEB_REQUESTS, .n = KEPT, .rate = RATE, .port = w->port};
    usec_t begun;
    double before;

    web_load_start(&load);
    begun = clock_boottime();
    before = process_cpu(w->pid);
    (void) poll(NULL, 0, (int) (ANSWERS_TIME / USEC_PER_MSEC));
    report_add(r, &(struct figure) {"requests for the overview, answers",
                                    (double) load.counts->n_samples * USEC_PER_SEC / (double) (clock_boottime() - begun), "/s",
                                    NULL, 0, GOAL_VALUE_AT_LEAST, 0.98 * RATE});
    report_add(r, &(struct figure) {"  processor time of berth-web",
                                    100 * (process_cpu(w->pid) - before) * USEC_PER_SEC / (double) (clock_boottime() - begun),
                                    "%", NULL, 0, GOAL_NONE, 0});
    web_load_end(&load);
    report_add(r, &(struct figure) {"  p99 of an answer, from the time at which its request was due",
                                    quantile(load.counts->usec, load.counts->n_samples, 0.99) / USEC_PER_MSEC, "ms", "p50",
                                    quantile(load.counts->usec, load.counts->n_samples, 0.5) / USEC_PER_MSEC,
                                    GOAL_VALUE_AT_MOST, 20});
    web_load_done(&load);
}

/* Rounds with and without requests alternate. */
static void add_handovers(struct report *r, const struct web *w) {
    static struct race_gaps gaps[2];
    double cpu[2] = {0};

    for (size_t i = 0; i < ROUNDS; i++) {
        struct web_load load = {.kind = WEB_REQUESTS, .n = KEPT, .rate = RATE, .port = w->port, .is_elsewhere = true};
        bool is_asked = i % 2;

        if (is_asked)
            web_load_start(&load);
        cpu[is_asked] -= process_cpu(w->berthd->pid);
        race_for(w->race, RACE_HOST, ROUND, &gaps[is_asked]);
        cpu[is_asked] += process_cpu(w->berthd->pid);
        if (!is_asked)
            continue;
        web_load_end(&load);
        web_load_done(&load);
    }
    report_add(r, &(struct figure) {"  hand-over in a host pool meanwhile, p50", quantile(gaps[1].usec, gaps[1].n, 0.5),
                                    "µs", "without", quantile(gaps[0].usec, gaps[0].n, 0.5), GOAL_NONE, 0});
    report_add(r, &(struct figure) {"  hand-over in a host pool meanwhile, p99", quantile(gaps[1].usec, gaps[1].n, 0.99),
                                    "µs", "without", quantile(gaps[0].usec, gaps[0].n, 0.99), GOAL_RATIO_AT_MOST, 1.1});
    report_add(r, &(struct figure) {"  processor time of berthd a hand-over meanwhile",
                                    cpu[1] * USEC_PER_SEC / (double) gaps[1].n, "µs", "without",
                                    cpu[0] * USEC_PER_SEC / (double) gaps[0].n, GOAL_RATIO_AT_MOST, 1.1});
}

/* --- slow clients --- */

static void slow_clients(struct report *r, const struct web *w) {
    static double msec[SLOW_TIME / ASK_PERIOD];
    struct web_load load = {.kind = WEB_SLOW, .n = SLOW, .port = w->port};
    unsigned n_failed = 0;
    size_t n = 0;

    web_load_start(&load);
    for (usec_t begun = clock_boottime(), next = begun; n < ELEMENTSOF(msec); next += ASK_PERIOD, n++) {
        double usec;

        while (clock_boottime() < next)
            (void) poll(NULL, 0, 1);
        usec = web_load_ask(w->port, "/api/1/overview");
        n_failed += usec < 0;
        msec[n] = (double) (clock_boottime() - next) / USEC_PER_MSEC;
    }
    report_add(r, &(struct figure) {"1000 clients that send a byte a second, p99 of another's answer",
                                    quantile(msec, n, 0.99), "ms", "p50", quantile(msec, n, 0.5), GOAL_VALUE_AT_MOST, 100});
    report_add(r, &(struct figure) {"  others that got no answer", n_failed, "", NULL, 0, GOAL_VALUE_AT_MOST, 0});
    report_add(r, &(struct figure) {"  slow requests that berth-web ended", load.counts->n_closed, "", NULL, 0,
                                    GOAL_VALUE_AT_LEAST, SLOW});
    web_load_end(&load);
    web_load_done(&load);
}

void bench_web(struct report *r) {
    struct race race;
    struct web w;

    report_section(r, "browsers of berth-web");
    race_up(&race);
    web_up(&w, &race);
    streams(r, &w);
    add_answers(r, &w);
    add_handovers(r, &w);
    slow_clients(r, &w);
    web_down(&w);
    race_down(&race);
}
