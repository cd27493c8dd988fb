/* SPDX-License-Identifier: MIT */

/* store-redis when Redis refuses the user, has a wrong role or policy, or has a full disk or memory. In one
 * test another client writes to a host's channel. */

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/redis/store-redis.h"
#include "tests/harness/redis/redis-bed.h"

static void test_refused_by_redis(void) {
    struct bed b;

    redis_bed_command("CONFIG SET maxmemory-policy allkeys-lru");
    CU_ASSERT_FATAL(redis_bed_init(&b, 1));
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, bed_has_event(&b, "redis-lost: "));
    CU_ASSERT(bed_says(&b, "maxmemory-policy is \"allkeys-lru\""));
    redis_bed_command("CONFIG SET maxmemory-policy noeviction");
    redis_bed_command("CONFIG SET requirepass secret");
    BED_UNTIL(&b, bed_says(&b, "NOAUTH"));
    bed_die(&b, 0);
    redis_bed.password = "wrong";
    bed_come_back(&b, 0);
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, bed_says(&b, "WRONGPASS"));
    TEST_STRING(b.stores[0]->away_why, "Redis refuses the user or the password (WRONGPASS)");
    bed_die(&b, 0);
    redis_bed.password = NULL;
    _cleanup_reply_ redisReply *reset = redis_command(&redis_bed.server, "CONFIG SET requirepass %s", "");
    CU_ASSERT(reset && reset->type == REDIS_REPLY_STATUS);
    bed_come_back(&b, 0);
    CU_ASSERT(bed_start(&b));
    bed_done(&b);
}

/* No key of berth has a TTL, so these policies evict none. */
static void test_volatile_policies(void) {
    static const char *const policies[] = {"noeviction", "volatile-lru", "volatile-lfu", "volatile-random",
                                           "volatile-ttl"};

    for (size_t i = 0; i < ELEMENTSOF(policies); i++) {
        char command[64];
        struct bed b;

        (void) snprintf(command, sizeof(command), "CONFIG SET maxmemory-policy %s", policies[i]);
        redis_bed_command(command);
        if (!redis_bed_begin(&b, 1))
            return;
        CU_ASSERT_FALSE(bed_says(&b, "maxmemory-policy"));
        bed_done(&b);
    }
    redis_bed_command("CONFIG SET maxmemory-policy noeviction");
}

/* The warning comes once, although the number of clients is checked once a lease. */
static void test_many_clients(void) {
    static const char warning[] = " of 33 clients: each host takes 2";
    redisContext *others[30];
    struct bed b;

    for (size_t i = 0; i < ELEMENTSOF(others); i++) {
        others[i] = redisConnectUnix(redis_bed.server.socket);
        CU_ASSERT_FATAL(others[i] && !others[i]->err);
    }
    redis_bed_command("CONFIG SET maxclients 33");
    CU_ASSERT_FATAL(redis_bed_begin(&b, 1));
    BED_UNTIL(&b, bed_says(&b, warning));
    usec_t until = clock_boottime() + 3 * redis_bed.lease;
    while (bed_turn(&b, until))
        ;
    _cleanup_free_ char *said = capture_read(&b.capture);
    CU_ASSERT(strstr(said, warning) && !strstr(strstr(said, warning) + 1, warning));
    redis_bed_command("CONFIG SET maxclients 10000");
    for (size_t i = 0; i < ELEMENTSOF(others); i++)
        redisFree(others[i]);
    bed_done(&b);
}

/* A host does not call a server with too many clients again at once, because that would keep the server busy. */
static void test_no_room(void) {
    redisContext *others[10];
    struct bed b;

    for (size_t i = 0; i < ELEMENTSOF(others); i++)
        others[i] = redisConnectUnix(redis_bed.server.socket);
    redis_bed_command("CONFIG SET maxclients 11");
    redis_bed_command("CONFIG RESETSTAT");
    CU_ASSERT_FATAL(redis_bed_init(&b, 1));
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, bed_has_event(&b, "redis-lost: "));
    usec_t until =
        clock_boottime() + redis_bed.heartbeat * 4 / 10; /* the shortest pause is half a heartbeat */
    while (bed_turn(&b, until))
        ;
    /* Over TLS, Redis sends no error, because it closes the connection before the handshake. */
    CU_ASSERT(strstr(b.stores[0]->away_why, getenv("BERTH_TEST_TLS") ? "maxclients" : "max number of clients") != NULL);
    _cleanup_reply_ redisReply *stats = redis_command(&redis_bed.server, "INFO stats");
    CU_ASSERT(stats && strstr(stats->str, "rejected_connections:1\r\n"));
    redis_bed_command("CONFIG SET maxclients 10000");
    for (size_t i = 0; i < ELEMENTSOF(others); i++)
        redisFree(others[i]);
    CU_ASSERT(bed_start(&b));
    bed_done(&b);
}

/* A host calls an overloaded Redis less and less often: in the end once a heartbeat, or every 2 s if that is longer. */
static void test_busy(void) {
    struct store_redis *store;
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    store = store_redis_of(b.stores[0]);
    for (unsigned i = 0; i < 12; i++)
        link_fail(store, REDIS_ERROR_BUSY, "of the test");
    TEST_INT(store->link.backoff.next_usec, BACKOFF_MAX);
    link_fail(store, REDIS_ERROR_RETRY, "of the test");
    TEST_INT(store->link.backoff.next_usec, redis_bed.heartbeat);
    BED_UNTIL(&b, bed_all_ready(&b));
    bed_done(&b);
}

/* An eviction policy or another master that appears while a host is connected is detected within a lease,
 * not only by the next connection. */
static void test_changed_while_connected(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    struct probe *held = bed_probe(&b, 0, "db:1");
    probe_grant(held);
    usec_t until = clock_boottime() + redis_bed.lease + 2 * redis_bed.heartbeat;
    redis_bed_command("CONFIG SET maxmemory-policy allkeys-lru");
    while (!bed_has_event(&b, "redis-lost: ") && bed_turn(&b, until))
        ;
    TEST_STRING(b.stores[0]->away_why, "Redis evicts keys (maxmemory-policy is \"allkeys-lru\"): set it to noeviction");
    redis_bed_command("CONFIG SET maxmemory-policy noeviction");
    BED_UNTIL(&b, bed_all_ready(&b));
    TEST_STRING(b.stores[0]->away_why, "");
    probe_end(held);
    bed_done(&b);
}

/* A replica is refused even if it is writable: its master does not get the writes. */
static void test_replica(void) {
    struct bed b;

    if (redis_bed.server.bus_port > 0)
        TEST_SKIP("a node of a cluster takes no REPLICAOF; test-cluster has a replica");
    CU_ASSERT_FATAL(redis_bed_init(&b, 1));
    redis_bed_command("CONFIG SET replica-read-only no");
    redis_bed_command("REPLICAOF 127.0.0.1 1");
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, bed_has_event(&b, "redis-lost: "));
    TEST_STRING(b.stores[0]->away_why, "this Redis is a replica (role:slave)");
    redis_bed_command("REPLICAOF NO ONE");
    CU_ASSERT(bed_start(&b));
    redis_bed_command("REPLICAOF 127.0.0.1 1"); /* and while the host is connected */
    BED_UNTIL(&b, strstr(b.stores[0]->away_why, "replica") != NULL);
    redis_bed_command("REPLICAOF NO ONE");
    redis_bed_command("CONFIG SET replica-read-only yes");
    BED_UNTIL(&b, bed_all_ready(&b));
    bed_done(&b);
}

/* After a failed snapshot Redis refuses writes, by the default of stop-writes-on-bgsave-error. berthd logs
 * the failed snapshot before Redis refuses. */
static void test_failed_snapshot(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    redis_bed_command("CONFIG SET stop-writes-on-bgsave-error no");
    _cleanup_reply_ _unused_ redisReply *on = redis_command(&redis_bed.server, "CONFIG SET save %s", "3600 1000000");
    TEST_INT(redis_server_break_snapshots(&redis_bed.server, true), 0);
    BED_UNTIL(&b, bed_says(&b, "the last snapshot of Redis failed: "));
    CU_ASSERT(bed_all_ready(&b));
    redis_bed_command("CONFIG SET stop-writes-on-bgsave-error yes");
    BED_UNTIL(&b, bed_has_event(&b, "redis-lost: "));
    TEST_STRING(b.stores[0]->away_why,
                "Redis refuses writes because its last snapshot failed: free its disk or set stop-writes-on-bgsave-error no");
    TEST_INT(redis_server_break_snapshots(&redis_bed.server, false), 0);
    _cleanup_reply_ _unused_ redisReply *off = redis_command(&redis_bed.server, "CONFIG SET save %s", "");
    BED_UNTIL(&b, bed_all_ready(&b));
    bed_done(&b);
}

/* Any client that may publish can write to a host's channel. A number that is impossible for the clock is
 * neither remembered nor applied to a claim: otherwise all later tokens would follow it, and hosts would
 * report it to a Redis that was wiped. */
static void test_forged_push(void) {
    static const char nonsense[] = "ignoring a malformed message on the channel of this host";
    static const char *const numbers[] = {"9000000000000000000", "9223372036854775807", "9007199254740992", "18446744073709551615",
                                          "4102444800000000", /* 2100 */ "-1", "x"};
    static const struct {
        const char *verb, *one, *two, *ticket; /* NULL: the number */
    } forms[] = {{"granted", "0", NULL, "0"}, {"granted", NULL, "5", "0"}, {"granted", "0", "5", NULL},
                 {"revoked", "0", NULL, "gone"}, {"queued", "1", NULL, "5"}, {"queued", "1", "5", NULL}, {"parked", "1", "5", NULL}};
    struct bed b;

    if (!redis_bed_begin(&b, 2))
        return;
    const struct store_redis *store = store_redis_of(b.stores[0]);
    struct probe *held = bed_probe(&b, 0, "db:4"), *waiting = bed_probe(&b, 0, "db:1");
    probe_grant(held);
    probe_wait(waiting);
    const uint64_t token = held->token, ticket = waiting->ticket;
    for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
        for (size_t k = 0; k < ELEMENTSOF(forms); k++) {
            char text[200];

            (void) snprintf(text, sizeof(text), "%s %s %s %s %s %s 0", forms[k].verb, store->epoch.id, forms[k].one ? forms[k].one : numbers[i],
                            forms[k].two ? forms[k].two : numbers[i], waiting->claim.id, forms[k].ticket ? forms[k].ticket : numbers[i]);
            TEST_INT(redis_number(&redis_bed.server, "SPUBLISH berth:{test}:to:%s %s", store->session.id, text), 1);
        }
    bed_settle(&b);
    usec_t end = clock_boottime() + redis_bed.lease / 2; /* heartbeats */
    while (bed_turn(&b, end))
        ;
    TEST_INT(waiting->n_granted + waiting->n_lost + held->n_lost, 0);
    CU_ASSERT(waiting->claim.ticket == ticket);
    CU_ASSERT(store->clock.drawn < token + 60 * USEC_PER_SEC && store->pushes.seq < token + 60 * USEC_PER_SEC);
    _cleanup_free_ char *said = capture_read(&b.capture);
    const char *first = strstr(said, nonsense);
    CU_ASSERT(first && !strstr(first + 1, nonsense)); /* logged once */
    probe_release(held);
    BED_UNTIL(&b, waiting->n_granted > 0); /* real pushes are still received */
    CU_ASSERT(waiting->token > token && waiting->token < token + 60 * USEC_PER_SEC);
    probe_end(waiting);
    bed_done(&b);
}

static unsigned count_oom(void) {
    _cleanup_reply_ redisReply *reply = redis_command(&redis_bed.server, "INFO errorstats");
    const char *at = reply && reply->type == REDIS_REPLY_STRING ? strstr(reply->str, "errorstat_OOM:count=") : NULL;

    return at ? (unsigned) strtoul(at + strlen("errorstat_OOM:count="), NULL, 10) : 0;
}

/* A claim with nowait is refused at once; others wait for memory as for permits, in the order of their
 * requests. */
static void test_full(void) {
    struct probe *p[4];
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    redis_bed_command("CONFIG RESETSTAT");
    struct probe *held = bed_probe(&b, 0, "one"), *now = bed_probe(&b, 0, "db:1"), *again = bed_probe(&b, 0, "db:1");
    now->claim.nowait = again->claim.nowait = true;
    probe_grant(held);
    redis_bed_command("CONFIG SET maxmemory 1000");
    for (unsigned i = 0; i < 3; i++)
        probe_ask(p[i] = bed_probe(&b, 0, "one"));
    probe_refuse(now, STORE_REFUSAL_NO_MEMORY);
    CU_ASSERT(b.stores[0]->is_full);
    probe_end(held); /* releases still work */
    usec_t end = clock_boottime() + 2 * USEC_PER_SEC;
    while (bed_turn(&b, end))
        ;
    probe_ask(p[3] = bed_probe(&b, 0, "one"));
    probe_refuse(again, STORE_REFUSAL_NO_MEMORY);
    TEST_INT(p[0]->n_granted + p[0]->n_refused + p[1]->n_refused + p[2]->n_refused + p[3]->n_refused, 0);
    CU_ASSERT(count_oom() > 4 && count_oom() < 20);
    probe_end(p[1]); /* withdrawn at once */
    redis_bed_command("CONFIG SET maxmemory 0");
    BED_UNTIL(&b, p[0]->n_granted > 0);
    CU_ASSERT_FALSE(b.stores[0]->is_full);
    TEST_INT(p[2]->n_granted + p[3]->n_granted, 0);
    probe_end(p[0]);
    BED_UNTIL(&b, p[2]->n_granted > 0);
    TEST_INT(p[3]->n_granted, 0);
    probe_end(p[2]);
    BED_UNTIL(&b, p[3]->n_granted > 0);
    probe_end(p[3]);
    bed_done(&b);
}

/* No claim waits for memory: the next nowait claim calls Redis again. */
static void test_full_nowait(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    struct probe *now = bed_probe(&b, 0, "db:1"), *again = bed_probe(&b, 0, "db:1");
    now->claim.nowait = again->claim.nowait = true;
    redis_bed_command("CONFIG SET maxmemory 1000");
    probe_refuse(now, STORE_REFUSAL_NO_MEMORY);
    redis_bed_command("CONFIG SET maxmemory 0");
    BED_UNTIL(&b, !b.stores[0]->is_full);
    probe_grant(again);
    probe_end(again);
    bed_done(&b);
}

static bool is_called(const struct probe *p) {
    return ((const struct claim_entry *) p->claim.store_data)->calls > 0;
}

/* The claim that is requested again is withdrawn before Redis replies that it is full: later claims are still requested. */
static void test_full_withdrawn(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    struct probe *now = bed_probe(&b, 0, "db:1"), *withdrawn = bed_probe(&b, 0, "db:1"), *later = bed_probe(&b, 0, "db:1");
    now->claim.nowait = true;
    redis_bed_command("CONFIG SET maxmemory 1000");
    probe_refuse(now, STORE_REFUSAL_NO_MEMORY);
    probe_ask(withdrawn);
    BED_UNTIL(&b, is_called(withdrawn));
    probe_end(withdrawn);
    probe_ask(later);
    redis_bed_command("CONFIG SET maxmemory 0");
    BED_UNTIL(&b, later->n_granted > 0);
    CU_ASSERT_FALSE(b.stores[0]->is_full);
    probe_end(later);
    bed_done(&b);
}

/* The pause ends while the host says hello again, and no claim waits any more. */
static void test_full_hello(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    struct probe *now = bed_probe(&b, 0, "db:1"), *later = bed_probe(&b, 0, "db:1");
    now->claim.nowait = true;
    redis_bed_command("CONFIG SET maxmemory 1000");
    probe_refuse(now, STORE_REFUSAL_NO_MEMORY);
    redis_bed_command("CONFIG SET maxmemory 0");
    link_repeat_hello_after(store_redis_of(b.stores[0]), redis_bed.heartbeat);
    usec_t end = clock_boottime() + redis_bed.lease;
    while (bed_turn(&b, end))
        ;
    CU_ASSERT_FALSE(b.stores[0]->is_full);
    probe_grant(later);
    probe_end(later);
    bed_done(&b);
}

static CU_TestInfo tests[] = {
    {"refused by redis", test_refused_by_redis},
    {"volatile policies", test_volatile_policies},
    {"many clients", test_many_clients},
    {"no room", test_no_room},
    {"busy", test_busy},
    {"changed while connected", test_changed_while_connected},
    {"replica", test_replica},
    {"failed snapshot", test_failed_snapshot},
    {"forged push", test_forged_push},
    {"full", test_full},
    {"full without waiting claims", test_full_nowait},
    {"full, and a claim is withdrawn", test_full_withdrawn},
    {"full, and hello is repeated", test_full_hello},
    CU_TEST_INFO_NULL,
};

TEST_MAIN(redis_bed_main_on_own_clock(argc, argv, suites), {.pName = "store-redis-refused", .pTests = tests})
