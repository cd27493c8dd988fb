/* SPDX-License-Identifier: MIT */

/* Server time of each call (INFO commandstats), in rounds that alternate with rounds of the yardstick. The
 * result is the round with the median ratio, because this machine may be half as fast for seconds. */

#include "tests/bench/benches.h"

#include <string.h>

#include "store/redis/store-redis.h"
#include "tests/bench/peer.h"
#include "tests/bench/rig.h"

#define ROUNDS 21
#define CALM 0.25
#define PAIRS 200       /* in a round */
#define HOSTS 10

struct costs { /* server µs */
    double empty, pair, claim, release;
};

/* Claims and releases the same slots again and again. A heartbeat in a round is one more call; the median
 * drops such rounds. */
static double cost_of_phase(struct rig *g, struct slot *slots, size_t n, bool ask) {
    uint64_t calls, least = g->singly ? n : HOSTS;

    rig_reset_stats(&g->server);
    if (ask)
        rig_ask_all(g, slots, n);
    else
        rig_release_all(g, slots, n);
    double usec = rig_server_usec(&g->server, "evalsha", &calls);

    if (calls < least || calls > least + HOSTS)
        rig_fail("%zu claims became %llu calls", n, (unsigned long long) calls);
    return usec / (double) n;
}

static struct costs measure(struct rig *g, const char *pool) {
    double empty[ROUNDS], pair[ROUNDS], claim[ROUNDS], release[ROUNDS];
    struct slot *slots = rig_slots(g, PAIRS, 0, pool, 1);

    peer_empty.prepare(&g->server, 0);
    for (size_t i = 0; i < ROUNDS; i++) {
        empty[i] = peer_cost(&peer_empty, &g->server, PAIRS);
        claim[i] = cost_of_phase(g, slots, PAIRS, true);
        release[i] = cost_of_phase(g, slots, PAIRS, false);
        pair[i] = claim[i] + release[i];
    }
    free(slots);
    size_t m = median_round(pair, empty, ROUNDS);
    return (struct costs) {empty[m], pair[m], claim[m], release[m]};
}

static double calm_peer(const struct peer *p, struct redis_server *s, unsigned n, unsigned rounds) {
    double cost[ROUNDS];

    for (size_t i = 0; i < rounds; i++)
        cost[i] = peer_cost(p, s, n);
    return quantile(cost, rounds, CALM);
}

/* --- peers --- */

/* Alternates with one empty script for each call. */
static void add_peer(struct report *r, const struct peer *p, struct redis_server *s, bool pair) {
    double cost[ROUNDS], empty[ROUNDS];
    char name[120];

    p->prepare(s, 10);
    for (size_t i = 0; i < ROUNDS; i++) {
        empty[i] = peer_cost(&peer_empty, s, PAIRS) / (pair ? 1 : 2);
        cost[i] = peer_cost(p, s, PAIRS);
    }
    size_t m = median_round(cost, empty, ROUNDS);
    snprintf(name, sizeof(name), "%s, server time%s", p->name, pair ? " a pair" : "");
    report_add(r, &(struct figure) {name, cost[m], "µs", pair ? "two empty scripts" : "an empty script", empty[m], GOAL_NONE, 0});
}

static void seeds_over_holders(struct report *r, struct redis_server *s) {
    static const struct {
        const struct peer *peer;
        const char *curve;
    } seeds[] = {{&peer_basic, "cost-seed-basic"}, {&peer_fair, "cost-seed-fair"}, {&peer_fair_script, "cost-seed-fair-script"}};

    for (size_t i = 0; i < ELEMENTSOF(seeds); i++)
        for (size_t holders = 1; holders <= 100000; holders *= 10) {
            seeds[i].peer->prepare(s, holders);
            report_point(r, seeds[i].curve, (double) holders,
                         calm_peer(seeds[i].peer, s, holders > 1000 ? 10 : 100, holders > 10000 ? 3 : 5));
        }
}

/* --- calls other than pairs --- */

static void beat(struct rig *g, struct rig_host *h) {
    usec_t before = h->beat;

    heartbeat_send(store_redis_of(h->store));
    rig_touch(h);
    RIG_UNTIL(g, h->beat > before);
}

/* Returns the cost as a multiple of the empty scripts of its own rounds, because machines become slower. */
static double measure_beat(struct report *r, struct rig *g, size_t claims) {
    double cost[ROUNDS], empty[ROUNDS];
    uint64_t calls;
    char name[80];

    for (size_t i = 0; i < ROUNDS; i++) {
        empty[i] = peer_cost(&peer_empty, &g->server, PAIRS) / 2;
        rig_reset_stats(&g->server);
        for (size_t k = 0; k < 50; k++)
            beat(g, &g->hosts[0]);
        cost[i] = rig_server_usec(&g->server, "evalsha", &calls) / 50;
    }
    size_t m = median_round(cost, empty, ROUNDS);
    snprintf(name, sizeof(name), "heartbeat of a host with %zu claims, server time", claims);
    report_add(r, &(struct figure) {name, cost[m], "µs", "an empty script", empty[m], GOAL_NONE, 0});
    return cost[m] / empty[m];
}

static void beats_and_sync(struct report *r) {
    static const size_t claims[] = {0, 1000, 10000};
    struct rig g;
    struct slot *slots;
    double usec, beat = 0, first = 0;
    uint64_t calls, held = 0;

    rig_up(&g, &(struct rig_options) {.n_hosts = 1, .pools = rig_pools, .n_pools = RIG_POOLS});
    peer_empty.prepare(&g.server, 0);
    slots = rig_slots(&g, 10000, 0, "busy", 1);
    for (size_t i = 0; i < ELEMENTSOF(claims); i++) {
        rig_ask_all(&g, slots + held, claims[i] - held);
        held = claims[i];
        beat = measure_beat(r, &g, claims[i]);
        first = first > 0 ? first : beat;
    }
    report_add(r, &(struct figure) {"heartbeat with 10 000 claims, beside one with none", beat, "x empty", "heartbeat with no claim", first,
                                    GOAL_RATIO_AT_MOST, 1.2});
    add_peer(r, &peer_floor_beat, &g.server, false);
    rig_reset_stats(&g.server);
    g.hosts[0].beat = 0;
    link_resync(store_redis_of(g.hosts[0].store));
    RIG_UNTIL(&g, g.hosts[0].beat > 0);
    usec = rig_server_usec(&g.server, "evalsha", &calls);
    report_add(r, &(struct figure) {"sync of 10 000 held claims, server time a claim", usec / (double) held, "µs", "an empty script",
                                    peer_cost(&peer_empty, &g.server, PAIRS) / 2, GOAL_NONE, 0});
    rig_down(&g);
    free(slots);
}

static struct slot *granted[RIG_FULL_LIMIT]; /* in the full pool, now */
static size_t n_granted;

static void full_on_granted(struct slot *s) {
    if (n_granted == RIG_FULL_LIMIT)
        rig_fail("more were granted than the limit");
    granted[n_granted++] = s;
}

/* Each release of a full pool grants the oldest claim. */
static void release_that_grants(struct report *r, struct rig *g, const char *circumstances) {
    double cost[ROUNDS], empty[ROUNDS];
    uint64_t calls;
    char name[100];

    for (size_t i = 0; i < ROUNDS; i++) {
        empty[i] = peer_cost(&peer_empty, &g->server, PAIRS) / 2;
        rig_reset_stats(&g->server);
        for (size_t k = 0; k < 5; k++) {
            uint64_t released = g->n_released + RIG_FULL_LIMIT;
            struct slot *held[RIG_FULL_LIMIT];

            memcpy(held, granted, sizeof(held));
            n_granted = 0;
            for (size_t x = 0; x < RIG_FULL_LIMIT; x++)
                slot_release(held[x]);
            RIG_UNTIL(g, g->n_released >= released && n_granted == RIG_FULL_LIMIT);
        }
        cost[i] = rig_server_usec(&g->server, "evalsha", &calls) / (5 * RIG_FULL_LIMIT);
    }
    size_t m = median_round(cost, empty, ROUNDS);
    snprintf(name, sizeof(name), "release that grants%s, server time", circumstances);
    report_add(r, &(struct figure) {name, cost[m], "µs", "an empty script", empty[m], GOAL_NONE, 0});
}

static void waiting_and_grants(struct report *r, struct rig *g, size_t n, const char *circumstances) {
    struct slot *held = rig_slots(g, RIG_FULL_LIMIT, 0, "full", 1), *waiting = rig_slots(g, n, 0, "full", 1);
    struct costs c;
    char name[100];

    n_granted = 0;
    g->on_granted = full_on_granted;
    rig_ask_all(g, held, RIG_FULL_LIMIT);
    rig_ask_all(g, waiting, n);
    c = measure(g, "full"); /* each claim is queued behind all others, then withdrawn */
    snprintf(name, sizeof(name), "claim that has to wait%s, server time", circumstances);
    report_add(r, &(struct figure) {name, c.claim, "µs", "an empty script", c.empty / 2, GOAL_NONE, 0});
    snprintf(name, sizeof(name), "withdrawal%s, server time", circumstances);
    report_add(r, &(struct figure) {name, c.release, "µs", "an empty script", c.empty / 2, GOAL_NONE, 0});
    release_that_grants(r, g, circumstances);
    g->singly = false;
    snprintf(name, sizeof(name), "%s, several in a call", circumstances);
    release_that_grants(r, g, name);
    c = measure(g, "full");
    snprintf(name, sizeof(name), "claim that has to wait%s, 20 in a call, server time", circumstances);
    report_add(r, &(struct figure) {name, c.claim, "µs", "an empty script", c.empty / 2, GOAL_NONE, 0});
    snprintf(name, sizeof(name), "withdrawal%s, 20 in a call, server time", circumstances);
    report_add(r, &(struct figure) {name, c.release, "µs", "an empty script", c.empty / 2, GOAL_NONE, 0});
    g->singly = true;
    g->on_granted = NULL;
}

/* --- pairs over holders --- */

/* Claims that a host sends in one turn of its event loop. */
static void add_pairs_together(struct report *r, struct rig *g) {
    struct costs c;

    g->singly = false;
    c = measure(g, "busy");
    g->singly = true;
    report_add(r, &(struct figure) {"claim+release, 10 holders, 20 in a call, server time", c.pair, "µs", "two empty scripts", c.empty,
                                    GOAL_NONE, 0});
}

static void add_pair(struct report *r, const char *circumstances, const struct costs *c) {
    char name[120];

    snprintf(name, sizeof(name), "claim, %s, server time", circumstances);
    report_add(r, &(struct figure) {name, c->claim, "µs", "an empty script", c->empty / 2, GOAL_NONE, 0});
    snprintf(name, sizeof(name), "release, %s, server time", circumstances);
    report_add(r, &(struct figure) {name, c->release, "µs", "an empty script", c->empty / 2, GOAL_NONE, 0});
    snprintf(name, sizeof(name), "claim+release, %s, server time", circumstances);
    report_add(r, &(struct figure) {name, c->pair, "µs", "two empty scripts", c->empty, GOAL_NONE, 0});
}

void bench_cost(struct report *r) {
    struct rig g;
    struct costs c;
    size_t held = 0;

    report_section(r, "server time of calls");
    rig_up(&g, &(struct rig_options) {.n_hosts = HOSTS, .pools = rig_pools, .n_pools = RIG_POOLS});
    g.singly = true;
    for (size_t holders = 0; holders <= 100000; holders = holders > 0 ? holders * 10 : 10) {
        char text[40];
        struct slot *slots = rig_slots(&g, holders - held, 0, "busy", 1);

        rig_ask_all(&g, slots, holders - held); /* the slots live as long as the stores */
        held = holders;
        c = measure(&g, "busy");
        report_point(r, "cost-ours", holders > 0 ? (double) holders : 1, c.pair);
        snprintf(text, sizeof(text), "%zu holders", holders);
        if (holders == 10) {
            add_pair(r, text, &c);
            add_pairs_together(r, &g);
            add_peer(r, &peer_floor, &g.server, true);
            add_peer(r, &peer_arguments, &g.server, true);
            add_peer(r, &peer_commands, &g.server, true);
            add_peer(r, &peer_counter, &g.server, true);
            add_peer(r, &peer_basic, &g.server, true);
            add_peer(r, &peer_fair, &g.server, true);
            add_peer(r, &peer_fair_script, &g.server, true);
        } else if (holders == 10000) {
            add_pair(r, text, &c);
        }
    }
    waiting_and_grants(r, &g, 100000, ", 100 000 waiting");
    c = measure(&g, "busy");
    add_pair(r, "100 000 holders and 100 000 waiting", &c);
    seeds_over_holders(r, &g.server);
    rig_down(&g);

    rig_up(&g, &(struct rig_options) {.n_hosts = HOSTS, .pools = rig_pools, .n_pools = RIG_POOLS});
    g.singly = true;
    peer_empty.prepare(&g.server, 0);
    waiting_and_grants(r, &g, 4000, ", 4000 waiting"); /* 2100 of them are granted */
    add_peer(r, &peer_floor_grant, &g.server, false);
    rig_down(&g);
    beats_and_sync(r);
}

#define KEY_PAIRS 2000

/* S34: a key costs little more than a plain pool. Rounds of both alternate. */
void bench_keys(struct report *r) {
    static const struct store_pool both[] = {{.name = "busy", .limit = 10000000, .queue_limit = 10000000},
                                             {.name = "tenant/*", .limit = 10000000, .queue_limit = 10000000}};
    double claim[2][ROUNDS], release[2][ROUNDS];
    struct slot *slots[2];
    struct rig g;
    size_t m;

    report_section(r, "keys of patterns");
    rig_up(&g, &(struct rig_options) {.n_hosts = HOSTS, .pools = both, .n_pools = ELEMENTSOF(both)});
    g.singly = true;
    slots[0] = rig_slots(&g, KEY_PAIRS, 0, "busy", 1);
    slots[1] = rig_slots(&g, KEY_PAIRS, 0, "tenant/acme", 1);
    for (size_t i = 0; i < ROUNDS; i++)
        for (size_t k = 0; k < 2; k++) {
            claim[k][i] = cost_of_phase(&g, slots[k], KEY_PAIRS, true);
            release[k][i] = cost_of_phase(&g, slots[k], KEY_PAIRS, false);
        }
    m = median_round(claim[1], claim[0], ROUNDS);
    report_add(r, &(struct figure) {"claim of a key, server time", claim[1][m], "µs", "of a plain pool", claim[0][m],
                                    GOAL_RATIO_AT_MOST, 1.2});
    m = median_round(release[1], release[0], ROUNDS);
    report_add(r, &(struct figure) {"release of a key, server time", release[1][m], "µs", "of a plain pool", release[0][m],
                                    GOAL_NONE, 0});
    rig_down(&g);
    for (size_t k = 0; k < 2; k++)
        free(slots[k]);
}
