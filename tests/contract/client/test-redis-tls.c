/* SPDX-License-Identifier: MIT */

/* Connects by TLS to a real redis-server: which certificates the client accepts, and why it refuses
 * others. */

#include <string.h>
#include <sys/stat.h>

#include "tests/harness/port.h"
#include "tests/harness/runner/attempt.h"
#include "tests/harness/test.h"
#include "tests/harness/redis/tls.h"

static struct tls_place place;
static struct redis_server server;
static unsigned port, plain_port;

/* --- the server's certificate --- */

/* Makes the server's certificate. */
static void use(const char *ca, const char *common_name, const char *san, int from, int until) {
    TEST_INT(tls_place_sign(&place, ca, "other", common_name, san, from, until), 0);
    TEST_INT(tls_server_use(&server, &place, "other"), 0);
}

static void test_right_names(void) {
    static const struct {
        const char *host, *common_name, *san, *server_name;
    } rows[] = {
        {"localhost", "x", "DNS:localhost", NULL},
        {"127.0.0.1", "x", "DNS:x,IP:127.0.0.1", NULL},
        {"localhost", "localhost", NULL, NULL},
        {"127.0.0.1", "x", "DNS:*.db.example", "one.db.example"},
    };

    for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
        struct attempt a;

        use("ca", rows[i].common_name, rows[i].san, -1, 20);
        attempt_begin(&a, &place, rows[i].host, port);
        a.settings.tls.server_name = (char *) rows[i].server_name;
        attempt_expect_up(&a, "up");
        TEST_STRING(a.version, "TLSv1.3");
        CU_ASSERT(a.is_resumed);
    }
}

static void test_wrong_certificates(void) {
    static const struct {
        const char *ca, *host, *common_name, *san;
        int from, until;
        const char *server_name, *text;
    } rows[] = {
        {"ca", "localhost", "x", "DNS:db1.example,DNS:*.db.example", -1, 20, NULL,
         "the certificate is for another name (it has: db1.example, *.db.example): see tls-server-name"},
        {"ca", "127.0.0.1", "127.0.0.1", "DNS:localhost,IP:127.0.0.2", -1, 20, NULL,
         "the certificate is for another name (it has: localhost): see tls-server-name"},
        {"ca", "localhost", "localhost", "DNS:other.example", -1, 20, NULL,
         "the certificate is for another name (it has: other.example): see tls-server-name"},
        {"ca", "127.0.0.1", "x", "DNS:*.example", -1, 20, "a.b.example",
         "the certificate is for another name (it has: *.example)"},
        {"ca", "127.0.0.1", "x", "DNS:a*.example", -1, 20, "ab.example",
         "the certificate is for another name (it has: a*.example)"},
        {"foreign", "localhost", "x", "DNS:localhost", -1, 20, NULL,
         "the certificate's issuer is not trusted (issuer: CN=foreign ca): see tls-ca"},
        {"ca", "localhost", "x", "DNS:localhost", -9, -3, NULL, "the certificate is not valid after 20"},
        {"ca", "localhost", "x", "DNS:localhost", 3, 9, NULL, "the certificate is not valid before 20"},
    };

    TEST_INT(tls_place_make_ca(&place, "foreign", "foreign ca"), 0);
    for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
        struct attempt a;
        char text[256];

        use(rows[i].ca, rows[i].common_name, rows[i].san, rows[i].from, rows[i].until);
        attempt_begin(&a, &place, rows[i].host, port);
        a.settings.tls.server_name = (char *) rows[i].server_name;
        (void) snprintf(text, sizeof(text), "TLS with %s:%u: %s", rows[i].host, port, rows[i].text);
        attempt_expect_down(&a, REDIS_ERROR_FATAL, text);
    }
}

static void test_expiry(void) {
    struct attempt a;

    use("ca", "x", "DNS:localhost", -1, 20);
    attempt_begin(&a, &place, "localhost", port);
    attempt_run(&a);
    TEST_STRING(a.warning, "");
    use("ca", "x", "DNS:localhost", -1, 13);
    attempt_run(&a);
    CU_ASSERT_PTR_NOT_NULL(strstr(a.warning, "the certificate of localhost is not valid after 20"));
    a.warning[0] = '\0';
    attempt_run(&a); /* no second warning on the same day */
    TEST_STRING(a.warning, "");
    attempt_end(&a);
}

static void test_pinned(void) {
    struct attempt a;

    TEST_INT(tls_place_make_ca(&place, "self", "localhost"), 0);
    TEST_INT(tls_server_use(&server, &place, "self"), 0);
    attempt_begin(&a, &place, "localhost", port);
    attempt_expect_down(&a, REDIS_ERROR_FATAL, "issuer is not trusted (issuer: CN=localhost)");
    attempt_begin(&a, &place, "localhost", port);
    free(a.settings.tls.ca);
    a.settings.tls.ca = strdup(tls_place_path(&place, "self.crt"));
    attempt_expect_up(&a, "up");
    /* The client ignores other files of a folder. */
    attempt_begin(&a, &place, "localhost", port);
    free(a.settings.tls.ca);
    a.settings.tls.ca = strdup(place.folder);
    attempt_expect_up(&a, "up");
    TEST_INT(tls_server_use(&server, &place, "server"), 0);
}

/* --- our certificate --- */

static void ask_for_certificate(bool is_asked, const char *protocols) {
    _cleanup_reply_ redisReply *reply = redis_command(
        &server, "CONFIG SET tls-auth-clients %s tls-protocols %s", is_asked ? "yes" : "no", protocols);

    CU_ASSERT(reply && reply->type == REDIS_REPLY_STATUS);
}

static void test_our_certificate(void) {
    static const char *const protocols[] = {"TLSv1.2", "TLSv1.3"};
    struct attempt a;

    TEST_INT(tls_place_sign(&place, "ca", "client", "berth", NULL, -1, 20), 0);
    TEST_INT(tls_place_make_ca(&place, "stranger", "stranger"), 0);
    for (size_t i = 0; i < ELEMENTSOF(protocols); i++) {
        ask_for_certificate(true, protocols[i]);
        attempt_begin(&a, &place, "localhost", port);
        attempt_expect_down(&a, REDIS_ERROR_FATAL,
                            "the server asks for a certificate of ours: see tls-certificate");
        attempt_begin(&a, &place, "localhost", port);
        a.settings.tls.certificate = tls_place_path(&place, "client.crt");
        a.settings.tls.key = tls_place_path(&place, "client.key");
        attempt_expect_up(&a, "up");
        TEST_STRING(a.version, protocols[i]);
        attempt_begin(&a, &place, "localhost", port);
        a.settings.tls.certificate = tls_place_path(&place, "stranger.crt");
        a.settings.tls.key = tls_place_path(&place, "stranger.key");
        attempt_expect_down(&a, REDIS_ERROR_FATAL, "the server refused our certificate (");
    }
    ask_for_certificate(false, "TLSv1.3");
}

static void test_versions(void) {
    struct attempt a;

    ask_for_certificate(false, "TLSv1.2");
    attempt_begin(&a, &place, "localhost", port);
    a.settings.tls.minimum = TLS_MINIMUM_1_3;
    attempt_expect_down(&a, REDIS_ERROR_RETRY, "it speaks no version of TLS that tls-minimum allows");
    attempt_begin(&a, &place, "localhost", port);
    attempt_expect_up(&a, "up");
    TEST_STRING(a.version, "TLSv1.2");
    CU_ASSERT(a.is_resumed);
    ask_for_certificate(false, "TLSv1.3");
}

/* --- files --- */

static void expect_files(const char *ca, const char *certificate, const char *key, const char *text) {
    struct attempt a;

    attempt_begin(&a, &place, "localhost", port);
    if (ca) {
        free(a.settings.tls.ca);
        a.settings.tls.ca = strdup(tls_place_path(&place, ca));
    }
    a.settings.tls.certificate = certificate ? tls_place_path(&place, certificate) : NULL;
    a.settings.tls.key = key ? tls_place_path(&place, key) : NULL;
    attempt_expect_down(&a, REDIS_ERROR_FATAL, text);
}

static void test_files(void) {
    struct attempt a;

    TEST_INT(tls_place_sign(&place, "ca", "client", "berth", NULL, -1, 20), 0);
    expect_files("none", NULL, NULL, "/none: No such file or directory");
    expect_files("ca.key", NULL, NULL, "/ca.key: no certificate in it");
    expect_files(NULL, "client.key", "client.key", "/client.key: no certificate in it");
    expect_files(NULL, "client.crt", "client.crt", "/client.crt: no private key in it");
    expect_files(NULL, "client.crt", "ca.key", "/ca.key: does not belong to tls-certificate");
    expect_files(NULL, "client.crt", "none", "tls-key ");
    CU_ASSERT(chmod(tls_place_path(&place, "client.key"), 0644) == 0);
    attempt_begin(&a, &place, "localhost", port);
    a.settings.tls.certificate = tls_place_path(&place, "client.crt");
    a.settings.tls.key = tls_place_path(&place, "client.key");
    attempt_expect_up(&a, "up");
    CU_ASSERT_PTR_NOT_NULL(strstr(a.warning, "client.key is open to every user of this machine"));
    CU_ASSERT(chmod(tls_place_path(&place, "client.key"), 0600) == 0);
}

/* Checks the files as `berthd --check` does. */
static void expect_check(const char *certificate, const char *key, const char *expected) {
    struct tls_settings tls = {.is_used = true,
                               .ca = tls_place_path(&place, "ca.crt"),
                               .certificate = tls_place_path(&place, certificate),
                               .key = tls_place_path(&place, key)};
    char why[512] = "";

    TEST_INT(tls_settings_check(&tls, clock_realtime(), why, sizeof(why)), *expected ? TLS_E_FILES : 0);
    if (!strstr(why, expected))
        TEST_STRING(why, expected);
}

static void test_check(void) {
    TEST_INT(tls_place_sign(&place, "ca", "client", "berth", NULL, -1, 20), 0);
    TEST_INT(tls_place_sign(&place, "ca", "old", "berth", NULL, -9, -2), 0);
    expect_check("client.crt", "client.key", "");
    expect_check("client.crt", "old.key", "/old.key: does not belong to tls-certificate");
    expect_check("old.crt", "old.key", "tls-certificate: not valid after 20");
    expect_check("client.crt", "none", "/none: No such file or directory");
}

/* Each attempt reads the files again. */
static void test_changed_files(void) {
    struct attempt a;
    const struct tls_context *before;

    TEST_INT(tls_place_make_ca(&place, "changing", "first"), 0);
    attempt_begin(&a, &place, "localhost", port);
    free(a.settings.tls.ca);
    a.settings.tls.ca = strdup(tls_place_path(&place, "changing.crt"));
    attempt_run(&a);
    TEST_INT(a.n_down, 1);
    CU_ASSERT(rename(tls_place_path(&place, "ca.crt"), tls_place_path(&place, "changing.crt")) == 0);
    CU_ASSERT(symlink("kept.crt", tls_place_path(&place, "ca.crt")) == 0);
    CU_ASSERT(link(tls_place_path(&place, "changing.crt"), tls_place_path(&place, "kept.crt")) == 0);
    CU_ASSERT(unlink(tls_place_path(&place, "changing.crt")) == 0);
    CU_ASSERT(symlink("kept.crt", tls_place_path(&place, "changing.crt")) == 0);
    attempt_run(&a);
    TEST_INT(a.n_up, 1);
    before = a.dial.own_tls;
    attempt_run(&a);
    TEST_INT(a.n_up, 1);
    CU_ASSERT_PTR_EQUAL(a.dial.own_tls, before);
    CU_ASSERT(unlink(tls_place_path(&place, "changing.crt")) == 0);
    TEST_INT(tls_place_make_ca(&place, "changing", "another"), 0);
    attempt_run(&a);
    TEST_INT(a.n_down, 1);
    attempt_end(&a);
}

/* --- no TLS --- */

static void test_other_protocol(void) {
    struct attempt a;
    char text[128];

    attempt_begin(&a, &place, "localhost", port);
    a.settings.tls.is_used = false;
    (void) snprintf(text, sizeof(text),
                    "localhost:%u: closed before the first answer: should url begin with rediss://?", port);
    attempt_expect_down(&a, REDIS_ERROR_LATER, text);
    attempt_begin(&a, &place, "localhost", plain_port);
    a.settings.connect_timeout_usec = 300 * USEC_PER_MSEC;
    attempt_run(&a);
    TEST_INT(a.n_up, 0);
    /* On Debian 13 the server answers the first bytes of TLS with an error. On Debian 12 it waits for more. */
    bool has_answer = a.error == REDIS_ERROR_RETRY;
    (void) snprintf(text, sizeof(text), "TLS with localhost:%u: %s", plain_port,
                    has_answer ? "it answers without TLS on this port" : "no answer in time: does it speak TLS");
    TEST_INT(a.error, has_answer ? REDIS_ERROR_RETRY : REDIS_ERROR_BUSY);
    CU_ASSERT(strstr(a.text, text) != NULL);
    attempt_end(&a);
}

/* Redis drops a client above maxclients before the handshake, without an alert. */
static void test_no_place(void) {
    _cleanup_reply_ redisReply *full = redis_command(&server, "CONFIG SET maxclients 1");
    struct attempt a;

    attempt_begin(&a, &place, "localhost", port);
    attempt_expect_down(&a, REDIS_ERROR_LATER,
                        "it closed the connection: does it speak TLS on this port, and is it below maxclients?");
    _cleanup_reply_ redisReply *reply = redis_command(&server, "CONFIG SET maxclients 100");
    CU_ASSERT(full && full->type == REDIS_REPLY_STATUS && reply && reply->type == REDIS_REPLY_STATUS);
}

static CU_TestInfo tests[] = {
    {"right-names", test_right_names},
    {"wrong-certificates", test_wrong_certificates},
    {"expiry", test_expiry},
    {"pinned", test_pinned},
    {"our-certificate", test_our_certificate},
    {"versions", test_versions},
    {"files", test_files},
    {"check", test_check},
    {"changed-files", test_changed_files},
    {"other-protocol", test_other_protocol},
    {"no-place", test_no_place},
    CU_TEST_INFO_NULL,
};

static int prepare(void) {
    char text[16];

    if (tls_place_init(&place) < 0 ||
        tls_place_sign(&place, "ca", "server", "x", "DNS:localhost,IP:127.0.0.1", -1, 20) < 0)
        return -EIO;
    port = tls_server_start(&server, &place, "no");
    plain_port = port_reserve();
    (void) snprintf(text, sizeof(text), "%u", plain_port);
    _cleanup_reply_ redisReply *reply = redis_command(&server, "CONFIG SET port %s", text);
    return port > 0 && reply && reply->type == REDIS_REPLY_STATUS ? 0 : -EIO;
}

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "redis-tls", .pTests = tests}, CU_SUITE_INFO_NULL};
    int r = 1;

    if (prepare() < 0)
        puts("no redis-server with TLS, or no openssl");
    else
        r = test_main(argc, argv, suites);
    redis_server_done(&server);
    tls_place_done(&place);
    return r;
}
