/* SPDX-License-Identifier: MIT */

/* Files of passwords, and an output buffer that leaves none in memory. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "store/redis/client/outbuf.h"
#include "store/redis/client/secret.h"
#include "tests/harness/test.h"

static char folder[] = "/tmp/berth-secret-XXXXXX";

static const char *write_secret(const char *name, const char *data, size_t n) {
    static char path[128];

    (void) snprintf(path, sizeof(path), "%s/%s", folder, name);
    TEST_INT(file_write_atomic(path, data, n, 0600), 0);
    return path;
}

static void expect_secret(const char *data, size_t n, const char *expected) {
    char *secret = NULL, why[400] = "";

    TEST_INT(redis_secret_read(write_secret("file", data, n), "redis-password", &secret, why, sizeof(why)),
             0);
    TEST_STRING(why, "");
    TEST_STRING(secret, expected);
    redis_secret_free(secret);
}

static void expect_wrong(const char *data, size_t n, const char *wrong) {
    char *secret = NULL, why[400] = "", expected[400];

    TEST_INT(redis_secret_read(write_secret("file", data, n), "redis-password", &secret, why, sizeof(why)),
             SECRET_E_FILE);
    CU_ASSERT_PTR_NULL(secret);
    (void) snprintf(expected, sizeof(expected), "password-file %s/file: %s", folder, wrong);
    TEST_STRING(why, expected);
}

static void test_files(void) {
    char *longest = malloc(SECRET_MAX + 3), longest_secret[SECRET_MAX + 1] = "", *secret = NULL, why[400];

    CU_ASSERT_FATAL(longest != NULL);
    memset(longest_secret, 'x', SECRET_MAX);
    memset(longest, 'x', SECRET_MAX + 1);
    longest[SECRET_MAX + 1] = '\0';
    expect_secret("secret", 6, "secret");
    expect_secret("secret\n", 7, "secret");
    expect_secret(" s \t", 4, " s \t");
    expect_secret(longest, SECRET_MAX, longest + 1);
    expect_wrong("", 0, "is empty");
    expect_wrong("\n", 1, "is empty");
    expect_wrong("a\nb", 3, "has more than one line");
    expect_wrong("a\n\n", 3, "has more than one line");
    expect_wrong("a\0b", 3, "contains a NUL byte");
    expect_wrong(longest, SECRET_MAX + 1, "is longer than 4096 bytes");
    longest[SECRET_MAX] = '\n';
    expect_wrong(longest, SECRET_MAX + 2, "is longer than 4096 bytes"); /* a second line may follow */
    expect_secret(longest, SECRET_MAX + 1, longest_secret);
    TEST_INT(redis_secret_read("/nonexistent/file", "x", &secret, why, sizeof(why)), SECRET_E_FILE);
    TEST_STRING(why, "password-file /nonexistent/file: No such file or directory");
    TEST_INT(redis_secret_read("", "x", &secret, why, sizeof(why)), 0);
    CU_ASSERT_PTR_NULL(secret);
    free(longest);
}

static void test_credential(void) {
    char *secret = NULL, why[400];

    CU_ASSERT(setenv("CREDENTIALS_DIRECTORY", folder, 1) == 0);
    (void) write_secret("redis-password", "credential\n", 11);
    TEST_INT(redis_secret_read("", "redis-password", &secret, why, sizeof(why)), 0);
    TEST_STRING(secret, "credential");
    secret = redis_secret_free(secret);
    TEST_INT(redis_secret_read(write_secret("file", "mine", 4), "redis-password", &secret, why, sizeof(why)),
             0);
    TEST_STRING(secret, "mine"); /* the option comes first */
    secret = redis_secret_free(secret);
    TEST_INT(redis_secret_read("", "other", &secret, why, sizeof(why)), 0);
    CU_ASSERT_PTR_NULL(secret);
    CU_ASSERT(unsetenv("CREDENTIALS_DIRECTORY") == 0);
}

/* Sent bytes are cleared, also in the rest of the buffer. */
static void test_output(void) {
    struct redis_outbuf out = {.is_secret = true};
    const char *seen;

    TEST_INT(redis_outbuf_append(&out, 2, (const char *[]){"AUTH", "SECRET"}), 0);
    TEST_INT(redis_outbuf_append(&out, 1, (const char *[]){"PING"}), 0);
    seen = out.data;
    CU_ASSERT_PTR_NOT_NULL(memmem(seen, out.allocated, "SECRET", 6));
    redis_outbuf_consume(&out, out.size - 14);
    TEST_INT(out.size, 14);
    CU_ASSERT_PTR_NULL(memmem(seen, out.allocated, "SECRET", 6));
    redis_outbuf_consume(&out, 14);
    CU_ASSERT_FALSE(out.is_secret);
    redis_outbuf_done(&out);
}

static CU_TestInfo tests[] = {
    {"files", test_files},
    {"credential", test_credential},
    {"output", test_output},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "redis-secret", .pTests = tests}, CU_SUITE_INFO_NULL};
    char path[128];
    int r;

    if (!mkdtemp(folder))
        return 1;
    r = test_main(argc, argv, suites);
    (void) snprintf(path, sizeof(path), "%s/file", folder);
    (void) unlink(path);
    (void) snprintf(path, sizeof(path), "%s/redis-password", folder);
    (void) unlink(path);
    (void) rmdir(folder);
    return r;
}
