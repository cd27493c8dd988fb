/* SPDX-License-Identifier: MIT */

/* Jobs with `on = "any"`: each due time is begun once in the cluster, whatever happens to a host, its berthd
 * or Redis. The clocks of the hosts are in the test's hands, at times that are past for Redis. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/host-clock.h"
#include "tests/harness/sharing.h"
#include "tests/harness/test.h"
#include "tests/harness/witness.h"

/* Awaits that the due time is begun by one host, and that the others know. */
static void await_decided(int64_t due) {
    char fields[96];

    snprintf(fields, sizeof(fields), "job=j due=%s", sharing_text(due));
    sharing_await_count("exited", fields, 1);
    sharing_await_count("turn-taken", fields, SHARING_HOSTS - 1);
    TEST_INT(sharing_count("started", fields), 1);
}

#define MINUTES 20

/* What people see of the option. */
static void check_shown(void) {
    json_t *shown = berth_json(sharing_hosts[0], "next j");

    AT_STRING(shown, "next.0.on", "any");
    json_decref(shown);
    shown = berth_json(sharing_hosts[0], "jobs");
    AT_STRING(shown, "jobs.name=j.on", "any");
    json_decref(shown);
}

/* S14, in short: each due time once, and not always by the same host. */
static void once(void) {
    char config[1024];

    snprintf(config, sizeof(config), "job \"j\" { %s " SHARED "}\n", witness_command("--id j"));
    sharing_up(config);
    for (int64_t i = 0; i < MINUTES; i++) {
        sharing_clocks_at(SHARING_FIRST + i * SHARING_MINUTE, -20);
        await_decided(SHARING_FIRST + i * SHARING_MINUTE);
    }
    TEST_INT(sharing_count("started", "job=j"), MINUTES);
    check_shown();
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        CU_ASSERT(host_count(sharing_hosts[i], "started", "job=j") < MINUTES);
}

/* --- a host that has the turn, and waits for a permit --- */

static struct child *holder;

/* ant asks first, and waits for its permit. */
static void ant_waits(void) {
    char config[1024];

    snprintf(config, sizeof(config),
             "pool \"db\" { limit = 1 }\njob \"j\" { %s " SHARED "pools = {\"db\"} prefer = {\"ant\"} }\n",
             witness_command("--id j"));
    sharing_up(config);
    holder = berth_at_gate(sharing_hosts[2], "-p db", "holder", "started");
    sharing_clocks_at(SHARING_FIRST, -20);
    host_await(sharing_hosts[0], "queued", "job=j");
}

/* Lets the permit go, and awaits that the due time was begun once. */
static void await_once(void) {
    char fields[96];

    snprintf(fields, sizeof(fields), "job=j due=%s", sharing_text(SHARING_FIRST));
    gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
    sharing_await_count("exited", fields, 1);
    TEST_INT(sharing_count("started", fields), 1);
}

/* S16 */
static void host_dies(void) {
    usec_t killed;

    cluster.lease = "5s"; /* which a busy machine does not lose so soon */
    cluster.heartbeat = "1s";
    ant_waits();
    host_kill(sharing_hosts[0]);
    killed = clock_boottime();
    while (host_count(sharing_hosts[1], "queued", "job=j") + host_count(sharing_hosts[2], "queued", "job=j") == 0 &&
           clock_boottime() < killed + 2 * HOST_PATIENCE)
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
    CU_ASSERT(clock_boottime() - killed <
              2 * HOST_PATIENCE); /* 4/3 lease + 2 s, and 2 s more for `prefer`, on an idle machine */
    await_once();
    host_start(sharing_hosts[0]); /* what it waited for is not its own any more */
    host_await_redis(sharing_hosts[0]);
    sharing_clocks_at(SHARING_FIRST + SHARING_MINUTE, -20);
    await_decided(SHARING_FIRST + SHARING_MINUTE);
    TEST_INT(sharing_count("started", "job=j"), 2);
}

static void berthd_restarts(void) {
    ant_waits();
    host_kill(sharing_hosts[0]);
    host_start(sharing_hosts[0]);
    host_await_redis(sharing_hosts[0]);
    await_once();
    TEST_INT(host_count(sharing_hosts[0], "started", "job=j"), 1);
}

static void host_is_drained(void) {
    ant_waits();
    TEST_INT(berth(sharing_hosts[0], "drain"), 0);
    host_await(sharing_hosts[0], "withdrawn", "job=j reason=drained");
    await_once();
    TEST_INT(host_count(sharing_hosts[0], "started", "job=j"), 0);
    sharing_clocks_at(SHARING_FIRST + SHARING_MINUTE, -20);
    sharing_await_count("started", "job=j", 2);
    TEST_INT(berth(sharing_hosts[0], "undrain"), 0);
    sharing_await_count("turn-taken", "job=j",
                3); /* of the first due time: bee or cat; of the second: the other of these, and ant */
}

static void job_is_stopped(void) {
    ant_waits();
    TEST_INT(berth(sharing_hosts[0], "stop j"), 0);
    host_await(sharing_hosts[0], "withdrawn", "job=j reason=stopped");
    gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
    sharing_clocks_at(SHARING_FIRST + SHARING_MINUTE, -20);
    await_decided(SHARING_FIRST + SHARING_MINUTE);
    TEST_INT(sharing_count("started", "job=j"), 1);
}

/* `berth start` on another host. */
static void started_elsewhere(void) {
    char config[1024];

    snprintf(config, sizeof(config), "job \"j\" { %s on = \"any\" }\n", witness_at_gate("j", 0));
    sharing_up(config);
    TEST_INT(berth(sharing_hosts[0], "start j"), 0);
    host_await(sharing_hosts[0], "started", "job=j trigger=start");
    TEST_INT(berth(sharing_hosts[1], "start j"), 75);
    TEST_STRING(berth_err, "berth: skipped: a run of j is on ant\n");
    host_await(sharing_hosts[1], "skipped", "job=j trigger=start reason=overlap other_host=ant");
    TEST_INT(berth(sharing_hosts[1], "start j --wait"), 75);
    TEST_INT(berth_count_runs(sharing_hosts[1]), 0);
    gate_open(&cluster.gate);
    host_await(sharing_hosts[0], "released", "job=j");
    TEST_INT(berth(sharing_hosts[1], "start j --wait"), 0);
    TEST_INT(sharing_count("started", "job=j"), 2);
}

/* Nobody waits for a Redis that does not answer. */
static void started_without_redis(void) {
    struct child *start;
    char config[1024];

    cluster.lease = "30s";
    cluster.heartbeat = "1s";
    snprintf(config, sizeof(config), "job \"j\" { %s on = \"any\" }\n", witness_command("--id j"));
    sharing_up(config);
    TEST_INT(kill(cluster.redis.pid, SIGSTOP), 0);
    start = berth_start(sharing_hosts[0], "start j");
    TEST_INT(berth_end(start), 0);
    TEST_INT(kill(cluster.redis.pid, SIGCONT), 0);
    host_await(sharing_hosts[0], "exited", "job=j result=success");
}

/* --- Redis --- */

static void hosts_up_simple(const char *more) {
    char config[1024];

    snprintf(config, sizeof(config), "job \"j\" { %s " SHARED "%s }\n", witness_command("--id j"), more);
    sharing_up(config);
}

#define FLUSHES 4

/* S18, in short: at a due time and around it. */
static void redis_loses_data(void) {
    char fields[96];

    hosts_up_simple("");
    for (int64_t i = 0; i < FLUSHES; i++) {
        int64_t due = SHARING_FIRST + i * SHARING_MINUTE;

        sharing_clocks_at(due, -300);
        child_turn(clock_boottime() + (usec_t) (100 + i * 150) * USEC_PER_MSEC);
        freeReplyObject(redis_command(&cluster.redis, "FLUSHALL"));
        snprintf(fields, sizeof(fields), "job=j due=%s", sharing_text(due));
        sharing_await_count("exited", fields, 1);
        sharing_await_count("turn-taken", fields, SHARING_HOSTS - 1);
        TEST_INT(sharing_count("started", fields), 1);
    }
}

static void redis_was_away(void) {
    char fields[96];

    hosts_up_simple("catch-up = \"5m\"");
    redis_server_kill(&cluster.redis);
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        host_await(sharing_hosts[i], "redis-lost", " ");
    sharing_clocks_at(SHARING_FIRST, -20);
    child_turn(clock_boottime() + USEC_PER_SEC / 2);
    sharing_clocks_at(SHARING_FIRST + 4 * SHARING_MINUTE, 2000);
    TEST_INT(redis_server_resume(&cluster.redis), 0);
    snprintf(fields, sizeof(fields), "job=j due=%s", sharing_text(SHARING_FIRST + 4 * SHARING_MINUTE));
    sharing_await_count("exited", fields, 1);
    TEST_INT(sharing_count("started", "job=j"), 1);
}

/* S8 for a cluster: one host logs what all of them missed. */
static void all_were_away(void) {
    char fields[96];

    hosts_up_simple("catch-up = \"5m\"");
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        host_kill(sharing_hosts[i]);
    sharing_clocks_at(SHARING_FIRST + 30 * SHARING_MINUTE, 2000);
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        host_start(sharing_hosts[i]);
    snprintf(fields, sizeof(fields), "job=j due=%s", sharing_text(SHARING_FIRST + 30 * SHARING_MINUTE));
    sharing_await_count("exited", fields, 1);
    sharing_await_count("turn-taken", fields, SHARING_HOSTS - 1);
    sharing_await_count("missed", "job=j reason=late", 1);
    sharing_await_count("missed", "job=j reason=backlog", 1);
    TEST_INT(sharing_count("started", "job=j"), 1);
}

/* S19: the host begins nothing early. */
static void clock_ahead(void) {
    struct host *ant = sharing_hosts[0] = host_add("ant", "job \"j\" { %s " SHARED "}\n", witness_command("--id j"));

    host_clock_give(ant);
    host_clock_set_realtime(ant, clock_realtime() + 86400 * USEC_PER_SEC);
    host_start(ant);
    host_open(ant);
    host_clock_set_realtime(ant, (clock_realtime() / USEC_PER_SEC + 86400) / 60 * 60 * USEC_PER_SEC +
                                     59500 * USEC_PER_MSEC);
    host_await(ant, "clock-ahead", "job=j");
    TEST_INT(host_count(ant, "queued", "job=j"), 0);
    TEST_INT(host_count(ant, "started", "job=j"), 0);
}

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
    {"once", once},
    {"host-dies", host_dies},
    {"killed", killed},
    {"berthd-restarts", berthd_restarts},
    {"drained", host_is_drained},
    {"stopped", job_is_stopped},
    {"started-elsewhere", started_elsewhere},
    {"started-without-redis", started_without_redis},
    {"redis-loses-data", redis_loses_data},
    {"redis-away", redis_was_away},
    {"all-away", all_were_away},
    {"clock-ahead", clock_ahead},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "turns", .pSetUpFunc = cluster_up, .pTearDownFunc = cluster_down, .pTests = tests},
        CU_SUITE_INFO_NULL,
    };

    return test_main(argc, argv, suites);
}
