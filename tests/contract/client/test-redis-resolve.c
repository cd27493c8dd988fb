/* SPDX-License-Identifier: MIT */

/* Names of servers are resolved in time, or the lookup fails. */

#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "store/redis/client/resolve.h"
#include "tests/harness/test.h"

struct lookup {
    struct redis_resolve *resolve;
    char answer[RESOLVE_ADDRESS_SIZE + 64];
    unsigned n;
};

static void on_resolved(const struct redis_addresses *addresses, void *userdata) {
    struct lookup *l = userdata;

    (void) snprintf(l->answer, sizeof(l->answer), "%s", addresses->n > 0 ? addresses->items[0] : addresses->why);
    l->n++;
    l->resolve = redis_resolve_free(l->resolve);
}

static void resolve(const char *name, usec_t timeout, const char *expected) {
    struct lookup l = {0};
    sd_event *event = NULL;

    CU_ASSERT_FATAL(sd_event_new(&event) >= 0);
    CU_ASSERT_FATAL(redis_resolve_new(&l.resolve, event, name, timeout, on_resolved, &l) == 0);
    while (l.n == 0)
        (void) sd_event_run(event, USEC_PER_SEC);
    TEST_STRING(l.answer, expected);
    sd_event_unref(event);
}

static void test_names(void) {
    struct addrinfo *found = NULL;
    char expected[NI_MAXHOST] = "";

    CU_ASSERT(redis_resolve_is_address("127.0.0.1"));
    CU_ASSERT(redis_resolve_is_address("::1"));
    CU_ASSERT_FALSE(redis_resolve_is_address("localhost"));
    CU_ASSERT_FALSE(redis_resolve_is_address(""));
    if (getaddrinfo("localhost", NULL, &(struct addrinfo) {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, &found) != 0)
        TEST_SKIP("localhost has no address here: no /etc/hosts");
    (void) getnameinfo(found->ai_addr, found->ai_addrlen, expected, sizeof(expected), NULL, 0, NI_NUMERICHOST);
    freeaddrinfo(found);
    resolve("localhost", 10 * USEC_PER_SEC, expected);
    resolve("no such name", 10 * USEC_PER_SEC, gai_strerror(EAI_NONAME));
    resolve("localhost", 0, "the lookup took too long");
}

static CU_TestInfo tests[] = {
    {"names", test_names},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "redis-resolve", .pTests = tests});
