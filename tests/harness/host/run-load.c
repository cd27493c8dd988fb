/* SPDX-License-Identifier: MIT */
#include "tests/harness/host/run-load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/harness/durations.h"
#include "tests/harness/test.h"

#define PATIENCE (60 * USEC_PER_SEC)

static struct worker {
    struct child *child;
    char id[24];
} workers[RUN_LOAD_WORKERS];
static struct host *const *hosts;
static size_t n_hosts;
static unsigned n_begun, n_wrong, n_unreached;
static bool is_closed;

void run_load_begin(struct host *const *all, size_t n) {
    memset(workers, 0, sizeof(workers));
    hosts = all;
    n_hosts = n;
    n_begun = n_wrong = n_unreached = 0;
    is_closed = false;
    for (size_t i = 0; i < n; i++) {
        TEST_INT(berth(all[i], "start long"), 0);
        host_await(all[i], "started", "job=long");
    }
}

static void begin(size_t i) {
    struct worker *w = &workers[i];

    (void) snprintf(w->id, sizeof(w->id), "r%u", n_begun++);
    w->child = berth_start(hosts[i % n_hosts], "run -p db:%u --name %s -- %s --id %s --for %u", 1 + n_begun % 2,
                           w->id, cluster.command, w->id, 10 + n_begun % 7 * 30);
}

static void reap(struct worker *w) {
    const char *text = child_text(w->child, 2);
    bool is_unreached =
        w->child->exit_code == 69 &&
        (strstr(text, "cannot reach berthd") || strstr(text, "berthd closed the connection"));

    n_unreached += is_unreached;
    if (w->child->exit_code != 0 && !is_unreached && n_wrong++ < 5)
        printf("%s ended with %d, signal %d: %s\n", w->id, w->child->exit_code, w->child->signal, text);
    w->child = child_free(w->child);
}

unsigned run_load_turn(void) {
    unsigned n = 0;

    child_turn(clock_boottime() + 10 * USEC_PER_MSEC);
    for (size_t i = 0; i < RUN_LOAD_WORKERS; i++) {
        if (workers[i].child && workers[i].child->ended)
            reap(&workers[i]);
        if (!workers[i].child && !is_closed)
            begin(i);
        n += workers[i].child != NULL;
    }
    return n;
}

void run_load_for(usec_t length) {
    for (usec_t until = clock_boottime() + length; clock_boottime() < until;)
        (void) run_load_turn();
}

void run_load_end(void) {
    usec_t until = clock_boottime() + PATIENCE;

    is_closed = true;
    while (run_load_turn() > 0 && clock_boottime() < until)
        ;
    TEST_INT(run_load_turn(), 0);
    TEST_INT(n_wrong, 0);
}

unsigned run_load_count(void) {
    return n_begun - n_unreached;
}

usec_t run_load_fail_over(const char *name, uint64_t n, usec_t (*fail_over)(unsigned round, void (*cause)(void)),
                          void (*cause)(void)) {
    _cleanup_free_ usec_t *took = calloc(n, sizeof(*took));

    CU_ASSERT_FATAL(took != NULL);
    for (unsigned i = 0; i < n; i++) {
        took[i] = fail_over(i, cause);
        printf("%s %u: all hosts are connected after %" PRIu64 " ms\n", name, i, took[i] / USEC_PER_MSEC);
    }
    durations_sort(took, n);
    printf("%s: %" PRIu64 " failovers, %u runs, median %" PRIu64 " ms, worst %" PRIu64 " ms\n", name, n, run_load_count(),
           took[n / 2] / USEC_PER_MSEC, took[n - 1] / USEC_PER_MSEC);
    return took[n - 1];
}
