/* SPDX-License-Identifier: MIT */

/* make bench: what a permit costs, measured beside its peers. berth-bench FOLDER [PART...] */

#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "tests/bench/benches.h"
#include "tests/bench/rig.h"

static const struct {
    const char *name;
    void (*run)(struct report *r);
} parts[] = {
    {"cost", bench_cost},         {"pairs", bench_pairs}, {"handover", bench_handover},
    {"waiting", bench_waiting},   {"commands", bench_commands}, {"daemon", bench_daemon},
    {"hosts", bench_hosts},
};

static bool is_chosen(int argc, char **argv, const char *name) {
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc <= 2;
}

/* Ten thousand hosts have two connections each; both ends of them count, each in its process. */
static void raise_limits(void) {
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv) {
    _cleanup_(report_freep) struct report *r = argc > 1 ? report_new(argv[1]) : NULL;
    char log[512];

    if (!r) {
        fputs("usage: berth-bench FOLDER [PART...]\n", stderr);
        return 64;
    }
    raise_limits();
    snprintf(log, sizeof(log), "%s/events.log", argv[1]);
    if (!freopen(log, "we", stderr)) /* what the stores say */
        return 1;
    for (size_t i = 0; i < ELEMENTSOF(parts); i++)
        if (is_chosen(argc, argv, parts[i].name))
            parts[i].run(r);
    return report_write(r) < 0;
}
