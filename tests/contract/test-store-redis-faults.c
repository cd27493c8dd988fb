/* SPDX-License-Identifier: MIT */

/* store-redis when Redis is missing, restarted, wiped, slow, full, or refuses. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "conf/settings.h"
#include "store/redis/store-redis.h"
#include "tests/harness/redis-bed.h"

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
    probe_end(gone); /* never there: at once */
    BED_UNTIL(&b, bed_has_event(&b, "redis-lost: "));
    usec_t end = clock_boottime() + 300 * USEC_PER_MSEC;
    while (bed_turn(&b, end))
        ;
    TEST_INT(bed_count_events(&b, "redis-lost: "), 1); /* not with each try */
    TEST_INT(bed_override(&b, 0, &(struct store_override) {.pool = "db", .limit = 1, .for_usec = USEC_INFINITY}), -ENOTCONN);
    TEST_INT(bed_revoke(&b, 0, p->claim.id), -ENOTCONN);
    TEST_INT(redis_server_resume(&redis_bed.server), 0);
    BED_UNTIL(&b, p->n_granted > 0); /* after the grace of a new namespace */
    TEST_INT(bed_count_events(&b, "redis-connected: "), 1);
    TEST_INT(bed_count_events(&b, "grace-begun: "), 1);
    TEST_INT(bed_count_events(&b, "grace-ended: "), 1);
    bed_done(&b);
}

/* Comes back empty: the limit holds, what runs goes on, waiting claims keep their order, tokens grow. */
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
    probe_ask(late); /* asked while it is away */
    BED_UNTIL(&b, bed_count_events(&b, "grace-begun: ") >= 3 + 3);
    TEST_INT(held->n_lost + other->n_lost, 0);
    TEST_INT(bed_used(&b, "db"), 4);
    probe_release(held);
    BED_UNTIL(&b, held->n_released > 0);
    TEST_INT(b.n_grants, 2); /* grace: free, but nobody may know it yet */
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

/* Longer away than the lease: what was held is lost, but for those that go on; who waits comes back by itself. */
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
    probe_end(lost); /* at once: it is not there any more */
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

/* Frozen for a while, less than a lease: nothing is lost. Timeouts make new connections. */
static void test_frozen(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 2))
        return;
    struct probe *held = bed_probe(&b, 0, "one"), *waiting = bed_probe(&b, 1, "one");
    probe_grant(held);
    probe_wait(waiting);
    kill(redis_bed.server.pid, SIGSTOP);
    probe_release(held); /* the answer will not come */
    BED_UNTIL(&b, b.stores[0]->state == STORE_STATE_AWAY);
    kill(redis_bed.server.pid, SIGCONT);
    BED_UNTIL(&b, waiting->n_granted > 0);
    BED_UNTIL(&b, held->n_released > 0);
    TEST_INT(held->n_lost, 0);
    TEST_INT(bed_count_events(&b, "session-lost: "), 0);
    bed_done(&b);
}

/* R8: the deadline counts from before the heartbeat was sent, however late its answer is. */
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

static usec_t left_when_told;

static void note_left(struct probe *p) {
    left_when_told = usec_sub(p->bed->stores[p->host]->deadline, clock_boottime());
}

/* R12: a grant that leaves too little time is told when a heartbeat was answered, which is sent at once. One that asks for more than any
 * heartbeat gives is never told, and costs no heartbeats of its own. */
static void test_told_with_time(void) {
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
    while (b.stores[0]->deadline == deadline) /* the next heartbeat is a whole one away */
        (void) bed_turn(&b, USEC_INFINITY);
    released = clock_boottime() + 100 * USEC_PER_MSEC;
    while (clock_boottime() < released)
        (void) bed_turn(&b, released);
    probe_release(held);
    BED_UNTIL(&b, waiting->n_granted > 0);
    CU_ASSERT(left_when_told > most - 50 * USEC_PER_MSEC);
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
    redis_bed_command("CLIENT KILL TYPE normal SKIPME yes"); /* under way, some carried out, some not */
    probe_release(held);
    BED_UNTIL(&b, waiting->n_granted > 0); /* also when its push fell between two subscriptions */
    for (unsigned i = 0; i < ELEMENTSOF(more); i++) {
        BED_UNTIL(&b, more[i]->n_released > 0);
        TEST_INT(more[i]->n_granted, 1);
    }
    TEST_INT(held->n_lost + waiting->n_lost, 0);
    bed_done(&b);
}

/* NOSCRIPT: loaded again, nothing is lost. */
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

/* Whoever connects to a Redis that has the scripts does not send them. */
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
    CU_ASSERT_PTR_NOT_NULL(strstr(r->str, "script|exists:calls=1,"));
    CU_ASSERT_PTR_NULL(strstr(r->str, "script|load"));
    bed_done(&b);
}

/* Another master: grace, although all data is there; nothing is lost. */
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

/* A push that never came: a heartbeat's answer tells of it, and of a claim that should be there and is not. */
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
    BED_UNTIL(&b, bed_used(&b, "db") == 1); /* told again */
    bed_done(&b);
}

/* Granted while berthd was away, or cut off: nobody was told, nothing was started with it. When its session was expired meanwhile the
 * permits are somebody else's: it must not be named as held (R11), which would restore it beyond the limit. */
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
    memcpy(other->session.replaced, one->session.id, sizeof(other->session.replaced)); /* ends it as an expiry would */
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

/* Whoever may publish may write to a host's channel. A number that no clock of ours can have is not remembered, and says nothing of a
 * claim: else all tokens after it would be one, and hosts would teach it to a Redis that was wiped. */
/* An eviction policy, or another master, that comes while a host is connected: noticed within a lease, not at its next connection. */
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

/* Its master knows nothing of what it takes: also one that takes writes is refused. */
static void test_replica(void) {
    struct bed b;

    CU_ASSERT_FATAL(redis_bed_init(&b, 1));
    redis_bed_command("CONFIG SET replica-read-only no");
    redis_bed_command("REPLICAOF 127.0.0.1 1");
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, bed_has_event(&b, "redis-lost: "));
    TEST_STRING(b.stores[0]->away_why, "this Redis is a replica (role:slave)");
    redis_bed_command("REPLICAOF NO ONE");
    CU_ASSERT(bed_start(&b));
    redis_bed_command("REPLICAOF 127.0.0.1 1"); /* and while it is connected */
    BED_UNTIL(&b, strstr(b.stores[0]->away_why, "replica") != NULL);
    redis_bed_command("REPLICAOF NO ONE");
    redis_bed_command("CONFIG SET replica-read-only yes");
    BED_UNTIL(&b, bed_all_ready(&b));
    bed_done(&b);
}

/* A snapshot that fails: with the default of stop-writes-on-bgsave-error Redis refuses what changes anything. It is said before, and what it
 * means. */
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

static void test_forged_push(void) {
    static const char nonsense[] = "a message on this host's channel makes no sense";
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
            TEST_INT(redis_number(&redis_bed.server, "PUBLISH berth:{test}:to:%s %s", store->session.id, text), 1);
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
    CU_ASSERT(first && !strstr(first + 1, nonsense)); /* not each */
    probe_release(held);
    BED_UNTIL(&b, waiting->n_granted > 0); /* what is pushed in earnest is heard as before */
    CU_ASSERT(waiting->token > token && waiting->token < token + 60 * USEC_PER_SEC);
    probe_end(waiting);
    bed_done(&b);
}

static unsigned count_oom(void) {
    _cleanup_reply_ redisReply *reply = redis_command(&redis_bed.server, "INFO errorstats");
    const char *at = reply && reply->type == REDIS_REPLY_STRING ? strstr(reply->str, "errorstat_OOM:count=") : NULL;

    return at ? (unsigned) strtoul(at + strlen("errorstat_OOM:count="), NULL, 10) : 0;
}

/* Who would not wait is refused at once; who waits, waits for memory as for permits, in the order in which it asked. */
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
    probe_end(held); /* still gives back */
    usec_t end = clock_boottime() + 2 * USEC_PER_SEC;
    while (bed_turn(&b, end))
        ;
    probe_ask(p[3] = bed_probe(&b, 0, "one"));
    probe_refuse(again, STORE_REFUSAL_NO_MEMORY);
    TEST_INT(p[0]->n_granted + p[0]->n_refused + p[1]->n_refused + p[2]->n_refused + p[3]->n_refused, 0);
    CU_ASSERT(count_oom() > 4 && count_oom() < 20);
    probe_end(p[1]); /* withdrawn: at once */
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

/* Nobody waits for memory: the next nowait claim calls Redis again. */
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

/* More claims than go into one part of a sync, and than one call grants. */
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
    {"a grant that nobody was told", test_undelivered_grant},
    {"missing at start", test_missing_at_start},
    {"wiped", test_wiped},
    {"away too long", test_away_too_long},
    {"frozen", test_frozen},
    {"deadline from sending", test_deadline_from_sending},
    {"told with time", test_told_with_time},
    {"connections cut", test_connections_cut},
    {"script flush", test_script_flush},
    {"scripts that are there", test_scripts_there},
    {"failover", test_failover},
    {"lost push", test_lost_push},
    {"refused by redis", test_refused_by_redis},
    {"changed while connected", test_changed_while_connected},
    {"replica", test_replica},
    {"failed snapshot", test_failed_snapshot},
    {"forged push", test_forged_push},
    {"full", test_full},
    {"full and nobody waits", test_full_nowait},
    {"large sync", test_large_sync},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "store-redis-faults", .pTests = tests}, CU_SUITE_INFO_NULL};

    return redis_bed_main_on_own_clock(argc, argv, suites);
}
