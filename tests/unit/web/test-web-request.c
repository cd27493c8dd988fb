/* SPDX-License-Identifier: MIT */

/* Which requests berth-web serves. */

#include <stdio.h>
#include <string.h>

#include "tests/harness/test.h"
#include "web/request.h"

#define HERE "localhost:9737"
#define ORIGIN "http://localhost:9737"
#define JSON "application/json"

static const struct site acts = {.hosts = {"berth.example.net"}, .n_hosts = 1, .prefix = "", .has_actions = true};
static const struct site looks = {.prefix = ""};

static unsigned judge(const struct site *site, const struct request *q, struct verdict *v) {
    request_judge(site, q, v);
    CU_ASSERT((v->status == 200) == (v->text[0] == '\0'));
    return v->status;
}

/* --- what is forged --- */

static const struct {
    const char *what;
    unsigned status;
    struct request q;
} forged[] = {
    {"Origin of another page", 403, {"POST", "/api/1/do", HERE, "https://evil.example", NULL, JSON, "1", true}},
    {"Origin of another page, and Sec-Fetch-Site lies", 403, {"POST", "/api/1/do", HERE, "https://evil.example", "same-origin", JSON, "1", true}},
    {"Origin with this name inside another", 403, {"POST", "/api/1/do", HERE, "http://localhost:9737.evil.example", NULL, JSON, "1", true}},
    {"Origin of another port", 403, {"POST", "/api/1/do", HERE, "http://localhost:8080", NULL, JSON, "1", true}},
    {"Origin null, of a sandbox or a file", 403, {"POST", "/api/1/do", HERE, "null", NULL, JSON, "1", true}},
    {"Origin empty", 403, {"POST", "/api/1/do", HERE, "", NULL, JSON, "1", true}},
    {"no Origin at all", 403, {"POST", "/api/1/do", HERE, NULL, NULL, JSON, "1", true}},
    {"another site", 403, {"POST", "/api/1/do", HERE, NULL, "cross-site", JSON, "1", true}},
    {"another host of this site", 403, {"POST", "/api/1/do", HERE, ORIGIN, "same-site", JSON, "1", true}},
    {"typed by a user", 403, {"POST", "/api/1/do", HERE, NULL, "none", JSON, "1", true}},
    {"a form", 415, {"POST", "/api/1/do", HERE, ORIGIN, "same-origin", "application/x-www-form-urlencoded", "1", true}},
    {"a form of plain text", 415, {"POST", "/api/1/do", HERE, ORIGIN, "same-origin", "text/plain", "1", true}},
    {"a type that begins like JSON", 415, {"POST", "/api/1/do", HERE, ORIGIN, "same-origin", "application/jsonp", "1", true}},
    {"no type", 415, {"POST", "/api/1/do", HERE, ORIGIN, "same-origin", NULL, "1", true}},
    {"no X-Berth", 403, {"POST", "/api/1/do", HERE, ORIGIN, "same-origin", JSON, NULL, true}},
    {"another X-Berth", 403, {"POST", "/api/1/do", HERE, ORIGIN, "same-origin", JSON, "2", true}},
    {"another Host", 421, {"POST", "/api/1/do", "evil.example", "http://evil.example", "same-origin", JSON, "1", true}},
    {"another Host that looks", 421, {"GET", "/", "evil.example", NULL, NULL, NULL, NULL, false}},
    {"a Host that ends like ours", 421, {"GET", "/", "notlocalhost", NULL, NULL, NULL, NULL, false}},
    {"a Host that begins like ours", 421, {"GET", "/", "localhost.evil.example", NULL, NULL, NULL, NULL, false}},
    {"a Host with a user", 421, {"GET", "/", "localhost:1@evil.example", NULL, NULL, NULL, NULL, false}},
    {"an address that begins like loopback", 421, {"GET", "/", "127.0.0.1.evil.example", NULL, NULL, NULL, NULL, false}},
    {"an address of the net", 421, {"GET", "/", "192.0.2.7:9737", NULL, NULL, NULL, NULL, false}},
    {"no Host", 421, {"GET", "/", NULL, NULL, NULL, NULL, NULL, false}},
    {"an empty Host", 421, {"GET", "/", "", NULL, NULL, NULL, NULL, false}},
    {"an action by GET", 405, {"GET", "/api/1/do", HERE, ORIGIN, "same-origin", JSON, "1", false}},
    {"an action by PUT", 405, {"PUT", "/api/1/do", HERE, ORIGIN, "same-origin", JSON, "1", true}},
    {"who is logged in, by POST", 405, {"POST", "/api/1/user", HERE, ORIGIN, "same-origin", JSON, "1", true}},
    {"who is logged in, of another Host", 421, {"GET", "/api/1/user", "evil.example", NULL, NULL, NULL, NULL, false}},
    {"the page by POST", 405, {"POST", "/", HERE, ORIGIN, "same-origin", JSON, "1", true}},
    {"the page by DELETE", 405, {"DELETE", "/", HERE, NULL, NULL, NULL, NULL, false}},
    {"a GET with a body", 415, {"GET", "/api/1/overview", HERE, NULL, NULL, JSON, "1", true}},
    {"a stream by HEAD", 405, {"HEAD", "/api/1/stream", HERE, NULL, NULL, NULL, NULL, false}},
    {"a login of another page", 403, {"POST", "/api/1/login", HERE, "https://evil.example", NULL, JSON, "1", true}},
    {"a logout of another page", 403, {"POST", "/api/1/logout", HERE, "https://evil.example", NULL, JSON, "1", true}},
    {"a path above", 404, {"GET", "/../etc/passwd", HERE, NULL, NULL, NULL, NULL, false}},
    {"a pool without a name", 404, {"GET", "/api/1/pools/", HERE, NULL, NULL, NULL, NULL, false}},
    {"a page with more behind it", 404, {"GET", "/metrics/x", HERE, NULL, NULL, NULL, NULL, false}},
};

static void test_forged(void) {
    struct verdict v;

    for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++)
        if (judge(&acts, &forged[i].q, &v) != forged[i].status) {
            fprintf(stderr, "%s: %u, not %u\n", forged[i].what, v.status, forged[i].status);
            CU_FAIL("a forged request");
        }
}

/* --- what is served --- */

static void test_served(void) {
    static const char *const hosts[] = {"localhost", "LocalHost:1", "127.0.0.1:9737", "127.8.9.10", "[::1]:9737", "berth.example.net",
                                        "BERTH.example.net:443"};
    struct request q = {"GET", "/", NULL, NULL, NULL, NULL, NULL, false};
    struct verdict v;

    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        q.host = hosts[i];
        TEST_INT(judge(&acts, &q, &v), 200);
        TEST_INT(v.route, ROUTE_PAGE);
    }
    q = (struct request) {"POST", "/api/1/do", HERE, ORIGIN, "same-origin", JSON "; charset=utf-8", "1", true};
    TEST_INT(judge(&acts, &q, &v), 200);
    TEST_INT(v.route, ROUTE_DO);
    q.fetch_site = NULL; /* an older browser */
    TEST_INT(judge(&acts, &q, &v), 200);
    q.origin = "https://berth.example.net"; /* behind a proxy that has TLS */
    q.host = "berth.example.net";
    TEST_INT(judge(&acts, &q, &v), 200);
    q = (struct request) {"HEAD", "/api/1/pools/tenant/acme", HERE, NULL, NULL, NULL, NULL, false};
    TEST_INT(judge(&acts, &q, &v), 200);
    TEST_STRING(v.rest, "tenant/acme");
}

static void test_looking(void) {
    struct request q = {"POST", "/api/1/do", HERE, ORIGIN, "same-origin", JSON, "1", true};
    struct verdict v;

    TEST_INT(judge(&looks, &q, &v), 403);
    TEST_STRING(v.text, "this server allows no actions: see berth-web(8), ACTIONS");
    q.host = "evil.example";
    TEST_INT(judge(&looks, &q, &v), 421);
    TEST_STRING(v.text, "this server is not called \"evil.example\": --host adds a name");
    q = (struct request) {"POST", "/api/1/do", HERE, "https://evil.example", NULL, JSON, "1", true};
    TEST_INT(judge(&acts, &q, &v), 403);
    TEST_STRING(v.text, "this request comes from another page (Origin https://evil.example)");
}

static void test_prefix(void) {
    const struct site below = {.prefix = "/berth"}, metrics = {.prefix = "", .metrics_only = true};
    struct request q = {"GET", "/berth/api/1/hosts", HERE, NULL, NULL, NULL, NULL, false};
    struct verdict v;

    TEST_INT(judge(&below, &q, &v), 200);
    TEST_INT(v.route, ROUTE_HOSTS);
    q.path = "/berthx/plain";
    TEST_INT(judge(&below, &q, &v), 404);
    q.path = "/plain";
    TEST_INT(judge(&below, &q, &v), 404);
    TEST_INT(judge(&metrics, &q, &v), 404);
    q.path = "/metrics";
    TEST_INT(judge(&metrics, &q, &v), 200);
}

static CU_TestInfo tests[] = {{"forged", test_forged},   {"served", test_served}, {"looking", test_looking},
                              {"prefix", test_prefix}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "web-request", .pTests = tests});
