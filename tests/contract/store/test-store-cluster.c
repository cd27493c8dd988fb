/* SPDX-License-Identifier: MIT */

/* store-redis on a cluster of three masters (R17): the slot of the namespace is found, moves to other nodes key by key under load, or is
 * stuck half way. BERTH_TEST_MOVES: how many moves, 3 by default. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/redis/store-redis.h"
#include "tests/harness/port.h"
#include "tests/harness/redis/redis-bed.h"
#include "tests/harness/redis/redis-nodes.h"

#define META "berth:{test}:meta"
#define LIMIT 4 /* of db */
#define WORKERS 12
#define MANY 10000   /* claims of one session */
#define MOVE_LEASE (30 * USEC_PER_SEC)   /* a busy machine needs seconds to move all keys, and to report the claims */
#define MOVE_TIMEOUT (10 * USEC_PER_SEC)
#define HANDOVERS 200
#define KEY_PAUSE (3 * USEC_PER_MSEC)
#define LEASE (4 * USEC_PER_SEC)       /* long enough for a busy machine; also the grace period after a move */
#define TIMEOUT (5 * USEC_PER_SEC / 2) /* in which a slot must have moved */

static struct redis_nodes nodes;
static unsigned slot;

static unsigned owner(void) {
    return redis_nodes_owner(&nodes, slot);
}

/* Has the next stores begin at this node. */
static void use_node(unsigned i) {
    redis_bed.port_has_tls = nodes.servers[i].tls_port > 0;
    redis_bed.port = (uint16_t) redis_nodes_port(&nodes, i);
}

/* Starts the stores at the node that has the slot, or at another one. */
static bool begin(struct bed *b, unsigned n_hosts, bool at_owner) {
    unsigned node = at_owner ? owner() : (owner() + 1) % NODES;

    use_node(node);
    for (unsigned i = 0; i < NODES; i++)
        redis_reply_freep(&(redisReply *) {redis_command(&nodes.servers[i], "FLUSHALL")});
    return redis_bed_begin(b, n_hosts);
}

/* The same with times that suit slots that move. */
static bool begin_moves(struct bed *b, unsigned n_hosts) {
    bool begun;

    redis_bed.lease = MOVE_LEASE;
    redis_bed.timeout = MOVE_TIMEOUT;
    begun = begin(b, n_hosts, true);
    redis_bed.lease = LEASE;
    redis_bed.timeout = TIMEOUT;
    return begun;
}

static void test_found(void) {
    for (int at_owner = 0; at_owner < 2; at_owner++) {
        struct bed b;

        if (!begin(&b, 2, at_owner))
            return;
        struct probe *held = bed_probe(&b, 0, "one"), *waiting = bed_probe(&b, 1, "one");

        probe_grant(held);
        probe_wait(waiting);
        probe_release(held);
        BED_UNTIL(&b, waiting->n_granted == 1); /* by a push */
        CU_ASSERT_FALSE(bed_has_event(&b, "redis-lost: "));
        bed_done(&b);
    }
}

/* --- moves under load --- */

struct load {
    struct bed *bed;
    struct probe *workers[WORKERS];
    unsigned n_held, most, n_runs;
};

static struct load load;

static void on_granted(struct probe *p) {
    load.n_held += p->demands.items[0].permits;
    load.most = load.n_held > load.most ? load.n_held : load.most;
}

/* Releases held claims and requests new ones. */
static void work(void) {
    for (size_t i = 0; i < WORKERS; i++) {
        struct probe *p = load.workers[i];

        if (p->claim.state == CLAIM_STATE_HELD) {
            load.n_held -= p->demands.items[0].permits;
            load.n_runs++;
            probe_release(p);
        } else if (p->claim.state == CLAIM_STATE_NONE) {
            load.workers[i] = bed_probe(load.bed, p->host, "db:1");
            probe_ask(load.workers[i]);
        }
    }
}

static void work_for(usec_t usec) {
    usec_t end = usec_add(clock_boottime(), usec);

    do
        work();
    while (bed_turn(load.bed, end));
}

static bool all_in_grace(const struct bed *b) {
    for (unsigned i = 0; i < b->n_hosts; i++)
        if (b->stores[i]->state != STORE_STATE_GRACE)
            return false;
    return true;
}

static void test_moves(void) {
    unsigned n = (unsigned) test_count("BERTH_TEST_MOVES", 3), before;
    struct bed b;

    if (!begin_moves(&b, 3))
        return;
    load = (struct load) {.bed = &b};
    b.on_granted = on_granted;
    for (size_t i = 0; i < WORKERS; i++) {
        load.workers[i] = bed_probe(&b, i % 3, "db:1");
        probe_ask(load.workers[i]);
    }
    for (unsigned i = 0; i < n; i++) {
        unsigned from = owner(), to = (from + 1) % NODES;

        before = load.n_runs;
        work_for(100 * USEC_PER_MSEC);
        redis_nodes_begin_move(&nodes, slot, from, to);
        /* Each pause is longer on a busy machine. So the three moves stop at different keys. */
        for (unsigned k = i; redis_nodes_move_key(&nodes, slot, from, to); k++)
            if (k % 3 == 0)
                work_for(KEY_PAUSE);
        redis_nodes_end_move(&nodes, slot, from, to);
        BED_UNTIL(&b, (work(), all_in_grace(&b)));
        bed_end_grace(&b, 0);
        BED_UNTIL(&b, (work(), load.n_runs > before + WORKERS && bed_all_ready(&b)));
    }
    CU_ASSERT(load.most <= LIMIT);
    CU_ASSERT(load.n_runs > n * WORKERS);
    for (size_t i = 0; i < WORKERS; i++)
        TEST_INT(load.workers[i]->n_lost, 0);
    CU_ASSERT_FALSE(bed_has_event(&b, "redis-lost: "));
    CU_ASSERT_FALSE(bed_has_event(&b, "session-lost: "));
    bed_done(&b);
}

/* --- many claims --- */

/* Moves all keys of the slot in one command. */
static void migrate_all(unsigned from, unsigned to) {
    _cleanup_reply_ redisReply *keys = redis_command(&nodes.servers[from], "CLUSTER GETKEYSINSLOT %u 1000", slot);
    char port[8];
    const char *argv[64] = {"MIGRATE", "127.0.0.1", port, "", "0", "60000", "KEYS"};
    int n = 7;

    (void) snprintf(port, sizeof(port), "%u", redis_nodes_port(&nodes, to));
    for (size_t i = 0; keys && i < keys->elements && n < 64; i++)
        argv[n++] = keys->element[i]->str;
    _cleanup_reply_ redisReply *reply = redisCommandArgv(nodes.servers[from].client, n, argv, NULL);
    CU_ASSERT(reply && reply->type == REDIS_REPLY_STATUS);
}

static enum link_phase phase_of(const struct bed *b) {
    return store_redis_of(b->stores[0])->link.phase;
}

static void test_many_claims(void) {
    static const struct store_pool pools[] = {{.name = "many", .limit = MANY, .queue_limit = MANY}};
    struct bed b;
    usec_t began, moved, found;

    if (!begin_moves(&b, 1))
        return;
    TEST_INT(bed_declare(&b, 0, pools, 1), 0);
    for (unsigned i = 0; i < MANY; i++)
        probe_ask(bed_probe(&b, 0, "many"));
    BED_UNTIL(&b, b.n_grants == MANY);
    unsigned from = owner(), to = (from + 1) % NODES;
    redis_nodes_begin_move(&nodes, slot, from, to);
    began = clock_boottime();
    migrate_all(from, to);
    moved = clock_boottime();
    redis_nodes_end_move(&nodes, slot, from, to);
    BED_UNTIL(&b, phase_of(&b) == PHASE_SYNC);
    found = clock_boottime();
    BED_UNTIL(&b, phase_of(&b) == PHASE_LIVE);
    printf("%u claims: moved in %" PRIu64 " ms, found %" PRIu64 " ms later, synced in %" PRIu64 " ms\n", MANY,
           (moved - began) / USEC_PER_MSEC, (found - moved) / USEC_PER_MSEC, (clock_boottime() - found) / USEC_PER_MSEC);
    CU_ASSERT(clock_boottime() - began < MOVE_LEASE / 2); /* by hand on a quiet machine: each within a second */
    TEST_INT(redis_number(&nodes.servers[to], "SCARD berth:{test}:pool:many:held"), MANY);
    bed_end_grace(&b, 0);
    CU_ASSERT_FALSE(bed_has_event(&b, "redis-lost: "));
    bed_done(&b);
}

/* --- pushes --- */

/* Returns whether a node has executed a command. */
static bool has_called(unsigned node, const char *command) {
    _cleanup_reply_ redisReply *info = redis_command(&nodes.servers[node], "INFO commandstats");
    char key[40];

    (void) snprintf(key, sizeof(key), "cmdstat_%s:", command);
    return info && info->str && strstr(info->str, key);
}

/* A grant reaches its host only through the node of the namespace, as fast as without a cluster. */
static void test_pushes(void) {
    const char *plain_options[] = {"--port", NULL, "--cluster-enabled", "no", NULL};
    struct redis_server plain;
    char port[8];
    usec_t in_cluster, alone;
    struct bed b;

    if (!begin(&b, 2, true))
        return;
    for (unsigned i = 0; i < NODES; i++)
        redis_reply_freep(&(redisReply *) {redis_command(&nodes.servers[i], "CONFIG RESETSTAT")});
    in_cluster = bed_hand_over(&b, HANDOVERS);
    for (unsigned i = 0; i < NODES; i++) {
        CU_ASSERT_EQUAL(has_called(i, "spublish"), i == owner());
        CU_ASSERT_EQUAL(has_called(i, "evalsha"), i == owner());
        CU_ASSERT_FALSE(has_called(i, "publish"));
    }
    bed_done(&b);

    (void) snprintf(port, sizeof(port), "%u", port_reserve());
    plain_options[1] = port;
    CU_ASSERT_FATAL(redis_server_start(&plain, plain_options) == 0);
    redis_bed.port = (uint16_t) (plain.tls_port > 0 ? plain.tls_port : strtoul(port, NULL, 10));
    if (redis_bed_begin(&b, 2)) {
        alone = bed_hand_over(&b, HANDOVERS);
        printf("fastest hand-over: %" PRIu64 " us in a cluster, %" PRIu64 " us without\n", in_cluster, alone);
        CU_ASSERT(in_cluster < 2 * alone + 20 * USEC_PER_MSEC); /* by hand on a quiet machine: within a tenth */
        bed_done(&b);
    }
    redis_server_done(&plain);
}

/* --- a slot that stays between two nodes --- */

static void test_stuck(void) {
    struct bed b;

    if (!begin(&b, 1, true))
        return;
    unsigned from = owner(), to = (from + 1) % NODES;
    struct probe *held = bed_probe(&b, 0, "one"), *late = bed_probe(&b, 0, "one");

    probe_grant(held);
    redis_nodes_begin_move(&nodes, slot, from, to);
    CU_ASSERT(redis_nodes_move_key(&nodes, slot, from, to));
    BED_UNTIL(&b, b.stores[0]->state == STORE_STATE_AWAY);
    CU_ASSERT(bed_says(&b, "the cluster moves the slot of this namespace to another node"));
    BED_UNTIL(&b, held->n_lost == 1); /* its lease is over */
    probe_ask(late);
    while (redis_nodes_move_key(&nodes, slot, from, to))
        ;
    redis_nodes_end_move(&nodes, slot, from, to);
    BED_UNTIL(&b, late->n_granted == 1);
    bed_done(&b);
}

/* --- nodes that disagree about the slot --- */

static void believe(unsigned at, const char *whose) {
    redis_reply_freep(&(redisReply *) {redis_command(&nodes.servers[at], "CLUSTER SETSLOT %u NODE %s", slot, whose)});
}

static void test_circles(void) {
    unsigned node = owner();
    struct bed b;

    use_node(node);
    for (unsigned i = 0; i < NODES; i++)
        redis_reply_freep(&(redisReply *) {redis_command(&nodes.servers[i], "FLUSHALL")});
    for (unsigned i = 0; i < NODES; i++)
        believe(i, nodes.ids[(i + 1) % NODES]);
    if (!redis_bed_init(&b, 1))
        return;
    store_start(b.stores[0]);
    BED_UNTIL(&b, bed_says(&b, "the nodes of the cluster send this host in circles: MOVED "));
    TEST_INT(bed_count_events(&b, "redis-lost: "), 1);
    for (unsigned i = 0; i < NODES; i++)
        believe(i, nodes.ids[node]);
    BED_UNTIL(&b, bed_all_ready(&b));
    bed_done(&b);
}

/* --- failovers --- */

/* The grace period is a lease and the margin: a replaced master may go on answering that long. */
static void test_margin(void) {
    static const usec_t margins[] = {0, USEC_PER_SEC, USEC_INFINITY};
    static const usec_t expected[] = {0, USEC_PER_SEC, 10 * USEC_PER_SEC};

    for (size_t i = 0; i < ELEMENTSOF(margins); i++) {
        struct bed b;
        struct snapshot *s;

        redis_bed.failover_margin = margins[i];
        use_node(owner());
        if (!redis_bed_init(&b, 1))
            return;
        redis_reply_freep(&(redisReply *) {redis_command(&nodes.servers[owner()], "FLUSHALL")});
        store_start(b.stores[0]);
        BED_UNTIL(&b, b.stores[0]->state == STORE_STATE_GRACE);
        s = bed_inspect(&b, 0);
        CU_ASSERT(s && s->grace_usec > expected[i] + LEASE / 2 && s->grace_usec <= expected[i] + LEASE + 1);
        snapshot_free(s);
        if (expected[i] == USEC_PER_SEC) { /* grace lasts as long as the snapshot shows */
            usec_t begun = clock_boottime();

            BED_UNTIL(&b, bed_all_ready(&b));
            CU_ASSERT(clock_boottime() - begun > LEASE + USEC_PER_SEC / 2);
        }
        redis_bed.failover_margin = 0;
        bed_done(&b);
    }
}

/* --- the second key --- */

static void test_none_exists(void) {
    struct bed b;

    use_node(owner());
    if (!redis_bed_init(&b, 1))
        return;
    redis_reply_freep(&(redisReply *) {redis_command(&nodes.servers[owner()], "SET berth:{test}:none x")});
    store_start(b.stores[0]);
    BED_UNTIL(&b, bed_says(&b, "another program made the key berth:{test}:none: delete it"));
    redis_reply_freep(&(redisReply *) {redis_command(&nodes.servers[owner()], "DEL berth:{test}:none")});
    BED_UNTIL(&b, bed_all_ready(&b));
    bed_done(&b);
}

static CU_TestInfo tests[] = {
    {"found", test_found}, {"moves", test_moves}, {"many claims", test_many_claims}, {"pushes", test_pushes},
    {"stuck", test_stuck}, {"circles", test_circles}, {"margin", test_margin},
    {"the key that must not exist", test_none_exists}, CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "store-cluster", .pTests = tests}, CU_SUITE_INFO_NULL};
    int r;

    if (redis_nodes_start(&nodes) < 0) {
        puts("no cluster");
        return 1;
    }
    slot = redis_nodes_slot(&nodes, META);
    redis_bed.lease = LEASE;
    redis_bed.heartbeat = LEASE / 8;
    redis_bed.timeout = TIMEOUT;
    r = test_main(argc, argv, suites);
    redis_nodes_done(&nodes);
    return r;
}
