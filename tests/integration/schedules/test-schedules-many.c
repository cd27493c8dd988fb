/* SPDX-License-Identifier: MIT */

/* Ten thousand jobs of one host are due in one minute (S38). They wait for a Redis that is away, so that the
 * test measures berthd and not the start of so many commands. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/socket.h"
#include "tests/harness/host/host-clock.h"
#include "tests/harness/memory.h"
#include "tests/harness/test.h"

#if defined(__SANITIZE_ADDRESS__)
#define N_JOBS 2000 /* reading 10 000 takes half a minute */
#define BEGIN_MAX HOST_PATIENCE /* of berthd's processor time */
#define RSS_MAX INT32_MAX
#else
#define N_JOBS 10000
#define BEGIN_MAX (2 * USEC_PER_SEC) /* of berthd's processor time, which is 0.6 s */
#define RSS_MAX (20 * 1024)          /* KiB more than before, besides the runs themselves */
#endif
#define RUN_KIB 2L /* a waiting run with its claim */

static struct host *ant;

static char *make_config(const char *pool, const char *options) {
    size_t size = N_JOBS * 128 + 256, n;
    char *text = malloc(size);

    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    n = (size_t) snprintf(text, size, "zone = \"UTC\"\n%s\n", pool);
    for (unsigned i = 0; i < N_JOBS; i++)
        n += (size_t) snprintf(
            text + n, size - n,
            "job \"j%u\" { command = {\"/bin/true\"} %s }\n", i, options);
    return text;
}

/* Reading so many jobs takes half a second of processor time: on a busy machine half a minute. */
static void start(void) {
    host_launch(ant);
    host_await_within(ant, 4 * HOST_PATIENCE, "ready", " ");
}

/* Returns how many runs have a waiting record. */
static size_t count_begun(void) {
    char path[96];
    const struct dirent *entry;
    DIR *directory;
    size_t n = 0;

    snprintf(path, sizeof(path), "%s/waiting", ant->runtime);
    directory = opendir(path);
    while (directory && (entry = readdir(directory)))
        n += entry->d_name[0] != '.';
    if (directory)
        (void) closedir(directory);
    return n;
}

/* Sends one call and awaits its reply, which comes when the event loop is free. */
static void ask(int fd) {
    static const char call[] = "{\"method\":\"io.berth.Version\"}";
    char reply[1024] = "x";

    usec_t end = clock_monotonic() + HOST_PATIENCE;

    CU_ASSERT(write(fd, call, sizeof(call)) == (ssize_t) sizeof(call));
    while (recv(fd, reply, sizeof(reply), MSG_DONTWAIT) < 0 && clock_monotonic() < end)
        child_turn(clock_boottime() + USEC_PER_MSEC); /* reads what berthd writes */
    CU_ASSERT(clock_monotonic() < end);
}

/* Returns the processor time of berthd: other programs on this machine do not count. */
static usec_t processor_usec(void) {
    struct timespec used = {0};
    clockid_t clock;

    TEST_INT(clock_getcpuclockid(ant->berthd->pid, &clock), 0);
    TEST_INT(clock_gettime(clock, &used), 0);
    return (usec_t) used.tv_sec * USEC_PER_SEC + (usec_t) used.tv_nsec / 1000;
}

static void ten_thousand(void) {
    _cleanup_free_ char *config = make_config("pool \"away\" { limit = 1 }", "pools = {away} schedule = {\"0 12 * * *\"}");
    usec_t begin, used, slowest = 0, all = 0;
    long before, after;
    unsigned n_turns = 0;
    int fd;

    ant = host_add("ant", "%s", config);
    host_clock_give(ant);
    host_clock_set(ant, "2027-05-01T11:59:00Z", 0);
    start();
    fd = socket_connect(ant->socket, SOCK_STREAM);
    CU_ASSERT_FATAL(fd >= 0);
    ask(fd);
    before = (long) memory_kib(ant->berthd->pid, "VmRSS");
    host_clock_set(ant, "2027-05-01T12:00:01Z", 0);
    used = processor_usec();
    begin = clock_monotonic();
    while (all == 0 && clock_monotonic() - begin < HOST_PATIENCE) {
        usec_t asked = processor_usec(), took;

        ask(fd);
        took = processor_usec() - asked;
        if (took > slowest)
            slowest = took;
        if (++n_turns % 16 == 0 && count_begun() >= N_JOBS)
            all = clock_monotonic() - begin;
    }
    used = processor_usec() - used;
    after = (long) memory_kib(ant->berthd->pid, "VmRSS");
    printf("%d due times begun in %llu ms (processor %llu ms), %llu ms of that before the slowest reply, %ld KiB more\n",
           N_JOBS, (unsigned long long) (all / 1000), (unsigned long long) (used / 1000),
           (unsigned long long) (slowest / 1000), after - before);
    CU_ASSERT(all > 0 && used < BEGIN_MAX);
    CU_ASSERT(slowest < used / 4); /* berthd replies to clients in between; a machine that stands still uses no processor time */
    CU_ASSERT(after - before < (long) RSS_MAX + RUN_KIB * N_JOBS);
    (void) close(fd);
    TEST_INT(berth(ant, "drain"), 0);
}

/* --- nothing to do --- */

#define WINDOW (3 * USEC_PER_SEC)
#define WINDOWS_MAX 10 /* the first ones may have work of berthd's start */

/* Returns how often the threads of berthd have waited for something. */
static unsigned long count_waits(void) {
    unsigned long sum = 0, n;
    char path[300], line[128];
    const struct dirent *entry;
    DIR *tasks;

    snprintf(path, sizeof(path), "/proc/%d/task", (int) ant->berthd->pid);
    tasks = opendir(path);
    while (tasks && (entry = readdir(tasks))) {
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/task/%.20s/status", (int) ant->berthd->pid, entry->d_name);
        f = entry->d_name[0] != '.' ? fopen(path, "re") : NULL;
        while (f && fgets(line, sizeof(line), f))
            if (sscanf(line, "voluntary_ctxt_switches: %lu", &n) == 1)
                sum += n;
        if (f)
            (void) fclose(f);
    }
    if (tasks)
        (void) closedir(tasks);
    return sum;
}

/* berthd sleeps until the next due time. */
static void idle(void) {
    _cleanup_free_ char *config = make_config("", "schedule = {\"0 0 1 1 *\"}");
    unsigned long waits = 1;

    ant = host_add_alone("ant", "%s", config);
    start();
    for (unsigned i = 0; i < WINDOWS_MAX && waits > 0; i++) {
        unsigned long before = count_waits();

        child_pass(clock_boottime() + WINDOW);
        waits = count_waits() - before;
    }
    printf("%ld KiB; %lu wake-ups in 3 s\n", (long) memory_kib(ant->berthd->pid, "VmRSS"), waits);
    TEST_INT(waits, 0);
}

static CU_TestInfo tests[] = {
    {"ten-thousand", ten_thousand},
    {"idle", idle},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "schedules-many", .pSetUpFunc = cluster_up_without_redis,
             .pTearDownFunc = cluster_down, .pTests = tests});
