/* SPDX-License-Identifier: MIT */

/* What our scripts cost beside their floor, and what a pair costs beside many holders. The two sides of each figure take turns. */

#include "tests/bench/benches.h"
#include "tests/bench/peer.h"
#include "tests/bench/rig.h"

#define ROUNDS 41
#define CALLS 200 /* in a round */
#define HOSTS 10

/* A hash table of Redis that has doubled moves one of its buckets at each access, for as long as that takes. This makes the
 * accesses, so that the pair does not depend on how long ago a table has doubled. */
static void finish_doubling(struct redis_server *s) {
    peer_check(redis_command(s, "EVAL %s 0",
                             "for _, key in ipairs(redis.call('KEYS', '*')) do\n"
                             "    local kind = redis.call('TYPE', key).ok\n"
                             "    local look = kind == 'hash' and 'HEXISTS' or kind == 'set' and 'SISMEMBER'\n"
                             "    for i = 1, look and 200000 or 0 do redis.call(look, key, 'x') end\n"
                             "end\n"));
}

static void add_beside_floor(struct report *r, struct redis_server *s, const struct peer *p, const struct peer *floor, double goal) {
    double cost[ROUNDS], least[ROUNDS];
    char name[120];

    floor->prepare(s, 0);
    p->prepare(s, 0);
    for (size_t i = 0; i < ROUNDS; i++) {
        least[i] = peer_cost(floor, s, CALLS);
        cost[i] = peer_cost(p, s, CALLS);
    }
    size_t m = median_round(cost, least, ROUNDS);
    snprintf(name, sizeof(name), "%s, one client, server time", p->name);
    report_add(r, &(struct figure) {name, cost[m], "µs", "its floor, in turns", least[m], GOAL_RATIO_AT_MOST, goal});
}

/* A claim is counted as released only if its grant came: else it would have no effect, and be cheap. */
static void check_grants(struct redis_server *s) {
    _cleanup_reply_ redisReply *waiting = redis_command(s, "ZCARD berth:{bench}:pool:full:queue");
    _cleanup_reply_ redisReply *held = redis_command(s, "SCARD berth:{bench}:pool:full:held");

    if (!waiting || waiting->integer != 1 || !held || held->integer != RIG_FULL_LIMIT)
        rig_fail("not each release has granted a claim");
}

void bench_floors(struct report *r) {
    struct rig g;

    report_section(r, "scripts beside their floors");
    rig_up(&g, &(struct rig_options) {.n_hosts = 1, .pools = rig_pools, .n_pools = RIG_POOLS});
    peer_ours_use(&g);
    add_beside_floor(r, &g.server, &peer_ours, &peer_floor, 1.25);
    add_beside_floor(r, &g.server, &peer_ours_beat, &peer_floor_beat, 1.4);
    peer_run(&peer_ours_wait, &g.server, RIG_FULL_LIMIT + ROUNDS * CALLS + 1, 100);
    finish_doubling(&g.server);
    add_beside_floor(r, &g.server, &peer_ours_grant, &peer_floor_grant, 1.3);
    check_grants(&g.server);
    rig_down(&g);
}

/* --- pairs beside many holders --- */

struct crowd {
    const char *what;
    size_t holders, waiting;
    struct rig rig;
    struct slot *slots;
    double cost[ROUNDS];
};

static void fill(struct crowd *c) {
    rig_up(&c->rig, &(struct rig_options) {.n_hosts = HOSTS, .pools = rig_pools, .n_pools = RIG_POOLS});
    c->rig.singly = true;
    /* These slots live as long as the stores. */
    rig_ask_all(&c->rig, rig_slots(&c->rig, c->holders, 0, "busy", 1), c->holders);
    rig_ask_all(&c->rig, rig_slots(&c->rig, c->waiting, 0, "full", 1), c->waiting);
    c->slots = rig_slots(&c->rig, CALLS, 0, "busy", 1);
}

static double cost_of_pairs(struct crowd *c) {
    uint64_t calls;

    rig_reset_stats(&c->rig.server);
    rig_ask_all(&c->rig, c->slots, CALLS);
    rig_release_all(&c->rig, c->slots, CALLS);
    return rig_server_usec(&c->rig.server, "evalsha", &calls) / CALLS;
}

/* Adds the figures of all crowds beside the first. */
static void compare(struct report *r, struct crowd *crowds, size_t n, const char *when, enum goal goal) {
    for (size_t i = 0; i < ROUNDS; i++)
        for (size_t k = 0; k < n; k++)
            crowds[k].cost[i] = cost_of_pairs(&crowds[k]);
    for (size_t k = 1; k < n; k++) {
        size_t m = median_round(crowds[k].cost, crowds[0].cost, ROUNDS);
        char name[120];

        snprintf(name, sizeof(name), "claim+release, %s%s, server time", crowds[k].what, when);
        report_add(r, &(struct figure) {name, crowds[k].cost[m], "µs", "with 10 holders, in turns", crowds[0].cost[m], goal, 1.2});
    }
}

void bench_holders(struct report *r) {
    static struct crowd crowds[] = {{.what = "10 holders", .holders = 10},
                                    {.what = "10 000 holders", .holders = 10000},
                                    {.what = "100 000 holders and 100 000 waiting", .holders = 100000, .waiting = 100000 + RIG_FULL_LIMIT}};

    report_section(r, "pairs beside many holders");
    for (size_t k = 0; k < ELEMENTSOF(crowds); k++)
        fill(&crowds[k]);
    compare(r, crowds, ELEMENTSOF(crowds), ", tables are growing", GOAL_NONE);
    for (size_t k = 0; k < ELEMENTSOF(crowds); k++)
        finish_doubling(&crowds[k].rig.server);
    compare(r, crowds, ELEMENTSOF(crowds), "", GOAL_RATIO_AT_MOST);
    for (size_t k = 0; k < ELEMENTSOF(crowds); k++) {
        rig_down(&crowds[k].rig);
        free(crowds[k].slots);
    }
}
