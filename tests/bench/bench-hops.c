/* SPDX-License-Identifier: MIT */

/* The steps of all processes between the last instant of one command and the first of the next. Only a build
 * with failpoints (base/failpoint.h) notes them: make bench-hops. */

#include "tests/bench/benches.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "tests/bench/race.h"

#define ROUNDS 8
#define GAPS (ROUNDS * RACE_GAPS)
#define HOPS 8

static const char *const hops[HOPS] = {
    "its watcher notices the end",
    "the watcher reports it to berthd",
    "berthd: the end is logged, the release on its way",
    "Redis and back to a berthd that has a grant",
    "berthd: the grant is logged and noted, and on its way",
    "the watcher of the next one has the grant",
    "through the gate",
    "exec, until the first instruction",
};

/* The step that ends each hop but the last; NULL: the kind has no such hop. */
static const char *const steps[RACE_KINDS][HOPS - 1] = {
    [RACE_CLUSTER] = {"command-over", "hold-ended-seen", "release-sending", "grant-seen", "hold-made", "gate-opening", "gate-passed"},
    [RACE_HOST] = {"command-over", "hold-ended-seen", NULL, "grant-seen", "hold-made", "gate-opening", "gate-passed"},
    [RACE_JOBS] = {"command-over", "report-seen", "release-sending", "grant-seen", "grant-sending", "gate-opening", "gate-passed"},
};

struct picture {
    const char *name;
    double usec[HOPS][GAPS];
    size_t n;
};

static struct picture pictures[RACE_KINDS] = {
    [RACE_CLUSTER] = {.name = "berth run over two hosts"},
    [RACE_HOST] = {.name = "berth run, host pool"},
    [RACE_JOBS] = {.name = "jobs over two hosts"},
};

/* --- the trace of a round --- */

static struct failpoint_trace *trace_new(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    void *trace = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof(struct failpoint_trace)) == 0)
        trace = mmap(NULL, sizeof(struct failpoint_trace), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close_fd(fd);
    if (trace == MAP_FAILED || setenv("FAILPOINT_TRACE", path, 1) < 0)
        rig_fail("cannot make %s", path);
    return trace;
}

static size_t trace_size(const struct failpoint_trace *trace) {
    return trace->n < FAILPOINT_TRACE_MAX ? trace->n : FAILPOINT_TRACE_MAX;
}

/* Returns the time of the first such step after an instant; 0: none before `until`. */
static uint64_t find(const struct failpoint_trace *trace, const char *name, uint64_t after, uint64_t until) {
    uint64_t first = until;

    for (size_t i = 0; i < trace_size(trace); i++)
        if (trace->of[i].at > after && trace->of[i].at < first && strcmp(trace->of[i].name, name) == 0)
            first = trace->of[i].at;
    return first < until ? first : 0;
}

/* Adds the steps between two commands. A command without a gate misses a step and does not count. */
static void add_gap(struct picture *p, const char *const *step, const struct failpoint_trace *trace, uint64_t ended, uint64_t began) {
    uint64_t at = ended;

    if (p->n == GAPS)
        return;
    for (size_t h = 0; h < HOPS; h++) {
        uint64_t next = h == HOPS - 1 ? began : step[h] ? find(trace, step[h], at, began) : at;

        if (next == 0)
            return;
        p->usec[h][p->n] = (double) (next - at) / 1000;
        at = next;
    }
    p->n++;
}

static void add_round(enum race_kind kind, const struct failpoint_trace *trace, const struct spans *spans) {
    for (size_t i = RACE_FIRST; i < RACE_END; i++)
        add_gap(&pictures[kind], steps[kind], trace, spans->of[i - 1].ended, spans->of[i].began);
}

/* --- the report --- */

static void add_picture(struct report *r, struct picture *p, const char *when, const char *curve) {
    char name[160];

    for (size_t h = 0; h < HOPS; h++) {
        snprintf(name, sizeof(name), "%s%s: %zu. %s, p50", p->name, when, h + 1, hops[h]);
        report_add(r, &(struct figure) {.name = name, .value = quantile(p->usec[h], p->n, 0.5), .unit = "µs"});
        report_point(r, curve, (double) h, quantile(p->usec[h], p->n, 0.5));
    }
}

static void report_pictures(struct report *r, bool is_busy) {
    static const char *const curves[RACE_KINDS] = {
        [RACE_CLUSTER] = "hops-cluster", [RACE_HOST] = "hops-host", [RACE_JOBS] = "hops-jobs"};

    for (size_t k = RACE_CLUSTER; k < RACE_KINDS; k++) {
        char curve[64];

        snprintf(curve, sizeof(curve), "%s%s", curves[k], is_busy ? "-busy" : "");
        if (pictures[k].n == 0)
            report_skip(r, pictures[k].name, "this build has no failpoints: make bench-hops");
        else
            add_picture(r, &pictures[k], is_busy ? ", busy machine" : "", curve);
    }
}

static void run(struct report *r, bool is_busy) {
    char path[] = "/dev/shm/berth-trace-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    struct failpoint_trace *trace = trace_new(path);
    struct race race;

    close_fd(fd);
    race_up(&race);
    for (size_t k = RACE_CLUSTER; k < RACE_KINDS; k++)
        pictures[k].n = 0;
    for (size_t i = 0; i < ROUNDS; i++)
        for (size_t k = RACE_CLUSTER; k < RACE_KINDS; k++) {
            atomic_store(&trace->n, 0);
            race_round(&race, k);
            add_round(k, trace, race.spans);
        }
    report_pictures(r, is_busy);
    race_down(&race);
    (void) unsetenv("FAILPOINT_TRACE");
    (void) munmap(trace, sizeof(*trace));
    (void) unlink(path);
}

void bench_hops(struct report *r) {
    report_section(r, "hops from command to command");
    run(r, false);
}

void bench_hops_busy(struct report *r) {
    struct spinners spinners;

    report_section(r, "hops from command to command, on a busy machine");
    spinners_start(&spinners);
    run(r, true);
    spinners_end(&spinners);
}
