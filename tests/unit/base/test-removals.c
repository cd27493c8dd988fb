/* SPDX-License-Identifier: MIT */
#include "base/removals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

static char folder[] = "/tmp/berth-removals-XXXXXX";
static char parent[64], path[80];
static sd_event *event;

static void touch(const char *name) {
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    CU_ASSERT_FATAL(fd >= 0);
    (void) close(fd);
}

static void up(void) {
    snprintf(folder, sizeof(folder), "/tmp/berth-removals-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(folder) != NULL && sd_event_new(&event) >= 0);
    snprintf(parent, sizeof(parent), "%s/parent", folder);
    snprintf(path, sizeof(path), "%s/file", parent);
}

static void down(void) {
    event = sd_event_unref(event);
    place_remove(folder);
}

/* A file in place of the parent makes removals fail for each user, also for root. */
static void forbid(void) {
    (void) rmdir(parent);
    touch(parent);
}

static void allow(void) {
    CU_ASSERT(unlink(parent) == 0 && mkdir(parent, 0700) == 0);
    touch(path);
}

static void test_now(void) {
    _cleanup_(removals_freep) struct removals *r = NULL;

    CU_ASSERT_FATAL(removals_new(&r, event) == 0);
    CU_ASSERT(mkdir(parent, 0700) == 0);
    touch(path);
    TEST_INT(removals_remove(r, path), 0);
    TEST_INT(access(path, F_OK), -1);
    TEST_INT(removals_remove(r, path), 0); /* it is not there */
}

static void test_later(void) {
    _cleanup_(removals_freep) struct removals *r = NULL;
    usec_t until = clock_boottime() + 10 * USEC_PER_SEC;

    CU_ASSERT_FATAL(removals_new(&r, event) == 0);
    forbid();
    TEST_INT(removals_remove(r, path), -ENOTDIR);
    TEST_INT(removals_remove(r, parent), 0); /* others are not kept waiting */
    touch(parent);
    while (clock_boottime() < until - 8 * USEC_PER_SEC) /* attempts fail */
        (void) sd_event_run(event, 200 * USEC_PER_MSEC);
    allow();
    while (access(path, F_OK) == 0 && clock_boottime() < until)
        (void) sd_event_run(event, 200 * USEC_PER_MSEC);
    TEST_INT(access(path, F_OK), -1);
    TEST_INT(sd_event_run(event, 0), 0); /* and nothing is left to do */
}

static void test_at_the_end(void) {
    struct removals *r = NULL;

    CU_ASSERT_FATAL(removals_new(&r, event) == 0);
    forbid();
    TEST_INT(removals_remove(r, path), -ENOTDIR);
    allow();
    removals_free(r);
    TEST_INT(access(path, F_OK), -1);
}

static CU_TestInfo tests[] = {
    {"now", test_now},
    {"later", test_later},
    {"at the end", test_at_the_end},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "removals", .pSetUpFunc = up, .pTearDownFunc = down, .pTests = tests});
