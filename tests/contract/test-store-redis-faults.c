/* SPDX-License-Identifier: MIT */

/* store-redis when things go wrong: Redis missing, restarted, wiped, slow, refused; hosts that die, come back, or disagree. */

#include <signal.h>
#include <string.h>

#include "conf/settings.h"
#include "tests/harness/redis.h"
#include "tests/harness/store-bed.h"

#define LEASE (2 * USEC_PER_SEC)

static struct redis_server server;
static struct { /* what the next stores are made with */
    const char *password, *session_path[BED_HOSTS_MAX];
    const char *names[BED_HOSTS_MAX];
    usec_t leases[BED_HOSTS_MAX];
} with;

static const struct store_pool pools[] = {
    {.name = "db", .limit = 4, .queue_limit = 1000},
    {.name = "one", .limit = 1, .queue_limit = 1000},
};

static void command(const char *text) {
    _cleanup_reply_ redisReply *r = redis_command(&server, text);

    CU_ASSERT(r && r->type != REDIS_REPLY_ERROR);
}

static int make(void *userdata _unused_, unsigned host, const char *host_name, bool is_first, sd_event *event,
                struct events *events, const struct store_listener *listener, struct store **ret) {
    struct redis_settings settings = {.unix_path = server.socket, .timeout_usec = USEC_PER_SEC};
    usec_t lease = with.leases[host] ? with.leases[host] : LEASE;
    struct store_redis_options options = {.redis = &settings, .namespace = "test", .version = "1", .lease_usec = lease,
                                          .host = with.names[host] ? with.names[host] : host_name,
                                          .heartbeat_usec = LEASE / 6, .password = with.password,
                                          .session_path = with.session_path[host]};

    if (is_first && server.pid > 0)
        command("FLUSHALL");
    return store_redis_new(ret, event, events, &options, listener);
}

static const struct store_fixture three = {.n_hosts = 3, .make = make}, two = {.n_hosts = 2, .make = make},
                                  one = {.n_hosts = 1, .make = make};

static bool begin(struct bed *b, const struct store_fixture *fixture) {
    return bed_init(b, fixture, pools, ELEMENTSOF(pools)) && bed_start(b);
}

static unsigned count_events(struct bed *b, const char *begin_text) {
    _cleanup_free_ char *text = capture_read(&b->capture);
    unsigned n = 0;

    for (const char *p = text; p && (p = strstr(p, begin_text)); p++)
        n += p == text || p[-1] == '\n';
    return n;
}

static bool says(struct bed *b, const char *part) {
    _cleanup_free_ char *text = capture_read(&b->capture);

    return text && strstr(text, part);
}

/* The host dies (and comes back in its place): its store goes without a bye. */
static void die(struct bed *b, unsigned host) {
    b->stores[host] = store_free(b->stores[host]);
}

static void come_back(struct bed *b, unsigned host, struct store_listener listener) {
    CU_ASSERT_FATAL(make(NULL, host, b->hosts[host], false, b->event, b->events, &listener, &b->stores[host]) == 0);
    TEST_INT(store_declare(b->stores[host], pools, ELEMENTSOF(pools)), 0);
}

static bool all_ready(struct bed *b) {
    for (unsigned i = 0; i < b->n_hosts; i++)
        if (b->stores[i] && b->stores[i]->state != STORE_STATE_READY)
            return false;
    return true;
}

/* --- Redis --- */

static void test_missing_at_start(void) {
    struct bed b;

    redis_server_kill(&server);
    CU_ASSERT_FATAL(bed_init(&b, &one, pools, ELEMENTSOF(pools)));
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
    TEST_INT(count_events(&b, "redis-lost: "), 1); /* not with each try */
    TEST_INT(bed_override(&b, 0, &(struct store_override) {.pool = "db", .limit = 1, .for_usec = USEC_INFINITY}), -ENOTCONN);
    TEST_INT(bed_revoke(&b, 0, p->claim.id), -ENOTCONN);
    TEST_INT(redis_server_resume(&server), 0);
    BED_UNTIL(&b, p->n_granted > 0); /* after the grace of a new namespace */
    TEST_INT(count_events(&b, "redis-connected: "), 1);
    TEST_INT(count_events(&b, "grace-begun: "), 1);
    TEST_INT(count_events(&b, "grace-ended: "), 1);
    bed_done(&b);
}

/* Comes back empty: the limit holds, what runs goes on, waiting claims keep their order, tokens grow. */
static void test_wiped(void) {
    struct probe *waiting[6];
    struct bed b;

    if (!begin(&b, &three))
        return;
    struct probe *held = bed_probe(&b, 0, "db:3"), *other = bed_probe(&b, 1, "db:1");
    probe_grant(held);
    probe_grant(other);
    uint64_t token = held->token > other->token ? held->token : other->token;
    for (unsigned i = 0; i < ELEMENTSOF(waiting); i++)
        probe_wait(waiting[i] = bed_probe(&b, i, "db:2"));
    TEST_INT(redis_server_restart(&server, false), 0);
    struct probe *late = bed_probe(&b, 2, "db:1");
    probe_ask(late); /* asked while it is away */
    BED_UNTIL(&b, count_events(&b, "grace-begun: ") >= 3 + 3);
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

    if (!begin(&b, &one))
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
    CU_ASSERT(deadline > clock_boottime() && deadline <= clock_boottime() + LEASE - 500 * USEC_PER_MSEC);
    redis_server_kill(&server);
    probe_release(going);
    BED_UNTIL(&b, lost->n_lost > 0);
    TEST_INT(lost->loss, STORE_LOSS_SESSION);
    TEST_INT(kept->n_lost + waiting->n_lost, 0);
    CU_ASSERT(clock_boottime() >= b.stores[0]->deadline);
    BED_UNTIL(&b, going->n_released > 0);
    TEST_INT(count_events(&b, "session-lost: "), 1);
    TEST_INT(count_events(&b, "lease-late: "), 1);
    TEST_INT(redis_server_resume(&server), 0);
    probe_end(lost); /* at once: it is not there any more */
    BED_UNTIL(&b, kept->claim.token != token);
    CU_ASSERT(kept->claim.token > token);
    BED_UNTIL(&b, all_ready(&b));
    TEST_INT(bed_used(&b, "db"), 1);
    TEST_INT(waiting->n_granted, 0);
    CU_ASSERT(waiting->claim.ticket == ticket);
    probe_release(kept);
    BED_UNTIL(&b, waiting->n_granted > 0);
    bed_done(&b);
}

/* Frozen for a while, less than a lease: nothing is lost. Timeouts make connections anew. */
static void test_frozen(void) {
    struct bed b;

    if (!begin(&b, &two))
        return;
    struct probe *held = bed_probe(&b, 0, "one"), *waiting = bed_probe(&b, 1, "one");
    probe_grant(held);
    probe_wait(waiting);
    kill(server.pid, SIGSTOP);
    probe_release(held); /* the answer will not come */
    BED_UNTIL(&b, b.stores[0]->state == STORE_STATE_AWAY);
    kill(server.pid, SIGCONT);
    BED_UNTIL(&b, waiting->n_granted > 0);
    BED_UNTIL(&b, held->n_released > 0);
    TEST_INT(held->n_lost, 0);
    TEST_INT(count_events(&b, "session-lost: "), 0);
    bed_done(&b);
}

static void give_back(struct probe *p) {
    if (p->demands.items[0].permits == 4)
        probe_release(p);
}

/* R8: the deadline counts from before the heartbeat was sent, however late its answer is. */
static void test_deadline_from_sending(void) {
    struct bed b;

    if (!begin(&b, &one))
        return;
    usec_t deadline = b.stores[0]->deadline, frozen = clock_boottime();
    kill(server.pid, SIGSTOP);
    while (clock_boottime() < frozen + 600 * USEC_PER_MSEC) /* a heartbeat is sent meanwhile */
        (void) bed_turn(&b, frozen + 600 * USEC_PER_MSEC);
    usec_t thawed = clock_boottime();
    CU_ASSERT(b.stores[0]->deadline == deadline);
    kill(server.pid, SIGCONT);
    BED_UNTIL(&b, b.stores[0]->deadline != deadline);
    CU_ASSERT(b.stores[0]->deadline > deadline);
    CU_ASSERT(b.stores[0]->deadline < thawed + LEASE - settings_margin(LEASE) - 100 * USEC_PER_MSEC);
    bed_done(&b);
}

static void test_connections_cut(void) {
    struct bed b;

    if (!begin(&b, &two))
        return;
    b.on_granted = give_back;
    struct probe *held = bed_probe(&b, 0, "one"), *waiting = bed_probe(&b, 1, "one"), *more[40];
    probe_grant(held);
    probe_wait(waiting);
    command("CLIENT KILL TYPE pubsub");
    for (unsigned i = 0; i < ELEMENTSOF(more); i++)
        probe_ask(more[i] = bed_probe(&b, i, "db:4"));
    command("CLIENT KILL TYPE normal SKIPME yes"); /* under way, some carried out, some not */
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

    if (!begin(&b, &two))
        return;
    struct probe *held = bed_probe(&b, 0, "one"), *waiting = bed_probe(&b, 1, "one");
    probe_grant(held);
    probe_wait(waiting);
    command("SCRIPT FLUSH");
    probe_release(held);
    BED_UNTIL(&b, waiting->n_granted > 0);
    BED_UNTIL(&b, held->n_released > 0);
    TEST_INT(count_events(&b, "redis-lost: "), 0);
    bed_done(&b);
}

/* Another master: grace, although all data is there; nothing is lost. */
static void test_failover(void) {
    struct bed b;

    if (!begin(&b, &two))
        return;
    struct probe *held = bed_probe(&b, 0, "one"), *waiting = bed_probe(&b, 1, "one");
    probe_grant(held);
    probe_wait(waiting);
    command("DEBUG CHANGE-REPL-ID");
    usec_t before = clock_boottime();
    probe_release(held);
    BED_UNTIL(&b, waiting->n_granted > 0);
    CU_ASSERT(clock_boottime() - before >= LEASE);
    BED_UNTIL(&b, held->n_released > 0);
    bed_done(&b);
}

/* A push that never came: a heartbeat's answer tells of it, and of a claim that should be there and is not. */
static void test_lost_push(void) {
    struct bed b;

    if (!begin(&b, &two))
        return;
    struct probe *held = bed_probe(&b, 0, "one"), *waiting = bed_probe(&b, 1, "one"), *dropped = bed_probe(&b, 0, "db:1");
    probe_grant(held);
    probe_wait(waiting);
    probe_grant(dropped);
    _cleanup_reply_ redisReply *r = redis_command(&server, "EVAL %s 0 %s %s",
        "local at = 'berth:{test}:' local claims = at .. 'claims' "
        "redis.call('ZREM', at .. 'pool:one:queue', ARGV[1]) redis.call('ZREM', at .. 'pool:one:wants', ARGV[1]) "
        "redis.call('SADD', at .. 'pool:one:held', ARGV[1] .. '#1') "
        "local record = redis.call('HGET', claims, ARGV[1]) local s = string.match(record, '^%a %d+ (%S+)') "
        "redis.call('HSET', claims, ARGV[1], (string.gsub(record, '^W 0', 'H 2000000000000000'))) "
        "redis.call('HSET', at .. 'meta', 'c:' .. s, (string.gsub(redis.call('HGET', at .. 'meta', 'c:' .. s), ' %d+$', ' 2000000000000000'))) "
        "local other = string.match(redis.call('HGET', claims, ARGV[2]), '^%a %d+ (%S+)') "
        "redis.call('HDEL', claims, ARGV[2]) redis.call('SREM', at .. 'of:' .. other, ARGV[2]) "
        "redis.call('SREM', at .. 'pool:db:held', ARGV[2] .. '#1')",
        waiting->claim.id, dropped->claim.id);
    CU_ASSERT(r && r->type != REDIS_REPLY_ERROR);
    BED_UNTIL(&b, waiting->n_granted > 0);
    CU_ASSERT(waiting->token == 2000000000000000);
    BED_UNTIL(&b, bed_used(&b, "db") == 1); /* told again */
    bed_done(&b);
}

static void test_refused_by_redis(void) {
    struct bed b;

    command("CONFIG SET maxmemory-policy allkeys-lru");
    CU_ASSERT_FATAL(bed_init(&b, &one, pools, ELEMENTSOF(pools)));
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, bed_has_event(&b, "redis-lost: "));
    CU_ASSERT(says(&b, "maxmemory-policy is \"allkeys-lru\""));
    command("CONFIG SET maxmemory-policy noeviction");
    command("CONFIG SET requirepass secret");
    BED_UNTIL(&b, says(&b, "NOAUTH"));
    struct store_listener listener = b.stores[0]->listener;
    die(&b, 0);
    with.password = "wrong";
    come_back(&b, 0, listener);
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, says(&b, "WRONGPASS"));
    die(&b, 0);
    with.password = NULL;
    _cleanup_reply_ redisReply *reset = redis_command(&server, "CONFIG SET requirepass %s", "");
    CU_ASSERT(reset && reset->type == REDIS_REPLY_STATUS);
    come_back(&b, 0, listener);
    CU_ASSERT(bed_start(&b));
    bed_done(&b);
}

static void test_full(void) {
    struct bed b;

    if (!begin(&b, &one))
        return;
    struct probe *held = bed_probe(&b, 0, "db:1"), *more = bed_probe(&b, 0, "db:1");
    probe_grant(held);
    command("CONFIG SET maxmemory 1000");
    probe_refuse(more, STORE_REFUSAL_NO_MEMORY);
    probe_end(held);
    command("CONFIG SET maxmemory 0");
    bed_done(&b);
}

/* --- hosts --- */

static void test_dead_host(void) {
    struct bed b;

    if (!begin(&b, &three))
        return;
    struct probe *dead = bed_probe(&b, 2, "db:4"), *dead_waiter = bed_probe(&b, 2, "one"), *holder = bed_probe(&b, 0, "one"),
                 *waiting = bed_probe(&b, 0, "db:4"), *behind = bed_probe(&b, 1, "one");
    probe_grant(dead);
    probe_grant(holder);
    probe_wait(dead_waiter);
    probe_wait(waiting);
    probe_wait(behind);
    usec_t before = clock_boottime();
    die(&b, 2);
    probe_release(holder);
    BED_UNTIL(&b, waiting->n_granted > 0);
    usec_t took = clock_boottime() - before;
    CU_ASSERT(took > LEASE - LEASE / 6);
    CU_ASSERT(took < LEASE * 4 / 3 + 300 * USEC_PER_MSEC);
    BED_UNTIL(&b, behind->n_granted > 0);
    TEST_INT(count_events(&b, "host-buried: "), 1);
    TEST_INT(count_events(&b, "reclaimed: "), 2); /* what it held, and what was granted to it when it was dead already */
    dead->claim.state = dead_waiter->claim.state = CLAIM_STATE_NONE; /* of the dead */
    dead->host = dead_waiter->host = 0;
    b.n_hosts = 2;
    bed_done(&b);
}

/* berthd is restarted: the session goes on, nothing is lost, and nobody else notices. */
static void test_restarted_daemon(void) {
    char path[sizeof(server.directory) + 16];
    struct bed b;

    (void) snprintf(path, sizeof(path), "%s/session", server.directory);
    with.session_path[0] = path;
    if (!begin(&b, &two))
        return;
    struct probe *held = bed_probe(&b, 0, "db:3"), *gone = bed_probe(&b, 0, "db:1"), *waiting = bed_probe(&b, 0, "db:2"),
                 *behind = bed_probe(&b, 1, "db:1");
    probe_grant(held);
    probe_grant(gone);
    probe_wait(waiting);
    probe_wait(behind);
    struct store_listener listener = b.stores[0]->listener;
    uint64_t token = held->claim.token;
    die(&b, 0);
    come_back(&b, 0, listener);
    struct claim found = {.n_demands = waiting->claim.n_demands, .demands = waiting->claim.demands, .ticket = waiting->claim.ticket};
    memcpy(found.id, waiting->claim.id, sizeof(found.id));
    found.run = waiting->claim.run;
    found.name = waiting->claim.name;
    waiting->claim = found;
    gone->claim.state = CLAIM_STATE_NONE; /* over meanwhile: not named, so dropped */
    TEST_INT(store_adopt(b.stores[0], &held->claim), 0);
    TEST_INT(store_adopt(b.stores[0], &waiting->claim), 0);
    TEST_INT(held->claim.state, CLAIM_STATE_HELD);
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, all_ready(&b));
    BED_UNTIL(&b, waiting->n_waiting == 2);
    TEST_INT(bed_used(&b, "db"), 3);
    CU_ASSERT(held->claim.token == token);
    TEST_INT(held->n_granted + held->n_lost, 1);
    probe_release(held);
    BED_UNTIL(&b, waiting->n_granted > 0);
    BED_UNTIL(&b, behind->n_granted > 0);
    CU_ASSERT(waiting->token < behind->token); /* each heard of it on its own connection */
    TEST_INT(count_events(&b, "session-lost: ") + count_events(&b, "host-buried: "), 0);
    bed_done(&b);
    with.session_path[0] = NULL;
    TEST_INT(access(path, F_OK), -1); /* a bye leaves nothing to continue */
}

/* berthd comes back after its session was buried: what it finds is lost. */
static void test_back_too_late(void) {
    char path[sizeof(server.directory) + 16];
    struct bed b;

    (void) snprintf(path, sizeof(path), "%s/session", server.directory);
    with.session_path[0] = path;
    if (!begin(&b, &two))
        return;
    struct probe *held = bed_probe(&b, 0, "db:3"), *kept = bed_probe(&b, 0, "db:1"), *other = bed_probe(&b, 1, "db:4");
    kept->claim.keep = true;
    probe_grant(held);
    probe_grant(kept);
    uint64_t token = kept->claim.token;
    probe_wait(other);
    struct store_listener listener = b.stores[0]->listener;
    die(&b, 0);
    BED_UNTIL(&b, other->n_granted > 0);
    come_back(&b, 0, listener);
    TEST_INT(store_adopt(b.stores[0], &held->claim), 0);
    TEST_INT(store_adopt(b.stores[0], &kept->claim), 0);
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, held->n_lost > 0);
    TEST_INT(kept->n_lost, 0);
    BED_UNTIL(&b, kept->claim.token > token);
    TEST_INT(bed_used(&b, "db"), 5);
    TEST_INT(count_events(&b, "overcommitted: "), 1);
    bed_done(&b);
    with.session_path[0] = NULL;
    (void) unlink(path);
}

/* A bad session file is told and begins a new session. */
static void test_bad_session_file(void) {
    char path[sizeof(server.directory) + 16];
    struct bed b;

    (void) snprintf(path, sizeof(path), "%s/session", server.directory);
    FILE *f = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs("session\nboot=\n", f);
    fclose(f);
    with.session_path[0] = path;
    if (!begin(&b, &one))
        return;
    struct probe *p = bed_probe(&b, 0, "one");
    probe_grant(p);
    bed_done(&b);
    with.session_path[0] = NULL;
    (void) unlink(path);
}

static void test_lease_differs(void) {
    struct bed b;

    with.leases[1] = 2 * LEASE;
    CU_ASSERT_FATAL(bed_init(&b, &two, pools, ELEMENTSOF(pools)));
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, b.stores[0]->state != STORE_STATE_AWAY);
    TEST_INT(store_start(b.stores[1]), 0);
    BED_UNTIL(&b, bed_has_event(&b, "lease-differs: "));
    TEST_INT(bed_override(&b, 1, &(struct store_override) {.pool = "db", .limit = 1, .for_usec = USEC_INFINITY}), -ENOTCONN);
    usec_t end = clock_boottime() + LEASE;
    while (bed_turn(&b, end))
        ;
    TEST_INT(count_events(&b, "lease-differs: "), 1);
    CU_ASSERT(b.stores[1]->state == STORE_STATE_AWAY);
    die(&b, 0); /* dead: nobody but the refused one can say so */
    BED_UNTIL(&b, b.stores[1]->state != STORE_STATE_AWAY);
    b.stores[0] = b.stores[1];
    b.stores[1] = NULL;
    b.n_hosts = 1;
    bed_done(&b);
    with.leases[1] = 0;
}

static void test_name_taken(void) {
    struct bed b;

    with.names[1] = "ant";
    CU_ASSERT_FATAL(bed_init(&b, &two, pools, ELEMENTSOF(pools)));
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, b.stores[0]->state != STORE_STATE_AWAY);
    _cleanup_reply_ redisReply *r = redis_command(&server, "EVAL %s 0", /* as if it were another machine */
        "local s = redis.call('HKEYS', 'berth:{test}:sessions')[1] redis.call('HSET', 'berth:{test}:sessions', s, "
        "(string.gsub(redis.call('HGET', 'berth:{test}:sessions', s), ' %S+', ' 0123', 1)))");
    CU_ASSERT(r && r->type != REDIS_REPLY_ERROR);
    TEST_INT(store_start(b.stores[1]), 0);
    BED_UNTIL(&b, bed_has_event(&b, "host-name-taken: "));
    CU_ASSERT(b.stores[1]->state == STORE_STATE_AWAY);
    b.stores[1] = store_free(b.stores[1]);
    b.n_hosts = 1;
    bed_done(&b);
    with.names[1] = NULL;
}

static void test_limits_differ(void) {
    struct store_pool changed[ELEMENTSOF(pools)];
    struct bed b;

    if (!begin(&b, &two))
        return;
    memcpy(changed, pools, sizeof(pools));
    changed[0].limit = 3;
    TEST_INT(bed_declare(&b, 1, changed, ELEMENTSOF(changed)), 0);
    BED_UNTIL(&b, bed_has_event(&b, "limits-differ: "));
    _cleanup_(snapshot_freep) struct snapshot *s = bed_inspect(&b, 0);
    const struct snapshot_pool *db = snapshot_find(s, "db");
    CU_ASSERT_PTR_NOT_NULL_FATAL(db);
    TEST_INT(db->limit, 3);
    CU_ASSERT(db->limits_differ);
    TEST_INT(s->n_sessions, 2);
    for (size_t i = 0; i < s->n_sessions; i++) {
        CU_ASSERT(s->sessions[i].seen_usec < LEASE);
        TEST_INT(s->sessions[i].n_limits, strcmp(s->sessions[i].host, "ant") == 0);
        if (s->sessions[i].n_limits > 0)
            TEST_INT(s->sessions[i].limits[0].limit, 4);
    }
    bed_done(&b);
}

static void test_scopes_differ(void) {
    struct store_pool changed[ELEMENTSOF(pools)];
    struct bed b;

    if (!begin(&b, &two))
        return;
    memcpy(changed, pools, sizeof(pools));
    changed[0].elsewhere = true;
    TEST_INT(bed_declare(&b, 1, changed, ELEMENTSOF(changed)), 0);
    BED_UNTIL(&b, bed_has_event(&b, "limits-differ: "));
    _cleanup_(snapshot_freep) struct snapshot *s = bed_inspect(&b, 0);
    const struct snapshot_pool *db = snapshot_find(s, "db");
    CU_ASSERT_PTR_NOT_NULL_FATAL(db);
    TEST_INT(db->limit, 4);
    CU_ASSERT(db->limits_differ);
    bed_done(&b);
}

/* More claims than go into one part of a sync, and than one call grants. */
static void test_large_sync(void) {
    static const struct store_pool wide[] = {{.name = "db", .limit = 450, .queue_limit = 1000}};
    struct probe *p[700];
    struct bed b;

    if (!bed_init(&b, &one, wide, 1) || !bed_start(&b))
        return;
    for (unsigned i = 0; i < ELEMENTSOF(p); i++)
        probe_ask(p[i] = bed_probe(&b, 0, "db:1"));
    for (unsigned i = 0; i < ELEMENTSOF(p); i++)
        BED_UNTIL(&b, p[i]->n_granted + p[i]->n_waiting > 0);
    TEST_INT(redis_server_restart(&server, false), 0);
    for (unsigned i = 0; i < 300; i++)
        probe_release(p[i]); /* 450 to 699 wait */
    BED_UNTIL(&b, all_ready(&b) && p[699]->n_granted > 0);
    for (unsigned i = 0; i < 300; i++)
        BED_UNTIL(&b, p[i]->n_released > 0);
    for (unsigned i = 300; i < ELEMENTSOF(p); i++)
        BED_UNTIL(&b, p[i]->n_granted == 1);
    TEST_INT(bed_used(&b, "db"), 400);
    bed_done(&b);
}

static CU_TestInfo tests[] = {
    {"missing at start", test_missing_at_start},
    {"wiped", test_wiped},
    {"away too long", test_away_too_long},
    {"frozen", test_frozen},
    {"deadline from sending", test_deadline_from_sending},
    {"connections cut", test_connections_cut},
    {"script flush", test_script_flush},
    {"failover", test_failover},
    {"lost push", test_lost_push},
    {"refused by redis", test_refused_by_redis},
    {"full", test_full},
    {"dead host", test_dead_host},
    {"restarted daemon", test_restarted_daemon},
    {"back too late", test_back_too_late},
    {"bad session file", test_bad_session_file},
    {"lease differs", test_lease_differs},
    {"name taken", test_name_taken},
    {"limits differ", test_limits_differ},
    {"scopes differ", test_scopes_differ},
    {"large sync", test_large_sync},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "store-redis, faults", .pTests = tests}, CU_SUITE_INFO_NULL};
    int r;

    if (redis_server_start(&server, NULL) < 0) {
        puts("no redis-server");
        return 1;
    }
    r = test_main(argc, argv, suites);
    redis_server_done(&server);
    return r;
}
