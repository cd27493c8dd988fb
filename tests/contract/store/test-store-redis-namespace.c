/* SPDX-License-Identifier: MIT */

/* A host remembers the id of its namespace. It refuses another Redis that has a namespace of the same
 * name. It does not take permits of one place along to another. */

#include <string.h>
#include <unistd.h>

#include "store/redis/store-redis.h"
#include "tests/harness/redis/redis-bed.h"

#define ID "0123456789abcdef0123456789abcdef"
#define DIFFERS "this Redis has another namespace \"test\", not the one that this host was in: wrong url?"

static struct redis_server first, second, *current = &first;
static char paths[2][sizeof(first.directory) + 16];

/* The bed has a copy of the server's record, and its connection. */
static void use(struct redis_server *server) {
    *current = redis_bed.server;
    redis_bed.server = *server;
    current = server;
}

static bool begin(struct bed *b, unsigned n) {
    for (unsigned i = 0; i < 2; i++) {
        (void) snprintf(paths[i], sizeof(paths[i]), "%s/session-%u", redis_bed.server.directory, i);
        (void) unlink(paths[i]);
        redis_bed.session_path[i] = paths[i];
    }
    return redis_bed_begin(b, n);
}

static const char *id_of(struct bed *b, unsigned host) {
    return store_redis_of(b->stores[host])->session.namespace;
}

static void check_there(const char *id) {
    _cleanup_reply_ redisReply *reply = redis_command(&redis_bed.server, "HGET berth:{test}:meta id");

    TEST_STRING(reply && reply->type == REDIS_REPLY_STRING ? reply->str : "none", id);
}

/* Restarts berthd of a host with the url of this server. */
static void restart_at(struct bed *b, unsigned host, struct redis_server *server) {
    bed_die(b, host);
    use(server);
    bed_come_back(b, host);
    TEST_INT(store_start(b->stores[host]), 0);
}

/* Nothing of the first namespace is held, freed or written in the second, until an operator accepts the
 * second. */
static void test_wrong_url(void) {
    char old[ID_TEXT_SIZE];
    struct bed b;

    if (!begin(&b, 1))
        return;
    BED_UNTIL(&b, id_of(&b, 0)[0] != '\0');
    memcpy(old, id_of(&b, 0), sizeof(old));
    check_there(old);
    struct probe *held = bed_probe(&b, 0, "db:1");
    probe_grant(held);
    TEST_INT(store_redis_accept(b.stores[0]), STORE_E_UNKNOWN);
    bed_die(&b, 0);
    use(&second);
    redis_bed_command("FLUSHALL");
    redis_bed_command("HSET berth:{test}:meta id " ID " schema 1");
    bed_come_back(&b, 0);
    TEST_INT(store_adopt(b.stores[0], &held->claim), 0);
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, bed_has_event(&b, "namespace-differs: "));
    TEST_STRING(b.stores[0]->away_why, DIFFERS);
    usec_t until = clock_boottime() + 2 * redis_bed.heartbeat;
    while (bed_turn(&b, until))
        ;
    TEST_INT(b.stores[0]->state, STORE_STATE_AWAY);
    TEST_INT(bed_count_events(&b, "namespace-differs: "), 1);
    TEST_INT(redis_number(&redis_bed.server, "DBSIZE"), 1);
    TEST_INT(redis_number(&redis_bed.server, "HLEN berth:{test}:meta"), 2);
    TEST_INT(held->n_lost, 0); /* its guard has the deadline */
    TEST_INT(store_redis_accept(b.stores[0]), 0);
    BED_UNTIL(&b, held->n_lost == 1);
    probe_release(held);
    BED_UNTIL(&b, b.stores[0]->state != STORE_STATE_AWAY);
    TEST_STRING(id_of(&b, 0), ID);
    check_there(ID);
    TEST_INT(redis_number(&redis_bed.server, "SCARD berth:{test}:pool:db:held"), 0);
    TEST_INT(store_redis_accept(b.stores[0]), STORE_E_UNKNOWN);
    BED_UNTIL(&b, bed_all_ready(&b)); /* after its grace */
    bed_done(&b);
    use(&first);
}

/* With the right url again, the host goes on as before. */
static void test_right_again(void) {
    struct bed b;

    if (!begin(&b, 1))
        return;
    BED_UNTIL(&b, id_of(&b, 0)[0] != '\0');
    use(&second);
    redis_bed_command("FLUSHALL");
    redis_bed_command("HSET berth:{test}:meta id " ID " schema 1");
    restart_at(&b, 0, &second);
    BED_UNTIL(&b, bed_has_event(&b, "namespace-differs: "));
    restart_at(&b, 0, &first);
    BED_UNTIL(&b, bed_all_ready(&b));
    struct probe *p = bed_probe(&b, 0, "db:1");
    probe_grant(p);
    probe_end(p);
    bed_done(&b);
    use(&first);
}

/* Redis loses its data, and a host that remembers nothing says hello first: the old hosts go on with the old id, and the
 * new host learns it. */
static void test_wiped(void) {
    char old[ID_TEXT_SIZE];
    struct bed b;

    if (!begin(&b, 2))
        return;
    BED_UNTIL(&b, id_of(&b, 0)[0] != '\0' && id_of(&b, 1)[0] != '\0');
    TEST_STRING(id_of(&b, 0), id_of(&b, 1));
    memcpy(old, id_of(&b, 0), sizeof(old));
    bed_die(&b, 0);
    bed_die(&b, 1);
    redis_bed_command("FLUSHALL");
    (void) unlink(paths[1]); /* rebooted */
    bed_come_back(&b, 1);
    TEST_INT(store_start(b.stores[1]), 0);
    BED_UNTIL(&b, b.stores[1]->state == STORE_STATE_GRACE);
    check_there("none");
    bed_come_back(&b, 0);
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, b.stores[0]->state == STORE_STATE_GRACE);
    check_there(old);
    BED_UNTIL(&b, bed_all_ready(&b));
    BED_UNTIL(&b, strcmp(id_of(&b, 1), old) == 0);
    TEST_INT(bed_count_events(&b, "namespace-differs: "), 0);
    bed_done(&b);
    use(&first);
}

/* A clean stop ends the session and keeps the id. */
static void test_after_bye(void) {
    char old[ID_TEXT_SIZE];
    struct bed b;

    if (!begin(&b, 1))
        return;
    BED_UNTIL(&b, id_of(&b, 0)[0] != '\0');
    memcpy(old, id_of(&b, 0), sizeof(old));
    bed_done(&b);
    CU_ASSERT_FATAL(redis_bed_init(&b, 1));
    use(&second);
    bed_die(&b, 0);
    redis_bed_command("FLUSHALL");
    redis_bed_command("HSET berth:{test}:meta id " ID " schema 1");
    bed_come_back(&b, 0);
    TEST_INT(store_start(b.stores[0]), 0);
    BED_UNTIL(&b, bed_has_event(&b, "namespace-differs: "));
    TEST_STRING(id_of(&b, 0), old);
    redis_bed_command("FLUSHALL"); /* and an empty Redis gets it */
    BED_UNTIL(&b, b.stores[0]->state != STORE_STATE_AWAY);
    check_there(old);
    CU_ASSERT(bed_start(&b));
    bed_done(&b);
    use(&first);
}

/* --- the config names another place --- */

#define HOLDS_THERE "runs of this host hold permits of namespace \"test\": name it again and restart berthd, or wait until they have ended"
#define HOLDS_ELSEWHERE                                                                                    \
    "runs of this host hold permits of another Redis, and this one does not know them: correct the url and " \
    "restart berthd, or wait until they have ended"

static void set_place(const char *namespace, uint64_t redis_hash) {
    redis_bed.namespace = namespace;
    redis_bed.redis_hash = redis_hash;
}

/* Restarts berthd of host 0, which finds this claim. */
static void restart_with(struct bed *b, struct probe *held) {
    bed_die(b, 0);
    bed_come_back(b, 0);
    TEST_INT(store_adopt(b->stores[0], &held->claim), 0);
    TEST_INT(store_start(b->stores[0]), 0);
}

static struct probe *grant_one(struct bed *b, bool keep) {
    struct probe *held;

    BED_UNTIL(b, id_of(b, 0)[0] != '\0');
    held = bed_probe(b, 0, "db:1");
    held->claim.keep = keep;
    probe_grant(held);
    return held;
}

static void end_at_place(struct bed *b) {
    BED_UNTIL(b, bed_all_ready(b));
    bed_done(b);
    set_place(NULL, 0);
    use(&first);
}

/* The other place is used when the run has ended. A config that names the old place again finds its permit. */
static void test_renamed(void) {
    struct bed b;

    if (!begin(&b, 1))
        return;
    struct probe *held = grant_one(&b, false);
    for (unsigned i = 0; i < 2; i++) {
        set_place("other", 0);
        restart_with(&b, held);
        BED_UNTIL(&b, bed_count_events(&b, "namespace-differs: ") == i + 1);
        TEST_STRING(b.stores[0]->away_why, HOLDS_THERE);
        TEST_INT(redis_number(&redis_bed.server, "EXISTS berth:{other}:meta"), 0);
        if (i > 0)
            break;
        set_place(NULL, 0);
        restart_with(&b, held);
        BED_UNTIL(&b, b.stores[0]->state == STORE_STATE_READY);
        TEST_INT(held->n_lost, 0);
        TEST_INT(redis_number(&redis_bed.server, "SCARD berth:{test}:pool:db:held"), 1);
    }
    redis_bed_command("HSET berth:{other}:meta id " ID " schema 1");
    TEST_INT(held->n_lost, 0); /* its guard has the deadline */
    probe_release(held);
    BED_UNTIL(&b, strcmp(id_of(&b, 0), ID) == 0); /* nothing to accept: the name is another one on purpose */
    end_at_place(&b);
}

/* Another host has brought the id of the namespace to the other Redis. */
static void test_another_redis(void) {
    char old[ID_TEXT_SIZE];
    struct bed b;

    if (!begin(&b, 2))
        return;
    struct probe *held = grant_one(&b, false);
    memcpy(old, id_of(&b, 0), sizeof(old));
    BED_UNTIL(&b, id_of(&b, 1)[0] != '\0');
    use(&second);
    redis_bed_command("FLUSHALL");
    set_place(NULL, 1);
    bed_die(&b, 1);
    bed_come_back(&b, 1);
    TEST_INT(store_start(b.stores[1]), 0);
    BED_UNTIL(&b, b.stores[1]->state == STORE_STATE_GRACE);
    check_there(old);
    restart_with(&b, held);
    BED_UNTIL(&b, bed_has_event(&b, "namespace-differs: "));
    TEST_STRING(b.stores[0]->away_why, HOLDS_ELSEWHERE);
    TEST_INT(redis_number(&redis_bed.server, "HLEN berth:{test}:sessions"), 1);
    probe_release(held);
    BED_UNTIL(&b, b.stores[0]->state != STORE_STATE_AWAY);
    end_at_place(&b);
}

/* The url is another one, and leads to the same Redis, or to one that was restored from its data: the run goes on. */
static void test_alias(void) {
    struct bed b;

    if (!begin(&b, 1))
        return;
    struct probe *held = grant_one(&b, false);
    set_place(NULL, 1);
    restart_with(&b, held);
    BED_UNTIL(&b, b.stores[0]->state == STORE_STATE_READY);
    set_place(NULL, 2);
    bed_die(&b, 0);
    TEST_INT(redis_server_restart(&redis_bed.server, true), 0);
    restart_with(&b, held);
    BED_UNTIL(&b, b.stores[0]->state == STORE_STATE_GRACE);
    TEST_INT(bed_count_events(&b, "namespace-differs: "), 0);
    TEST_INT(held->n_lost, 0);
    bed_die(&b, 0);
    redis_bed_command("FLUSHALL"); /* now it may lose its data */
    restart_with(&b, held);
    BED_UNTIL(&b, b.stores[0]->state == STORE_STATE_GRACE);
    TEST_INT(held->n_lost, 0);
    probe_end(held);
    end_at_place(&b);
}

/* A run that goes on without a lease has its permits at the other place, too. */
static void test_kept(void) {
    struct bed b;

    if (!begin(&b, 1))
        return;
    struct probe *held = grant_one(&b, true);
    set_place("other", 1);
    restart_with(&b, held);
    BED_UNTIL(&b, b.stores[0]->state == STORE_STATE_GRACE);
    BED_UNTIL(&b, redis_number(&redis_bed.server, "SCARD berth:{other}:pool:db:held") == 1);
    TEST_INT(held->n_lost, 0);
    probe_end(held);
    end_at_place(&b);
}

/* An operator does not wait for the run. */
static void test_accepted_elsewhere(void) {
    struct bed b;

    if (!begin(&b, 1))
        return;
    struct probe *held = grant_one(&b, false);
    set_place("other", 0);
    restart_with(&b, held);
    BED_UNTIL(&b, bed_has_event(&b, "namespace-differs: "));
    TEST_INT(store_redis_accept(b.stores[0]), 0);
    BED_UNTIL(&b, held->n_lost == 1);
    TEST_INT(b.stores[0]->state, STORE_STATE_AWAY);
    probe_release(held);
    BED_UNTIL(&b, b.stores[0]->state == STORE_STATE_GRACE);
    TEST_INT(redis_number(&redis_bed.server, "SCARD berth:{other}:pool:db:held"), 0);
    end_at_place(&b);
}

/* Only calls to a cluster name the key that must not exist (R17). */
static void test_one_key(void) {
    struct bed b;

    if (redis_bed.server.bus_port > 0)
        TEST_SKIP("calls to a cluster name the key; test-store-cluster makes it");
    if (!redis_bed_init(&b, 1))
        return;
    redis_bed_command("SET berth:{test}:none x");
    CU_ASSERT(bed_start(&b));
    redis_bed_command("DEL berth:{test}:none");
    bed_done(&b);
}

static int prepare(void) {
    return redis_server_start(&second, NULL);
}

static CU_TestInfo tests[] = {
    {"wrong url", test_wrong_url},
    {"right again", test_right_again},
    {"wiped", test_wiped},
    {"after bye", test_after_bye},
    {"renamed", test_renamed}, {"another redis", test_another_redis}, {"alias", test_alias},
    {"kept", test_kept}, {"accepted elsewhere", test_accepted_elsewhere},
    {"one key", test_one_key},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "store-redis-namespace", .pTests = tests}, CU_SUITE_INFO_NULL};
    int r;

    r = redis_bed_main(argc, argv, suites, prepare);
    redis_server_done(&second);
    return r;
}
