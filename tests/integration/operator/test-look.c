/* SPDX-License-Identifier: MIT */

/* The method Look: pictures of pools and hosts, what they cost Redis, and a client that reads slowly. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/client/client.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define PATIENCE (20 * USEC_PER_SEC)
#define MANY 20

static struct host *ant;

static void up(void) {
    cluster_up();
    /* The others make a snapshot of eight calls. */
    ant = host_up("ant", "pool \"db\" { limit = 2 }\npool \"here\" { limit = 1 scope = \"host\" }\npool \"a\" { limit = 1 }\n"
                         "pool \"b\" { limit = 1 }\npool \"c\" { limit = 1 }\npool \"d\" { limit = 1 }\npool \"e\" { limit = 1 }\n"
                         "pool \"f\" { limit = 1 }\n");
    client_set_socket(ant->socket);
}

static struct client *look(json_t *params, enum client_flags flags) {
    struct client *c = NULL;

    TEST_INT(client_connect(&c), 0);
    TEST_INT(client_send(c, "io.berth.Look", params, flags), 0);
    return c;
}

/* Returns the next picture, to be json_decref'ed. */
static json_t *next(struct client *c) {
    _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;

    CU_ASSERT_FATAL(client_receive_until(c, &reply, clock_boottime() + PATIENCE) == 0);
    CU_ASSERT_PTR_NULL(reply.error);
    return json_incref(reply.params);
}

static long long used_of(json_t *picture) {
    return berth_number_at(picture, "pools.name=db.used");
}

/* --- what a picture has --- */

static void test_once(void) {
    _cleanup_(client_freep) struct client *c = look(json_pack("{s:b}", "hosts", true), 0);
    json_t *picture = next(c);

    AT_INT(picture, "schema", 1);
    AT_STRING(picture, "host", "ant");
    AT_STRING(picture, "redis.state", "connected");
    AT_STRING(picture, "hosts.0.host", "ant");
    TEST_INT(json_array_size(berth_at(picture, "pools")), 8);
    CU_ASSERT(json_is_false(berth_at(picture, "stale")) && json_is_true(berth_at(picture, "complete")));
    CU_ASSERT(berth_number_at(picture, "age_ms") >= 0 && berth_number_at(picture, "age_ms") < 5000);
    json_decref(picture);
}

static void test_errors(void) {
    _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;
    _cleanup_(client_freep) struct client *c = look(json_pack("{s:[s]}", "pools", "dbb"), CLIENT_MORE);

    TEST_INT(client_receive_until(c, &reply, clock_boottime() + PATIENCE), 0);
    TEST_STRING(reply.error, "io.berth.NoSuchPool");
    client_reply_done(&reply);
    TEST_INT(client_send(c, "io.berth.Look", json_pack("{s:i}", "interval_ms", 999), 0), 0);
    TEST_INT(client_receive_until(c, &reply, clock_boottime() + PATIENCE), 0);
    TEST_STRING(reply.error, "org.varlink.service.InvalidParameter");
}

/* While Redis is away, a picture has no age and shows what this host knows. */
static void test_away(void) {
    _cleanup_(client_freep) struct client *c = look(NULL, CLIENT_MORE);
    json_t *picture = next(c);

    host_mark(ant);
    redis_server_kill(&cluster.redis);
    host_await(ant, "redis-lost", " ");
    do {
        json_decref(picture);
        picture = next(c);
    } while (!json_is_true(berth_at(picture, "stale")));
    AT_NULL(picture, "age_ms");
    CU_ASSERT(json_is_false(berth_at(picture, "complete")));
    json_decref(picture);
    TEST_INT(redis_server_resume(&cluster.redis), 0);
    host_await(ant, "redis-connected", " ");
    host_end_grace(ant);
}

/* Clients that ask at the same moment get what each asked for. */
static void test_apart(void) {
    _cleanup_(client_freep) struct client *all = look(NULL, CLIENT_MORE),
                                          *hosts = look(json_pack("{s:b}", "hosts", true), CLIENT_MORE),
                                          *named = look(json_pack("{s:[s]}", "pools", "a"), CLIENT_MORE);

    for (unsigned i = 0; i < 3; i++) {
        json_t *of_all = next(all), *of_hosts = next(hosts), *of_named = next(named);

        TEST_INT(json_array_size(berth_at(of_all, "pools")), 8);
        CU_ASSERT_PTR_NULL(json_object_get(of_all, "hosts"));
        AT_STRING(of_hosts, "hosts.0.host", "ant");
        TEST_INT(json_array_size(berth_at(of_named, "pools")), 1);
        AT_STRING(of_named, "pools.0.name", "a");
        json_decref(of_all);
        json_decref(of_hosts);
        json_decref(of_named);
    }
}

/* --- one after the other --- */

static void test_more(void) {
    _cleanup_(client_freep) struct client *c = look(NULL, CLIENT_MORE);
    json_t *picture = next(c);
    struct child *holder;

    TEST_INT(used_of(picture), 0);
    holder = berth_start(ant, "run -p db:2 -- sleep 1000");
    host_await(ant, "started", " ");
    do {
        json_decref(picture);
        picture = next(c);
    } while (used_of(picture) == 0);
    TEST_INT(used_of(picture), 2);
    AT_INT(picture, "pools.name=db.holders.0.permits", 2);
    json_decref(picture);
    child_free(holder);
}

/* Returns how many scripts Redis has run. */
static uint64_t scripts(void) {
    _cleanup_reply_ redisReply *stats = redis_command(&cluster.redis, "INFO commandstats");
    const char *at = strstr(stats->str, "cmdstat_evalsha:calls=");

    CU_ASSERT_FATAL(at != NULL);
    return strtoull(at + strlen("cmdstat_evalsha:calls="), NULL, 10);
}

/* Returns how many scripts run while the first of n clients gets five pictures. */
static uint64_t cost_of(size_t n) {
    struct client *clients[MANY];
    uint64_t before;

    for (size_t i = 0; i < n; i++) {
        clients[i] = look(NULL, CLIENT_MORE);
        json_decref(next(clients[i]));
    }
    json_decref(next(clients[0]));
    before = scripts();
    for (unsigned pictures = 0; pictures < 5; pictures++)
        json_decref(next(clients[0]));
    before = scripts() - before;
    for (size_t i = 0; i < n; i++)
        client_free(clients[i]);
    return before;
}

static void test_cost(void) {
    uint64_t of_one = cost_of(1), of_many = cost_of(MANY);

    if (of_many > of_one + 20) { /* heartbeats, and a picture more or less; each picture twice would be 40 */
        printf("%" PRIu64 " scripts for one, %" PRIu64 " for %d\n", of_one, of_many, MANY);
        CU_FAIL("concurrent clients do not share a snapshot");
    }
}

/* --- a slow client --- */

#define POOLS 60
#define DESCRIPTION 2000 /* bytes: a picture has more than half of what the socket takes */

/* A slow client gets the pictures that fit into its socket, and then the newest. */
static void test_slow(void) {
    _cleanup_(client_freep) struct client *slow = NULL, *other = NULL;
    static char config[POOLS * (DESCRIPTION + 100)];
    size_t size = 0, n = 1;
    json_t *picture;

    size += (size_t) snprintf(config, sizeof(config), "pool \"db\" { limit = 2 }\n");
    for (int i = 0; i < POOLS; i++)
        size += (size_t) snprintf(config + size, sizeof(config) - size,
                                  "pool \"p%d\" { limit = 1 scope = \"host\" description = \"%0*d\" }\n", i, DESCRIPTION, i);
    host_set_config(ant, "%s", config);
    TEST_INT(berth(ant, "reload"), 0);
    slow = look(NULL, CLIENT_MORE);
    other = look(NULL, CLIENT_MORE);
    for (unsigned i = 0; i < 8; i++)
        json_decref(next(other));
    TEST_INT(berth(ant, "pause db"), 0);
    for (picture = next(slow); berth_number_at(picture, "pools.name=db.limit") != 0 && n <= 5; n++) {
        json_decref(picture);
        picture = next(slow);
    }
    json_decref(picture);
    TEST_INT(berth(ant, "resume db"), 0);
    if (n > 5) {
        printf("%zu pictures\n", n);
        CU_FAIL("pictures wait for a slow client");
    }
}

static CU_TestInfo tests[] = {
    {"once", test_once}, {"errors", test_errors}, {"apart", test_apart}, {"away", test_away}, {"more", test_more},
    {"cost", test_cost}, {"slow", test_slow},     CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "look", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
