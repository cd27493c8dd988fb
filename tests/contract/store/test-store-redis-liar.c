/* SPDX-License-Identifier: MIT */

/* store-redis and a Redis that gives the same wrong reply each time (tests/harness/redis/redis-peer.h): this costs
 * a bounded number of calls. The test drives the clock, so a store that retries at once would retry without
 * end. */

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/socket.h"
#include "conf/settings.h"
#include "store/store.h"
#include "tests/harness/clock-file.h"
#include "tests/harness/redis/redis-peer.h"
#include "tests/harness/store/store-bed.h"

#define LEASE (2 * USEC_PER_SEC)
#define CONNECTIONS_MAX 8
#define WATCHED (20 * USEC_PER_SEC)
#define HEARTBEATS 60 /* in the measured time */

struct lie {
    const char *name;
    int kind;
    enum peer_change change;
    unsigned at;
    const char *text;
    unsigned calls; /* allowed between two heartbeats */
};

static struct {
    sd_event *event;
    sd_event_source *listens;
    struct {
        sd_event_source *source;
        int fd;
        redisReader *commands;
    } peers[CONNECTIONS_MAX];
    int listener;
    char path[64];
    const struct lie *lie;
    unsigned n_commands;
} s = {.listener = -1};

static void drop_peer(size_t k) {
    sd_event_source_disable_unref(s.peers[k].source);
    (void) close(s.peers[k].fd);
    redisReaderFree(s.peers[k].commands);
    s.peers[k].source = NULL;
}

static int on_command(sd_event_source *source _unused_, int fd, uint32_t events _unused_, void *userdata) {
    size_t k = (size_t) (uintptr_t) userdata;
    char data[16384], answer[16384];
    ssize_t n = recv(fd, data, sizeof(data), MSG_DONTWAIT);
    void *command = NULL;

    if (n <= 0) {
        drop_peer(k);
        return 0;
    }
    CU_ASSERT(redisReaderFeed(s.peers[k].commands, data, (size_t) n) == REDIS_OK);
    while (redisReaderGetReply(s.peers[k].commands, &command) == REDIS_OK && command) {
        size_t size;

        s.n_commands++;
        if (s.lie)
            redis_peer_change(s.lie->kind, s.lie->change, s.lie->at, s.lie->text, strlen(s.lie->text));
        size = redis_peer_answer(command, answer, sizeof(answer));
        freeReplyObject(command);
        if (size == 0)
            (void) shutdown(fd, SHUT_RDWR);
        else
            (void) !send(fd, answer, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    return 0;
}

static int on_connection(sd_event_source *source _unused_, int fd, uint32_t events _unused_, void *userdata _unused_) {
    size_t k = 0;

    while (s.peers[k].source)
        CU_ASSERT_FATAL(++k < CONNECTIONS_MAX);
    s.peers[k].fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    s.peers[k].commands = redisReaderCreate();
    CU_ASSERT_FATAL(sd_event_add_io(s.event, &s.peers[k].source, s.peers[k].fd, EPOLLIN, on_command, (void *) (uintptr_t) k) >= 0);
    return 0;
}

static int make(void *userdata _unused_, unsigned host _unused_, const char *host_name, bool is_first _unused_, sd_event *event,
                struct events *events, const struct store_listener *listener, struct store **ret) {
    struct redis_settings settings = {.unix_path = s.path, .timeout_usec = USEC_PER_SEC, .connect_timeout_usec = USEC_PER_SEC};
    struct store_redis_options options = {.redis = &settings, .namespace = "test", .version = "1", .host = host_name, .lease_usec = LEASE,
                                          .heartbeat_usec = LEASE / 6};

    s.event = event;
    CU_ASSERT_FATAL(sd_event_add_io(event, &s.listens, s.listener, EPOLLIN, on_connection, NULL) >= 0);
    return store_redis_new(ret, event, events, &options, listener);
}

static bool make_bed(struct bed *b) {
    static const struct store_fixture fixture = {.n_hosts = 1, .make = make};
    static const struct store_pool pools[] = {{.name = "db", .limit = 3, .queue_limit = 10}};

    redis_peer_reset();
    (void) snprintf(s.path, sizeof(s.path), "/tmp/berth-liar-%d", (int) getpid());
    s.listener = socket_listen(s.path, SOCK_STREAM, 0600);
    CU_ASSERT_FATAL(s.listener >= 0);
    return bed_init(b, &fixture, pools, ELEMENTSOF(pools));
}

static bool begin(struct bed *b) {
    return make_bed(b) && bed_start(b);
}

static void end(struct bed *b) {
    s.lie = NULL;
    BED_UNTIL(b, b->stores[0]->state == STORE_STATE_READY); /* it is trusted again after correct replies */
    list_foreach(p, &b->probes, struct probe, link)
        BED_UNTIL(b, p->n_granted + p->n_waiting > 0);
    bed_done(b);
    sd_event_source_disable_unref(s.listens);
    for (size_t k = 0; k < CONNECTIONS_MAX; k++)
        if (s.peers[k].source)
            drop_peer(k);
    (void) close_fd(s.listener);
    s.listener = -1;
    (void) unlink(s.path);
}

static void on_override(int r _unused_, void *userdata _unused_) {
}

static void check(struct bed *b, const struct lie *lie) {
    unsigned allowed = lie->calls * HEARTBEATS;
    usec_t until = clock_boottime() + WATCHED;

    s.lie = lie;
    s.n_commands = 0;
    if (lie->kind == REDIS_SCRIPT_CLAIM)
        probe_ask(bed_probe(b, 0, "db"));
    else if (lie->kind == REDIS_SCRIPT_OVERRIDE)
        TEST_INT(store_override(b->stores[0], &(struct store_override) {.pool = "db", .limit = 1, .for_usec = USEC_INFINITY}, on_override, NULL), 0);
    for (size_t k = 0; k < CONNECTIONS_MAX; k++) /* for hello and sync as well */
        if (s.peers[k].source && lie->kind != REDIS_SCRIPT_CLAIM && lie->kind != REDIS_SCRIPT_OVERRIDE)
            (void) shutdown(s.peers[k].fd, SHUT_RDWR);
    while (s.n_commands <= allowed && bed_turn(b, until))
        ;
    if (s.n_commands > allowed || s.n_commands < 5)
        printf("%s: %u calls\n", lie->name, s.n_commands);
    CU_ASSERT(s.n_commands <= allowed);
    CU_ASSERT(s.n_commands >= 5); /* the store did try */
}

#define STALE "*2\r\n$5\r\nstale\r\n:5"

static void test_same_lie(void) {
    static const struct lie lies[] = {
        {"hello: stale", REDIS_SCRIPT_HELLO, PEER_RAW, 0, STALE, 30},
        {"hello: gone", REDIS_SCRIPT_HELLO, PEER_WORD, 0, "gone", 30},
        {"hello: epoch", REDIS_SCRIPT_HELLO, PEER_WORD, 0, "epoch", 30},
        {"hello: no script", REDIS_SCRIPT_HELLO, PEER_ERROR, 0, "NOSCRIPT", 30},
        {"hello: loading", REDIS_SCRIPT_HELLO, PEER_ERROR, 0, "LOADING", 30},
        {"sync: stale", REDIS_SCRIPT_SYNC, PEER_RAW, 0, STALE, 30},
        {"sync: gone", REDIS_SCRIPT_SYNC, PEER_WORD, 0, "gone", 30},
        {"sync: epoch", REDIS_SCRIPT_SYNC, PEER_WORD, 0, "epoch", 30},
        {"sync: no script", REDIS_SCRIPT_SYNC, PEER_ERROR, 0, "NOSCRIPT", 30},
        {"sync: lost", REDIS_SCRIPT_SYNC, PEER_LOST, 0, "", 30},
        {"sync: goes on", REDIS_SCRIPT_SYNC, PEER_REPLACE, 3, "1", 600}, /* up to 266 calls after each pause, and pauses are drawn */
        {"claim: stale", REDIS_SCRIPT_CLAIM, PEER_RAW, 0, STALE, 30},
        {"claim: gone", REDIS_SCRIPT_CLAIM, PEER_WORD, 0, "gone", 30},
        {"claim: epoch", REDIS_SCRIPT_CLAIM, PEER_WORD, 0, "epoch", 30},
        {"claim: no script", REDIS_SCRIPT_CLAIM, PEER_ERROR, 0, "NOSCRIPT", 30},
        {"claim: lost", REDIS_SCRIPT_CLAIM, PEER_LOST, 0, "", 30},
        {"claim: no memory", REDIS_SCRIPT_CLAIM, PEER_ERROR, 0, "OOM", 30},
        {"override: epoch", REDIS_SCRIPT_OVERRIDE, PEER_WORD, 0, "epoch", 30}, /* repeated whenever the link is live */
        {"override: stale", REDIS_SCRIPT_OVERRIDE, PEER_RAW, 0, STALE, 30},
        {"heartbeat: stale", REDIS_SCRIPT_HEARTBEAT, PEER_RAW, 0, STALE, 30},
        {"heartbeat: gone", REDIS_SCRIPT_HEARTBEAT, PEER_WORD, 0, "gone", 30},
        {"heartbeat: epoch", REDIS_SCRIPT_HEARTBEAT, PEER_WORD, 0, "epoch", 30},
        {"heartbeat: no script", REDIS_SCRIPT_HEARTBEAT, PEER_ERROR, 0, "NOSCRIPT", 30},
        {"heartbeat: lost", REDIS_SCRIPT_HEARTBEAT, PEER_LOST, 0, "", 30},
        {"heartbeat: nonsense", REDIS_SCRIPT_HEARTBEAT, PEER_WORD, 0, "nonsense", 30},
        {"heartbeat: another number of claims", REDIS_SCRIPT_HEARTBEAT, PEER_RAW, 0, "$23\r\nok 1 0 0 5 0 77 1000000", 30},
        {"heartbeat: more", REDIS_SCRIPT_HEARTBEAT, PEER_RAW, 0, "$22\r\nok 1 1 0 5 0 0 1000000", 30},
    };

    for (size_t i = 0; i < ELEMENTSOF(lies); i++) {
        struct bed b;

        if (!begin(&b))
            return;
        check(&b, &lies[i]);
        end(&b);
    }
}

static void on_inspected(int r, struct snapshot *snapshot, void *userdata) {
    *(int *) userdata = r;
    snapshot_free(snapshot);
}

/* A list whose cursor never becomes 0 ends a snapshot with an error. */
static void test_endless_list(void) {
    static const struct lie lie = {"list: goes on", PEER_LIST, PEER_RAW, 0, "*2\r\n$1\r\n5\r\n*0", 0};
    struct bed b;
    int result = 1;

    if (!begin(&b))
        return;
    probe_ask(bed_probe(&b, 0, "db"));
    probe_ask(bed_probe(&b, 0, "db"));
    list_foreach(p, &b.probes, struct probe, link)
        BED_UNTIL(&b, p->n_granted + p->n_waiting > 0);
    s.lie = &lie;
    s.n_commands = 0;
    TEST_INT(store_inspect(b.stores[0], NULL, on_inspected, &result), 0);
    for (usec_t until = clock_boottime() + 600 * USEC_PER_SEC; result == 1 && s.n_commands < 200000 && bed_turn(&b, until);)
        ;
    TEST_INT(result, -EBADMSG);
    end(&b);
}

/* Pictures of an epoch that hello never names: each asker gets an answer, and Redis few calls. */
static void test_other_epoch(void) {
    static const struct lie lie = {"sessions: epoch", REDIS_SCRIPT_INSPECT, PEER_REPLACE, 8, "elsewhere", 0};
    struct bed b;

    if (!begin(&b))
        return;
    s.lie = &lie;
    s.n_commands = 0;
    for (int i = 0; i < 5; i++) {
        int result = 1;

        TEST_INT(store_inspect(b.stores[0], NULL, on_inspected, &result), 0);
        BED_UNTIL(&b, result <= 0);
        TEST_INT(result, -ESTALE);
    }
    CU_ASSERT(s.n_commands < 300);
    end(&b);
}

/* An old server is refused with a message that has its version and says what to do, and accepted once it is new enough. */
static void test_too_old(void) {
    static const char expected[] = "Redis 6.2.14 is too old: berth needs Redis 7.0 or Valkey 7.2";
    struct bed b;

    CU_ASSERT_FATAL(make_bed(&b));
    redis_peer_set_version("6.2.14");
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, b.stores[0]->away_why[0] != '\0');
    TEST_STRING(b.stores[0]->away_why, expected);
    redis_peer_set_version("7.0.15");
    end(&b);
}

/* A proxy that refuses the command is not taken for an old server. */
static void test_info_refused(void) {
    struct bed b;

    CU_ASSERT_FATAL(make_bed(&b));
    redis_peer_set_version("10.1.0");
    redis_peer_change(PEER_INFO, PEER_ERROR, 0, "ERR syntax error", strlen("ERR syntax error"));
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, b.stores[0]->away_why[0] != '\0');
    TEST_STRING(b.stores[0]->away_why, "ERR syntax error (INFO with several sections)");
    end(&b);
}

/* berthd could not distinguish a new epoch from the old one. */
static void test_no_replication_id(void) {
    static const char info[] = "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n";
    struct bed b;

    CU_ASSERT_FATAL(make_bed(&b));
    redis_peer_set_info(info);
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, b.stores[0]->away_why[0] != '\0');
    TEST_STRING(b.stores[0]->away_why,
                "Redis does not report its replication id: berth could not notice a failover (INFO replication "
                "has no master_replid)");
    CU_ASSERT(bed_says(&b, "Redis refuses, an administrator is needed: Redis does not report its replication id"));
    redis_peer_set_info(NULL);
    end(&b);
}

static CU_TestInfo tests[] = {
    {"the same wrong reply each time", test_same_lie},
    {"endless list", test_endless_list},
    {"other epoch", test_other_epoch},
    {"too-old", test_too_old},
    {"info-refused", test_info_refused},
    {"no replication id", test_no_replication_id},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "store-redis and a liar", .pTests = tests}, CU_SUITE_INFO_NULL};

    clock_file_own(argv);
    clock_file_stand(&own_clock, clock_boottime());
    return test_main(argc, argv, suites);
}
