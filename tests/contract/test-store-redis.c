/* SPDX-License-Identifier: MIT */

/* The contract of daemon/store.h, kept by store-redis: three hosts on a private redis-server. */

#include <string.h>

#include "conf/settings.h"
#include "tests/harness/redis.h"
#include "tests/harness/store-suite.h"

/* Nothing here waits for a lease or a timeout to pass: both are long, so that a busy machine's stalls end no connection. */
#define LEASE (30 * USEC_PER_SEC)
#define HEARTBEAT USEC_PER_SEC
#define TIMEOUT (10 * USEC_PER_SEC)

static struct redis_server server;

static int make(void *userdata _unused_, unsigned host _unused_, const char *host_name, bool is_first, sd_event *event,
                struct events *events, const struct store_listener *listener, struct store **ret) {
    struct redis_settings settings = {.unix_path = server.socket, .timeout_usec = TIMEOUT};
    struct store_redis_options options = {.redis = &settings, .host = host_name, .namespace = "test", .version = "1",
                                          .lease_usec = LEASE, .heartbeat_usec = HEARTBEAT};

    if (is_first) {
        _cleanup_reply_ redisReply *reply = redis_command(&server, "FLUSHALL");

        if (!reply)
            return -EIO;
    }
    return store_redis_new(ret, event, events, &options, listener);
}

/* R16: what does not grow: the namespace's own record, and the versions of overrides, one a pool. */
static void check_empty(void *userdata _unused_) {
    _cleanup_reply_ redisReply *keys = redis_command(&server, "KEYS *");

    CU_ASSERT_PTR_NOT_NULL_FATAL(keys);
    for (size_t i = 0; i < keys->elements; i++)
        if (strcmp(keys->element[i]->str, "berth:{test}:overrides") != 0)
            TEST_STRING(keys->element[i]->str, "berth:{test}:meta");
}

static const struct store_fixture fixture = {.n_hosts = 3, .n_seeds = 5, .make = make, .check_empty = check_empty};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "store-redis", .pTests = store_suite_tests}, CU_SUITE_INFO_NULL};
    int r;

    if (redis_server_start(&server, NULL) < 0) {
        puts("no redis-server");
        return 1;
    }
    store_suite_use(&fixture);
    r = test_main(argc, argv, suites);
    redis_server_done(&server);
    return r;
}
