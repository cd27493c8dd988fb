/* SPDX-License-Identifier: MIT */

/* The pools that the sessions of a snapshot declare, and what differs from this host. */

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/operator/inspect-internal.h"
#include "store/redis/store-redis.h"
#include "tests/harness/test.h"

#define SESSIONS 1000
#define LIMITS 400
#define POOLS 1000
#define TIME_MAX USEC_PER_SEC /* of a processor; this is done in one turn of the loop */

static struct store_redis *store;
static struct inspection inspection;

static void begin(size_t n_own) {
    store = calloc(1, sizeof(*store));
    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    list_init(&store->table.entries);
    store->limits.declared = calloc(n_own + 1, sizeof(*store->limits.declared));
    inspection = (struct inspection) {.store = store, .snapshot = calloc(1, sizeof(struct snapshot))};
    inspection.snapshot->sessions = calloc(SESSIONS, sizeof(*inspection.snapshot->sessions));
}

static void end(void) {
    snapshot_free(inspection.snapshot);
    free(store->limits.declared);
    free(store);
}

static void add_own(const char *name, uint32_t limit, bool is_host_scoped, uint32_t due_hash) {
    struct declared *d = &store->limits.declared[store->limits.n_declared++];

    *d = (struct declared) {.pool = {.limit = limit, .is_host_scoped = is_host_scoped, .due_hash = due_hash}};
    (void) snprintf(d->pool.name, sizeof(d->pool.name), "%s", name);
}

static struct snapshot_session *add_session(size_t n) {
    struct snapshot_session *s = &inspection.snapshot->sessions[inspection.snapshot->n_sessions++];

    (void) snprintf(s->id, sizeof(s->id), "%032zx", inspection.snapshot->n_sessions);
    s->limits = calloc(n, sizeof(*s->limits));
    return s;
}

static void add_limit(struct snapshot_session *s, const char *name, uint32_t limit, bool is_host_scoped, uint32_t due_hash) {
    struct snapshot_limit *l = &s->limits[s->n_limits++];

    *l = (struct snapshot_limit) {.limit = limit, .is_host_scoped = is_host_scoped, .due_hash = due_hash};
    inspection.n_limits++;
    (void) snprintf(l->pool, sizeof(l->pool), "%s", name);
}

static void format_differences(const struct snapshot_session *s, char *text, size_t size) {
    text[0] = '\0';
    for (size_t i = 0; i < s->n_limits; i++) {
        const struct snapshot_limit *l = &s->limits[i];

        (void) snprintf(text + strlen(text), size - strlen(text), "%s%s%s%s%s%s", i > 0 ? " " : "", l->pool, l->differs ? " differs" : "",
                        l->is_due_otherwise ? " due" : "", l->is_only_there ? " there" : "", l->is_only_here ? " here" : "");
    }
}

static void test_differences(void) {
    struct snapshot_session *s;
    char text[512];

    begin(8);
    add_own("same", 3, false, 0);
    add_own("low", 4, false, 0);
    add_own("mine", 1, false, 0);
    add_own("host", 1, true, 0);
    add_own("scoped", 1, true, 0);
    add_own("@job", 1, false, 0x1234);
    add_own("@own", 1, false, 0x1234);
    add_own("first", 1, false, 0);
    s = add_session(8);
    add_limit(s, "there", 2, false, 0);
    add_limit(s, "low", 2, false, 0);
    add_limit(s, "same", 3, false, 0);
    add_limit(s, "host", 0, true, 0);
    add_limit(s, "scoped", 1, false, 0);
    add_limit(s, "@job", 1, false, 0x5678);
    add_limit(s, "@else", 1, false, 0x5678);
    add_limit(s, "first", 1, false, 0);
    s = add_session(2);
    add_limit(s, "same", 3, false, 0);
    add_limit(s, "low", 5, false, 0);
    TEST_INT(inspect_collect_pools(&inspection), 0);
    format_differences(&inspection.snapshot->sessions[0], text, sizeof(text));
    TEST_STRING(text, "there there @job due mine here");
    format_differences(&inspection.snapshot->sessions[1], text, sizeof(text));
    TEST_STRING(text, "low differs first here mine here");
    TEST_INT(inspection.snapshot->n_pools, 9);
    TEST_STRING(inspection.snapshot->pools[0].name, "same");
    TEST_STRING(inspection.snapshot->pools[6].name, "there");
    TEST_INT(snapshot_find_pool(inspection.snapshot, "low")->limit, 2);
    end();
}

/* At the bounds of a snapshot nothing else waits long for this. */
static void test_many(void) {
    char name[32];
    clock_t begun;

    begin(LIMITS);
    for (unsigned k = 0; k < LIMITS; k++) {
        (void) snprintf(name, sizeof(name), "a-pool-of-hosts-%u", k);
        add_own(name, 2, false, 0);
    }
    for (unsigned i = 0; i < SESSIONS; i++) {
        struct snapshot_session *s = add_session(LIMITS);

        for (unsigned k = 0; k < LIMITS; k++) {
            (void) snprintf(name, sizeof(name), "a-pool-of-hosts-%u", (i + k) % POOLS);
            add_limit(s, name, 2, false, 0);
        }
    }
    begun = clock();
    TEST_INT(inspect_collect_pools(&inspection), 0);
    begun = clock() - begun;
    if ((usec_t) begun >= TIME_MAX)
        printf("%ld ms\n", (long) begun / 1000);
    CU_ASSERT((usec_t) begun < TIME_MAX);
    TEST_INT(inspection.snapshot->n_pools, POOLS);
    end();
}

/* Returns the reply with one session that declares n pools. */
static redisReply *reply_of(size_t n) {
    static const char item[] = "a=1,", end[] = "\r\n*1\r\n:3\r\n",
                      head[] = "*10\r\n+ok\r\n*0\r\n+e\r\n:0\r\n:0\r\n:5\r\n*1\r\n+0123456789abcdef0123456789abcdef\r\n*1\r\n:7\r\n*1\r\n+";
    size_t size = strlen("bee m 1 ") + n * strlen(item) - 1;
    redisReader *reader = redisReaderCreate();
    char *record = malloc(size + 2), *at = stpcpy(record, "bee m 1 ");
    void *reply = NULL;

    while (n-- > 0)
        at = stpcpy(at, item);
    at[-1] = '\0';
    CU_ASSERT_FATAL(redisReaderFeed(reader, head, strlen(head)) == REDIS_OK);
    CU_ASSERT_FATAL(redisReaderFeed(reader, record, size) == REDIS_OK);
    CU_ASSERT_FATAL(redisReaderFeed(reader, end, strlen(end)) == REDIS_OK);
    CU_ASSERT_FATAL(redisReaderGetReply(reader, &reply) == REDIS_OK && reply);
    redisReaderFree(reader);
    free(record);
    return reply;
}

/* A record of any length may be in Redis, and each pool in it takes memory here. */
static void test_too_many(void) {
    redisReply *most = reply_of(400000), *more = reply_of(600001);

    begin(0);
    strcpy(store->epoch.id, "e");
    TEST_INT(inspect_read_sessions(&inspection, most), 0);
    TEST_INT(inspect_read_sessions(&inspection, more), 0);
    TEST_INT(inspection.snapshot->n_sessions, 1);
    TEST_INT(inspection.snapshot->n_malformed, 1);
    end();
    freeReplyObject(most);
    freeReplyObject(more);
}

static CU_TestInfo tests[] = {
    {"differences", test_differences},
    {"many hosts with many pools", test_many},
    {"too many pools", test_too_many},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "inspect-collect", .pTests = tests});
