/* SPDX-License-Identifier: MIT */

/* `on = "any"` while berthd is killed; and many due times during many faults. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/schedule/schedule.h"
#include "tests/harness/host/host-clock.h"
#include "tests/harness/host/sharing.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

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

/* berthd is killed before each of its effects in turn. Each due time begins once, because the host lives. */
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
#define LEASE "5s"                        /* long enough for a busy machine */
#define STEP_PATIENCE (25 * USEC_PER_SEC) /* a grace period, a lease, and time for a busy machine */

#define MINUTES_MAX 2500

/* The events of one due time of one job. */
struct outcome {
    unsigned n_started;
    bool skipped, missed, lost_lease; /* lost_lease: its run lost its lease, before or after its command started */
};

static struct {
    struct outcome outcomes[MINUTES_MAX][JOBS];
    bool lost_data[MINUTES_MAX]; /* Redis began a new epoch at that time */
    unsigned n_minutes;
    const char *event; /* that read_line() gets */
} all;

/* Returns NULL if the line is about another job or time. */
static struct outcome *outcome_of(const char *line) {
    const char *job = event_get(line, "job");
    unsigned long j = *job == 'j' ? strtoul(job + 1, NULL, 10) : JOBS;
    int64_t at = 0, minute = -1;

    if (schedule_parse_time(event_get(line, "due"), &at) == 0)
        minute = (at - SHARING_FIRST) / SHARING_MINUTE;
    return j < JOBS && minute >= 0 && minute < (int64_t) all.n_minutes ? &all.outcomes[minute][j] : NULL;
}

static void read_line(const char *line, _unused_ void *userdata) {
    struct outcome *outcome = outcome_of(line);

    if (!outcome)
        return;
    outcome->n_started += strcmp(all.event, "started") == 0;
    outcome->skipped |= strcmp(all.event, "skipped") == 0;
    outcome->missed |= strcmp(all.event, "missed") == 0;
    outcome->lost_lease |= strcmp(all.event, "lease-lost") == 0;
}

static void read_since_mark(struct host *host) {
    static const char *const events[] = {"started", "skipped", "missed", "lease-lost"};

    for (size_t e = 0; e < ELEMENTSOF(events); e++) {
        all.event = events[e];
        host_each(host, events[e], read_line, NULL);
    }
}

/* Reads the events of all hosts since their marks. */
static void read_logs(void) {
    memset(all.outcomes, 0, all.n_minutes * sizeof(all.outcomes[0]));
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        read_since_mark(sharing_hosts[i]);
}

/* Calls fn twice: with the mark at the begin of the log of the host's earlier berthds, and at that of the
 * present one. */
static void each_log(struct host *host, void (*fn)(struct host *host)) {
    host->mark = 0;
    if (host->log.size > 0)
        fn(host);
    host->mark = host->log.size;
    fn(host);
}

static bool is_decided(const struct outcome *outcome) {
    return outcome->n_started > 0 || outcome->skipped || outcome->missed;
}

/* Waits until each due time of the last minute has an outcome. Some may be lost, so the wait is bounded. */
static void await_minute(void) {
    usec_t until = clock_boottime() + STEP_PATIENCE;
    size_t n;

    do {
        n = 0;
        child_turn(clock_boottime() + 50 * USEC_PER_MSEC);
        read_logs();
        for (size_t j = 0; j < JOBS; j++)
            n += is_decided(&all.outcomes[all.n_minutes - 1][j]);
    } while (n < JOBS && clock_boottime() < until);
}

/* Injects one fault around the due time. */
static void break_something(size_t minute, unsigned what) {
    size_t host = what / 7 % SHARING_HOSTS;

    child_pass(clock_boottime() + what / 31 % 1200 * USEC_PER_MSEC);
    switch (what % 7) {
    case 0:
    case 1:
        host_kill(sharing_hosts[host]);
        child_pass(clock_boottime() + what / 11 % 300 * USEC_PER_MSEC);
        host_launch(sharing_hosts[host]);
        break;
    case 2:
        all.lost_data[minute] = true;
        freeReplyObject(redis_command(&cluster.redis, "FLUSHALL"));
        break;
    case 3:
        all.lost_data[minute] = true;
        TEST_INT(redis_server_restart(&cluster.redis, what / 5 % 2), 0);
        break;
    case 4:
        TEST_INT(berth(sharing_hosts[host], "drain"), 0);
        TEST_INT(berth(sharing_hosts[host], "undrain"), 0);
        break;
    default:
        break;
    }
}

static char shown_job[16], shown_due[64];

static void show_log(struct host *host) {
    for (const char *line = host_log(host), *end; line && *line; line = *end ? end + 1 : end) {
        end = strchrnul(line, '\n');
        if (memmem(line, (size_t) (end - line), shown_job, strlen(shown_job)) &&
            memmem(line, (size_t) (end - line), shown_due, strlen(shown_due)))
            printf("%s: %.*s\n", host->name, (int) (end - line), line);
    }
}

/* Prints the journal of all hosts about one due time. */
static void show(size_t job, const char *due) {
    snprintf(shown_job, sizeof(shown_job), "job=j%zu ", job);
    snprintf(shown_due, sizeof(shown_due), "due=%s", due);
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        each_log(sharing_hosts[i], show_log);
}

/* Each due time began once at most. One that is lost, neither skipped nor missed, has a reason that R18
 * names: Redis lost data, or its host lost the lease. */
static void judge(void) {
    unsigned n_doubled = 0, n_skipped = 0, n_missed = 0, n_lost_data = 0, n_lost_lease = 0, n_unexplained = 0;

    memset(all.outcomes, 0, sizeof(all.outcomes));
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        each_log(sharing_hosts[i], read_since_mark);
    for (size_t m = 0; m < all.n_minutes; m++)
        for (size_t j = 0; j < JOBS; j++) {
            const struct outcome *outcome = &all.outcomes[m][j];
            bool is_lost = !is_decided(outcome);
            bool is_unexplained = is_lost && !all.lost_data[m] && !outcome->lost_lease;

            n_doubled += outcome->n_started > 1;
            n_skipped += outcome->n_started == 0 && outcome->skipped;
            n_missed += outcome->n_started == 0 && !outcome->skipped && outcome->missed;
            n_lost_data += is_lost && all.lost_data[m];
            n_lost_lease += is_lost && !all.lost_data[m] && outcome->lost_lease;
            n_unexplained += is_unexplained;
            if (outcome->n_started > 1 || is_unexplained)
                show(j, sharing_text(SHARING_FIRST + (int64_t) m * SHARING_MINUTE));
        }
    printf("%u due times: %u doubled, %u skipped, %u missed, %u lost with Redis's data, %u lost with a lease, "
           "%u lost without a reason\n",
           all.n_minutes * JOBS, n_doubled, n_skipped, n_missed, n_lost_data, n_lost_lease, n_unexplained);
    TEST_INT(n_doubled, 0);
    TEST_INT(n_unexplained, 0);
}

/* Waits until berthd has the ends of all runs. */
static void settle(void) {
    for (size_t i = 0; i < SHARING_HOSTS; i++) {
        usec_t until = clock_boottime() + HOST_PATIENCE;
        size_t n;

        /* A berthd that has just started may ask for one more turn after this. */
        while ((n = berth_count_runs(sharing_hosts[i])) > 0 && clock_boottime() < until)
            child_turn(clock_boottime() + 20 * USEC_PER_MSEC);
        TEST_INT(n, 0);
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
    memset(&all, 0, sizeof(all));
    for (size_t i = 0; i < JOBS; i++)
        size +=
            (size_t) snprintf(config + size, sizeof(config) - size,
                              "job \"j%zu\" { command = {\"/bin/true\"} output = \"null\" " SHARED "}\n", i);
    sharing_up(config);
    while (all.n_minutes * JOBS < n && all.n_minutes < MINUTES_MAX) {
        size_t minute = all.n_minutes++;

        for (size_t i = 0; i < SHARING_HOSTS; i++)
            host_mark(sharing_hosts[i]);
        sharing_clocks_at(SHARING_FIRST + (int64_t) minute * SHARING_MINUTE, -20);
        break_something(minute, (unsigned) random());
        await_minute();
    }
    settle();
    judge();
}

static CU_TestInfo tests[] = {
    {"many", many},
    {"killed", killed},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "turns, deaths", .pSetUpFunc = cluster_up, .pTearDownFunc = cluster_down,
             .pTests = tests});
