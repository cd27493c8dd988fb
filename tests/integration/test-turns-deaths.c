/* SPDX-License-Identifier: MIT */

/* `on = "any"` while berthd is killed, and many due times while all kinds of things break. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/host-clock.h"
#include "tests/harness/sharing.h"
#include "tests/harness/test.h"
#include "tests/harness/witness.h"

#define DEATHS 24

static void await_witness(size_t n) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    size_t seen = 0;

    while (seen < n && clock_boottime() < until) {
        _cleanup_(witness_done) struct witness w = {};

        witness_read(&w, cluster.witness);
        seen = witness_count(&w, "j");
    }
    TEST_INT(seen, n);
}

/* berthd is killed before one of its effects after another: it begins each due time once, since its host
 * lives. */
static void killed(void) {
    _cleanup_(witness_done) struct witness w = {};
    struct host *ant = sharing_hosts[0] = host_add("ant", "job \"j\" { %s " SHARED "}\n", witness_command("--id j"));
    unsigned n_deaths = 0;

    host_clock_give(ant);
    host_clock_set_realtime(ant, (usec_t) (SHARING_FIRST - 30) * USEC_PER_SEC);
    host_start(ant);
    host_open(ant);
    for (unsigned i = 0; i < DEATHS; i++) {
        const char *due = sharing_text(SHARING_FIRST + i * SHARING_MINUTE);

        host_clock_end_berthd(ant, i + 1);
        host_clock_set_realtime(ant, (usec_t) (SHARING_FIRST + i * SHARING_MINUTE) * USEC_PER_SEC - 20 * USEC_PER_MSEC);
        while (!child_await(ant->berthd, 5 * USEC_PER_MSEC) &&
               host_count(ant, "released", "job=j due=%s", due) == 0)
            continue;
        host_clock_end_berthd(ant, 0);
        if (ant->berthd->ended) {
            n_deaths++;
            host_start(ant);
        }
        await_witness(i + 1);
        host_await_pool(ant, "@j", "used", 0);
    }
    CU_ASSERT(n_deaths >= DEATHS / 2);
    witness_read(&w, cluster.witness);
    TEST_INT(witness_count(&w, "j"), DEATHS);
}

/* --- many due times while things break --- */

#define JOBS 40
#define STEPS 3 /* minutes; BERTH_TEST_TURNS: so many due times instead */
#define LEASE "5s"                       /* which a busy machine does not lose so soon */
#define STEP_PATIENCE (25 * USEC_PER_SEC) /* a grace period, a lease, and what a busy machine needs */

static struct tally {
    unsigned begun[JOBS];                         /* at the present due time */
    unsigned n_due, n_doubled, n_lost, n_skipped; /* in all */
} tally;

static void count_job(const char *line, void *userdata) {
    unsigned *n = userdata, job = (unsigned) strtoul(event_get(line, "job") + 1, NULL, 10);

    if (job < JOBS && strcmp(event_get(line, "due"), sharing_text(SHARING_FIRST + tally.n_due / JOBS * SHARING_MINUTE)) == 0)
        n[job]++;
}

static unsigned count_jobs(const char *event, unsigned n[static JOBS]) {
    unsigned sum = 0;

    memset(n, 0, JOBS * sizeof(*n));
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        host_each(sharing_hosts[i], event, count_job, n);
    for (size_t i = 0; i < JOBS; i++)
        sum += n[i] > 0;
    return sum;
}

/* Breaks something about the due time. Returns the host whose berthd was killed, or SHARING_HOSTS. */
static size_t break_something(unsigned what) {
    size_t host = what / 7 % SHARING_HOSTS;

    child_turn(clock_boottime() + what / 31 % 1200 * USEC_PER_MSEC);
    switch (what % 7) {
    case 0:
    case 1:
        host_kill(sharing_hosts[host]);
        child_turn(clock_boottime() + what / 11 % 300 * USEC_PER_MSEC);
        host_launch(sharing_hosts[host]);
        return host;
    case 2:
        freeReplyObject(redis_command(&cluster.redis, "FLUSHALL"));
        break;
    case 3:
        TEST_INT(redis_server_restart(&cluster.redis, what / 5 % 2), 0);
        break;
    case 4:
        TEST_INT(berth(sharing_hosts[host], "drain"), 0);
        TEST_INT(berth(sharing_hosts[host], "undrain"), 0);
        break;
    default:
        break;
    }
    return SHARING_HOSTS;
}

static void show_job(size_t job) {
    char search[16];

    snprintf(search, sizeof(search), "job=j%zu ", job);
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        for (const char *line = host_log(sharing_hosts[i]), *end; line && *line; line = *end ? end + 1 : end) {
            end = strchrnul(line, '\n');
            if (memmem(line, (size_t) (end - line), search, strlen(search)))
                printf("%s: %.*s\n", sharing_hosts[i]->name, (int) (end - line), line);
        }
}

static void judge_step(void) {
    unsigned skipped[JOBS];
    usec_t until = clock_boottime() + STEP_PATIENCE;

    while (count_jobs("exited", tally.begun) < JOBS && clock_boottime() < until)
        child_turn(clock_boottime() + 50 * USEC_PER_MSEC);
    (void) count_jobs("started", tally.begun);
    tally.n_skipped += count_jobs("skipped", skipped);
    for (size_t i = 0; i < JOBS; i++) {
        tally.n_doubled += tally.begun[i] > 1;
        if (tally.begun[i] == 0 && skipped[i] == 0) {
            tally.n_lost++;
            show_job(i);
            for (size_t k = 0; k < SHARING_HOSTS; k++)
                printf("%s has %zu runs\n", sharing_hosts[k]->name, berth_count_runs(sharing_hosts[k]));
        }
    }
    tally.n_due += JOBS;
}

/* berthd has the ends of all runs. */
static void settle(void) {
    for (size_t i = 0; i < SHARING_HOSTS; i++) {
        usec_t until = clock_boottime() + HOST_PATIENCE;

        while (berth_count_runs(sharing_hosts[i]) > 0 && clock_boottime() < until)
            child_turn(clock_boottime() + 20 * USEC_PER_MSEC);
        TEST_INT(berth_count_runs(sharing_hosts[i]), 0);
    }
}

/* S15, in short. */
static void many(void) {
    const char *wanted = getenv("BERTH_TEST_TURNS"), *seed = getenv("SEED");
    unsigned n = wanted ? (unsigned) strtoul(wanted, NULL, 10) : STEPS * JOBS;
    char config[8192];
    size_t size = 0;

    cluster.lease = LEASE;
    cluster.heartbeat = "500ms";
    srandom(seed ? (unsigned) strtoul(seed, NULL, 10) : 1);
    tally = (struct tally){};
    for (size_t i = 0; i < JOBS; i++)
        size +=
            (size_t) snprintf(config + size, sizeof(config) - size,
                              "job \"j%zu\" { command = {\"/bin/true\"} output = \"null\" " SHARED "}\n", i);
    sharing_up(config);
    while (tally.n_due < n) {
        for (size_t i = 0; i < SHARING_HOSTS; i++)
            host_mark(sharing_hosts[i]);
        sharing_clocks_at(SHARING_FIRST + tally.n_due / JOBS * SHARING_MINUTE, -20);
        (void) break_something((unsigned) random());
        judge_step();
    }
    printf("%u due times: %u doubled, %u lost, %u skipped\n", tally.n_due, tally.n_doubled, tally.n_lost,
           tally.n_skipped);
    TEST_INT(tally.n_doubled, 0);
    settle();
}

static CU_TestInfo tests[] = {
    {"many", many},
    {"killed", killed},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "turns, deaths", .pSetUpFunc = cluster_up, .pTearDownFunc = cluster_down, .pTests = tests},
        CU_SUITE_INFO_NULL,
    };

    return test_main(argc, argv, suites);
}
