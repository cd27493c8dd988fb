/* SPDX-License-Identifier: MIT */
/* What a command finds in its environment besides what test-job-command.c shows: the facts that berthd sends
 * of a run. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/protocol.h"
#include "tests/harness/runner.h"
#include "tests/harness/test.h"

static struct test_runner t;
static struct message m; /* large */

static void send_with(char run, const char *job, const char *const *fields) {
    static struct message_writer w;

    test_runner_begin_start(&w, run, job, test_runner_hash(&t, job));
    for (; fields[0]; fields += 2)
        message_put(&w, fields[0], fields[1]);
    TEST_INT(message_send(t.fd, &w), 0);
}

static void test_facts(void) {
    static const char *const facts[] = {
        "trigger", "hook", "attempt", "2", "of-reason", "exec: $(id) `x` ; rm",
        "of-path", "/x",   "depth",   "1", NULL};
    static const char *const wrong[] = {"attempt", "two", NULL};
    _cleanup_free_ char *text = NULL;

    test_runner_begin(
        &t,
        TEST_OUT("facts", "env | grep -E '^BERTH_(TRIGGER|DUE|ATTEMPT|FIRST_RUN|OF_.*|DEPTH)=' | sort", ""),
        getuid());
    send_with('1', "facts", facts);
    test_await(t.fd, &m, PROTOCOL_STARTING);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "code", "0");
    TEST_FIELD(&m, "trigger", "hook"); /* the next berthd knows it from there */
    TEST_FIELD(&m, "of-path", NULL);
    test_say(t.fd, PROTOCOL_FORGET, "run", test_runner_id('1'));
    text = test_runner_read(&t, "facts.out");
    TEST_STRING(
        text, "BERTH_ATTEMPT=2\nBERTH_DEPTH=1\nBERTH_OF_REASON=exec: $(id) `x` ; rm\nBERTH_TRIGGER=hook\n");
    send_with('2', "facts", wrong);
    test_await(t.fd, &m, PROTOCOL_REFUSED);
    TEST_FIELD(&m, "reason", "bad-request");
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"facts", test_facts},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "environment", .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
