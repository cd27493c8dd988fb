/* SPDX-License-Identifier: MIT */
/* berthd's links to a real berth-runner, which is a service or a child of this test. */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/protocol.h"
#include "daemon/executor/runner-link.h"
#include "tests/harness/place.h"
#include "tests/harness/runner/runner.h"
#include "tests/harness/test.h"

#define WAITS "job \"a\" { command = {\"/bin/sh\", \"-c\", \"trap 'exit 7' TERM; echo ready; sleep 1000 & wait\"} output = \"@/a.out\" }\n"

static struct test_runner t;
static sd_event *event;
static struct runner_link *runner;
static struct guard_link *guard;

/* The messages so far. */
static struct {
    unsigned recovered, lost, started, existed, refused, reports, states, guard_started, stopping, acks, gone;
    char guard[ID_TEXT_SIZE], refused_reason[32], report_code[8], phase[16];
    usec_t ack;
} received;

static void on_recovered(_unused_ void *userdata) {
    received.recovered++;
}
static void on_guard(const char *run, _unused_ void *userdata) {
    memcpy(received.guard, run, sizeof(received.guard));
}
static void on_started(_unused_ const char *run, bool existed, _unused_ void *userdata) {
    if (existed)
        received.existed++;
    else
        received.started++;
}
static void on_refused(_unused_ const char *run, const char *reason, _unused_ const char *text, _unused_ void *userdata) {
    received.refused++;
    snprintf(received.refused_reason, sizeof(received.refused_reason), "%s", reason);
}
static void take_report(const struct message *report) {
    const char *code = message_get(report, "code");

    received.reports++;
    snprintf(received.report_code, sizeof(received.report_code), "%s", code ? code : "none");
}
static void on_report(const struct message *report, _unused_ void *userdata) {
    char run[ID_TEXT_SIZE];

    take_report(report);
    TEST_INT(message_get_id(report, "run", run), 0);
    TEST_INT(runner_link_forget(runner, run), 0);
}
static void on_lost(_unused_ void *userdata) {
    received.lost++;
}

static const struct runner_link_handler runner_handler = {.on_recovered = on_recovered, .on_guard = on_guard, .on_started = on_started,
                                                          .on_refused = on_refused, .on_report = on_report, .on_lost = on_lost};

static void guard_on_state(_unused_ struct guard_link *g, const struct message *state, _unused_ void *userdata) {
    received.states++;
    snprintf(received.phase, sizeof(received.phase), "%s", message_get(state, "phase"));
}
static void guard_on_started(_unused_ struct guard_link *g, _unused_ const struct message *started, _unused_ void *userdata) {
    received.guard_started++;
}
static void guard_on_stopping(_unused_ struct guard_link *g, enum supervise_reason reason, _unused_ void *userdata) {
    TEST_INT(reason, SUPERVISE_REASON_REVOKED);
    received.stopping++;
}
static void guard_on_ack(_unused_ struct guard_link *g, usec_t deadline, _unused_ void *userdata) {
    received.acks++;
    received.ack = deadline;
}
static void guard_on_report(struct guard_link *g, const struct message *report, _unused_ void *userdata) {
    take_report(report);
    guard_link_done(g);
    guard = guard_link_free(g); /* a handler may free its link */
}
static void guard_on_gone(struct guard_link *g, _unused_ void *userdata) {
    received.gone++;
    guard = guard_link_free(g);
}

static const struct guard_link_handler guard_handler = {.on_state = guard_on_state, .on_started = guard_on_started,
                                                        .on_stopping = guard_on_stopping, .on_ack = guard_on_ack,
                                                        .on_report = guard_on_report, .on_gone = guard_on_gone};

/* Runs the event loop until the count is at least `least`. */
static void until(const unsigned *count, unsigned least) {
    usec_t end = clock_boottime() + 10 * USEC_PER_SEC;

    while (*count < least) {
        if (clock_boottime() > end || sd_event_run(event, USEC_PER_SEC) < 0) {
            CU_FAIL_FATAL("it did not happen");
        }
    }
}

static void run_directory(char path[static 80]) {
    snprintf(path, 80, "%s/run", t.directory);
}

static void begin(const char *with_runner) {
    char directory[80], config[160];

    memset(&received, 0, sizeof(received));
    run_directory(directory);
    snprintf(config, sizeof(config), "%s/berth.conf", t.directory);
    CU_ASSERT_FATAL(sd_event_new(&event) >= 0);
    CU_ASSERT_FATAL(runner_link_new(&runner, event, directory, with_runner, with_runner ? config : NULL, &runner_handler) == 0);
    CU_ASSERT(!runner_link_is_up(runner));
}

static void end(void) {
    runner = runner_link_free(runner);
    event = sd_event_unref(event);
}

static void send_start(char run) {
    struct message_writer w;

    test_runner_begin_start(&w, run, "a", test_runner_hash(&t, "a"));
    TEST_INT(runner_link_start(runner, &w), 0);
}

static void connect_guard(void) {
    char directory[80];

    run_directory(directory);
    CU_ASSERT_FATAL(guard_link_new(&guard, event, directory, test_runner_id('1'), &guard_handler) == 0);
    until(&received.states, received.states + 1);
    CU_ASSERT(guard_link_pid(guard) > 1);
}

static void test_links(void) {
    struct message_writer w;

    test_runner_init(&t, WAITS, getuid());
    begin(NULL);
    message_begin(&w, PROTOCOL_START);
    TEST_INT(runner_link_start(runner, &w), -ENOTCONN); /* before hello */
    TEST_INT(runner_link_kill(runner, test_runner_id('1'), 0), -ENOTCONN);
    until(&received.recovered, 1);
    CU_ASSERT(runner_link_is_up(runner));
    test_runner_begin_start(&w, '2', "b", "0123456789abcdef");
    TEST_INT(runner_link_start(runner, &w), 0);
    until(&received.refused, 1);
    TEST_STRING(received.refused_reason, "unknown-job");
    send_start('1');
    until(&received.started, 1);
    send_start('1');
    until(&received.existed, 1);
    connect_guard();
    free(test_runner_read(&t, "a.out"));
    guard_link_set_deadline(guard, clock_boottime() + 100 * USEC_PER_SEC);
    until(&received.acks, 1);
    CU_ASSERT(received.ack > clock_boottime() && received.ack != USEC_INFINITY);
    guard_link_set_deadline(guard, USEC_INFINITY);
    until(&received.acks, 2);
    CU_ASSERT(received.ack == USEC_INFINITY);
    guard_link_stop(guard, SUPERVISE_REASON_REVOKED);
    until(&received.reports, 1);
    TEST_INT(received.stopping, 1);
    TEST_STRING(received.report_code, "7");
    CU_ASSERT_PTR_NULL(guard);
    TEST_INT(received.lost + received.gone, 0);
    end();
    test_runner_done(&t);
}

static void test_runner_away(void) {
    test_runner_init(&t, WAITS, getuid());
    test_runner_end(&t, SIGTERM);
    begin(NULL);
    until(&received.lost, 1); /* the link reports once that there is no runner, and tries again */
    test_runner_start(&t);
    until(&received.recovered, 1);
    send_start('1');
    until(&received.started, 1);
    test_runner_end(&t, SIGKILL);
    until(&received.lost, 2);
    CU_ASSERT(!runner_link_is_up(runner));
    TEST_INT(runner_link_kill(runner, test_runner_id('1'), 0), -ENOTCONN);
    test_runner_start(&t);
    until(&received.recovered, 2);
    TEST_STRING(received.guard, test_runner_id('1'));
    TEST_INT(runner_link_kill(runner, test_runner_id('1'), 0), 0);
    until(&received.reports, 1);
    TEST_STRING(received.report_code, "none");
    end();
    test_runner_done(&t);
}

static void test_guard_gone(void) {
    char directory[80];

    test_runner_init(&t, WAITS, getuid());
    begin(NULL);
    until(&received.recovered, 1);
    run_directory(directory);
    TEST_INT(guard_link_new(&guard, event, directory, test_runner_id('9'), &guard_handler), -ENOENT);
    send_start('1');
    until(&received.started, 1);
    connect_guard();
    test_kill_and_wait(guard_link_pid(guard));
    until(&received.gone, 1);
    until(&received.reports, 1);
    TEST_STRING(received.report_code, "none");
    end();
    test_runner_done(&t);
}

/* A guard that did not read for a while receives the newest deadline next. */
static void test_newest_deadline(void) {
    usec_t newest = 0;

    test_runner_init(&t, WAITS, getuid());
    begin(NULL);
    until(&received.recovered, 1);
    send_start('1');
    until(&received.started, 1);
    connect_guard();
    CU_ASSERT(kill(guard_link_pid(guard), SIGSTOP) == 0);
    for (int i = 0; i < 5000; i++) {
        newest = clock_boottime() + 100 * USEC_PER_SEC + (usec_t) i;
        guard_link_set_deadline(guard, newest);
    }
    CU_ASSERT(kill(guard_link_pid(guard), SIGCONT) == 0);
    while (received.ack != newest) {
        unsigned before = received.acks;

        until(&received.acks, before + 1);
    }
    CU_ASSERT(received.acks < 5000); /* the link dropped older deadlines */
    guard_link_stop(guard, SUPERVISE_REASON_REVOKED);
    until(&received.reports, 1);
    end();
    test_runner_done(&t);
}

/* --- a runner that is a child --- */

static pid_t child_pid(void) {
    _cleanup_free_ char *text = NULL;
    char path[64];
    size_t size;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int) getpid());
    CU_ASSERT_FATAL(file_read(path, 4096, &text, &size) == 0);
    return (pid_t) strtol(text, NULL, 10);
}

static void test_with_runner(void) {
    char program[512];
    pid_t first;

    (void) place_program(program, sizeof(program), "berth-runner");
    test_runner_init(&t, WAITS, getuid());
    test_runner_end(&t, SIGTERM);
    begin(program);
    until(&received.recovered, 1);
    first = child_pid();
    CU_ASSERT(first > 0);
    send_start('1');
    until(&received.started, 1);
    free(test_runner_read(&t, "a.out"));
    CU_ASSERT(kill(first, SIGKILL) == 0);
    until(&received.recovered, 2); /* the link has started the runner again, which finds the guard */
    TEST_INT(received.lost, 1);
    CU_ASSERT(child_pid() > 0 && child_pid() != first);
    TEST_STRING(received.guard, test_runner_id('1'));
    connect_guard();
    end(); /* waits for the runner's end; the guard goes on */
    TEST_INT(child_pid(), 0);
    begin(program);
    until(&received.recovered, 1);
    TEST_STRING(received.guard, test_runner_id('1'));
    guard = guard_link_free(guard);
    connect_guard();
    TEST_STRING(received.phase, "running");
    guard_link_stop(guard, SUPERVISE_REASON_REVOKED);
    until(&received.reports, 1);
    TEST_STRING(received.report_code, "7");
    end();
    test_runner_done(&t);
}

static void test_no_program(void) {
    test_runner_init(&t, WAITS, getuid());
    test_runner_end(&t, SIGTERM);
    begin("/nonexistent/berth-runner");
    until(&received.lost, 1);
    CU_ASSERT(!runner_link_is_up(runner));
    end();
    test_runner_done(&t);
}

/* --- arguments of berth-runner --- */

static void exits(const char *const *arguments, int status) {
    const char *argv[6] = {"berth-runner"};
    char program[512];
    int actual = 0;
    pid_t pid;

    for (int i = 0; i < 4 && arguments[i]; i++)
        argv[i + 1] = arguments[i];
    (void) place_program(program, sizeof(program), "berth-runner");
    pid = fork();
    if (pid == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(1);
        execv(program, (char *const *) argv);
        _exit(1);
    }
    CU_ASSERT_FATAL(waitpid(pid, &actual, 0) == pid);
    CU_ASSERT(WIFEXITED(actual));
    TEST_INT(WEXITSTATUS(actual), status);
}
#define EXITS(status, ...) exits((const char *const[]) {__VA_ARGS__, NULL}, status)

static void test_arguments(void) {
    char config[160];

    EXITS(0, "--help");
    EXITS(0, "-h");
    EXITS(0, "--version");
    EXITS(64, "--nonsense");
    EXITS(64, "word");
    EXITS(64, "-c");
    EXITS(64, "--socket-fd", "x");
    EXITS(64, "--socket-fd", "999");
    EXITS(78, "-c", "/nonexistent/berth.conf");
    test_runner_init(&t, WAITS, getuid());
    snprintf(config, sizeof(config), "%s/berth.conf", t.directory);
    EXITS(75, "-c", config); /* another runner uses this directory */
    test_runner_configure(&t, "job \"a\" {");
    EXITS(78, "-c", config);
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"links", test_links},
    {"runner away", test_runner_away},
    {"guard gone", test_guard_gone},
    {"newest deadline", test_newest_deadline},
    {"with runner", test_with_runner},
    {"no program", test_no_program},
    {"arguments", test_arguments},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "runner link", .pTests = tests});
