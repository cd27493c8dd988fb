/* SPDX-License-Identifier: MIT */

/* What looking costs Redis: the calls of one look at full pools, and the share of Redis's time if many hosts
 * look all the time. */

#include "tests/bench/benches.h"

#include <stdlib.h>
#include <string.h>

#include "store/snapshot.h"
#include "tests/bench/peer.h"
#include "tests/bench/rig.h"

#define HOSTS 20
#define POOLS 5
#define CLAIMS 2000 /* of each pool: half of them wait */
#define LOOKS 10
#define WARM (10 * USEC_PER_SEC) /* what a host may cost at once is spent by then */
#define WATCHED (10 * USEC_PER_SEC)

static const char *const names[POOLS] = {"a", "b", "c", "d", "e"};

struct viewer {
    struct rig_host *host;
    const struct store_question *question;
    unsigned n_looks;
    bool goes_on; /* asks again after each answer */
};

static void look(struct viewer *v);

static void on_look(int r, struct snapshot *snapshot, void *userdata) {
    struct viewer *v = userdata;

    if (r < 0 && v->goes_on)
        rig_fail("a look has failed: %s", strerror(-r));
    snapshot_free(snapshot);
    v->n_looks++;
    if (v->goes_on)
        look(v);
}

static void look(struct viewer *v) {
    if (store_inspect(v->host->store, v->question, on_look, v) < 0)
        rig_fail("no look can be asked for");
    rig_touch(v->host);
}

static double worst_call(struct redis_server *s) {
    _cleanup_reply_ redisReply *log = redis_command(s, "SLOWLOG GET 1000");
    long long worst = 0;

    for (size_t i = 0; log && i < log->elements; i++) {
        const redisReply *words = log->element[i]->element[3];

        if (strcasecmp(words->element[0]->str, "EVALSHA") == 0 && log->element[i]->element[2]->integer > worst)
            worst = log->element[i]->element[2]->integer;
    }
    return (double) worst;
}

/* The worst call of a look is the median of ten, because the machine may interrupt one. */
static void slices(struct report *r, struct rig *g, const struct store_question *question, const char *what) {
    struct viewer v = {.host = &g->hosts[0], .question = question};
    double worst[LOOKS], empty = peer_cost(&peer_empty, &g->server, 200) / 2, usec;
    char name[100];
    uint64_t calls;

    rig_reset_stats(&g->server);
    for (unsigned i = 0; i < LOOKS; i++) {
        redis_reply_freep(&(redisReply *) {redis_command(&g->server, "SLOWLOG RESET")});
        look(&v);
        RIG_UNTIL(g, v.n_looks > i);
        worst[i] = worst_call(&g->server);
    }
    usec = rig_server_usec(&g->server, "evalsha", &calls);
    snprintf(name, sizeof(name), "%s, server time in all", what);
    report_add(r, &(struct figure) {name, usec / LOOKS, "µs", NULL, 0, GOAL_NONE, 0});
    snprintf(name, sizeof(name), "%s, calls", what);
    report_add(r, &(struct figure) {name, (double) calls / LOOKS, "calls", NULL, 0, GOAL_NONE, 0});
    snprintf(name, sizeof(name), "%s, its longest call", what);
    report_add(r, &(struct figure) {name, quantile(worst, LOOKS, 0.5), "µs", "an empty script", empty, GOAL_RATIO_AT_MOST, 250});
}

static void share(struct report *r, struct rig *g) {
    static struct viewer viewers[HOSTS]; /* some get their answer when the rig goes down */
    uint64_t calls, looks = 0;
    char name[100];
    usec_t began;
    double usec;

    for (size_t i = 0; i < HOSTS; i++) {
        viewers[i] = (struct viewer) {.host = &g->hosts[i], .goes_on = true};
        look(&viewers[i]);
    }
    rig_run_for(g, WARM);
    for (size_t i = 0; i < HOSTS; i++)
        viewers[i].n_looks = 0;
    rig_reset_stats(&g->server);
    began = clock_boottime();
    rig_run_for(g, WATCHED);
    usec = rig_server_usec(&g->server, "evalsha", &calls);
    snprintf(name, sizeof(name), "%d hosts that are looked at all the time, share of Redis's core", HOSTS);
    report_add(r, &(struct figure) {name, 100 * usec / (double) (clock_boottime() - began), "%", NULL, 0, GOAL_VALUE_AT_MOST, 5});
    for (size_t i = 0; i < HOSTS; i++) {
        looks += viewers[i].n_looks;
        viewers[i].goes_on = false;
    }
    report_add(r, &(struct figure) {"  looks of each host", (double) (looks * USEC_PER_SEC) / (double) (HOSTS * WATCHED), "/s", NULL, 0, GOAL_NONE, 0});
}

void bench_look(struct report *r) {
    struct store_pool pools[POOLS];
    struct slot *slots[POOLS];
    struct rig g;

    report_section(r, "looking");
    for (size_t i = 0; i < POOLS; i++) {
        pools[i] = (struct store_pool) {.limit = CLAIMS / 2, .queue_limit = CLAIMS};
        (void) snprintf(pools[i].name, sizeof(pools[i].name), "%s", names[i]);
    }
    rig_up(&g, &(struct rig_options) {.n_hosts = HOSTS, .pools = pools, .n_pools = POOLS,
                                      .redis = (const char *const[]) {"--slowlog-log-slower-than", "0", "--slowlog-max-len", "1000", NULL}});
    peer_empty.prepare(&g.server, 0);
    for (size_t i = 0; i < POOLS; i++) {
        slots[i] = rig_slots(&g, CLAIMS, 0, names[i], 1);
        rig_ask_all(&g, slots[i], CLAIMS);
    }
    slices(r, &g, NULL, "a look at 5 pools of 1000 + 1000 claims");
    slices(r, &g, &(struct store_question) {.pools = names, .n_pools = POOLS}, "the same, all claims listed");
    share(r, &g);
    rig_down(&g);
    for (size_t i = 0; i < POOLS; i++)
        free(slots[i]);
}
