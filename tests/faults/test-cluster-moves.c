/* SPDX-License-Identifier: MIT */

/* The slot of the namespace moves to and fro between two nodes of a cluster, key by key, while three hosts
 * start and end runs and one berthd after the other is killed. No run is stopped, no limit is exceeded, no
 * migration gets stuck, and nothing is left behind. $BERTH_MOVES: how many (2); several have the default
 * lease. Prints how long each move takes, and until all hosts are connected after it. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "tests/harness/host.h"
#include "tests/harness/redis-nodes.h"
#include "tests/harness/test.h"
#include "tests/harness/witness.h"

#define HOSTS 3
#define WORKERS 12 /* runs of the load at once */
#define LIMIT 4  /* of pool db */
#define POOLS "pool \"db\" { limit = 4 }\npool \"long\" { limit = 3 }\n"
#define KEY_PAUSE (20 * USEC_PER_MSEC)
#define BUSY (60 * USEC_PER_SEC)
#define QUIET_LOAD (1 * USEC_PER_SEC) /* between two moves */

static struct redis_nodes nodes;
static struct host *hosts[HOSTS];
static unsigned slot, owner;

static uint64_t asked_for(void) {
    const char *text = getenv("BERTH_MOVES");
    uint64_t n = 2;

    if (text)
        CU_ASSERT_FATAL(number_parse(text, 10000, &n) >= 0);
    return n;
}

static void stop_nodes(void) {
    redis_nodes_done(&nodes);
}

/* --- the load --- */

static struct worker {
    struct child *child;
    char id[24];
} workers[WORKERS];
static unsigned n_begun, n_wrong, n_unreached;
static bool is_closed;

static void begin(size_t i) {
    struct worker *w = &workers[i];

    (void) snprintf(w->id, sizeof(w->id), "r%u", n_begun++);
    w->child = berth_start(hosts[i % HOSTS], "run -p db:%u --name %s -- %s --id %s --for %u",
                           1 + n_begun % 2, w->id, cluster.command, w->id, 10 + n_begun % 7 * 30);
}

/* No run is refused or stopped, so each ends as its command does. Only a berthd that is just being killed
 * takes no new one: nobody keeps its socket here. */
static void reap(struct worker *w) {
    const char *text = child_text(w->child, 2);
    bool is_unreached =
        w->child->exit_code == 69 &&
        (strstr(text, "cannot reach berthd") || strstr(text, "berthd closed the connection"));

    n_unreached += is_unreached;
    if (w->child->exit_code != 0 && !is_unreached && n_wrong++ < 5)
        printf("%s ended with %d, signal %d: %s\n", w->id, w->child->exit_code, w->child->signal,
               child_text(w->child, 2));
    w->child = child_free(w->child);
}

/* Returns how many runs are open. */
static unsigned turn(void) {
    unsigned n = 0;

    child_turn(clock_boottime() + 10 * USEC_PER_MSEC);
    for (size_t i = 0; i < WORKERS; i++) {
        if (workers[i].child && workers[i].child->ended)
            reap(&workers[i]);
        if (!workers[i].child && !is_closed)
            begin(i);
        n += workers[i].child != NULL;
    }
    return n;
}

static void load(usec_t length) {
    for (usec_t until = clock_boottime() + length; clock_boottime() < until;)
        (void) turn();
}

static void drain(void) {
    usec_t until = clock_boottime() + BUSY;

    is_closed = true;
    while (turn() > 0 && clock_boottime() < until)
        ;
    TEST_INT(turn(), 0);
    TEST_INT(n_wrong, 0);
}

/* --- hosts --- */

static void add_host(size_t i, const char *name) {
    static char url[96];
    struct host *h = host_add(name, " ");

    (void) snprintf(url, sizeof(url), "redis://127.0.0.1:%s,127.0.0.1:%s,127.0.0.1:%s", nodes.ports[0],
                    nodes.ports[1], nodes.ports[2]);
    h->url = url;
    h->redis_options = "failover-margin = \"1s\"\n";
    host_set_config(h, POOLS "job \"long\" { %s pools = {\"long\"} }\n", witness_at_gate("long", 0));
    host_start(h);
    host_await(h, "redis-connected", " ");
    hosts[i] = h;
}

static void up(void) {
    static const char *const names[HOSTS] = {"ant", "bee", "cow"};

    cluster_up_without_redis();
    cluster.on_stopped = stop_nodes;
    cluster.lease = asked_for() > 2 ? "30s" : "60s"; /* of a default run: no busy machine loses it */
    cluster.heartbeat = "5s";
    if (redis_nodes_start(&nodes) < 0)
        abort();
    slot = redis_nodes_slot(&nodes, "berth:{test}:meta");
    owner = redis_nodes_owner(&nodes, slot);
    cluster.master = &nodes.servers[owner];
    memset(workers, 0, sizeof(workers));
    n_begun = n_wrong = n_unreached = 0;
    is_closed = false;
    for (size_t i = 0; i < HOSTS; i++)
        add_host(i, names[i]);
    TEST_INT(berth(hosts[0], "grace --end"), 0);
    for (size_t i = 0; i < HOSTS; i++) {
        TEST_INT(berth(hosts[i], "start long"), 0);
        host_await(hosts[i], "started", "job=long");
    }
}

/* --- a move --- */

/* Kills a berthd when this many keys have moved; returns how many have in all. */
static unsigned move_keys(unsigned to, struct host *victim, unsigned kill_at) {
    unsigned n = 0;

    redis_nodes_begin_move(&nodes, slot, owner, to);
    while (redis_nodes_move_key(&nodes, slot, owner, to)) {
        load(KEY_PAUSE);
        if (n++ != kill_at)
            continue;
        host_kill(victim);
        host_start(victim);
    }
    redis_nodes_end_move(&nodes, slot, owner, to);
    owner = to;
    cluster.master = &nodes.servers[to];
    return n;
}

static void await_hosts(void) {
    usec_t until = clock_boottime() + BUSY;

    for (size_t i = 0; i < HOSTS; i++) {
        while (host_count(hosts[i], "redis-connected", "redis=127.0.0.1:%s", nodes.ports[owner]) == 0 &&
               clock_boottime() < until)
            (void) turn();
        TEST_FATAL(clock_boottime() < until, "a host does not find the node of the slot");
    }
}

static unsigned n_keys;

/* Returns how long the slowest host needed after the move. */
static usec_t move(unsigned round, unsigned to) {
    usec_t began, moved, took;

    load(QUIET_LOAD);
    for (size_t i = 0; i < HOSTS; i++)
        host_mark(hosts[i]);
    began = clock_boottime();
    n_keys += move_keys(to, hosts[round % HOSTS], round % 9);
    moved = clock_boottime();
    await_hosts();
    took = clock_boottime() - moved;
    printf("move %u: %" PRIu64 " ms, all hosts are connected %" PRIu64 " ms later\n", round,
           (moved - began) / USEC_PER_MSEC, took / USEC_PER_MSEC);
    TEST_INT(berth(hosts[round % HOSTS], "grace --end"), 0);
    for (size_t i = 0; i < HOSTS; i++)
        TEST_INT(host_count(hosts[i], "fenced", " "), 0);
    return took;
}

/* Prints which commands began while more than the limit was in use. */
static void print_above(const struct witness *w) {
    for (size_t i = 0; i < w->n; i++)
        if (demands_get(&w->runs[i].seen, "db") > LIMIT)
            printf("%s on %s began at %" PRIu64 " with token %" PRIu64 ", and %u permits were in use\n",
                   w->runs[i].id, w->runs[i].host, w->runs[i].start, w->runs[i].token,
                   demands_get(&w->runs[i].seen, "db"));
}

/* Ends the jobs that lived through all of it. */
static void end(void) {
    struct witness w = {0};

    drain();
    for (size_t i = 0; i < HOSTS; i++)
        host_mark(hosts[i]);
    test_gate_open(&cluster.gate);
    for (size_t i = 0; i < HOSTS; i++)
        host_await(hosts[i], "exited", "job=long result=success");
    host_await_pool(hosts[0], "db", "used", 0);
    witness_read(&w, cluster.witness);
    print_above(&w);
    CU_ASSERT(witness_max(&w, "db") <= LIMIT);
    CU_ASSERT(witness_max(&w, "db") > 1);
    witness_done(&w);
}

static void test_moves(void) {
    uint64_t n = asked_for();
    unsigned nodes_of[] = {owner, (owner + 1) % NODES};
    usec_t worst = 0;

    for (unsigned round = 0; round < n; round++) {
        usec_t took = move(round, nodes_of[(round + 1) % 2]);

        worst = took > worst ? took : worst;
    }
    end();
    printf("%" PRIu64 " moves of %u keys, %u runs; connected again at worst after %" PRIu64 " ms\n", n,
           n_keys, n_begun - n_unreached, worst / USEC_PER_MSEC);
}

static CU_TestInfo tests[] = {{"key by key", test_moves}, CU_TEST_INFO_NULL};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "cluster moves", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests},
        CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
