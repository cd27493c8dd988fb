/* SPDX-License-Identifier: MIT */

/* The manager's decisions about the holds of clients (`berth run`). */

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/adhoc/hold.h"
#include "tests/harness/runner/manager-bed.h"
#include "tests/harness/test.h"

static void test_ad_hoc(void) {
    struct demands pools, two;
    struct adhoc_request hold = {.pools = &pools, .name = "label", .wait_usec = USEC_INFINITY, .stop_timeout_usec = USEC_INFINITY,
                                .uid = getuid(), .pid = getpid()};
    const char *text = NULL;
    struct run *r, *other;
    bool nested;
    int fd;

    TEST_INT(demands_parse("slot", &pools), 0);
    TEST_INT(demands_parse("slot:2", &two), 0);
    TEST_INT(manager_hold(manager_bed.manager, &hold, &r, &nested, &text), 0);
    CU_ASSERT(manager_bed_await_starting(r));
    fd = manager_take_hold_fd(r);
    CU_ASSERT(fd >= 0);
    TEST_INT(manager_take_hold_fd(r), -1);
    TEST_INT(manager_bed_count_files("holds"), 2);
    /* The manager accepts no start before the request, and none in the future (test_reported_early). */
    manager_client_started(r, getpid(), r->queued.boottime - 1);
    TEST_INT(r->state, RUN_STATE_RUNNING);
    CU_ASSERT(r->started.boottime > r->queued.boottime);

    hold.nested = r->id; /* this process is inside the run */
    TEST_INT(manager_hold(manager_bed.manager, &hold, &other, &nested, &text), 0);
    CU_ASSERT(nested);
    CU_ASSERT_PTR_EQUAL(other, r);
    TEST_INT(demands_parse("slot,wide", &pools), 0);
    TEST_INT(manager_hold(manager_bed.manager, &hold, &other, &nested, &text), MANAGER_E_INVALID);
    hold.nested = NULL;
    hold.pools = &two;
    TEST_INT(manager_hold(manager_bed.manager, &hold, &other, &nested, &text), MANAGER_E_INVALID);
    TEST_STRING(text, "2 permits of pool \"slot\" are more than its limit of 1");
    hold.pools = &pools;
    TEST_INT(demands_parse("slit", &pools), 0);
    TEST_INT(manager_hold(manager_bed.manager, &hold, &other, &nested, &text), MANAGER_E_UNKNOWN);
    TEST_STRING(text, "slit");

    /* Only its own user or root may attach to a run. */
    TEST_INT(manager_attach(manager_bed.manager, r->id, getuid() + 1, getpid(), &other), MANAGER_E_UNKNOWN);
    TEST_INT(manager_attach(manager_bed.manager, r->id, getuid(), getpid(), &other), 0);
    CU_ASSERT_PTR_EQUAL(other, r);

    /* The manager accepts no end before the start, and none in the future. */
    manager_client_ended(r, &(struct adhoc_report) {.code = 0, .signal = -1, .at = 1});
    TEST_INT(r->end.result, RUN_RESULT_SUCCESS);
    CU_ASSERT(r->end.boottime >= r->started.boottime && r->end.boottime <= clock_boottime());
    CU_ASSERT(!run_is_over(r)); /* the hold still lasts */
    close_fd(fd);
    manager_client_gone(r);
}

/* After the client reported its command, the next berthd knows its start time and its process. */
static void test_found_again(void) {
    struct demands pools;
    struct adhoc_request hold = {.pools = &pools, .name = "label", .wait_usec = USEC_INFINITY, .stop_timeout_usec = USEC_INFINITY,
                                .uid = getuid(), .pid = getpid()};
    char id[ID_TEXT_SIZE];
    usec_t started;
    struct run *r;
    const char *text;
    bool nested;
    int fd;

    TEST_INT(demands_parse("slot", &pools), 0);
    TEST_INT(manager_hold(manager_bed.manager, &hold, &r, &nested, &text), 0);
    CU_ASSERT_FATAL(manager_bed_await_starting(r));
    fd = manager_take_hold_fd(r);
    manager_client_started(r, getpid(), 0);
    started = r->started.realtime;
    memcpy(id, r->id, sizeof(id));
    manager_bed_restart();
    manager_bed_recovered();
    r = manager_find_run(manager_bed.manager, id);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    TEST_INT(r->state, RUN_STATE_RUNNING);
    TEST_INT(r->started.pid, getpid());
    /* The time is from CLOCK_BOOTTIME; the two clocks are read one after the other. */
    CU_ASSERT(r->started.realtime + USEC_PER_SEC > started && r->started.realtime < started + USEC_PER_SEC);
    TEST_INT(hold_get_command(r->adhoc.hold), getpid());
    close_fd(fd);
}

/* Returns a run that was queued 10 s ago. Its client reports a start `later` after the fifth second, and
 * an end a second after that. */
static struct run *tell_late(usec_t later, usec_t *ret_started) {
    struct demands pools;
    struct adhoc_request hold = {.pools = &pools, .name = "label", .wait_usec = USEC_INFINITY, .stop_timeout_usec = USEC_INFINITY,
                                .uid = getuid(), .pid = getpid()};
    const char *text = NULL;
    struct run *r;
    bool nested;

    TEST_INT(demands_parse("slot", &pools), 0);
    TEST_INT(manager_hold(manager_bed.manager, &hold, &r, &nested, &text), 0);
    CU_ASSERT(manager_bed_await_starting(r));
    r->queued.boottime = clock_boottime() - 10 * USEC_PER_SEC;
    *ret_started = r->queued.boottime + 5 * USEC_PER_SEC + later;
    manager_client_started(r, getpid(), *ret_started);
    manager_client_ended(r, &(struct adhoc_report) {.code = 0, .signal = -1, .at = *ret_started + USEC_PER_SEC});
    return r;
}

/* berthd hung meanwhile: the times of start and end count, not those of the reports. */
static void test_reported_late(void) {
    usec_t started;
    struct run *r = tell_late(0, &started);

    CU_ASSERT(r->started.boottime >= started - USEC_PER_MSEC && r->started.boottime <= started + USEC_PER_MSEC);
    TEST_INT(r->end.boottime, started + USEC_PER_SEC);
}

static void test_reported_early(void) {
    usec_t started, before = clock_boottime();
    struct run *r = tell_late(3600 * USEC_PER_SEC, &started);

    CU_ASSERT(r->started.boottime >= before - USEC_PER_MSEC && r->started.boottime <= clock_boottime());
    CU_ASSERT(r->end.boottime >= before && r->end.boottime <= clock_boottime());
}

static void test_client_gone(void) {
    struct demands pools;
    struct adhoc_request hold = {.pools = &pools, .name = "label", .wait_usec = USEC_INFINITY, .stop_timeout_usec = USEC_INFINITY,
                                .uid = getuid(), .pid = getpid()};
    const char *text = NULL;
    struct run *r, *w;
    bool nested;

    TEST_INT(demands_parse("slot", &pools), 0);
    TEST_INT(manager_hold(manager_bed.manager, &hold, &r, &nested, &text), 0);
    CU_ASSERT(manager_bed_await_starting(r));
    TEST_INT(manager_hold(manager_bed.manager, &hold, &w, &nested, &text), 0);
    CU_ASSERT(manager_bed_await_waiting(w));
    manager_client_gone(w);
    TEST_INT(w->state, RUN_STATE_DONE);
    TEST_INT(manager_bed_count_files("waiting"), 0);
    manager_client_gone(r); /* granted, but nobody took the write end */
    CU_ASSERT(manager_bed_await_released(r));
    TEST_INT(r->end.result, RUN_RESULT_NOT_STARTED);
    TEST_INT(manager_bed_count_files("holds"), 0);
}

static void test_nowait_and_queue_timeout(void) {
    struct demands pools;
    struct adhoc_request hold = {.pools = &pools, .name = "label", .nowait = true, .wait_usec = USEC_INFINITY,
                                .stop_timeout_usec = USEC_INFINITY, .uid = getuid(), .pid = getpid()};
    const char *text = NULL;
    struct run *r;
    bool nested;

    (void) manager_bed_run("one");
    TEST_INT(demands_parse("slot", &pools), 0);
    TEST_INT(manager_hold(manager_bed.manager, &hold, &r, &nested, &text), 0);
    CU_ASSERT(manager_bed_await_over(r));
    TEST_INT(r->end.result, RUN_RESULT_NOT_STARTED);
    TEST_STRING(r->reason, "busy: slot");
    hold.nowait = false;
    hold.wait_usec = 20 * USEC_PER_MSEC;
    TEST_INT(manager_hold(manager_bed.manager, &hold, &r, &nested, &text), 0);
    CU_ASSERT(manager_bed_await_over(r));
    TEST_INT(r->end.result, RUN_RESULT_QUEUE_TIMEOUT);
}

/* While berthd recovers, it does not reply that a run is unknown: the client would claim again and lose
 * its place. */
static void test_attach_while_recovering(void) {
    static const char id[] = "0123456789abcdef0123456789abcdef";
    struct run *r = NULL;

    TEST_INT(manager_attach(manager_bed.manager, id, getuid(), getpid(), &r), MANAGER_E_RECOVERING);
    manager_bed_recovered();
    TEST_INT(manager_attach(manager_bed.manager, id, getuid(), getpid(), &r), MANAGER_E_UNKNOWN);
}

/* Guards report runs of jobs while berthd recovers. Until then a client that may be inside one makes no claim of its own. */
static void test_nested_while_recovering(void) {
    struct demands pools;
    struct adhoc_request hold = {.pools = &pools,
                                 .name = "label",
                                 .wait_usec = USEC_INFINITY,
                                 .stop_timeout_usec = USEC_INFINITY,
                                 .uid = getuid(),
                                 .pid = getpid(),
                                 .nested = "0123456789abcdef0123456789abcdef"};
    struct run *r = NULL;
    const char *text = NULL;
    bool nested;

    TEST_INT(demands_parse("slot", &pools), 0);
    TEST_INT(manager_hold(manager_bed.manager, &hold, &r, &nested, &text), MANAGER_E_RECOVERING);
    manager_bed_recovered();
    TEST_INT(manager_hold(manager_bed.manager, &hold, &r, &nested, &text), 0);
    CU_ASSERT(!nested);
    manager_client_gone(r);
}

/* user-runs limits the waiting and granted runs of each user, but not those of root and of berthd's own
 * user. */
static void test_quota(void) {
    struct demands pools;
    uid_t user = geteuid() + 1; /* neither root nor berthd's own user */
    struct adhoc_request hold = {
        .pools = &pools, .name = "label", .wait_usec = USEC_INFINITY, .stop_timeout_usec = USEC_INFINITY, .uid = user, .pid = getpid()};
    struct run *runs[3], *other;
    const char *text = NULL;
    bool nested;

    TEST_INT(demands_parse("slot", &pools), 0);
    ((struct settings *) manager_settings(manager_bed.manager))->user_runs = 2;
    for (size_t i = 0; i < 2; i++)
        TEST_INT(manager_hold(manager_bed.manager, &hold, &runs[i], &nested, &text), 0);
    CU_ASSERT(manager_bed_await_starting(runs[0]));
    TEST_INT(manager_hold(manager_bed.manager, &hold, &other, &nested, &text), MANAGER_E_QUOTA);
    TEST_STRING(text, "your user has 2 runs of `berth run` waiting and running, as many as user-runs = 2 allows");
    hold.uid = user + 1;
    TEST_INT(manager_hold(manager_bed.manager, &hold, &runs[2], &nested, &text), 0);
    hold.uid = geteuid();
    TEST_INT(manager_hold(manager_bed.manager, &hold, &other, &nested, &text), 0);
    manager_client_gone(other);
    manager_client_gone(runs[2]);
    manager_client_gone(runs[1]); /* makes room */
    hold.uid = user;
    TEST_INT(manager_hold(manager_bed.manager, &hold, &runs[1], &nested, &text), 0);
    manager_client_gone(runs[1]);
    close_fd(manager_take_hold_fd(runs[0]));
}

static CU_TestInfo recovering_tests[] = {
    {"attach while recovering", test_attach_while_recovering},
    {"nested while recovering", test_nested_while_recovering},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo tests[] = {
    {"ad hoc", test_ad_hoc},
    {"found again", test_found_again},
    {"reported late", test_reported_late},
    {"reported early", test_reported_early},
    {"client gone", test_client_gone},
    {"nowait and queue timeout", test_nowait_and_queue_timeout},
    {"quota", test_quota},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "manager-client, recovering", .pSetUpFunc = manager_bed_up,
             .pTearDownFunc = manager_bed_down, .pTests = recovering_tests},
            {.pName = "manager-client", .pSetUpFunc = manager_bed_up_recovered,
             .pTearDownFunc = manager_bed_down, .pTests = tests});
