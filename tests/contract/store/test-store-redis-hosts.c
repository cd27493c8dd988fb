/* SPDX-License-Identifier: MIT */

/* store-redis when hosts die, come back, or disagree. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/message.h"
#include "store/redis/store-redis.h"
#include "tests/harness/clock-file.h"
#include "tests/harness/redis/redis-bed.h"

static char session_path[sizeof(redis_bed.server.directory) + 16];

/* The session file of the first host, where a restarted berthd finds it. */
static void keep_session(void) {
    (void) snprintf(session_path, sizeof(session_path), "%s/session", redis_bed.server.directory);
    redis_bed.session_path[0] = session_path;
}

static void tear_down(void) {
    (void) unlink(session_path);
    redis_bed.session_path[0] = redis_bed.names[1] = NULL;
    redis_bed.leases[1] = 0;
}

static void test_dead_host(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 3))
        return;
    struct probe *dead = bed_probe(&b, 2, "db:4"), *dead_waiter = bed_probe(&b, 2, "one"), *holder = bed_probe(&b, 0, "one"),
                 *waiting = bed_probe(&b, 0, "db:4"), *behind = bed_probe(&b, 1, "one");
    probe_grant(dead);
    probe_grant(holder);
    probe_wait(dead_waiter);
    probe_wait(waiting);
    probe_wait(behind);
    usec_t before = clock_boottime();
    bed_die(&b, 2);
    probe_release(holder);
    BED_UNTIL(&b, waiting->n_granted > 0);
    usec_t took = clock_boottime() - before;
    CU_ASSERT(took > REDIS_BED_LEASE - REDIS_BED_LEASE / 6);
    CU_ASSERT(took < REDIS_BED_LEASE * 4 / 3 + 300 * USEC_PER_MSEC);
    BED_UNTIL(&b, behind->n_granted > 0);
    TEST_INT(bed_count_events(&b, "host-expired: "), 1);
    TEST_INT(bed_count_events(&b, "reclaimed: "), 2); /* its held claim, and the one granted to it after it died */
    dead->claim.state = dead_waiter->claim.state = CLAIM_STATE_NONE; /* of the dead host */
    dead->host = dead_waiter->host = 0;
    b.n_hosts = 2;
    bed_done(&b);
}

/* berthd restarts: the session continues, nothing is lost, and other hosts notice nothing. */
static void test_restarted_daemon(void) {
    struct bed b;

    keep_session();
    if (!redis_bed_begin(&b, 2))
        return;
    struct probe *held = bed_probe(&b, 0, "db:3"), *gone = bed_probe(&b, 0, "db:1"), *waiting = bed_probe(&b, 0, "db:2"),
                 *behind = bed_probe(&b, 1, "db:1");
    probe_grant(held);
    probe_grant(gone);
    probe_wait(waiting);
    probe_wait(behind);
    uint64_t token = held->claim.token;
    bed_die(&b, 0);
    bed_come_back(&b, 0);
    struct claim found = {.n_demands = waiting->claim.n_demands, .demands = waiting->claim.demands, .ticket = waiting->claim.ticket};
    found.id = waiting->id;
    found.name = waiting->claim.name;
    waiting->claim = found;
    gone->claim.state = CLAIM_STATE_NONE; /* over meanwhile: not reported, so dropped */
    TEST_INT(store_adopt(b.stores[0], &held->claim), 0);
    TEST_INT(store_adopt(b.stores[0], &waiting->claim), 0);
    TEST_INT(held->claim.state, CLAIM_STATE_HELD);
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, bed_all_ready(&b));
    BED_UNTIL(&b, waiting->n_waiting == 2);
    TEST_INT(bed_used(&b, "db"), 3);
    CU_ASSERT(held->claim.token == token);
    TEST_INT(held->n_granted + held->n_lost, 1);
    probe_release(held);
    BED_UNTIL(&b, waiting->n_granted > 0);
    BED_UNTIL(&b, behind->n_granted > 0);
    CU_ASSERT(waiting->token < behind->token); /* each received its grant on its own connection */
    TEST_INT(bed_count_events(&b, "session-lost: ") + bed_count_events(&b, "host-expired: "), 0);
    bed_done(&b);
    _cleanup_free_ char *left = NULL;
    size_t size;
    CU_ASSERT(file_read(session_path, 4096, &left, &size) < 0 || !strstr(left, "connection=")); /* after a bye there is no session to continue */
}

/* A recovered run was over before Redis could be informed, and Redis has lost its data: its token is still
 * remembered. */
static void test_adopted_token(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    struct probe *held = bed_probe(&b, 0, "db:3");
    probe_grant(held);
    uint64_t token = held->claim.token += 3600 * USEC_PER_SEC; /* as if Redis's clock was set back since */
    bed_die(&b, 0);
    redis_bed_command("FLUSHALL");
    bed_come_back(&b, 0);
    TEST_INT(store_adopt(b.stores[0], &held->claim), 0);
    probe_release(held);
    CU_ASSERT(bed_start(&b));
    BED_UNTIL(&b, held->n_released > 0);
    struct probe *next = bed_probe(&b, 0, "db:3");
    probe_grant(next);
    CU_ASSERT(next->claim.token > token);
    bed_done(&b);
}

/* Sets the clock of the session's file and its age, in this boot or in another one. */
static void write_clock(uint64_t clock, usec_t since, bool this_boot) {
    static const char *const kept[] = {"name", "redis", "session"};
    char boot[ID_TEXT_SIZE];
    _cleanup_free_ char *text = NULL;
    struct message_writer w;
    struct message m;
    uint64_t saved;
    size_t size;

    CU_ASSERT_FATAL(file_read(session_path, MESSAGE_SIZE_MAX, &text, &size) >= 0);
    CU_ASSERT_FATAL(message_parse(&m, text, size) >= 0);
    CU_ASSERT_FATAL(message_get_id(&m, "boot", boot) >= 0);
    CU_ASSERT(message_get_u64(&m, "clock", &saved) >= 0 && saved > clock - 3601 * USEC_PER_SEC); /* as in the replies to its heartbeats */
    CU_ASSERT(message_get_u64(&m, "clock-since", &saved) >= 0 && saved > since && saved <= clock_boottime());
    if (!this_boot)
        boot[0] = boot[0] == '0' ? '1' : '0';
    message_begin(&w, "session");
    message_put(&w, "boot", boot);
    for (size_t i = 0; i < ELEMENTSOF(kept); i++)
        message_put(&w, kept[i], message_get(&m, kept[i]));
    message_put_u64(&w, "connection", 7);
    message_put_u64(&w, "clock", clock);
    message_put_u64(&w, "clock-since", since);
    CU_ASSERT_FATAL(w.error >= 0 && file_write_atomic(session_path, w.text, w.size, 0600) >= 0);
}

/* Redis has lost its data, and its clock was set back by an hour: the session's file is all that a restarted
 * berthd knows of the clock. The number ages in the file as well. In another boot its age is unknown, and
 * counts from the start. */
static void test_clock_in_the_file(void) {
    for (unsigned this_boot = 0; this_boot < 2; this_boot++) {
        uint64_t clock = clock_realtime() + 3600 * USEC_PER_SEC, aged;
        usec_t since, begun;
        struct bed b;

        keep_session();
        if (!redis_bed_begin(&b, 1))
            return;
        bed_die(&b, 0);
        redis_bed_command("FLUSHALL");
        begun = clock_boottime();
        since = usec_sub(begun, 200 * USEC_PER_SEC);
        write_clock(clock, since, this_boot);
        aged = clock + (this_boot ? (begun - since) + (begun - since) / 100 : 0);
        bed_come_back(&b, 0);
        CU_ASSERT(bed_start(&b));
        struct probe *p = bed_probe(&b, 0, "db:3");
        probe_grant(p);
        CU_ASSERT(p->claim.token > aged);
        CU_ASSERT(p->claim.token < aged + 2 * (clock_boottime() - begun) + USEC_PER_SEC);
        bed_done(&b);
    }
}

/* berthd comes back after its session was expired: recovered claims are lost. */
static void test_back_too_late(void) {
    struct bed b;

    keep_session();
    if (!redis_bed_begin(&b, 2))
        return;
    struct probe *held = bed_probe(&b, 0, "db:3"), *kept = bed_probe(&b, 0, "db:1"), *other = bed_probe(&b, 1, "db:4");
    kept->claim.keep = true;
    probe_grant(held);
    probe_grant(kept);
    uint64_t token = kept->claim.token;
    probe_wait(other);
    bed_die(&b, 0);
    BED_UNTIL(&b, other->n_granted > 0);
    bed_come_back(&b, 0);
    TEST_INT(store_adopt(b.stores[0], &held->claim), 0);
    TEST_INT(store_adopt(b.stores[0], &kept->claim), 0);
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, held->n_lost > 0);
    TEST_INT(kept->n_lost, 0);
    BED_UNTIL(&b, kept->claim.token > token);
    TEST_INT(bed_used(&b, "db"), 5);
    TEST_INT(bed_count_events(&b, "overcommitted: "), 1);
    bed_done(&b);
}

#define SESSION_ID "0123456789abcdef0123456789abcdef"

/* A bad session file is logged, and a new session begins. */
static void test_bad_session_file(void) {
    static const char *const bad[] = {
        "session\nboot=\n",
        "session\nboot=" SESSION_ID "\nsession=" SESSION_ID "\nconnection=1\nclock=1\nclock-since=1\n", /* of which namespace? */
    };

    for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
        struct bed b;

        keep_session();
        CU_ASSERT_FATAL(file_write_atomic(session_path, bad[i], strlen(bad[i]), 0600) >= 0);
        if (!redis_bed_begin(&b, 1))
            return;
        CU_ASSERT(bed_says(&b, "cannot read (Bad message)"));
        struct probe *p = bed_probe(&b, 0, "one");
        probe_grant(p);
        bed_done(&b);
    }
}

/* Adds a host with the same lease that lives for ever, or removes it. */
static void keep_alive(bool alive) {
    _cleanup_reply_ redisReply *r = alive ? redis_command(&redis_bed.server, "HSET berth:{test}:sessions ghost %s", "ghost m v ")
                                          : redis_command(&redis_bed.server, "HDEL berth:{test}:sessions ghost");

    CU_ASSERT(r && r->type == REDIS_REPLY_INTEGER);
    redis_bed_command(alive ? "ZADD berth:{test}:heartbeats 1000000000 ghost" : "ZREM berth:{test}:heartbeats ghost");
}

static void test_lease_differs(void) {
    struct bed b;

    redis_bed.leases[1] = 2 * REDIS_BED_LEASE;
    CU_ASSERT_FATAL(redis_bed_init(&b, 2));
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, b.stores[0]->state != STORE_STATE_AWAY);
    TEST_INT(store_start(b.stores[1]), 0);
    BED_UNTIL(&b, bed_has_event(&b, "lease-differs: "));
    TEST_INT(bed_override(&b, 1, &(struct store_override) {.pool = "db", .limit = 1, .for_usec = USEC_INFINITY}), -ENOTCONN);
    usec_t end = clock_boottime() + REDIS_BED_LEASE;
    while (bed_turn(&b, end))
        ;
    TEST_INT(bed_count_events(&b, "lease-differs: "), 1);
    CU_ASSERT(b.stores[1]->state == STORE_STATE_AWAY);
    struct probe *dead = bed_probe(&b, 0, "db:4");
    probe_grant(dead);
    keep_alive(true);
    bed_die(&b, 0); /* only the refused host can report this death, and it does so while it is still refused */
    BED_UNTIL(&b, bed_has_event(&b, "reclaimed: "));
    TEST_INT(bed_count_events(&b, "host-expired: "), 1);
    CU_ASSERT(b.stores[1]->state == STORE_STATE_AWAY);
    dead->claim.state = CLAIM_STATE_NONE;
    dead->host = 0;
    keep_alive(false);
    BED_UNTIL(&b, b.stores[1]->state != STORE_STATE_AWAY);
    b.stores[0] = b.stores[1];
    b.stores[1] = NULL;
    b.n_hosts = 1;
    bed_done(&b);
}

static void test_name_taken(void) {
    struct bed b;

    redis_bed.names[1] = "ant";
    CU_ASSERT_FATAL(redis_bed_init(&b, 2));
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, b.stores[0]->state != STORE_STATE_AWAY);
    _cleanup_reply_ redisReply *r = redis_command(&redis_bed.server, "EVAL %s 0", /* as if from another machine */
        "local s = redis.call('HKEYS', 'berth:{test}:sessions')[1] redis.call('HSET', 'berth:{test}:sessions', s, "
        "(string.gsub(redis.call('HGET', 'berth:{test}:sessions', s), ' %S+', ' 0123', 1)))");
    CU_ASSERT(r && r->type != REDIS_REPLY_ERROR);
    TEST_INT(store_start(b.stores[1]), 0);
    BED_UNTIL(&b, bed_has_event(&b, "host-name-taken: "));
    CU_ASSERT(b.stores[1]->state == STORE_STATE_AWAY);
    b.stores[1] = store_free(b.stores[1]);
    b.n_hosts = 1;
    bed_done(&b);
}

static void test_limits_differ(void) {
    struct store_pool changed[ELEMENTSOF(redis_bed_pools)];
    struct bed b;

    if (!redis_bed_begin(&b, 2))
        return;
    memcpy(changed, redis_bed_pools, sizeof(changed));
    changed[0].limit = 3;
    TEST_INT(bed_declare(&b, 1, changed, ELEMENTSOF(changed)), 0);
    BED_UNTIL(&b, bed_has_event(&b, "limits-differ: "));
    _cleanup_(snapshot_freep) struct snapshot *s = bed_inspect(&b, 0);
    const struct snapshot_pool *db = snapshot_find_pool(s, "db");
    CU_ASSERT_PTR_NOT_NULL_FATAL(db);
    TEST_INT(db->limit, 3);
    CU_ASSERT(db->limits_differ);
    TEST_INT(s->n_sessions, 2);
    for (size_t i = 0; i < s->n_sessions; i++) {
        CU_ASSERT(s->sessions[i].seen_usec < REDIS_BED_LEASE);
        TEST_INT(s->sessions[i].n_limits, strcmp(s->sessions[i].host, "ant") == 0);
        if (s->sessions[i].n_limits > 0)
            TEST_INT(s->sessions[i].limits[0].limit, 4);
    }
    bed_done(&b);
}

static void test_scopes_differ(void) {
    struct store_pool changed[ELEMENTSOF(redis_bed_pools)];
    struct bed b;

    if (!redis_bed_begin(&b, 2))
        return;
    memcpy(changed, redis_bed_pools, sizeof(changed));
    changed[0].is_host_scoped = true;
    TEST_INT(bed_declare(&b, 1, changed, ELEMENTSOF(changed)), 0);
    BED_UNTIL(&b, bed_has_event(&b, "limits-differ: "));
    _cleanup_(snapshot_freep) struct snapshot *s = bed_inspect(&b, 0);
    const struct snapshot_pool *db = snapshot_find_pool(s, "db");
    CU_ASSERT_PTR_NOT_NULL_FATAL(db);
    TEST_INT(db->limit, 4);
    CU_ASSERT(db->limits_differ);
    bed_done(&b);
}

static void on_grace(int r, void *userdata) {
    *(int *) userdata = r;
}

/* An operator who ends grace knows what ran at the last loss of data, but not what Redis lost after that. */
static void test_end_of_an_earlier_grace(void) {
    int first = 1, second = 1;
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    redis_bed_command("FLUSHALL");
    BED_UNTIL(&b, b.stores[0]->state == STORE_STATE_GRACE);
    redis_bed_command("FLUSHALL");
    TEST_INT(store_end_grace(b.stores[0], on_grace, &first), 0);
    BED_UNTIL(&b, first != 1);
    TEST_INT(first, -ENOTCONN);
    BED_UNTIL(&b, b.stores[0]->state == STORE_STATE_GRACE);
    TEST_INT(store_end_grace(b.stores[0], on_grace, &second), 0);
    BED_UNTIL(&b, second != 1);
    TEST_INT(second, 0);
    BED_UNTIL(&b, bed_all_ready(&b));
    bed_done(&b);
}

/* R7: a number is as old as the call whose reply named it, however late the host reads the reply. */
static void test_read_late(void) {
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    const struct store_redis *store = store_redis_of(b.stores[0]);
    for (unsigned i = 0; i < 2; i++) { /* of hello; of a heartbeat in grace, because each of them asks for the latest number */
        redis_bed_command(i == 0 ? "CLIENT KILL TYPE normal SKIPME yes" : "FLUSHALL");
        BED_UNTIL(&b, i == 0 ? store->link.phase == PHASE_HELLO
                             : store->epoch.in_grace && store->heartbeat.is_under_way && store->heartbeat.sent > store->clock.observed_at);
        usec_t sent = i == 0 ? store->hello.sent : store->heartbeat.sent, observed = store->clock.observed_at;
        clock_file_stand(&own_clock, clock_boottime() + redis_bed.heartbeat / 2);
        BED_UNTIL(&b, store->clock.observed_at != observed);
        CU_ASSERT(store->clock.since <= sent);
    }
    bed_done(&b);
}

static CU_TestInfo tests[] = {
    {"dead host", test_dead_host},
    {"restarted daemon", test_restarted_daemon},
    {"a reply that is read late", test_read_late},
    {"clock in the session's file", test_clock_in_the_file},
    {"adopted token", test_adopted_token},
    {"back too late", test_back_too_late},
    {"bad session file", test_bad_session_file},
    {"lease differs", test_lease_differs},
    {"name taken", test_name_taken},
    {"limits differ", test_limits_differ},
    {"scopes differ", test_scopes_differ},
    {"end of an earlier grace", test_end_of_an_earlier_grace},
    CU_TEST_INFO_NULL,
};

TEST_MAIN(redis_bed_main_on_own_clock(argc, argv, suites),
          {.pName = "store-redis-hosts", .pTearDownFunc = tear_down, .pTests = tests})
