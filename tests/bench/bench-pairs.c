/* SPDX-License-Identifier: MIT */

/* Pairs a second by the wall clock: the whole way through our store (requested, granted, released, confirmed), many in flight on one
 * connection, beside peers in pipelines of the same depth, and beside an npm package in the same situation. */

#include "tests/bench/benches.h"

#include <string.h>

#include "tests/bench/peer.h"
#include "tests/bench/rig.h"

#define ROUNDS 9
#define DEPTH 64
#define PAIRS 20000 /* in a round */

static uint64_t pairs_left;

static void on_granted(struct slot *s) {
    slot_release(s);
}

static void on_released(struct slot *s) {
    if (pairs_left > 0) {
        pairs_left--;
        slot_ask(s);
    }
}

static double ours(struct rig *g, struct slot *slots) {
    uint64_t end = g->n_released + PAIRS;
    usec_t began = clock_boottime();

    pairs_left = PAIRS - DEPTH;
    for (size_t i = 0; i < DEPTH; i++)
        slot_ask(&slots[i]);
    RIG_UNTIL(g, g->n_released >= end);
    return (double) PAIRS * USEC_PER_SEC / (double) (clock_boottime() - began);
}

static double theirs(const struct peer *p, struct redis_server *s, unsigned n) {
    usec_t began = clock_boottime();

    peer_run(p, s, n, DEPTH);
    return (double) n * USEC_PER_SEC / (double) (clock_boottime() - began);
}

static double median_of_peer(const struct peer *p, struct redis_server *s, unsigned n) {
    double rate[ROUNDS];

    for (size_t i = 0; i < ROUNDS; i++)
        rate[i] = theirs(p, s, n);
    return quantile(rate, ROUNDS, 0.5);
}

/* The package's program prints one rate a round; it prints why if it cannot run. */
static double redis_semaphore(struct rig *g, double (*fn)(struct rig *, struct slot *), struct slot *slots, double *ret_ours) {
    char command[600], line[64];
    const char *script = getenv("BENCH_REDIS_SEMAPHORE");
    double rates[ROUNDS], mine[ROUNDS];
    size_t n = 0;

    if (!script)
        return 0;
    snprintf(command, sizeof(command), "exec node %s pairs %s %d %d", script, g->server.socket, DEPTH, PAIRS / 4);
    for (; n < ROUNDS; n++) {
        FILE *f = popen(command, "re");
        bool there = f && fgets(line, sizeof(line), f);

        if (!f || pclose(f) != 0 || !there)
            return 0;
        rates[n] = strtod(line, NULL);
        mine[n] = fn(g, slots);
    }
    *ret_ours = quantile(mine, n, 0.5);
    return quantile(rates, n, 0.5);
}

void bench_pairs(struct report *r) {
    struct rig g;
    struct slot *slots, *held;
    double rate[ROUNDS], empty, mine, npm, fair;

    report_section(r, "pairs a second");
    rig_up(&g, &(struct rig_options) {.n_hosts = 1, .pools = rig_pools, .n_pools = 1});
    slots = rig_slots(&g, DEPTH, 0, "busy", 1);
    held = rig_slots(&g, 10000, 0, "busy", 1);
    g.on_granted = on_granted;
    g.on_released = on_released;
    peer_empty.prepare(&g.server, 0);
    for (size_t i = 0; i < ROUNDS; i++)
        rate[i] = ours(&g, slots);
    mine = quantile(rate, ROUNDS, 0.5);
    empty = median_of_peer(&peer_empty, &g.server, PAIRS);
    report_add(r, &(struct figure) {"claim+release pairs through our store, uncontended", mine, "1/s", "pairs of empty scripts", empty,
                                    GOAL_NONE, 0});
    peer_counter.prepare(&g.server, 0);
    report_add(r, &(struct figure) {"pairs of Redisson's counter, pipelined", median_of_peer(&peer_counter, &g.server, PAIRS), "1/s",
                                    "pairs of empty scripts", empty, GOAL_NONE, 0});
    npm = redis_semaphore(&g, ours, slots, &mine);
    if (npm > 0)
        report_add(r, &(struct figure) {"pairs through our store, beside npm redis-semaphore in turns", mine, "1/s", "redis-semaphore", npm,
                                        GOAL_RATIO_AT_LEAST, 1});
    else
        report_skip(r, "pairs through our store, beside npm redis-semaphore in turns", "node or npm is missing");

    g.on_granted = NULL;
    rig_ask_all(&g, held, 10000);
    g.on_granted = on_granted;
    for (size_t i = 0; i < ROUNDS; i++)
        rate[i] = ours(&g, slots);
    mine = quantile(rate, ROUNDS, 0.5);
    peer_fair.prepare(&g.server, 10000);
    fair = median_of_peer(&peer_fair, &g.server, 128);
    report_add(r, &(struct figure) {"pairs through our store with 10 000 holders", mine, "1/s", "seed's fair semaphore (6.3.2)", fair,
                                    GOAL_RATIO_AT_LEAST, 50});
    rig_down(&g);
    free(slots);
    free(held);
}
