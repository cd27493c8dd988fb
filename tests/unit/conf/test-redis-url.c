/* SPDX-License-Identifier: MIT */
#include "conf/redis-url.h"

#include <errno.h>
#include <string.h>

#include "tests/harness/test.h"

#define X108 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static void network(const char *text, bool tls, const char *user, const char *host, unsigned port, unsigned db) {
    struct redis_url url = {};

    TEST_INT(redis_url_parse(text, &url), 0);
    TEST_INT(url.tls, tls);
    TEST_STRING(url.username, user);
    TEST_STRING(url.host, host);
    CU_ASSERT_PTR_NULL(url.unix_path);
    TEST_INT(url.port, port);
    TEST_INT(url.db, db);
    redis_url_done(&url);
}

static void unix_socket(const char *text, const char *path, unsigned db) {
    struct redis_url url = {};

    TEST_INT(redis_url_parse(text, &url), 0);
    TEST_STRING(url.unix_path, path);
    CU_ASSERT_PTR_NULL(url.host);
    CU_ASSERT(!url.tls);
    TEST_INT(url.db, db);
    redis_url_done(&url);
}

static void test_network(void) {
    network("redis://127.0.0.1:6379/0", false, NULL, "127.0.0.1", 6379, 0);
    network("redis://h", false, NULL, "h", 6379, 0);
    network("redis://h/", false, NULL, "h", 6379, 0);
    network("redis://redis.example.net/3", false, NULL, "redis.example.net", 6379, 3);
    network("redis://bob@h:65535/65535", false, "bob", "h", 65535, 65535);
    network("rediss://h", true, NULL, "h", 6379, 0);
    network("redis://[::1]", false, NULL, "::1", 6379, 0);
    network("redis://a.b-c_d@[fe80::1]:1/2", false, "a.b-c_d", "fe80::1", 1, 2);
    network("redis://", false, NULL, NULL, 6379, 0);
    network("rediss:///0", true, NULL, NULL, 6379, 0);
    network("redis://bob@/3", false, "bob", NULL, 6379, 3);
}

static void test_others(void) {
    struct redis_url url = {};
    char host[REDIS_HOST_SIZE];
    uint16_t port = 9;

    TEST_INT(redis_url_parse("rediss://bob@a:1,b.example.net,[::1]:7000/2", &url), 0);
    TEST_STRING(url.host, "a");
    TEST_INT(url.port, 1);
    TEST_INT(url.db, 2);
    TEST_INT(redis_url_get_host(url.others, 0, host, sizeof(host), &port), 0);
    TEST_STRING(host, "b.example.net");
    TEST_INT(port, 9);
    TEST_INT(redis_url_get_host(url.others, 1, host, sizeof(host), &port), 0);
    TEST_STRING(host, "::1");
    TEST_INT(port, 7000);
    TEST_INT(redis_url_get_host(url.others, 2, host, sizeof(host), &port), -ENOENT);
    redis_url_done(&url);
    TEST_INT(redis_url_get_host(NULL, 0, host, sizeof(host), &port), -ENOENT);
    TEST_INT(redis_url_parse("redis://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p", &url), 0);
    redis_url_done(&url);
}

static void test_unix(void) {
    unix_socket("unix:///run/redis.sock", "/run/redis.sock", 0);
    unix_socket("unix:///r?db=15", "/r", 15);
    unix_socket("unix:///with space:and@sign", "/with space:and@sign", 0);
}

static void test_refuse(void) {
    static const struct {
        const char *text;
        int answer;
    } wrong[] = {
        {"", REDIS_URL_E_SCHEME},
        {"h:6379", REDIS_URL_E_SCHEME},
        {"http://h", REDIS_URL_E_SCHEME},
        {"REDIS://h", REDIS_URL_E_SCHEME},
        {"redis:/h", REDIS_URL_E_SCHEME},
        {" redis://h", REDIS_URL_E_SCHEME},
        {"redis://a,", REDIS_URL_E_HOST},
        {"redis://,a", REDIS_URL_E_HOST},
        {"redis://a,,b", REDIS_URL_E_HOST},
        {"redis://a,b:0", REDIS_URL_E_PORT},
        {"redis://a,b c", REDIS_URL_E_HOST},
        {"redis://a,x@b", REDIS_URL_E_USER},
        {"redis://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", REDIS_URL_E_HOSTS},
        {"redis://:6379", REDIS_URL_E_HOST},
        {"redis://-h", REDIS_URL_E_HOST},
        {"redis://h h", REDIS_URL_E_HOST},
        {"redis://h\n", REDIS_URL_E_HOST},
        {"redis://h\303\274", REDIS_URL_E_HOST},
        {"redis://::1", REDIS_URL_E_HOST},
        {"redis://[::1", REDIS_URL_E_HOST},
        {"redis://[]", REDIS_URL_E_HOST},
        {"redis://[::1]x", REDIS_URL_E_HOST},
        {"redis://[127.0.0.1]", REDIS_URL_E_HOST},
        {"redis://[::1::2]", REDIS_URL_E_HOST},
        {"redis://[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]", REDIS_URL_E_HOST},
        {"redis://h?db=1", REDIS_URL_E_HOST},
        {"redis://h:", REDIS_URL_E_PORT},
        {"redis://h:0", REDIS_URL_E_PORT},
        {"redis://h:65536", REDIS_URL_E_PORT},
        {"redis://h:6379x", REDIS_URL_E_PORT},
        {"redis://h:06379", REDIS_URL_E_PORT},
        {"redis://h:63790000000", REDIS_URL_E_PORT},
        {"redis://h/x", REDIS_URL_E_DB},
        {"redis://h/-1", REDIS_URL_E_DB},
        {"redis://h/65536", REDIS_URL_E_DB},
        {"redis://h/0/", REDIS_URL_E_DB},
        {"redis://h/0?x", REDIS_URL_E_DB},
        {"redis://@h", REDIS_URL_E_USER},
        {"redis://a b@h", REDIS_URL_E_USER},
        {"redis://a%40@h", REDIS_URL_E_USER},
        {"redis://a@b@h", REDIS_URL_E_USER},
        {"redis://:secret@h", REDIS_URL_E_PASSWORD},
        {"redis://u:secret@h", REDIS_URL_E_PASSWORD},
        {"redis://u:@h", REDIS_URL_E_PASSWORD},
        {"redis://u:se@cret@h", REDIS_URL_E_PASSWORD},
        {"redis://u:se/cret@h", REDIS_URL_E_PASSWORD},
        {"unix://", REDIS_URL_E_PATH},
        {"unix:///", REDIS_URL_E_PATH},
        {"unix://run/x", REDIS_URL_E_PATH},
        {"unix:///" X108, REDIS_URL_E_PATH},
        {"unix:///x?", REDIS_URL_E_QUERY},
        {"unix:///x?d=1", REDIS_URL_E_QUERY},
        {"unix:///x?db=", REDIS_URL_E_DB},
        {"unix:///x?db=01", REDIS_URL_E_DB},
        {"unix:///x?db=1&x=2", REDIS_URL_E_DB},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct redis_url url = {.port = 4711};

        if (redis_url_parse(wrong[i].text, &url) != wrong[i].answer)
            TEST_STRING(wrong[i].text, redis_url_explain(wrong[i].answer));
        TEST_INT(url.port, 4711);
        CU_ASSERT_PTR_NULL(url.host);
    }
}

static void test_longest(void) {
    char text[512] = "redis://";

    memset(text + 8, 'h', 253);
    network(text, false, NULL, text + 8, 6379, 0);
    text[8 + 253] = 'h';
    TEST_INT(redis_url_parse(text, &(struct redis_url) {}), REDIS_URL_E_HOST);
    unix_socket("unix:///xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                "/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 0);
}

static void test_explain(void) {
    TEST_STRING(redis_url_explain(REDIS_URL_E_SCHEME), "must begin with redis://, rediss:// or unix://");
    TEST_STRING(redis_url_explain(REDIS_URL_E_USER), "has a user that is not of A-Z a-z 0-9 . _ -; use the option username");
    TEST_STRING(redis_url_explain(REDIS_URL_E_PASSWORD), "must not hold a password; write it to a file, and name the file in password-file");
    TEST_STRING(redis_url_explain(REDIS_URL_E_HOST), "must name a host or an address, IPv6 in [ ]");
    TEST_STRING(redis_url_explain(REDIS_URL_E_PORT), "has a port that is not 1 to 65535");
    TEST_STRING(redis_url_explain(REDIS_URL_E_DB), "has a database that is not 0 to 65535");
    TEST_STRING(redis_url_explain(REDIS_URL_E_PATH),
                "must hold the socket's absolute path, at most 107 bytes: unix:///run/redis.sock");
    TEST_STRING(redis_url_explain(REDIS_URL_E_QUERY), "may have ?db=N after the path, nothing else");
}

static CU_TestInfo tests[] = {
    {"network", test_network}, {"others", test_others},
    {"unix", test_unix},
    {"refuse", test_refuse},
    {"longest", test_longest},
    {"explain", test_explain},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "redis-url", .pTests = tests});
