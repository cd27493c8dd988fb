/* SPDX-License-Identifier: MIT */

/* The listener hands connections over. Without a descriptor for the next one, the loop does not spin. */

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/listener.h"
#include "base/socket.h"
#include "tests/harness/test.h"

#define PATIENCE (10 * USEC_PER_SEC)

static unsigned n_taken;

static void take(int fd, void *userdata) {
    CU_ASSERT_PTR_EQUAL(userdata, &n_taken);
    n_taken++;
    close_fd(fd);
}

static void run_until(sd_event *event, unsigned n) {
    for (usec_t until = clock_boottime() + PATIENCE; n_taken < n && clock_boottime() < until;)
        TEST_INT(sd_event_run(event, USEC_PER_SEC) >= 0, 1);
    TEST_INT(n_taken, n);
}

static void test_out_of_descriptors(void) {
    _cleanup_(sd_event_unrefp) sd_event *event = NULL;
    _cleanup_(listener_freep) struct listener *l = NULL;
    _cleanup_close_ int fd = -1, first = -1, second = -1;
    char directory[] = "/tmp/berth-listener-XXXXXX", path[64];
    struct rlimit limit, none = {0, 0};
    unsigned turns = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/sock", directory);
    fd = socket_listen(path, SOCK_STREAM, 0600);
    TEST_INT(sd_event_new(&event), 0);
    n_taken = 0;
    TEST_INT(listener_new(&l, event, fd, SD_EVENT_PRIORITY_NORMAL, take, &n_taken), 0);
    first = socket_connect(path, SOCK_STREAM);
    CU_ASSERT(first >= 0);
    run_until(event, 1);

    second = socket_connect(path, SOCK_STREAM);
    CU_ASSERT(second >= 0);
    TEST_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none.rlim_max = limit.rlim_max;
    TEST_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
    while (turns < 100 && sd_event_run(event, 0) > 0)
        turns++;
    TEST_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    TEST_INT(turns < 5, 1);
    TEST_INT(n_taken, 1);
    run_until(event, 2); /* the listener tries again */

    l = listener_free(l);
    (void) unlink(path);
    (void) rmdir(directory);
}

static CU_TestInfo tests[] = {
    {"out of descriptors", test_out_of_descriptors},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "listener", .pTests = tests});
