/* SPDX-License-Identifier: MIT */
/* Signals to `berth run` and its command, and other ends: a stop by berthd, a timeout, a kill. The test is
 * berthd. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/harness/host/fake-berthd.h"
#include "tests/harness/test.h"

static void withdraws(int signal) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db -v -- sh -c", "echo started");
    fake_accept(&f);
    json_decref(fake_expect(&f, "io.berth.Hold"));
    fake_reply(&f, FAKE_WAITING);
    while (!strstr(fake_errors(&f), "waiting"))
        CU_ASSERT_TRUE_FATAL(fake_is_running(&f, 2 * USEC_PER_MSEC));
    TEST_STRING(fake_errors(&f), "berth: waiting: pool full: db\n");
    TEST_INT(kill(f.pid, signal), 0);
    fake_expect_end(&f);
    /* A script stops at a Ctrl-C only if its command is ended by the signal. QUIT would leave a core file. */
    TEST_INT(fake_await_exit(&f), signal == SIGQUIT || signal == SIGALRM ? 128 + signal : -signal);
    fake_done(&f);
}

static void test_signals_while_waiting(void) {
    withdraws(SIGINT);
    withdraws(SIGTERM);
    withdraws(SIGHUP);
    withdraws(SIGQUIT);
    withdraws(SIGALRM);
}

static void ignore_hangup(struct fake *f) {
    (void) f;
    (void) signal(SIGHUP, SIG_IGN);
}

static void test_ignored_stays_ignored(void) {
    struct fake f;

    fake_init(&f);
    fake_in_child = ignore_hangup;
    fake_run(&f, "-p db -- sh -c", "kill -HUP $$; kill -PIPE $$; echo not here");
    fake_accept(&f);
    json_decref(fake_expect(&f, "io.berth.Hold"));
    fake_reply(&f, FAKE_WAITING);
    TEST_INT(kill(f.pid, SIGHUP), 0); /* nohup berth run */
    fake_reply_granted(&f, 0, true);
    fake_expect_started(&f);
    fake_expect_ended(&f, -1, SIGPIPE, NULL);
    TEST_INT(fake_await_exit(&f), 128 + SIGPIPE); /* the command ignores HUP, but not PIPE */
    fake_done(&f);
}

static void ignore_children(struct fake *f) {
    (void) f;
    (void) signal(SIGCHLD, SIG_IGN);
}

static void test_ignored_children(void) {
    struct fake f;

    fake_init(&f);
    fake_in_child = ignore_children;
    fake_run(&f, "-p db -- sh -c", "exit 3");
    fake_grant(&f, 0);
    fake_expect_started(&f);
    fake_expect_ended(&f, 3, -1, NULL);
    TEST_INT(fake_await_exit(&f), 3);
    fake_done(&f);
}

static void test_signals_while_running(void) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db -- sh -c",
             "trap 'exit 9' USR1; trap 'exit 7' TERM; kill -USR1 $PPID; " FAKE_WAITS);
    fake_grant(&f, 0);
    fake_expect_started(&f);
    fake_await_output(&f, "ready");
    /* The command's own USR1 arrives before this TERM; `berth run` must not have sent it back. */
    TEST_INT(kill(f.pid, SIGTERM), 0);
    fake_expect_ended(&f, 7, -1, NULL);
    TEST_INT(fake_await_exit(&f), 7);
    fake_done(&f);
}

static void passes_on(int signal) {
    char script[128];
    struct fake f;

    fake_init(&f);
    snprintf(script, sizeof(script), "trap 'exit 7' %d; " FAKE_WAITS, signal);
    fake_run(&f, "-p db -- sh -c", script);
    fake_grant(&f, 0);
    fake_expect_started(&f);
    fake_await_output(&f, "ready");
    TEST_INT(kill(f.pid, signal), 0);
    fake_expect_ended(&f, 7, -1, NULL);
    TEST_INT(fake_await_exit(&f), 7);
    fake_done(&f);
}

static void test_signals_passed_on(void) {
    passes_on(SIGINT);
    passes_on(SIGHUP);
    passes_on(SIGQUIT);
    passes_on(SIGUSR1);
    passes_on(SIGUSR2);
    passes_on(SIGCONT);
    passes_on(SIGWINCH);
    passes_on(SIGABRT);
    passes_on(SIGALRM);
    passes_on(SIGPWR);
    passes_on(SIGRTMIN + 3); /* KillSignal= of a unit */
    passes_on(SIGRTMAX);
}

static char alarm_fifo[96]; /* the alarm is due when the test opens it */

static void *set_alarm(void *unused) {
    const struct itimerval soon = {.it_value = {.tv_usec = 1}};

    if (open(alarm_fifo, O_RDONLY | O_CLOEXEC) >= 0)
        (void) setitimer(ITIMER_REAL, &soon, NULL);
    return unused;
}

/* `perl -e 'alarm 60; exec @ARGV' berth run ...` */
static void begin_with_alarm(struct fake *f) {
    sigset_t all, before;
    pthread_t thread;

    (void) f;
    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, set_alarm, NULL) != 0)
        _exit(1);
    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void test_alarm_of_caller(void) {
    struct fake f;
    int fd;

    fake_init(&f);
    snprintf(alarm_fifo, sizeof(alarm_fifo), "%s/alarm", f.directory);
    CU_ASSERT_EQUAL_FATAL(mkfifo(alarm_fifo, 0600), 0);
    fake_in_child = begin_with_alarm;
    fake_run(&f, "-p db -- sh -c", "trap 'exit 7' ALRM; " FAKE_WAITS);
    fake_grant(&f, 0);
    fake_expect_started(&f);
    fake_await_output(&f, "ready");
    fd = open(alarm_fifo, O_WRONLY | O_CLOEXEC);
    fake_expect_ended(&f, 7, -1, NULL);
    close(fd);
    TEST_INT(fake_await_exit(&f), 7);
    TEST_INT(unlink(alarm_fifo), 0);
    fake_done(&f);
}

static void await_state(pid_t pid, char state) {
    for (int i = 0; fake_process_state(pid) != state && i < 5000; i++)
        (void) poll(NULL, 0, 1);
    TEST_INT(fake_process_state(pid), state);
}

/* A Ctrl-C ends the command at once; `berth run` sees both together, and still waits until berthd has the exit status. */
static void test_interrupted_with_its_command(void) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db -- sh -c", "echo ready; while :; do read x; done");
    fake_grant(&f, 0);
    fake_expect_started(&f);
    fake_await_output(&f, "ready");
    TEST_INT(kill(f.pid, SIGSTOP), 0);
    await_state(f.pid, 'T');
    TEST_INT(kill(f.command, SIGINT), 0);
    TEST_INT(kill(f.pid, SIGINT), 0);
    await_state(f.command, 'Z');
    TEST_INT(kill(f.pid, SIGCONT), 0);
    json_decref(fake_expect(&f, "io.berth.Ended"));
    TEST_INT(fake_is_running(&f, 100 * USEC_PER_MSEC), true);
    fake_reply(&f, "{'parameters': {'state': 'over', 'run': '" FAKE_RUN "'}}");
    TEST_INT(fake_await_exit(&f), -SIGINT);
    fake_done(&f);
}

static void stops(const char *reason, const char *script, int status, const char *result, const char *error) {
    char json[256];
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db -- sh -c", script);
    fake_grant(&f, 0);
    fake_expect_started(&f);
    fake_await_output(&f, "ready");
    snprintf(json, sizeof(json), "{'parameters': {'state': 'stop', 'run': '" FAKE_RUN "', 'reason': '%s'}, 'continues': true}", reason);
    fake_reply(&f, json);
    if (status == 128 + SIGTERM || status == 76)
        fake_expect_ended(&f, -1, SIGTERM, result);
    else
        fake_expect_ended(&f, status, -1, result);
    TEST_INT(fake_await_exit(&f), status);
    TEST_STRING(fake_errors(&f), error);
    fake_done(&f);
}

static void test_stop(void) {
    stops("stopped", "echo ready; while :; do read x; done", 143, "stopped", "berth: the command was stopped\n");
    stops("revoked", "trap 'exit 3' TERM; " FAKE_WAITS, 3, "stopped", "berth: the command was stopped: its permits were revoked\n");
    stops("lease-lost", "echo ready; while :; do read x; done", 76, "lease-lost",
          "berth: the lease was lost; the command was stopped\n");
    stops("what-may-come", "echo ready; while :; do read x; done", 143, "stopped", "berth: the command was stopped\n");
}

static void test_timeout(void) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db --timeout 500ms -- sh -c", "while :; do read x; done");
    fake_grant(&f, 0);
    fake_expect_started(&f);
    fake_expect_ended(&f, -1, SIGTERM, "timeout");
    TEST_INT(fake_await_exit(&f), 124);
    TEST_STRING(fake_errors(&f), "berth: stopped after its timeout of 500ms\n");
    fake_done(&f);
}

static void test_whole_tree_is_awaited(void) {
    char script[256], fifo[96];
    struct fake f;
    int fd;

    fake_init(&f);
    snprintf(fifo, sizeof(fifo), "%s/fifo", f.directory);
    TEST_INT(mkfifo(fifo, 0600), 0);
    snprintf(script, sizeof(script), "(read x <%s) & echo ready; exit 5", fifo);
    fake_run(&f, "-p db -- sh -c", script);
    fake_grant(&f, 0);
    fake_expect_started(&f);
    fake_await_output(&f, "ready");
    while (fake_process_state(f.command) != 'X') /* the command is gone, its child is not */
        CU_ASSERT_TRUE_FATAL(fake_is_running(&f, USEC_PER_MSEC));
    TEST_INT(fake_is_running(&f, 50 * USEC_PER_MSEC), true);
    TEST_INT(fake_is_hold_over(&f), false);
    TEST_INT(recv(f.connection, script, 1, MSG_PEEK | MSG_DONTWAIT), -1); /* it has reported no end */
    fd = open(fifo, O_WRONLY | O_CLOEXEC);
    close(fd);
    fake_expect_ended(&f, 5, -1, NULL);
    TEST_INT(fake_await_exit(&f), 5);
    TEST_INT(unlink(fifo), 0);
    fake_done(&f);
}

static void test_killed(void) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db -- sh -c", "echo ready; while :; do read x; done");
    fake_grant(&f, 0);
    fake_await_output(&f, "ready");
    TEST_INT(kill(f.pid, SIGKILL), 0);
    TEST_INT(fake_await_exit(&f), -SIGKILL);
    fake_await_hold_over(&f); /* PDEATHSIG has killed the command */
    fake_done(&f);
}

static CU_TestInfo tests[] = {
    {"signals while waiting", test_signals_while_waiting},
    {"ignored stays ignored", test_ignored_stays_ignored},
    {"ignored children", test_ignored_children},
    {"signals while running", test_signals_while_running},
    {"signals passed on", test_signals_passed_on},
    {"alarm of caller", test_alarm_of_caller},
    {"interrupted with its command", test_interrupted_with_its_command},
    {"stop", test_stop},
    {"timeout", test_timeout},
    {"whole tree is awaited", test_whole_tree_is_awaited},
    {"killed", test_killed},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "run signals", .pTests = tests});
