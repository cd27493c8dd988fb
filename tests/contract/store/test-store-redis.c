/* SPDX-License-Identifier: MIT */

/* store-redis keeps the contract of store/store.h: three hosts on a private redis-server. */

#include <string.h>

#include "tests/harness/redis/redis-bed.h"
#include "tests/harness/store/store-suite.h"

/* R16: keys that do not grow: the namespace's own record, and the versions of overrides, one a pool. */
static void check_empty(void *userdata _unused_) {
    _cleanup_reply_ redisReply *keys = redis_command(&redis_bed.server, "KEYS *");

    CU_ASSERT_PTR_NOT_NULL_FATAL(keys);
    for (size_t i = 0; i < keys->elements; i++)
        if (strcmp(keys->element[i]->str, "berth:{test}:overrides") != 0)
            TEST_STRING(keys->element[i]->str, "berth:{test}:meta");
}

static const struct store_fixture fixture = {.n_hosts = 3, .n_seeds = 5, .make = redis_bed_make, .check_empty = check_empty};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "store-redis", .pTests = store_suite_tests}, CU_SUITE_INFO_NULL};

    /* No test here waits for a lease or a timeout. Both are long, so that stalls of a busy machine end no
     * connection. */
    redis_bed.lease = 30 * USEC_PER_SEC;
    redis_bed.heartbeat = USEC_PER_SEC;
    redis_bed.timeout = 10 * USEC_PER_SEC;
    store_suite_use(&fixture);
    return redis_bed_main(argc, argv, suites, NULL);
}
