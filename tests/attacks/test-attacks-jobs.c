/* SPDX-License-Identifier: MIT */

/* The user of berthd attacks berth-runner and a guard without pause. The guard stops its job in time. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/protocol.h"
#include "tests/harness/attack.h"
#include "tests/harness/runner/runner.h"
#include "tests/harness/test.h"

#define LATE_MAX (5 * USEC_PER_SEC) /* a frozen process would be late by 20 s (slow-close.h) */
#define ATTACKS 20              /* attempts of each attack before the test begins */

static struct test_runner t;
static struct message m;
static struct attack *attacks[2];

static void begin_attacks(void) {
    char guard[160];

    snprintf(guard, sizeof(guard), "run/%s/%s%s", PROTOCOL_RUNS, test_runner_id('1'), PROTOCOL_SOCKET_SUFFIX);
    attacks[0] = attack_start(ATTACK_FREEZE, test_runner_path(&t, "run/" PROTOCOL_RUNNER_SOCKET), SOCK_SEQPACKET, geteuid());
    attacks[1] = attack_start(ATTACK_FREEZE, test_runner_path(&t, guard), SOCK_SEQPACKET, geteuid());
    for (size_t i = 0; i < 2; i++)
        CU_ASSERT(attack_await(attacks[i], ATTACKS) && attack_sent(attacks[i]) > 0);
}

static void end_attacks(void) {
    for (size_t i = 0; i < 2; i++)
        attacks[i] = attack_end(attacks[i]);
}

static void begin(const char *jobs, usec_t deadline) {
    struct message_writer w;

    test_runner_begin(&t, jobs, geteuid());
    test_runner_begin_start(&w, '1', "a", test_runner_hash(&t, "a"));
    if (deadline != USEC_INFINITY)
        message_put_u64(&w, "deadline", deadline);
    TEST_INT(message_send(t.fd, &w), 0);
    test_await(t.fd, &m, PROTOCOL_STARTING);
    free(test_runner_read(&t, "a.out"));
}

/* berthd cannot reach the guard during the attack, so the guard leaves a report. The runner sends the report
 * after the next hello. */
static void await_report(void) {
    test_runner_await_file(&t, '1', PROTOCOL_REPORT_SUFFIX);
    end_attacks();
    close(t.fd);
    t.fd = test_runner_connect(&t);
    test_say(t.fd, PROTOCOL_HELLO, "version", "1");
    test_await(t.fd, &m, PROTOCOL_HELLO);
    do
        test_await_any(t.fd, &m);
    while (message_is(&m, PROTOCOL_GUARD) || message_is(&m, PROTOCOL_RECOVERED)); /* the guard is ending */
    TEST_STRING(m.verb, PROTOCOL_REPORT);
}

static void test_timeout(void) {
    uint64_t took;

    begin(TEST_OUT("a", "echo begun; exec sleep 1000", "timeout = \"3s\""), USEC_INFINITY);
    begin_attacks();
    await_report();
    TEST_FIELD(&m, "reason", "timeout");
    took = test_number(&m, "ended-boot") - test_number(&m, "started");
    CU_ASSERT(took >= 3 * USEC_PER_SEC);
    printf("the timeout was %.1f ms late\n", ((double) took - 3 * USEC_PER_SEC) / 1000);
    if (took >= 3 * USEC_PER_SEC + LATE_MAX)
        TEST_INT(took, 3 * USEC_PER_SEC);
    test_runner_done(&t);
}

static void test_deadline(void) {
    begin(TEST_OUT("a", "trap '' TERM; echo begun; while :; do sleep 1000; done", ""), clock_boottime() + 3 * USEC_PER_SEC);
    begin_attacks();
    await_report();
    TEST_FIELD(&m, "reason", "lease-lost");
    if (message_get(&m, "gone-after")) /* absent if the last process was gone before the deadline */
        CU_ASSERT(test_number(&m, "gone-after") < LATE_MAX);
    printf("the last process was gone %s the deadline\n", message_get(&m, "gone-after") ? "after" : "before");
    test_runner_done(&t);
}

/* The runner still starts jobs and reports their ends. */
static void test_runner_goes_on(void) {
    struct attack *a;

    test_runner_begin(&t, TEST_SH("a", "exit 0"), geteuid());
    a = attack_start(ATTACK_FREEZE, test_runner_path(&t, "run/" PROTOCOL_RUNNER_SOCKET), SOCK_SEQPACKET, geteuid());
    CU_ASSERT(attack_await(a, ATTACKS));
    a = attack_end(a);
    close(t.fd);
    t.fd = -1;
    test_runner_join(&t);
    test_runner_run(&t, &m, '1', "a");
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"timeout", test_timeout}, {"deadline", test_deadline}, {"runner goes on", test_runner_goes_on}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "attacks on jobs", .pTests = tests});
