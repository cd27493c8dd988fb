/* SPDX-License-Identifier: MIT */

/* Permits are granted while something stalls for half a lease to more than one. Whatever is left of the
 * lease, each command runs once and to its end, now or later in its old place. No command starts only to be
 * stopped. A job's guard stalls before it looks at its deadline, or with the command that it has forked.
 * BERTH_TEST_GRANT_STALLS=all: also each two percent of the lease, for each thing that can stall. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tests/harness/host/birth.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define HOSTS 7
#define GRANT_AFTER (300 * USEC_PER_MSEC) /* from the begin of a stall to the release of the permits */

enum {
    BERTHD = 1 << 0,
    RUNNER = 1 << 1,
    CLIENT = 1 << 2,   /* `berth run` */
    REDIS = 1 << 3,
    THEN_BERTHD = 1 << 4, /* berthd stalls after it received the grants, and the others with it until its end */
    GUARD = 1 << 5,   /* of the job, from its birth on; what else stalls does so from then on */
    COMMAND = 1 << 6, /* ... from the birth of its command on, which stalls, too */
};

struct stall {
    unsigned what;
    unsigned percent; /* of the lease */
};

static struct place { /* a host whose `berth run` and job wait for permits that another host holds */
    const struct stall *stall;
    struct host *host;
    struct child *holders[2], *client, *job;
    pid_t runner;
    struct birth birth; /* of the job's guard, if that is to stall */
    bool is_over;
} places[HOSTS];
static struct witness w;

static void down(void) {
    for (size_t i = 0; i < ELEMENTSOF(places); i++)
        birth_end(&places[i].birth);
    if (cluster.redis.pid > 0)
        (void) kill(cluster.redis.pid, SIGCONT);
    witness_done(&w);
    cluster_down();
}

static pid_t first_child(pid_t pid) {
    _cleanup_free_ char *text = NULL;
    char path[64];
    size_t size;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int) pid, (int) pid);
    return file_read(path, 4096, &text, &size) == 0 ? (pid_t) strtol(text, NULL, 10) : 0;
}

static void hosts_up(const struct stall *stalls, size_t n) {
    char pools[1024] = "";
    size_t length = 0;
    struct host *ant;

    for (size_t i = 0; i < n; i++)
        length += (size_t) snprintf(pools + length, sizeof(pools) - length, "pool \"p%zu\" { limit = 1 } pool \"q%zu\" { limit = 1 }\n", i, i);
    ant = host_up("ant", "%s", pools);
    for (size_t i = 0; i < n; i++) {
        char name[32], id[48];

        snprintf(name, sizeof(name), "bee%zu", i);
        snprintf(id, sizeof(id), "--id j%zu --for 300", i);
        places[i] = (struct place) {.stall = &stalls[i]};
        places[i].host = host_up(name, "%s job \"job\" { %s pools = {\"q%zu\"} }\n", pools, witness_command(id), i);
        places[i].runner = first_child(places[i].host->berthd->pid);
        TEST_FATAL(places[i].runner > 1, "berthd has no runner");
        places[i].holders[0] = berth_start(ant, "run -p p%zu --name hp%zu -- sleep 60", i, i);
        places[i].holders[1] = berth_start(ant, "run -p q%zu --name hq%zu -- sleep 60", i, i);
        host_await(ant, "started", "job=hp%zu", i);
        host_await(ant, "started", "job=hq%zu", i);
    }
}

static void wait_for_permits(struct place *p, size_t i) {
    p->client = berth_start(p->host, "run -p p%zu --name run -- %s --id r%zu --for 300", i, cluster.command, i);
    host_await(p->host, "queued", "job=run");
    p->job = berth_start(p->host, "start job --wait");
    host_await(p->host, "queued", "job=job");
}

static void signal_place(const struct place *p, unsigned what, int signal) {
    if (what & BERTHD)
        host_signal(p->host, signal);
    if (what & RUNNER)
        TEST_INT(kill(p->runner, signal), 0);
    if (what & CLIENT)
        child_kill(p->client, signal);
    if (what & REDIS)
        TEST_INT(kill(cluster.redis.pid, signal), 0);
}

static void give_permits(size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 2; k++)
            child_kill(places[i].holders[k], SIGTERM);
}

/* Kills the prepared guard of the job, which waits for the grant. Another guard is born with the grant. */
static void kill_prepared_guard(const struct place *p) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    char path[64];
    int guard = 0;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int) p->runner, (int) p->runner);
    for (; guard == 0; child_turn(clock_boottime() + USEC_PER_MSEC)) {
        _cleanup_fclose_ FILE *children = fopen(path, "re");

        TEST_FATAL(clock_boottime() < until, "no guard was prepared");
        if (!children || fscanf(children, "%d", &guard) != 1)
            guard = 0;
    }
    (void) kill(guard, SIGKILL);
    while (kill(guard, 0) == 0) {
        TEST_FATAL(clock_boottime() < until, "the guard does not end");
        child_turn(clock_boottime() + USEC_PER_MSEC);
    }
}

static void watch_guard(struct place *p) {
    unsigned generations = p->stall->what & COMMAND ? 2 : 1;

    kill_prepared_guard(p);
    TEST_FATAL(birth_watch(&p->birth, p->runner, generations), "the runner cannot be traced");
}

static void stall_guards(size_t n, usec_t *begun) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    for (size_t waiting = n; waiting > 0; child_turn(clock_boottime() + USEC_PER_MSEC)) {
        waiting = 0;
        for (size_t i = 0; i < n; i++) {
            if (!(places[i].stall->what & GUARD) || places[i].birth.n == places[i].birth.generations)
                continue;
            waiting++;
            if (!birth_turn(&places[i].birth))
                continue;
            begun[i] = clock_boottime();
            signal_place(&places[i], places[i].stall->what, SIGSTOP);
        }
        TEST_FATAL(clock_boottime() < until, "a job has no guard");
    }
}

/* Ends the stalls in the order of their ends. */
static void end_stalls(size_t n, const usec_t *begun) {
    for (;;) {
        struct place *next = NULL;
        usec_t at = USEC_INFINITY;

        for (size_t i = 0; i < n; i++) {
            usec_t end = begun[i] + places[i].stall->percent * CLUSTER_LEASE_USEC / 100;

            if (!places[i].is_over && end < at) {
                at = end;
                next = &places[i];
            }
        }
        if (!next)
            return;
        child_pass(at);
        signal_place(next, next->stall->what | (next->stall->what & THEN_BERTHD ? BERTHD : 0), SIGCONT);
        birth_end(&next->birth);
        next->is_over = true;
    }
}

static void judge(size_t n) {
    char id[32];

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 2; k++) {
            int status = berth_end(k ? places[i].job : places[i].client);
            const struct witness_run *r;

            witness_read(&w, cluster.witness);
            snprintf(id, sizeof(id), "%s%zu", k ? "j" : "r", i);
            r = witness_find(&w, id);
            if (status != 0 || witness_count(&w, id) != 1 || !r || r->end == 0 || r->signal != 0)
                printf("%s of a stall of %#x for %u %%: status %d\n%s", k ? "job" : "berth run", places[i].stall->what,
                       places[i].stall->percent, status, host_log(places[i].host));
            TEST_INT(status, 0);
            TEST_INT(witness_count(&w, id), 1);
            CU_ASSERT(r && r->end > 0 && r->signal == 0);
        }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 2; k++)
            (void) berth_end(places[i].holders[k]); /* 143, or 76 where that host's lease was lost */
    for (size_t i = 0; i < cluster.n_hosts; i++) /* so that each ends its session when it stops */
        host_await_redis(cluster.hosts[i]);
}

static void stall_all(const struct stall *stalls, size_t n) {
    usec_t begun[HOSTS];

    hosts_up(stalls, n);
    for (size_t i = 0; i < n; i++)
        wait_for_permits(&places[i], i);
    for (size_t i = 0; i < n; i++) {
        begun[i] = clock_boottime();
        if (stalls[i].what & GUARD)
            watch_guard(&places[i]);
        else
            signal_place(&places[i], stalls[i].what, SIGSTOP);
    }
    child_pass(clock_boottime() + GRANT_AFTER);
    give_permits(n);
    stall_guards(n, begun);
    for (size_t i = 0; i < n; i++)
        if (stalls[i].what & THEN_BERTHD) {
            host_await(places[i].host, "granted", "job=run");
            host_await(places[i].host, "granted", "job=job");
            begun[i] = clock_boottime();
            host_signal(places[i].host, SIGSTOP);
        }
    end_stalls(n, begun);
    judge(n);
}

static bool is_all(void) {
    const char *wanted = getenv("BERTH_TEST_GRANT_STALLS");

    return wanted && strcmp(wanted, "all") == 0;
}

/* From 50 to 104 percent, each cluster every fourth step. */
static void stall_each(unsigned what) {
    for (unsigned first = 0; first < 4; first++) {
        struct stall stalls[HOSTS];

        for (unsigned i = 0; i < HOSTS; i++)
            stalls[i] = (struct stall) {what, 50 + 2 * (4 * i + first)};
        if (first > 0)
            cluster_up();
        stall_all(stalls, HOSTS);
        if (first < 3)
            down();
    }
}

static void stall_each_guard(unsigned what) {
    if (!birth_is_allowed())
        TEST_SKIP("no process can be traced here");
    stall_each(what);
}

static void some(void) {
    static const struct stall stalls[2][HOSTS] = {
        {{BERTHD, 64}, {BERTHD, 68}, {BERTHD, 72}, {BERTHD, 76}, {RUNNER, 80}, {BERTHD | RUNNER | CLIENT, 70}, {RUNNER | CLIENT | THEN_BERTHD, 70}},
        {{BERTHD, 84}, {BERTHD, 100}, {RUNNER, 100}, {RUNNER, 130}, {BERTHD | RUNNER | CLIENT, 76}, {RUNNER | CLIENT | THEN_BERTHD, 84},
         {RUNNER | CLIENT | THEN_BERTHD, 110}},
    };

    for (size_t i = 0; i < ELEMENTSOF(stalls); i++) {
        if (i > 0) {
            down();
            cluster_up();
        }
        stall_all(stalls[i], HOSTS);
    }
}

static void of_some_guards(void) {
    static const struct stall stalls[HOSTS] = {
        {GUARD, 56}, {GUARD, 70}, {GUARD, 84}, {GUARD, 104}, {GUARD | COMMAND, 64}, {GUARD | COMMAND, 90},
        {GUARD | COMMAND | BERTHD | RUNNER, 76},
    };

    if (!birth_is_allowed())
        TEST_SKIP("no process can be traced here");
    stall_all(stalls, HOSTS);
}

static void of_berthd(void) {
    stall_each(BERTHD);
}

static void of_the_runner(void) {
    stall_each(RUNNER);
}

static void of_the_host(void) {
    stall_each(BERTHD | RUNNER | CLIENT);
}

static void of_berthd_after_the_grant(void) {
    stall_each(RUNNER | CLIENT | THEN_BERTHD);
}

static void of_the_guard(void) {
    stall_each_guard(GUARD);
}

static void of_the_guard_and_its_command(void) {
    stall_each_guard(GUARD | COMMAND);
}

/* `berth run` does not stall, because its command may have started already. */
static void of_the_host_when_it_begins(void) {
    stall_each_guard(GUARD | COMMAND | BERTHD | RUNNER);
}

/* All hosts at once, at different times of their heartbeats. */
static void of_redis(void) {
    unsigned step = is_all() ? 2 : 8;

    for (unsigned percent = is_all() ? 50 : 66; percent <= (is_all() ? 100 : 74); percent += step) {
        struct stall stalls[3] = {{REDIS, percent}, {0, percent}, {0, percent}};

        stall_all(stalls, ELEMENTSOF(stalls));
        if (percent + step <= (is_all() ? 100 : 74)) {
            down();
            cluster_up();
        }
    }
}

static CU_TestInfo some_stalls[] = {
    {"some", some},
    {"of some guards", of_some_guards},
    {"of Redis", of_redis},
    CU_TEST_INFO_NULL,
};
static CU_TestInfo all_stalls[] = {
    {"of berthd", of_berthd},
    {"of the runner", of_the_runner},
    {"of the host", of_the_host},
    {"of berthd, after the grant", of_berthd_after_the_grant},
    {"of the guard", of_the_guard},
    {"of the guard and its command", of_the_guard_and_its_command},
    {"of the host when it begins", of_the_host_when_it_begins},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "some grant stalls", .pSetUpFunc = cluster_up, .pTearDownFunc = down, .pTests = some_stalls},
        {.pName = "grant stalls", .pSetUpFunc = cluster_up, .pTearDownFunc = down, .pTests = all_stalls},
        CU_SUITE_INFO_NULL,
    };

    if (!is_all())
        suites[1] = (CU_SuiteInfo) CU_SUITE_INFO_NULL;

    return test_main(argc, argv, suites);
}
