/* SPDX-License-Identifier: MIT */

/* store-redis when Redis is missing, restarted, wiped or slow, or loses a message. For refusals see
 * test-store-redis-refused.c. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "conf/settings.h"
#include "store/redis/store-redis.h"
#include "tests/harness/redis/redis-bed.h"

static void test_missing_at_start(void) {
    struct bed b;

    redis_server_kill(&redis_bed.server);
    CU_ASSERT_FATAL(redis_bed_init(&b, 1));
    TEST_INT(store_start(b.stores[0]), 0);
    struct probe *p = bed_probe(&b, 0, "db:2"), *now = bed_probe(&b, 0, "db:1"), *gone = bed_probe(&b, 0, "db:1");
    now->claim.nowait = true;
    probe_ask(p);
    probe_ask(gone);
    probe_refuse(now, STORE_REFUSAL_BUSY);
    probe_end(gone); /* Redis never had it: at once */
    BED_UNTIL(&b, bed_has_event(&b, "redis-lost: "));
    usec_t end = clock_boottime() + 300 * USEC_PER_MSEC;
    while (bed_turn(&b, end))
        ;
    TEST_INT(bed_count_events(&b, "redis-lost: "), 1); /* not with each attempt */
    TEST_INT(bed_override(&b, 0, &(struct store_override) {.pool = "db", .limit = 1, .for_usec = USEC_INFINITY}), -ENOTCONN);
    TEST_INT(bed_revoke(&b, 0, p->claim.id), -ENOTCONN);
    TEST_INT(redis_server_resume(&redis_bed.server), 0);
    BED_UNTIL(&b, p->n_granted > 0); /* after the grace of a new namespace */
    TEST_INT(bed_count_events(&b, "redis-connected: "), 1);
    TEST_INT(bed_count_events(&b, "grace-begun: "), 1);
    TEST_INT(bed_count_events(&b, "grace-ended: "), 1);
    bed_done(&b);
}

/* Redis comes back empty: the limit holds, held claims stay held, waiting claims keep their order, tokens
 * grow. */
static void test_wiped(void) {
    struct probe *waiting[6];
    struct bed b;

    if (!redis_bed_begin(&b, 3))
        return;
    struct probe *held = bed_probe(&b, 0, "db:3"), *other = bed_probe(&b, 1, "db:1");
    probe_grant(held);
    probe_grant(other);
    uint64_t token = held->token > other->token ? held->token : other->token;
    for (unsigned i = 0; i < ELEMENTSOF(waiting); i++)
        probe_wait(waiting[i] = bed_probe(&b, i, "db:2"));
    TEST_INT(redis_server_restart(&redis_bed.server, false), 0);
    struct probe *late = bed_probe(&b, 2, "db:1");
    probe_ask(late); /* requested while Redis is away */
    BED_UNTIL(&b, bed_count_events(&b, "grace-begun: ") >= 3 + 3);
    TEST_INT(held->n_lost + other->n_lost, 0);
    TEST_INT(bed_used(&b, "db"), 4);
    probe_release(held);
    BED_UNTIL(&b, held->n_released > 0);
    TEST_INT(b.n_grants, 2); /* grace: permits are free, but nothing is granted */
    BED_UNTIL(&b, waiting[0]->n_granted > 0);
    CU_ASSERT(waiting[0]->token > token);
    TEST_INT(bed_used(&b, "db"), 3);
    probe_release(other);
    for (unsigned i = 1; i < ELEMENTSOF(waiting); i++) {
        BED_UNTIL(&b, waiting[i]->n_granted > 0);
        TEST_INT(waiting[i]->grant_number, i + 3);
        probe_release(waiting[i - 1]);
    }
    probe_release(waiting[5]);
    BED_UNTIL(&b, late->n_granted > 0);
    TEST_INT(late->grant_number, 9);
    TEST_INT(held->n_lost + other->n_lost + waiting[0]->n_lost, 0);
    bed_done(&b);
}

/* Redis is away for longer than the lease: held claims are lost, except those with `keep`; waiting claims
 * come back by themselves. */
static void test_away_too_long(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    struct probe *lost = bed_probe(&b, 0, "db:2"), *kept = bed_probe(&b, 0, "db:1"), *waiting = bed_probe(&b, 0, "db:4"),
                 *going = bed_probe(&b, 0, "db:1");
    kept->claim.keep = true;
    probe_grant(lost);
    probe_grant(kept);
    probe_grant(going);
    probe_wait(waiting);
    uint64_t token = kept->token, ticket = waiting->ticket;
    usec_t deadline = b.stores[0]->deadline;
    CU_ASSERT(deadline > clock_boottime() && deadline <= clock_boottime() + REDIS_BED_LEASE - 500 * USEC_PER_MSEC);
    redis_server_kill(&redis_bed.server);
    probe_release(going);
    BED_UNTIL(&b, lost->n_lost > 0);
    TEST_INT(lost->loss, STORE_LOSS_SESSION);
    TEST_INT(kept->n_lost + waiting->n_lost, 0);
    CU_ASSERT(clock_boottime() >= b.stores[0]->deadline);
    BED_UNTIL(&b, going->n_released > 0);
    TEST_INT(bed_count_events(&b, "session-lost: "), 1);
    TEST_INT(bed_count_events(&b, "lease-late: "), 1);
    TEST_INT(redis_server_resume(&redis_bed.server), 0);
    probe_end(lost); /* at once: Redis does not have it any more */
    BED_UNTIL(&b, kept->claim.token != token);
    CU_ASSERT(kept->claim.token > token);
    BED_UNTIL(&b, bed_all_ready(&b));
    TEST_INT(bed_used(&b, "db"), 1);
    TEST_INT(waiting->n_granted, 0);
    CU_ASSERT(waiting->claim.ticket == ticket);
    probe_release(kept);
    BED_UNTIL(&b, waiting->n_granted > 0);
    bed_done(&b);
}

/* Redis is frozen for less than a lease: nothing is lost. Timeouts cause new connections. */
static void test_frozen(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 2))
        return;
    struct probe *held = bed_probe(&b, 0, "one"), *waiting = bed_probe(&b, 1, "one");
    probe_grant(held);
    probe_wait(waiting);
    kill(redis_bed.server.pid, SIGSTOP);
    probe_release(held); /* the reply will not come */
    BED_UNTIL(&b, b.stores[0]->state == STORE_STATE_AWAY);
    kill(redis_bed.server.pid, SIGCONT);
    BED_UNTIL(&b, waiting->n_granted > 0);
    BED_UNTIL(&b, held->n_released > 0);
    TEST_INT(held->n_lost, 0);
    TEST_INT(bed_count_events(&b, "session-lost: "), 0);
    bed_done(&b);
}

/* R8: the deadline counts from before the heartbeat was sent, however late the reply comes. */
static void test_deadline_from_sending(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    usec_t deadline = b.stores[0]->deadline, frozen = clock_boottime();
    kill(redis_bed.server.pid, SIGSTOP);
    while (clock_boottime() < frozen + 600 * USEC_PER_MSEC) /* a heartbeat is sent meanwhile */
        (void) bed_turn(&b, frozen + 600 * USEC_PER_MSEC);
    usec_t thawed = clock_boottime();
    CU_ASSERT(b.stores[0]->deadline == deadline);
    kill(redis_bed.server.pid, SIGCONT);
    BED_UNTIL(&b, b.stores[0]->deadline != deadline);
    CU_ASSERT(b.stores[0]->deadline > deadline);
    CU_ASSERT(b.stores[0]->deadline < thawed + REDIS_BED_LEASE - settings_margin(REDIS_BED_LEASE) - 100 * USEC_PER_MSEC);
    bed_done(&b);
}

static usec_t left_when_granted;

static void note_left(struct probe *p) {
    left_when_granted = usec_sub(p->bed->stores[p->host]->deadline, clock_boottime());
}

/* R12: a grant with too little time left is delivered after an extra heartbeat. A claim that needs more time
 * than any heartbeat gives is never delivered, and causes no heartbeats. */
static void test_granted_with_time(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 2))
        return;
    struct probe *held = bed_probe(&b, 1, "one"), *waiting = bed_probe(&b, 0, "one"), *never = bed_probe(&b, 0, "db");
    usec_t most = REDIS_BED_LEASE - settings_margin(REDIS_BED_LEASE), released;
    waiting->claim.needs_usec = most - 50 * USEC_PER_MSEC;
    never->claim.needs_usec = most;
    b.on_granted = note_left;
    probe_grant(held);
    probe_wait(waiting);
    usec_t deadline = b.stores[0]->deadline;
    while (b.stores[0]->deadline == deadline) /* the next heartbeat has just been answered */
        (void) bed_turn(&b, USEC_INFINITY);
    released = clock_boottime() + 100 * USEC_PER_MSEC;
    while (clock_boottime() < released)
        (void) bed_turn(&b, released);
    probe_release(held);
    BED_UNTIL(&b, waiting->n_granted > 0);
    CU_ASSERT(left_when_granted > most - 50 * USEC_PER_MSEC);
    CU_ASSERT(clock_boottime() < released + 50 * USEC_PER_MSEC);
    probe_ask(never);
    BED_UNTIL(&b, never->claim.state == CLAIM_STATE_HELD);
    deadline = b.stores[0]->deadline;
    for (unsigned i = 0; i < 3; deadline = b.stores[0]->deadline, i++) {
        usec_t at = clock_boottime();

        while (b.stores[0]->deadline == deadline)
            (void) bed_turn(&b, USEC_INFINITY);
        CU_ASSERT(i == 0 || clock_boottime() > at + redis_bed.heartbeat / 2);
    }
    TEST_INT(never->n_granted, 0);
    bed_done(&b);
}

static void give_back(struct probe *p) {
    if (p->demands.items[0].permits == 4)
        probe_release(p);
}

static void test_connections_cut(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 2))
        return;
    b.on_granted = give_back;
    struct probe *held = bed_probe(&b, 0, "one"), *waiting = bed_probe(&b, 1, "one"), *more[40];
    probe_grant(held);
    probe_wait(waiting);
    redis_bed_command("CLIENT KILL TYPE pubsub");
    for (unsigned i = 0; i < ELEMENTSOF(more); i++)
        probe_ask(more[i] = bed_probe(&b, i, "db:4"));
    redis_bed_command("CLIENT KILL TYPE normal SKIPME yes"); /* calls under way, some of them executed */
    probe_release(held);
    BED_UNTIL(&b, waiting->n_granted > 0); /* also if its push fell between two subscriptions */
    for (unsigned i = 0; i < ELEMENTSOF(more); i++) {
        BED_UNTIL(&b, more[i]->n_released > 0);
        TEST_INT(more[i]->n_granted, 1);
    }
    TEST_INT(held->n_lost + waiting->n_lost, 0);
    bed_done(&b);
}

/* After NOSCRIPT the scripts are loaded again, and nothing is lost. */
static void test_script_flush(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 2))
        return;
    struct probe *held = bed_probe(&b, 0, "one"), *waiting = bed_probe(&b, 1, "one");
    probe_grant(held);
    probe_wait(waiting);
    redis_bed_command("SCRIPT FLUSH");
    probe_release(held);
    BED_UNTIL(&b, waiting->n_granted > 0);
    BED_UNTIL(&b, held->n_released > 0);
    TEST_INT(bed_count_events(&b, "redis-lost: "), 0);
    bed_done(&b);
}

/* A host does not send the scripts to a Redis that has them. */
static void test_scripts_there(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    redis_bed_command("CONFIG RESETSTAT");
    redis_bed_command("CLIENT KILL TYPE normal SKIPME yes");
    struct probe *p = bed_probe(&b, 0, "one");
    probe_grant(p);
    _cleanup_reply_ redisReply *r = redis_command(&redis_bed.server, "INFO commandstats");
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    CU_ASSERT(strstr(r->str, "script|exists:calls=1,") || store_redis_of(b.stores[0])->handshake.is_by_text);
    CU_ASSERT_PTR_NULL(strstr(r->str, "script|load"));
    bed_done(&b);
}

/* A failover begins grace, although the new master has all data. No claim is lost. */
static void test_failover(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 2))
        return;
    struct probe *held = bed_probe(&b, 0, "one"), *waiting = bed_probe(&b, 1, "one");
    probe_grant(held);
    probe_wait(waiting);
    redis_bed_command("DEBUG CHANGE-REPL-ID");
    usec_t before = clock_boottime();
    probe_release(held);
    BED_UNTIL(&b, waiting->n_granted > 0);
    CU_ASSERT(clock_boottime() - before >= REDIS_BED_LEASE);
    BED_UNTIL(&b, held->n_released > 0);
    bed_done(&b);
}

/* A heartbeat's reply shows that a push was lost, and that a claim is missing. */
static void test_lost_push(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 2))
        return;
    struct probe *held = bed_probe(&b, 0, "one"), *waiting = bed_probe(&b, 1, "one"), *dropped = bed_probe(&b, 0, "db:1");
    probe_grant(held);
    probe_wait(waiting);
    probe_grant(dropped);
    _cleanup_reply_ redisReply *r = redis_command(&redis_bed.server, "EVAL %s 0 %s %s",
        "local at = 'berth:{test}:' local claims = at .. 'claims' "
        "redis.call('ZREM', at .. 'pool:one:queue', ARGV[1]) "
        "redis.call('SADD', at .. 'pool:one:held', ARGV[1] .. '#1') "
        "local record = redis.call('HGET', claims, ARGV[1]) local s = string.match(record, '^%a %d+ (%S+)') "
        "redis.call('HSET', claims, ARGV[1], (string.gsub(record, '^W 0', 'H 2000000000000000'))) "
        "redis.call('HSET', at .. 'meta', 'c:' .. s, (string.gsub(redis.call('HGET', at .. 'meta', 'c:' .. s), ' %d+$', ' 2000000000000000'))) "
        "local other = string.match(redis.call('HGET', claims, ARGV[2]), '^%a %d+ (%S+)') "
        "redis.call('HDEL', claims, ARGV[2]) redis.call('SREM', at .. 'session:' .. other .. ':claims', ARGV[2]) "
        "redis.call('SREM', at .. 'pool:db:held', ARGV[2] .. '#1')",
        waiting->claim.id, dropped->claim.id);
    CU_ASSERT(r && r->type != REDIS_REPLY_ERROR);
    BED_UNTIL(&b, waiting->n_granted > 0);
    CU_ASSERT(waiting->token == 2000000000000000);
    BED_UNTIL(&b, bed_used(&b, "db") == 1); /* reported again */
    bed_done(&b);
}

/* A claim is granted while berthd is away or cut off, so on_granted is not called and no run starts. If the
 * session expires meanwhile, another claim gets the permits. The host must not report the first claim as
 * held (R11), because Redis would restore it beyond the limit. */
static void test_undelivered_grant(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 2))
        return;
    struct probe *first = bed_probe(&b, 0, "one"), *second = bed_probe(&b, 1, "one");
    struct store_redis *one = store_redis_of(b.stores[0]), *other = store_redis_of(b.stores[1]);
    probe_grant(first);
    probe_wait(second);
    ((struct claim_entry *) first->claim.store_data)->notified = false;
    one->base.deadline = 0;
    memcpy(other->session.replaced, one->session.id, sizeof(other->session.replaced)); /* ends it as an expiry does */
    link_resync(other);
    BED_UNTIL(&b, second->n_granted > 0);
    BED_UNTIL(&b, first->claim.state == CLAIM_STATE_WAITING && one->heartbeat.is_answered); /* with its next heartbeat */
    TEST_INT(bed_used(&b, "one"), 1);
    TEST_INT(bed_count_events(&b, "overcommitted: "), 0);
    probe_release(second);
    BED_UNTIL(&b, first->n_granted > 1);
    TEST_INT(bed_used(&b, "one"), 1);
    TEST_INT(first->n_lost, 0);
    bed_done(&b);
}

/* More claims than one part of a sync lists, and than one call grants. */
static void test_large_sync(void) {
    static const struct store_pool wide[] = {{.name = "db", .limit = 450, .queue_limit = 1000}};
    struct probe *p[700];
    struct bed b;

    if (!bed_init(&b, redis_bed_fixture(1), wide, 1) || !bed_start(&b))
        return;
    for (unsigned i = 0; i < ELEMENTSOF(p); i++)
        probe_ask(p[i] = bed_probe(&b, 0, "db:1"));
    for (unsigned i = 0; i < ELEMENTSOF(p); i++)
        BED_UNTIL(&b, p[i]->n_granted + p[i]->n_waiting > 0);
    TEST_INT(redis_server_restart(&redis_bed.server, false), 0);
    for (unsigned i = 0; i < 300; i++)
        probe_release(p[i]); /* 450 to 699 wait */
    BED_UNTIL(&b, bed_all_ready(&b) && p[699]->n_granted > 0);
    for (unsigned i = 0; i < 300; i++)
        BED_UNTIL(&b, p[i]->n_released > 0);
    for (unsigned i = 300; i < ELEMENTSOF(p); i++)
        BED_UNTIL(&b, p[i]->n_granted == 1);
    TEST_INT(bed_used(&b, "db"), 400);
    bed_done(&b);
}

static CU_TestInfo tests[] = {
    {"a grant that was not delivered", test_undelivered_grant},
    {"missing at start", test_missing_at_start},
    {"wiped", test_wiped},
    {"away too long", test_away_too_long},
    {"frozen", test_frozen},
    {"deadline from sending", test_deadline_from_sending},
    {"granted with time", test_granted_with_time},
    {"connections cut", test_connections_cut},
    {"script flush", test_script_flush},
    {"scripts that are there", test_scripts_there},
    {"failover", test_failover},
    {"lost push", test_lost_push},
    {"large sync", test_large_sync},
    CU_TEST_INFO_NULL,
};

TEST_MAIN(redis_bed_main_on_own_clock(argc, argv, suites), {.pName = "store-redis-faults", .pTests = tests})
