/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup */

/* Connecting by TLS while allocations fail, OpenSSL's own included: an attempt succeeds or ends with a reason,
 * and the next one succeeds. */

#include <dlfcn.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/runner/attempt.h"
#include "tests/harness/test.h"
#include "tests/harness/wrap.h"

#define STRIDE 67 /* every 67th allocation of OpenSSL is tested; with BERTH_TEST_EACH=yes each one */

WRAP(FAULT_ZEROED_MEMORY, NULL, void *, malloc, (size_t size), (size))
WRAP(FAULT_ZEROED_MEMORY, NULL, void *, calloc, (size_t n, size_t size), (n, size))
WRAP(FAULT_ZEROED_MEMORY, NULL, void *, realloc, (void *p, size_t size), (p, size))
WRAP(FAULT_ZEROED_MEMORY, NULL, char *, strdup, (const char *text), (text))

static struct tls_place place;
static struct redis_server server;
static unsigned port;

static void *openssl_malloc(size_t size, _unused_ const char *file, _unused_ int line) {
    return fault_meets(FAULT_MEMORY) ? NULL : __real_malloc(size);
}

static void *openssl_realloc(void *p, size_t size, _unused_ const char *file, _unused_ int line) {
    return fault_meets(FAULT_MEMORY) ? NULL : __real_realloc(p, size);
}

static void openssl_free(void *p, _unused_ const char *file, _unused_ int line) {
    free(p);
}

/* Returns whether the attempt made k allocations. The last of them failed. */
static bool fail_at(enum fault_kind kind, unsigned k) {
    struct attempt a;
    bool is_met;

    attempt_begin(&a, &place, "localhost", port);
    a.settings.tls.certificate = tls_place_path(&place, "server.crt");
    a.settings.tls.key = tls_place_path(&place, "server.key");
    fault_begin(kind, k, 1);
    attempt_run(&a);
    is_met = fault_end();
    TEST_INT(a.is_over, true);
    CU_ASSERT(a.n_up == 1 || a.text[0] != '\0');
    attempt_run(&a);
    if (a.n_down > 0) {
        printf("after the failure of allocation %u:\n", k);
        TEST_STRING(a.text, "");
    }
    TEST_INT(a.n_up, 1);
    attempt_end(&a);
    return is_met;
}

/* OpenSSL remembers for ever that its initialisation failed, so it is initialised before allocations fail. */
static void warm_up(void) {
    struct attempt a;

    attempt_begin(&a, &place, "localhost", port);
    attempt_expect_up(&a, "up");
}

static void test_own(void) {
    warm_up();
    for (unsigned k = 1; fail_at(FAULT_ZEROED_MEMORY, k); k++)
        ;
}

static void test_openssl(void) {
    unsigned stride = getenv("BERTH_TEST_EACH") ? 1 : STRIDE, k = 1;

    warm_up();
    while (fail_at(FAULT_MEMORY, k))
        k += stride;
    CU_ASSERT(k > 100);
}

static CU_TestInfo tests[] = {
    {"openssl", test_openssl},
    {"own", test_own},
    CU_TEST_INFO_NULL,
};

static int prepare(void) {
    void *library = dlopen("libcrypto.so.3", RTLD_NOW);
    __typeof__(CRYPTO_set_mem_functions) *set =
        library ? (__typeof__(set)) dlsym(library, "CRYPTO_set_mem_functions") : NULL;

    if (!set || set(openssl_malloc, openssl_realloc, openssl_free) != 1)
        return -ENOENT;
    if (tls_place_init(&place) < 0 ||
        tls_place_sign(&place, "ca", "server", "x", "DNS:localhost", -1, 20) < 0)
        return -EIO;
    port = tls_server_start(&server, &place, "optional");
    return port > 0 ? 0 : -EIO;
}

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "redis-tls-memory", .pTests = tests}, CU_SUITE_INFO_NULL};
    int r = 1;

    if (prepare() < 0)
        puts("no redis-server with TLS, or no openssl");
    else
        r = test_main(argc, argv, suites);
    redis_server_done(&server);
    tls_place_done(&place);
    return r;
}
