/* SPDX-License-Identifier: MIT */

/* Thousands of hosts with ten jobs each and a lease of 30 s: the share of Redis's core that heartbeats take,
 * and how late they are. Then Redis comes back without its data, also by TLS: the time until all hosts are
 * known again. Hosts without claims send fewer heartbeats. */

#include "tests/bench/benches.h"

#include <sys/resource.h>

#include "store/status.h"
#include "tests/bench/rig.h"

#define LEASE (30 * USEC_PER_SEC)
#define WATCHED LEASE /* each host sends all that it sends in a lease, verify included */
#define JOBS 10

static double worst_lateness(const struct rig *g) {
    usec_t worst = 0, now = clock_boottime();

    for (size_t i = 0; i < g->n_hosts; i++) {
        usec_t gap = now - g->hosts[i].beat > g->hosts[i].worst_gap ? now - g->hosts[i].beat : g->hosts[i].worst_gap;

        worst = gap > worst ? gap : worst;
    }
    return (double) usec_sub(worst, LEASE / 6) / USEC_PER_MSEC;
}

static void heartbeats(struct report *r, struct rig *g, double at_most) {
    char name[100];
    uint64_t calls;
    double usec, cpu;
    usec_t began;

    rig_run_for(g, LEASE / 6); /* the first ones are over */
    rig_forget_gaps(g);
    rig_reset_stats(&g->server);
    cpu = rig_server_cpu(&g->server);
    began = clock_boottime();
    rig_run_for(g, WATCHED);
    cpu = rig_server_cpu(&g->server) - cpu;
    usec = rig_server_usec(&g->server, "evalsha", &calls);
    double wall = (double) (clock_boottime() - began);

    snprintf(name, sizeof(name), "heartbeats of %zu hosts x %d jobs, scripts' share of Redis's core", g->n_hosts, JOBS);
    report_add(r, &(struct figure) {name, 100 * usec / wall, "%", NULL, 0, GOAL_VALUE_AT_MOST, at_most});
    report_point(r, "load-hosts", (double) g->n_hosts, 100 * usec / wall);
    snprintf(name, sizeof(name), "heartbeats of %zu hosts x %d jobs, Redis's CPU time in all", g->n_hosts, JOBS);
    report_add(r, &(struct figure) {name, 100 * cpu * USEC_PER_SEC / wall, "%", NULL, 0, GOAL_NONE, 0});
    report_point(r, "load-hosts-cpu", (double) g->n_hosts, 100 * cpu * USEC_PER_SEC / wall);
    snprintf(name, sizeof(name), "worst lateness of a heartbeat, %zu hosts", g->n_hosts);
    report_add(r, &(struct figure) {name, worst_lateness(g), "ms", NULL, 0, GOAL_VALUE_AT_MOST, (double) LEASE / 6 / USEC_PER_MSEC});
}

static uint64_t count_failed_attempts(const struct rig *g) {
    struct redis_counts counts;
    uint64_t n = 0;

    for (size_t i = 0; i < g->n_hosts; i++) {
        store_redis_get_counts(g->hosts[i].store, &counts);
        for (size_t class = 0; class < STATUS_ERRORS; class++)
            n += counts.errors[class];
    }
    return n;
}

static void recovery(struct report *r, struct rig *g, usec_t within) {
    char name[100];
    uint64_t failed;
    usec_t began;

    redis_server_kill(&g->server);
    while (rig_count_state(g, STORE_STATE_AWAY) < g->n_hosts)
        rig_turn(g, 10 * USEC_PER_MSEC);
    if (redis_server_resume(&g->server) < 0)
        rig_fail("redis-server does not come back");
    began = clock_boottime();
    failed = count_failed_attempts(g);
    RIG_UNTIL(g, rig_count_state(g, STORE_STATE_AWAY) == 0);
    snprintf(name, sizeof(name), "recovery: %zu hosts x %d jobs known again after a restart of Redis", g->n_hosts, JOBS);
    report_add(r, &(struct figure) {name, (double) (clock_boottime() - began) / USEC_PER_MSEC, "ms", NULL, 0, GOAL_VALUE_AT_MOST,
                                    (double) within / USEC_PER_MSEC});
    report_add(r, &(struct figure) {"  of that, Redis's CPU time", 1000 * rig_server_cpu(&g->server), "ms", NULL, 0,
                                    g->server.tls_port > 0 ? GOAL_VALUE_AT_MOST : GOAL_NONE, 5000});
    report_add(r, &(struct figure) {"  attempts to connect that failed when Redis was back, of those of all hosts",
                                    100 * (double) (count_failed_attempts(g) - failed) / (double) g->n_hosts, "%", NULL, 0,
                                    GOAL_VALUE_AT_MOST, 5});
}

static void measure(struct report *r, size_t n_hosts, double at_most, usec_t recovers_within) {
    struct rig g;
    struct slot *slots;

    rig_up(&g, &(struct rig_options) {.n_hosts = n_hosts, .lease_usec = LEASE, .pools = rig_pools, .n_pools = 1,
                                      .has_default_timeouts = true,
                                      .redis = (const char *const[]) {"--maxclients", "30000", "--tcp-backlog", "4096", NULL}});
    slots = rig_slots(&g, n_hosts * JOBS, 0, "busy", 1);
    rig_ask_all(&g, slots, n_hosts * JOBS);
    heartbeats(r, &g, at_most);
    if (at_most > 0)
        recovery(r, &g, recovers_within);
    rig_down(&g);
    free(slots);
}

/* A host without claims sends a heartbeat each third of its lease, 360 an hour; others send 720. */
static void measure_idle(struct report *r, size_t n_hosts) {
    char name[100];
    struct rig g;
    uint64_t calls;
    usec_t began;
    double wall;

    rig_up(&g, &(struct rig_options) {.n_hosts = n_hosts, .lease_usec = LEASE, .pools = rig_pools, .n_pools = 1,
                                      .has_default_timeouts = true,
                                      .redis = (const char *const[]) {"--maxclients", "30000", NULL}});
    rig_run_for(&g, LEASE / 2);
    rig_reset_stats(&g.server);
    began = clock_boottime();
    rig_run_for(&g, LEASE);
    (void) rig_server_usec(&g.server, "evalsha", &calls);
    wall = (double) (clock_boottime() - began);
    snprintf(name, sizeof(name), "calls of a host without claims, of %zu, an hour", n_hosts);
    report_add(r, &(struct figure) {name, (double) calls / (double) n_hosts * 3600 * USEC_PER_SEC / wall, "", NULL, 0, GOAL_VALUE_AT_MOST, 400});
    rig_down(&g);
}

/* Two connections for each host, and some for the rest. */
static size_t hosts_possible(void) {
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < 2000 ? 0 : (limit.rlim_cur - 500) / 2;
}

void bench_hosts(struct report *r) {
    size_t most;

    report_section(r, "thousands of hosts");
    if (getenv("BENCH_HOSTS")) {
        measure(r, strtoul(getenv("BENCH_HOSTS"), NULL, 10), 1, LEASE);
        return;
    }
    measure_idle(r, 100);
    measure(r, 100, 0.1, LEASE);
    measure(r, 1000, 1, LEASE);
    most = hosts_possible() < 10000 ? hosts_possible() : 10000; /* Redis must open as many */
    measure(r, most, 8 * (double) most / 10000, 10 * USEC_PER_SEC);
}

/* Each host has two connections, and checks a certificate for both. */
void bench_hosts_tls(struct report *r) {
    report_section(r, "thousands of hosts by TLS");
    if (setenv("BERTH_TEST_TLS", "yes", 1) < 0)
        rig_fail("no memory");
    measure(r, 3000, 3, 12 * USEC_PER_SEC);
    (void) unsetenv("BERTH_TEST_TLS");
}
