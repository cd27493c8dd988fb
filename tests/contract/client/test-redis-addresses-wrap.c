/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=getaddrinfo */

/* Connects to a name with several addresses, some of them dead. The test replaces getaddrinfo(). */

#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/harness/runner/attempt.h"
#include "tests/harness/test.h"

static struct tls_place place;
static struct redis_server good, other;
static unsigned port;
static const char *addresses[RESOLVE_ADDRESSES_MAX + 1]; /* of the name "many.example" */

int __real_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret) {
    struct addrinfo numeric = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, **last = ret;
    int r = 0;

    if (strcmp(name, "many.example") != 0)
        return __real_getaddrinfo(name, service, hints, ret);
    for (size_t i = 0; addresses[i] && r == 0; i++) {
        r = __real_getaddrinfo(addresses[i], NULL, &numeric, last);
        last = &(*last)->ai_next;
    }
    return r;
}

static int set(struct redis_server *s, const char *option, const char *value) {
    _cleanup_reply_ redisReply *reply =
        redis_command(s, "CONFIG SET %s %s", option, value); /* a value is one word */

    return reply && reply->type == REDIS_REPLY_STATUS ? 0 : -EIO;
}

/* Makes an address that drops SYNs: its listen queue is full. */
static void drop(const char *address, int fds[static 4]) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port)};

    CU_ASSERT(inet_pton(AF_INET, address, &in.sin_addr) == 1);
    for (size_t i = 0; i < 4; i++)
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CU_ASSERT(bind(fds[0], (struct sockaddr *) &in, sizeof(in)) == 0 && listen(fds[0], 0) == 0);
    for (size_t i = 1; i < 4; i++)
        (void) connect(fds[i], (struct sockaddr *) &in, sizeof(in));
}

/* The first address refuses, the second drops packets, the third has another certificate. The client
 * connects to the fourth within 3 s. */
static void test_one_of_four(void) {
    usec_t began = clock_boottime();
    struct attempt a;
    int fds[4];

    drop("127.0.0.3", fds);
    memcpy(addresses, (const char *[]){"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", NULL},
           5 * sizeof(*addresses));
    attempt_begin(&a, &place, "many.example", port);
    attempt_run(&a);
    TEST_INT(a.n_up, 1);
    TEST_INT(a.n_down, 0);
    TEST_STRING(a.dial.up, "127.0.0.5");
    CU_ASSERT(clock_boottime() - began < 3 * USEC_PER_SEC);
    CU_ASSERT(clock_boottime() - began >= USEC_PER_SEC); /* 127.0.0.3 was tried for a second */
    attempt_end(&a);
    for (size_t i = 0; i < 4; i++)
        (void) close(fds[i]);
}

/* Each address fails for its own reason. The error is fatal, because only an administrator can mend the
 * certificate. */
static void test_none(void) {
    struct attempt a;
    char text[400];

    memcpy(addresses, (const char *[]){"127.0.0.2", "127.0.0.4", NULL}, 3 * sizeof(*addresses));
    attempt_begin(&a, &place, "many.example", port);
    (void) snprintf(text, sizeof(text),
                    "127.0.0.2: Connection refused; 127.0.0.4: TLS with many.example:%u: the certificate is "
                    "for another name",
                    port);
    attempt_expect_down(&a, REDIS_ERROR_FATAL, text);
}

/* The name has another address at the next attempt. */
static void test_moved(void) {
    struct attempt a;

    memcpy(addresses, (const char *[]){"127.0.0.2", NULL}, 2 * sizeof(*addresses));
    attempt_begin(&a, &place, "many.example", port);
    attempt_run(&a);
    CU_ASSERT(strncmp(a.text, "many.example:", 13) == 0 && strstr(a.text, ": Connection refused"));
    addresses[0] = "127.0.0.5";
    attempt_run(&a);
    TEST_INT(a.n_up, 1);
    attempt_end(&a);
}

static void test_ipv6(void) {
    struct attempt a;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool is_there = fd >= 0 && bind(fd, (struct sockaddr *) &in6, sizeof(in6)) == 0;

    (void) close_fd(fd);
    if (!is_there)
        TEST_SKIP("no IPv6 on this machine");
    TEST_INT(set(&good, "bind", "127.0.0.5 ::1"), 0);
    memcpy(addresses, (const char *[]){"::1", NULL}, 2 * sizeof(*addresses));
    attempt_begin(&a, &place, "many.example", port);
    attempt_run(&a);
    TEST_INT(a.n_up, 1);
    TEST_STRING(a.dial.up, "::1");
    attempt_end(&a);
}

static CU_TestInfo tests[] = {
    {"one-of-four", test_one_of_four},
    {"none", test_none},
    {"moved", test_moved},
    {"ipv6", test_ipv6},
    CU_TEST_INFO_NULL,
};

static int prepare(void) {
    char text[16];

    if (tls_place_init(&place) < 0 ||
        tls_place_sign(&place, "ca", "server", "x", "DNS:many.example", -1, 20) < 0 ||
        tls_place_sign(&place, "ca", "wrong", "x", "DNS:other.example", -1, 20) < 0)
        return -EIO;
    port = tls_server_start(&good, &place, "no");
    if (port == 0 || tls_server_start(&other, &place, "no") == 0)
        return -EIO;
    (void) snprintf(text, sizeof(text), "%u", port);
    if (set(&good, "bind", "127.0.0.5") < 0 || set(&other, "bind", "127.0.0.4") < 0 ||
        set(&other, "tls-port", text) < 0)
        return -EIO;
    return tls_server_use(&other, &place, "wrong");
}

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "redis-addresses", .pTests = tests}, CU_SUITE_INFO_NULL};
    int r = 1;

    if (prepare() < 0)
        puts("no redis-server with TLS, or no openssl");
    else
        r = test_main(argc, argv, suites);
    redis_server_done(&good);
    redis_server_done(&other);
    tls_place_done(&place);
    return r;
}
