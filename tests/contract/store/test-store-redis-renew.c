/* SPDX-License-Identifier: MIT */

/* Passwords, the certificates of server and host, and their authority change while claims are requested: no
 * claim is refused, and Redis is never away. */

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "store/redis/store-redis.h"
#include "tests/harness/redis/redis-bed.h"
#include "tests/harness/redis/tls.h"

#define ROUNDS 20

static char password[32];
static usec_t busy; /* the time in which claims were requested */

static uint64_t connection_of(const struct bed *b) {
    return store_redis_of(b->stores[0])->session.connection;
}

/* Requests and releases claims until the store uses a connection after `before`, or for `least` claims. */
static unsigned claim_on(struct bed *b, uint64_t before, unsigned least) {
    usec_t began = clock_boottime(), end = began + BED_DEADLINE_USEC;
    unsigned n = 0;

    while (n < least ||
           ((connection_of(b) == before || store_redis_of(b->stores[0])->link.phase != PHASE_LIVE) &&
            clock_boottime() < end)) {
        struct probe *p = bed_probe(b, 0, "db:1");

        probe_ask(p);
        BED_UNTIL(b, p->n_granted > 0);
        CU_ASSERT_FATAL(p->n_granted > 0); /* the next claims would not be granted either, and each would be awaited */
        probe_end(p);
        n++;
    }
    busy += clock_boottime() - began;
    return n;
}

static void reload(struct bed *b) {
    struct redis_settings settings = redis_bed_settings();

    TEST_INT(store_redis_use(b->stores[0], &settings), 0);
}

static void command(const char *format, const char *word) {
    _cleanup_reply_ redisReply *reply = redis_command(&redis_bed.server, format, word);

    CU_ASSERT(reply && reply->type == REDIS_REPLY_STATUS);
}

/* A new authority is added to the trusted ones, and signs the certificates of server and host. */
static void change_authority(unsigned round) {
    struct tls_place *place = (struct tls_place *) tls_shared_place();
    char name[16], words[400];

    (void) snprintf(name, sizeof(name), "ca%u", round);
    TEST_INT(tls_place_make_ca(place, name, name), 0);
    TEST_INT(tls_place_sign(place, name, "server", "x", "IP:127.0.0.1", -1, 20), 0);
    TEST_INT(tls_place_sign(place, name, "client", "berth", NULL, -1, 20), 0);
    (void) snprintf(words, sizeof(words), "cd %s && cat %s.crt ca.crt >new && mv new ca.crt", place->folder,
                    name);
    TEST_INT(system(words), 0);
    TEST_INT(tls_server_use(&redis_bed.server, place, "server"), 0);
}

static void test_rotation(void) {
    unsigned n = 0;
    struct bed b;

    busy = 0;
    if (!redis_bed_begin(&b, 1))
        return;
    struct probe *held = bed_probe(&b, 0, "one:1");
    probe_grant(held);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t before = connection_of(&b);
        char old[sizeof(password)];

        memcpy(old, password, sizeof(old));
        if (i % 2 == 0) {
            (void) snprintf(password, sizeof(password), "password-%u", i);
            command("ACL SETUSER berth >%s", password);
        } else {
            change_authority(i);
        }
        reload(&b);
        n += claim_on(&b, before, 50);
        TEST_INT(connection_of(&b), before + 1);
        if (i % 2 == 0)
            command("ACL SETUSER berth <%s", old);
    }
    printf("%u claims, %.0f a second\n", n, (double) n * USEC_PER_SEC / (double) busy);
    TEST_INT(held->n_lost, 0);
    TEST_INT(bed_count_events(&b, "redis-connected: "), 1);
    TEST_INT(bed_count_events(&b, "redis-lost: ") + bed_count_events(&b, "session-lost: "), 0);
    probe_end(held);
    bed_done(&b);
}

/* A reload without a changed file keeps the connections. */
static void test_unchanged(void) {
    struct redis_settings settings;
    uint64_t before;
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    before = connection_of(&b);
    settings = redis_bed_settings();
    TEST_INT(store_redis_use(b.stores[0], &settings), 0); /* the file was written again */
    (void) claim_on(&b, before, 1);
    before = connection_of(&b);
    settings.timeout_usec *= 2;
    TEST_INT(store_redis_use(b.stores[0], &settings), 0);
    (void) claim_on(&b, 0, 20);
    TEST_INT(connection_of(&b), before);
    TEST_INT(store_redis_of(b.stores[0])->link.settings.timeout_usec, 2 * redis_bed.timeout);
    bed_done(&b);
}

/* If new connections fail, the store keeps the old ones and logs the reason. */
static void test_wrong_file(void) {
    struct redis_settings settings;
    char right[sizeof(password)];
    uint64_t before;
    struct bed b;

    if (!redis_bed_begin(&b, 1))
        return;
    before = connection_of(&b);
    memcpy(right, password, sizeof(right));
    (void) snprintf(password, sizeof(password), "wrong");
    reload(&b);
    BED_UNTIL(&b,
              bed_says(&b, "new ones fail: Redis refuses the user or the password (WRONGPASS)"));
    (void) claim_on(&b, 0, 20);
    settings = redis_bed_settings();
    settings.tls.ca = (char *) "/nonexistent";
    TEST_INT(store_redis_use(b.stores[0], &settings), 0);
    BED_UNTIL(&b, bed_says(&b, "new ones fail: tls-ca /nonexistent: No such file or directory"));
    (void) claim_on(&b, 0, 20);
    TEST_INT(connection_of(&b), before);
    memcpy(password, right, sizeof(right));
    reload(&b);
    (void) claim_on(&b, before, 5);
    TEST_INT(connection_of(&b), before + 1);
    TEST_INT(bed_count_events(&b, "redis-lost: "), 0);
    bed_done(&b);
}

static CU_TestInfo tests[] = {
    {"rotation", test_rotation},
    {"unchanged", test_unchanged},
    {"wrong-file", test_wrong_file},
    CU_TEST_INFO_NULL,
};

static int prepare(void) {
    _cleanup_reply_ redisReply *made = NULL, *asks = NULL;

    (void) snprintf(password, sizeof(password), "password");
    made = redis_command(&redis_bed.server, "ACL SETUSER berth on ~* &* +@all >%s", password);
    if (tls_place_sign((struct tls_place *) tls_shared_place(), "ca", "client", "berth", NULL, -1, 20) < 0)
        return -EIO;
    asks = redis_command(&redis_bed.server, "CONFIG SET tls-auth-clients yes");
    return made && made->type == REDIS_REPLY_STATUS && asks && asks->type == REDIS_REPLY_STATUS ? 0 : -EIO;
}

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "store-redis-renew", .pTests = tests}, CU_SUITE_INFO_NULL};

    if (setenv("BERTH_TEST_TLS", "yes", 1) < 0)
        return 1;
    redis_bed.lease = 60 * USEC_PER_SEC; /* certificates are made meanwhile, on a busy machine for seconds */
    redis_bed.heartbeat = USEC_PER_SEC / 2;
    redis_bed.timeout = 15 * USEC_PER_SEC;
    redis_bed.username = "berth";
    redis_bed.has_certificate = true;
    redis_bed.password = password;
    return redis_bed_main(argc, argv, suites, prepare);
}
