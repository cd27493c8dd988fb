/* SPDX-License-Identifier: MIT */

/* make bench: what a permit costs, measured beside its peers. berth-bench FOLDER [PART...] */

#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "tests/bench/benches.h"
#include "tests/bench/rig.h"

#define FILES_WANTED 40000

static const struct {
    const char *name;
    void (*run)(struct report *r);
} parts[] = {
    {"cost", bench_cost},       {"floors", bench_floors},     {"holders", bench_holders},   {"keys", bench_keys},
    {"functions", bench_functions}, {"pairs", bench_pairs},   {"handover", bench_handover},
    {"waiting", bench_waiting}, {"commands", bench_commands},   {"daemon", bench_daemon}, {"memory", bench_memory},
    {"hosts", bench_hosts},     {"look", bench_look},           {"flock", bench_flock},
    {"viewers", bench_viewers},       {"watch", bench_watch},         {"web", bench_web},
    {"flock-busy", bench_flock_busy}, {"sessions", bench_sessions},
    {"hosts-tls", bench_hosts_tls},
    {"hops", bench_hops},       {"hops-busy", bench_hops_busy},
};

static bool is_chosen(int argc, char **argv, const char *name) {
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc <= 2;
}

/* Ten thousand hosts have two connections each. */
static void raise_limits(void) {
    struct rlimit limit;

    const struct rlimit wanted = {.rlim_cur = FILES_WANTED, .rlim_max = FILES_WANTED};

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= FILES_WANTED)
        return;
    if (limit.rlim_max < FILES_WANTED && setrlimit(RLIMIT_NOFILE, &wanted) == 0) /* root may */
        return;
    limit.rlim_cur = limit.rlim_max;
    (void) setrlimit(RLIMIT_NOFILE, &limit);
}

static void note_first_line(struct report *r, const char *key, const char *command) {
    FILE *f = popen(command, "re");
    char line[256] = "";

    if (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        report_note(r, key, line);
    }
    if (f)
        pclose(f);
}

/* Notes what the figures depend on. Other programs load the machine too, so figures are ratios within one
 * run. */
static void note_circumstances(struct report *r, const char *when) {
    char date[CLOCK_TEXT_SIZE], key[40];

    snprintf(key, sizeof(key), "date-%s", when);
    report_note(r, key, clock_format(clock_realtime(), date));
    snprintf(key, sizeof(key), "load-%s", when);
    note_first_line(r, key, "cat /proc/loadavg");
}

static void note_versions(struct report *r) {
    const char *package = getenv("BENCH_REDIS_SEMAPHORE_VERSION");

    report_note(r, "berth", VERSION);
    note_first_line(r, "redis", "\"${BERTH_REDIS_SERVER:-$(command -v redis-server || command -v redis-check-rdb || command -v valkey-server)}\" --version");
    note_first_line(r, "kernel", "uname -sr");
    note_first_line(r, "cpu", "sed -n 's/^model name[^:]*: //p' /proc/cpuinfo");
    note_first_line(r, "cores", "nproc");
    note_first_line(r, "system", "sed -n 's/^PRETTY_NAME=//p' /etc/os-release");
    if (package)
        report_note(r, "redis-semaphore", package);
}

int main(int argc, char **argv) {
    _cleanup_(report_freep) struct report *r = argc > 1 ? report_new(argv[1]) : NULL;
    char log[512];

    if (!r) {
        fputs("usage: berth-bench FOLDER [PART...]\n", stderr);
        return 64;
    }
    raise_limits();
    note_versions(r);
    note_circumstances(r, "begin");
    snprintf(log, sizeof(log), "%s/events.log", argv[1]);
    if (!freopen(log, "we", stderr)) /* what the stores say */
        return 1;
    for (size_t i = 0; i < ELEMENTSOF(parts); i++)
        if (is_chosen(argc, argv, parts[i].name))
            parts[i].run(r);
    note_circumstances(r, "end");
    report_write(r);
    return 0;
}
