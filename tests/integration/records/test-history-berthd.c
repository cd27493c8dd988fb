/* SPDX-License-Identifier: MIT */
/* The figures of `berth history --stats` from the events of a real berthd. */
#include <stdlib.h>
#include <string.h>

#include "cli/history/stats.h"
#include "tests/harness/host/host.h"
#include "tests/harness/judge/record.h"
#include "tests/harness/test.h"

static const struct stats_line *line_of(const struct stats *s, const char *name) {
    static const struct stats_line none = {};

    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->lines[i].name, name) == 0)
            return &s->lines[i];
    CU_FAIL("has no such line");
    return &none;
}

/* Reads the events so far. */
static void read_stats(usec_t since, struct stats *ret, struct entries *entries,
                       struct history_hosts *hosts) {
    struct past *pasts = NULL;
    size_t n = 0;

    record_read(entries);
    TEST_INT(pasts_make(entries, &pasts, &n), 0);
    TEST_INT(history_hosts_make(entries, hosts), 0);
    TEST_INT(stats_make(pasts, n, hosts, STATS_BY_JOB, since, clock_realtime(), ret), 0);
    free(pasts);
}

/* One run holds, one waits for it and fails, one finds no room, one goes on. */
static void test_figures(void) {
    usec_t since = clock_realtime() - USEC_PER_MSEC;
    struct history_hosts hosts = {};
    struct entries entries = {};
    struct stats stats = {};
    const struct stats_line *line;
    struct child *held, *ahead, *goes_on;
    struct host *ant;

    cluster_up();
    ant = host_up("ant", "pool \"db\" { limit = 1 }\n");
    held = berth_start(ant, "run -p db --name held -- sleep 60");
    host_await(ant, "started", "job=held");
    ahead = berth_start(ant, "run -p db --name ahead -- sh -c 'exit 3'");
    host_await(ant, "queued", "job=ahead");
    TEST_INT(berth(ant, "run -n -p db --name busy -- true"), 75);
    TEST_INT(berth(ant, "stop held"), 0);
    TEST_INT(berth_end(held), 143);
    TEST_INT(berth_end(ahead), 3);
    host_await(ant, "released", "job=ahead");
    goes_on = berth_start(ant, "run -p db --name goes-on -- sleep 60");
    host_await(ant, "started", "job=goes-on");
    read_stats(since, &stats, &entries, &hosts);
    TEST_INT(stats.n, 3);
    TEST_INT(stats.running, 1);
    TEST_INT(stats.waiting + stats.unlogged, 0);
    TEST_INT(hosts.n, 1);
    TEST_STRING(hosts.items[0].name, "ant");
    line = line_of(&stats, "ahead");
    TEST_INT(line->runs, 1);
    TEST_INT(line->failed, 1);
    TEST_INT(line->wait.n, 1);
    TEST_INT(line->held.n, 1);
    line = line_of(&stats, "busy");
    TEST_INT(line->failed, 1);
    TEST_INT(line->wait.n + line->held.n, 0);
    line = line_of(&stats, "held");
    TEST_INT(line->failed + line->lost, 0);
    CU_ASSERT(line->held.max >= line_of(&stats, "ahead")->wait.max - 1000);
    stats_done(&stats);
    history_hosts_done(&hosts);
    entries_done(&entries);
    TEST_INT(berth(ant, "stop goes-on"), 0);
    TEST_INT(berth_end(goes_on), 143);
    cluster_down();
}

static CU_TestInfo tests[] = {{"figures", test_figures}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "history-berthd", .pTests = tests});
