/* SPDX-License-Identifier: MIT */

/* Many runs at once on one host: more than a user may have inotify instances (128), and too many for
 * processes that scan each other. BERTH_TEST_RUNS=2000 sets how many; `.ci/run full` tries 2000. */

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/process/process-tree.h"
#include "daemon/runs/near.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define RUNS_DEFAULT 300
#define AT_ONCE 60          /* names that a test's `berth start` takes */
#define OTHER_FILES 64      /* descriptors of a daemon besides those of its runs */
#define PRIVATE_KIB_MAX 512 /* of a guard; sanitizers need more */
#define WAITING_KIB_MAX 4   /* of berthd, for each client that waits */
#define CPU_USEC_MAX (40 * USEC_PER_MSEC) /* of a run, from its start to its end, all programs together */

#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

static struct host *ant;

static unsigned runs_wanted(void) {
    const char *text = getenv("BERTH_TEST_RUNS");
    long n = text ? strtol(text, NULL, 10) : 0;

    return n > 0 && n <= 10000 ? (unsigned) n : RUNS_DEFAULT;
}

static void start_runs(unsigned n) {
    char words[16 + AT_ONCE * sizeof("nap")];

    for (unsigned begun = 0; begun < n;) {
        snprintf(words, sizeof(words), "start");
        for (unsigned i = 0; i < AT_ONCE && begun < n; i++, begun++)
            memcpy(words + strlen(words), " nap", sizeof(" nap"));
        TEST_INT(berth(ant, "%s", words), 0);
    }
}

static unsigned count_files(pid_t pid) {
    char path[64];
    unsigned n = 0;
    DIR *d;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int) pid);
    d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        (void) closedir(d);
    return n;
}

/* Returns the kilobytes that no other process shares. */
static unsigned private_kib(pid_t pid) {
    char path[64], line[256];
    _cleanup_fclose_ FILE *f = NULL;
    unsigned kib = 0;

    snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int) pid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "Private_", strlen("Private_")) == 0)
            kib += (unsigned) strtoul(line + strcspn(line, ":") + 1, NULL, 10);
    return kib;
}

/* Returns the processor time of programs that have ended and were waited for. */
static usec_t cpu_of_children(void) {
    struct rusage usage = {0};

    TEST_INT(getrusage(RUSAGE_CHILDREN, &usage), 0);
    return (usec_t) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * USEC_PER_SEC +
           (usec_t) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Each run costs one descriptor of berthd and one of berth-runner. */
static void check_cost(unsigned n) {
    json_t *json = berth_json(ant, "runs");
    pid_t guard = child_parent((pid_t) berth_number_at(json, "runs.0.pid")), runner = child_parent(guard);
    unsigned kib = private_kib(guard);

    json_decref(json);
    CU_ASSERT(count_files(ant->berthd->pid) <= n + OTHER_FILES);
    CU_ASSERT(count_files(runner) >= n && count_files(runner) <= n + OTHER_FILES);
    CU_ASSERT(count_files(guard) <= 16);
    CU_ASSERT(kib > 0 && (IS_SANITIZED || kib <= PRIVATE_KIB_MAX));
}

static void many_runs(void) {
    unsigned n = runs_wanted();
    usec_t before;

    cluster_up_without_redis();
    before = cpu_of_children();
    ant = host_add_alone("ant", "pool \"own\" { limit = %u scope = \"host\" }\n"
                         "job \"nap\" { command = {\"/bin/sleep\", \"1000\"} pools = {\"own\"} overlap = \"allow\" output = \"null\" }\n", n);
    host_start(ant);
    start_runs(n);
    host_await_count(ant, n, "started", "job=nap");
    TEST_INT(host_count(ant, "exited", "job=nap"), 0);
    TEST_INT(host_pool(ant, "own", "used"), n);
    check_cost(n);
    TEST_INT(berth(ant, "stop nap"), 0);
    host_await_count(ant, n, "exited", "job=nap result=stopped signal=15");
    host_await_pool(ant, "own", "used", 0);
    cluster_down();
    /* Thousands may have to be stopped in the last moments of a lease. */
    CU_ASSERT(cpu_of_children() - before <= n * CPU_USEC_MAX);
    if (getenv("BERTH_TEST_RUNS"))
        printf("%u runs: %llu us of processor time each\n", n, (unsigned long long) ((cpu_of_children() - before) / n));
}

#define WAITING_PART 8 /* so many times fewer: each costs the memory of several guards */

/* Counts all at once, because each count reads all of /proc. */
static size_t count_ready(struct child *const *children, size_t n) {
    pid_t *pids = calloc(2 * n, sizeof(*pids));
    int all = process_tree_list(getpid(), NULL, 0, pids, 2 * n);
    size_t ready = 0;

    for (int i = 0; pids && i < all && i < (int) (2 * n); i++) {
        pid_t parent = child_parent(pids[i]);

        for (size_t k = 0; k < n; k++)
            ready += parent == children[k]->pid;
    }
    free(pids);
    return ready;
}

/* Only clients near the head fork their command ahead. Each grant moves the next client up. */
static void many_wait(void) {
    unsigned n = runs_wanted() / WAITING_PART, kib;
    struct child **children = calloc(n, sizeof(*children)), *holder;
    usec_t until = clock_boottime() + HOST_PATIENCE;

    cluster_up_without_redis();
    ant = host_add_alone("ant", "pool \"own\" { limit = 1 scope = \"host\" }\n");
    host_start(ant);
    holder = berth_start(ant, "run -p own --name holder -- sleep 1000");
    host_await(ant, "started", "job=holder");
    kib = private_kib(ant->berthd->pid);
    for (unsigned i = 0; i < n; i++)
        children[i] = berth_start(ant, "run -p own --name waiter -- true");
    host_await_count(ant, n, "queued", "job=waiter");
    while (count_ready(children, n) < NEAR_POOL_MAX && clock_boottime() < until)
        child_turn(clock_boottime() + 50 * USEC_PER_MSEC);
    TEST_INT(count_ready(children, n), NEAR_POOL_MAX);
    CU_ASSERT(kib > 0 && (IS_SANITIZED || private_kib(ant->berthd->pid) <= kib + 512 + n * WAITING_KIB_MAX));
    for (unsigned i = 0; i < n; i++)
        CU_ASSERT(IS_SANITIZED || private_kib(children[i]->pid) <= PRIVATE_KIB_MAX);
    child_kill(holder, SIGTERM);
    TEST_INT(berth_end(holder), 143);
    for (unsigned i = 0; i < n; i++)
        TEST_INT(berth_end(children[i]), 0);
    host_await_pool(ant, "own", "used", 0);
    cluster_down();
    free(children);
}

static CU_TestInfo tests[] = {
    {"many runs", many_runs},
    {"many wait", many_wait},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "many runs", .pTests = tests});
