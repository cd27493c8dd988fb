/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <unistd.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "tests/harness/test.h"

static char directory[] = "/tmp/berth-file-XXXXXX";
static char path[64], temporary[64];

static int suite_init(void) {
    if (!mkdtemp(directory))
        return -1;
    snprintf(path, sizeof(path), "%s/a", directory);
    snprintf(temporary, sizeof(temporary), "%s/a.tmp", directory);
    return 0;
}

static int suite_done(void) {
    return rmdir(directory); /* fails if a temporary file was left */
}

static void test_round_trip(void) {
    _cleanup_free_ char *text = NULL, *again = NULL;
    static char large[10000];
    struct stat st;
    size_t size = 0;

    TEST_INT(file_write_atomic(path, "one\n", 4, 0640), 0);
    TEST_INT(file_read(path, 4, &text, &size), 0);
    TEST_STRING(text, "one\n");
    TEST_INT(size, 4);
    CU_ASSERT(stat(path, &st) == 0 && (st.st_mode & 0777) == 0640);
    memset(large, 'x', sizeof(large));
    TEST_INT(file_write_atomic(path, large, sizeof(large), 0600), 0);
    TEST_INT(file_read(path, sizeof(large), &again, &size), 0);
    TEST_INT(size, sizeof(large));
    CU_ASSERT(again && memcmp(again, large, sizeof(large)) == 0 && again[size] == '\0');
    TEST_INT(unlink(path), 0);
}

static void test_bound(void) {
    char *text = NULL;
    size_t size = 4711;

    TEST_INT(file_write_atomic(path, "12345", 5, 0600), 0);
    TEST_INT(file_read(path, 4, &text, &size), -EFBIG);
    CU_ASSERT_PTR_NULL(text);
    TEST_INT(size, 4711);
    TEST_INT(file_read(path, 0, &text, &size), -EFBIG);
    TEST_INT(file_write_atomic(path, "", 0, 0600), 0);
    TEST_INT(file_read(path, 0, &text, &size), 0);
    TEST_STRING(text, "");
    free(text);
    TEST_INT(unlink(path), 0);
}

static void test_kinds(void) {
    char *text = NULL;
    size_t size;

    TEST_INT(file_read(path, 10, &text, &size), -ENOENT);
    TEST_INT(file_read(directory, 10, &text, &size), -EISDIR);
    TEST_INT(mkfifo(path, 0600), 0);
    TEST_INT(file_read(path, 10, &text, &size), -EINVAL); /* and does not wait for a writer */
    TEST_INT(unlink(path), 0);
    TEST_INT(file_read("/dev/null", 10, &text, &size), -EINVAL);
    CU_ASSERT_PTR_NULL(text);
}

static void test_failure_changes_nothing(void) {
    _cleanup_free_ char *text = NULL;
    char inside[80];
    size_t size;

    /* A directory is in the way of the rename. */
    TEST_INT(mkdir(path, 0700), 0);
    snprintf(inside, sizeof(inside), "%s/b", path);
    TEST_INT(file_write_atomic(inside, "x", 1, 0600), 0);
    TEST_INT(file_write_atomic(path, "y", 1, 0600), -EISDIR);
    TEST_INT(file_read(inside, 10, &text, &size), 0);
    TEST_STRING(text, "x");
    CU_ASSERT(access(temporary, F_OK) < 0);
    TEST_INT(unlink(inside), 0);
    TEST_INT(rmdir(path), 0);
    TEST_INT(file_write_atomic("/nonexistent/a", "y", 1, 0600), -ENOENT);
}

static void test_leftover(void) {
    _cleanup_free_ char *text = NULL;
    size_t size;

    /* A file that a crash left, or a link in its place, is replaced, not written through. */
    TEST_INT(symlink("/nonexistent/elsewhere", temporary), 0);
    TEST_INT(file_write_atomic(path, "x", 1, 0600), 0);
    TEST_INT(file_read(path, 10, &text, &size), 0);
    TEST_STRING(text, "x");
    CU_ASSERT(access(temporary, F_OK) < 0);
    TEST_INT(unlink(path), 0);
}

static void test_directory(void) {
    mode_t mask = umask(077);
    struct stat st;

    TEST_INT(file_make_directory(path, 0755), 0);
    (void) umask(mask);
    TEST_INT(stat(path, &st), 0);
    TEST_INT(st.st_mode & 07777, 0755);
    TEST_INT(file_make_directory(path, 0700), 0);
    TEST_INT(stat(path, &st), 0);
    TEST_INT(st.st_mode & 07777, 0755);
    TEST_INT(rmdir(path), 0);
    TEST_INT(file_make_directory("/nonexistent/a", 0700), -ENOENT);
}

static int count_or_fail(const char *name, void *userdata) {
    int *n = userdata;

    return strcmp(name, "a") == 0 ? ++*n : -ECANCELED;
}

static void test_each_entry(void) {
    int n = 0;

    TEST_INT(directory_each(path, count_or_fail, &n), -ENOENT);
    TEST_INT(directory_each(directory, count_or_fail, &n), 0);
    TEST_INT(file_write_atomic(path, "x", 1, 0600), 0);
    TEST_INT(directory_each(directory, count_or_fail, &n), 0);
    TEST_INT(n, 1);
    CU_ASSERT(rename(path, temporary) == 0);
    TEST_INT(directory_each(directory, count_or_fail, &n), -ECANCELED);
    CU_ASSERT(unlink(temporary) == 0);
}

static CU_TestInfo tests[] = {
    {"each-entry", test_each_entry},
    {"directory", test_directory},
    {"round trip", test_round_trip},
    {"bound", test_bound},
    {"kinds", test_kinds},
    {"a failure changes nothing", test_failure_changes_nothing},
    {"leftover", test_leftover},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "file", .pTests = tests, .pInitFunc = suite_init, .pCleanupFunc = suite_done});
