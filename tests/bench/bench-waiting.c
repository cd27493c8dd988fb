/* SPDX-License-Identifier: MIT */

/* What waiting costs a host: Redis calls, and memory of its store. */

#include "tests/bench/benches.h"

#include <malloc.h>

#include "tests/bench/rig.h"

#define LEASE (6 * USEC_PER_SEC) /* a heartbeat a second; a host of the default lease sends one in five */
#define BEATS 6
#define BEATS_AN_HOUR 720

static const struct store_pool pools[] = {{.name = "none", .limit = 1, .queue_limit = 1000000}};

/* All commands of the host, heartbeats included, over some heartbeats. */
static double calls_an_hour(struct rig *g) {
    uint64_t calls;
    size_t beats = 0;

    for (usec_t beat = g->hosts[0].beat; g->hosts[0].beat == beat;)
        rig_turn(g, USEC_PER_SEC);
    rig_reset_stats(&g->server);
    while (beats < BEATS) {
        usec_t beat = g->hosts[0].beat;

        rig_turn(g, USEC_PER_SEC);
        beats += g->hosts[0].beat != beat;
    }
    (void) rig_server_usec(&g->server, "evalsha", &calls);
    return (double) calls * BEATS_AN_HOUR / BEATS;
}

void bench_waiting(struct report *r) {
    static const size_t waiting[] = {0, 10, 1000};
    struct rig g;
    struct slot *holder, *slots;
    double calls, none = 0;
    size_t asked = 0, before, after;

    report_section(r, "what waiting costs");
    rig_up(&g, &(struct rig_options) {.n_hosts = 1, .lease_usec = LEASE, .pools = pools, .n_pools = ELEMENTSOF(pools)});
    holder = rig_slots(&g, 1, 0, "none", 1);
    slots = rig_slots(&g, 1000, 0, "none", 1);
    rig_ask_all(&g, holder, 1);
    before = mallinfo2().uordblks;
    for (size_t i = 0; i < ELEMENTSOF(waiting); i++) {
        char name[80];

        rig_ask_all(&g, slots + asked, waiting[i] - asked);
        asked = waiting[i];
        calls = calls_an_hour(&g);
        none = none > 0 ? none : calls;
        snprintf(name, sizeof(name), "Redis calls an hour of a host with %zu waiting claims", waiting[i]);
        report_add(r, &(struct figure) {name, calls, "calls", "a host with none", none, GOAL_RATIO_AT_MOST, 1});
    }
    after = mallinfo2().uordblks;
    report_add(r, &(struct figure) {"memory of the store for a waiting claim (besides the claim itself)",
                                    (double) (after - before) / 1000, "bytes", NULL, 0, GOAL_NONE, 0});
    rig_down(&g);
    free(holder);
    free(slots);
}
