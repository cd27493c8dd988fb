/* SPDX-License-Identifier: MIT */
/* A real berth-runner whose guards, or who itself, or whose berthd is killed, is away or comes back. */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/cgroup.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/process/process-tree.h"
#include "base/protocol.h"
#include "tests/harness/clock-file.h"
#include "tests/harness/runner.h"
#include "tests/harness/test.h"

static struct test_runner t;
static struct message m; /* large */

/* A guard's command that hid a process in a session of its own; the file has its pid. */
#define HIDES TEST_SH("hides", "setsid sh -c 'echo $$ >@/pid; exec sleep 1000' & sleep 1000")

static pid_t hidden_pid(uint64_t *ret_start) {
    _cleanup_free_ char *text = test_runner_read(&t, "pid");
    pid_t pid = (pid_t) strtol(text, NULL, 10);

    TEST_INT(process_start_time(pid, ret_start), 0);
    return pid;
}

/* A zombie that nobody has waited for yet is not. */
static bool is_alive(pid_t pid, uint64_t start) {
    _cleanup_close_ int pidfd = pidfd_open(pid, 0);
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    uint64_t now = 0;

    return pidfd >= 0 && process_start_time(pid, &now) == 0 && now == start && poll(&p, 1, 0) == 0;
}

static pid_t guard_pid(char run) {
    _cleanup_close_ int guard = test_runner_guard(&t, run);
    uint64_t pid = 0;

    test_await(guard, &m, PROTOCOL_STATE);
    TEST_INT(message_get_u64(&m, "guard", &pid), 0);
    CU_ASSERT_FATAL(pid > 1);
    return (pid_t) pid;
}

static void connect_again(void) {
    t.fd = close_fd(t.fd);
    t.fd = test_runner_connect(&t);
    test_runner_hello(&t, t.fd);
}

static void start_again(void) {
    test_runner_start(&t);
    connect_again();
}

static void guard_dies(uid_t uid) {
    uint64_t start = 0;
    pid_t pid;

    test_runner_begin(&t, HIDES, uid);
    test_runner_begin_run(&t, &m, '1', "hides");
    pid = hidden_pid(&start);
    CU_ASSERT(kill(guard_pid('1'), SIGKILL) == 0);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    CU_ASSERT(!is_alive(pid, start)); /* the report comes when nothing is left, not before */
    TEST_FIELD(&m, "lost", "1");
    TEST_FIELD(&m, "job", "hides");
    TEST_FIELD(&m, "token", "1763640079123456");
    TEST_FIELD(&m, "code", NULL);
    CU_ASSERT(test_runner_has_file(&t, '1', ".report") && !test_runner_has_file(&t, '1', ".sock") &&
              !test_runner_has_file(&t, '1', ".guard"));
    test_runner_done(&t);
}

static void test_guard_dies(void) {
    guard_dies(getuid());
    if (getuid() == 0)
        guard_dies(NOBODY); /* where there is no cgroup to kill */
}

static void test_guard_dies_others_live(void) {
    uint64_t start = 0;
    pid_t pid;

    TEST_NEEDS_ROOT();
    test_runner_begin(&t, HIDES TEST_SH("other", "sleep 1000"), NOBODY);
    test_runner_begin_run(&t, &m, '1', "hides");
    test_runner_begin_run(&t, &m, '2', "other");
    pid = hidden_pid(&start);
    CU_ASSERT(kill(guard_pid('2'), SIGKILL) == 0);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "run", test_runner_id('2'));
    CU_ASSERT(is_alive(pid, start)); /* what is below a guard that lives is left alone */
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id('1'));
    test_await(t.fd, &m, PROTOCOL_REPORT);
    CU_ASSERT(!is_alive(pid, start));
    test_runner_done(&t);
}

/* Signals to the process group of the runner, as from a terminal, do not reach its guards: they outlive it. */
static void test_session(void) {
    pid_t guard;

    test_runner_begin(&t, TEST_SH("waits", "sleep 1000"), getuid());
    test_runner_begin_run(&t, &m, '1', "waits");
    guard = guard_pid('1');
    TEST_INT(getsid(guard), guard);
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id('1'));
    test_await(t.fd, &m, PROTOCOL_REPORT);
    test_runner_done(&t);
}

static void test_runner_dies(void) {
    _cleanup_close_ int guard = -1;

    test_runner_begin(&t, TEST_SH("waits", "echo here; trap 'exit 7' TERM; sleep 1000 & wait"), getuid());
    test_runner_begin_run(&t, &m, '1', "waits");
    free(test_runner_read(&t, "waits.out"));
    test_runner_end(&t, SIGKILL);
    test_await_end(t.fd);
    start_again();
    test_await(t.fd, &m, PROTOCOL_GUARD);
    TEST_FIELD(&m, "run", test_runner_id('1'));
    test_await(t.fd, &m, PROTOCOL_RECOVERED);
    test_runner_send_start(&t, '1', "waits");
    test_await(t.fd, &m, PROTOCOL_EXISTS);
    guard = test_runner_guard(&t, '1');
    test_await(guard, &m, PROTOCOL_STATE);
    TEST_FIELD(&m, "phase", "running");
    test_say(guard, PROTOCOL_STOP, "reason", "stopped");
    test_await(guard, &m, PROTOCOL_STOPPING);
    test_await(guard, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "code", "7");
    test_say(guard, PROTOCOL_DONE, NULL, NULL);
    test_await_end(guard);
    test_runner_done(&t);
}

static void runner_and_guard_die(uid_t uid, bool guard_first) {
    uint64_t start = 0;
    pid_t pid, guard;

    test_runner_begin(&t, HIDES, uid);
    test_runner_begin_run(&t, &m, '1', "hides");
    pid = hidden_pid(&start);
    guard = guard_pid('1');
    test_runner_end(&t, SIGKILL);
    if (guard_first)
        test_kill_and_wait(guard);
    start_again();
    if (!guard_first) {
        test_await(t.fd, &m, PROTOCOL_GUARD);
        test_await(t.fd, &m, PROTOCOL_RECOVERED);
        CU_ASSERT(kill(guard, SIGKILL) == 0); /* a guard that is not this runner's child */
    }
    /* What is being swept has processes: `recovered` comes after its report. */
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "lost", "1");
    CU_ASSERT(!is_alive(pid, start));
    if (guard_first)
        test_await(t.fd, &m, PROTOCOL_RECOVERED);
    test_runner_done(&t);
}

/* Nobody is left who could stop it, or sweep. */
static void test_command_is_not_left_alone(void) {
    _cleanup_close_ int pidfd = -1;
    struct pollfd p = {.events = POLLIN};
    pid_t guard;

    test_runner_begin(&t, TEST_SH("waits", "echo $$ >@/pid; exec sleep 1000"), getuid());
    test_runner_begin_run(&t, &m, '1', "waits");
    {
        _cleanup_free_ char *text = test_runner_read(&t, "pid");

        p.fd = pidfd = pidfd_open((pid_t) strtol(text, NULL, 10), 0);
        CU_ASSERT_FATAL(pidfd >= 0);
    }
    guard = guard_pid('1');
    test_runner_end(&t, SIGKILL);
    test_kill_and_wait(guard);
    CU_ASSERT(poll(&p, 1, 10000) == 1);
    start_again(); /* removes what they left */
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "lost", "1");
    test_runner_done(&t);
}

/* berthd is there before the sweep is over: it must not receive `recovered` while processes of the run may be alive. */
static void test_recovered_waits(void) {
    uint64_t start = 0;
    int status = 0;
    pid_t pid, guard;

    test_runner_begin(&t, HIDES, getuid());
    test_runner_begin_run(&t, &m, '1', "hides");
    pid = hidden_pid(&start);
    guard = guard_pid('1');
    test_runner_end(&t, SIGKILL);
    test_kill_and_wait(guard);
    test_runner_start_as_child(&t);
    test_await(t.fd, &m, PROTOCOL_HELLO);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "lost", "1");
    CU_ASSERT(!is_alive(pid, start));
    test_await(t.fd, &m, PROTOCOL_RECOVERED);
    t.fd = close_fd(t.fd); /* and with its socket it ends */
    CU_ASSERT(waitpid(t.pid, &status, 0) == t.pid);
    TEST_INT(status, 0);
    t.pid = 0;
    test_runner_done(&t);
}

static void test_both_die(void) {
    _cleanup_free_ char *cgroup = NULL;

    runner_and_guard_die(getuid(), true);
    runner_and_guard_die(getuid(), false);
    if (getuid() == 0 && cgroup_find_own(&cgroup) == 0) { /* and where there is no cgroup: BERTH_RUN names its run */
        runner_and_guard_die(NOBODY, true);
        runner_and_guard_die(NOBODY, false);
    }
}

/* Lets a job go on that waits for its FIFO. */
static void let_go(void) {
    _cleanup_fclose_ FILE *go = NULL;
    char path[80];

    snprintf(path, sizeof(path), "%s/go", t.directory);
    CU_ASSERT_FATAL((go = fopen(path, "w")) != NULL && fputs("\n", go) >= 0);
}

static void make_fifo(void) {
    char path[80];

    snprintf(path, sizeof(path), "%s/go", t.directory);
    CU_ASSERT_FATAL(mkfifo(path, 0600) == 0);
}
#define WAITS TEST_SH("waits", "read x <@/go; exit 4")

static void hello_tells_report(void) {
    connect_again();
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "run", test_runner_id('1'));
    TEST_FIELD(&m, "code", "4");
    test_await(t.fd, &m, PROTOCOL_RECOVERED);
}

static void test_all_away(void) {
    _cleanup_close_ int pidfd = -1;
    struct pollfd p = {.events = POLLIN};

    test_runner_init(&t, WAITS, getuid());
    make_fifo();
    test_runner_join(&t);
    test_runner_begin_run(&t, &m, '1', "waits");
    p.fd = pidfd = pidfd_open(guard_pid('1'), 0);
    test_runner_end(&t, SIGTERM);
    test_await_end(t.fd);
    let_go();
    test_runner_await_file(&t, '1', ".report"); /* neither runner nor berthd was needed for that */
    CU_ASSERT(poll(&p, 1, 10000) == 1); /* its guard has gone, too: it would be named otherwise */
    test_runner_start(&t);
    hello_tells_report();
    hello_tells_report(); /* at each hello until it is forgotten */
    test_say(t.fd, PROTOCOL_FORGET, "run", test_runner_id('1'));
    test_runner_settle(&t);
    CU_ASSERT(!test_runner_has_file(&t, '1', ".report"));
    test_runner_join(&t);
    test_runner_done(&t);
}

static void test_berthd_away(void) {
    bool is_reported = false;

    test_runner_init(&t, WAITS, getuid());
    make_fifo();
    test_runner_join(&t);
    test_runner_begin_run(&t, &m, '1', "waits");
    t.fd = close_fd(t.fd);
    let_go();
    test_runner_await_file(&t, '1', ".report");
    connect_again();
    /* Its guard may still be ending, and be listed, too. */
    for (int i = 0; i < 3 && !(is_reported && message_is(&m, PROTOCOL_RECOVERED)); i++) {
        int r;

        while ((r = message_receive(t.fd, &m)) == -EAGAIN)
            ;
        TEST_INT(r, 0);
        is_reported = is_reported || message_is(&m, PROTOCOL_REPORT);
    }
    CU_ASSERT(is_reported && message_is(&m, PROTOCOL_RECOVERED));
    test_runner_done(&t);
}

#define MANY 5000

/* Many runs have ended while berthd was away: it gets all reports, although it reads none before the runner has sent all. */
static void test_many_reports(void) {
    struct pollfd p = {.events = POLLIN};
    unsigned n = 0;
    int r = 0;

    test_runner_begin(&t, TEST_SH("a", "exit 0"), getuid());
    t.fd = close_fd(t.fd);
    for (unsigned i = 0; i < MANY; i++) {
        char path[160], id[ID_TEXT_SIZE];
        struct message_writer w;

        snprintf(id, sizeof(id), "%032x", i);
        message_begin(&w, PROTOCOL_REPORT);
        message_put(&w, "run", id);
        message_put(&w, "reason", "none");
        snprintf(path, sizeof(path), "%s/run/runner/runs/%s.report", t.directory, id);
        CU_ASSERT_EQUAL_FATAL(file_write_atomic(path, w.text, w.size, 0600), 0);
    }
    p.fd = t.fd = test_runner_connect(&t);
    test_say(t.fd, PROTOCOL_HELLO, "version", "1");
    do {
        CU_ASSERT_EQUAL_FATAL(poll(&p, 1, 10000), 1);
        r = message_receive(t.fd, &m);
        n += r == 0 && message_is(&m, PROTOCOL_REPORT);
    } while (r == 0 && !message_is(&m, PROTOCOL_RECOVERED));
    TEST_INT(r, 0);
    TEST_INT(n, MANY);
    test_runner_done(&t);
}

/* A process that its kill does not end keeps the run from its end. berthd gets a message that names it. */
static void test_outlives_kill(void) {
    struct clock_file clock;
    uint64_t start = 0;
    char path[96];
    pid_t pid;

    test_runner_prepare(&t, getuid());
    (void) snprintf(path, sizeof(path), "%s/clock", t.directory);
    clock_file_make(&clock, path);
    t.environment = clock.environment;
    test_runner_configure(&t, HIDES);
    test_runner_start(&t);
    test_runner_join(&t);
    test_runner_begin_run(&t, &m, '1', "hides");
    pid = hidden_pid(&start);
    clock_file_lose_kills(&clock, true);
    CU_ASSERT(kill(guard_pid('1'), SIGKILL) == 0);
    test_runner_settle(&t);
    CU_ASSERT(is_alive(pid, start));
    clock_file_jump(&clock, 10 * USEC_PER_SEC);
    test_await(t.fd, &m, PROTOCOL_STUCK);
    TEST_FIELD(&m, "run", test_runner_id('1'));
    CU_ASSERT(strstr(message_get(&m, "text"), " (sleep), state S") != NULL); /* this one, or the one in the foreground */
    clock_file_jump(&clock, 3600 * USEC_PER_SEC);
    test_await(t.fd, &m, PROTOCOL_STUCK); /* again */
    clock_file_lose_kills(&clock, false);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "lost", "1");
    CU_ASSERT(!is_alive(pid, start));
    test_runner_done(&t);
    clock_file_done(&clock);
}

static void test_kill_unknown(void) {
    test_runner_begin(&t, TEST_SH("a", "exit 0"), getuid());
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id('1'));
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "run", test_runner_id('1'));
    TEST_FIELD(&m, "lost", "1");
    test_runner_run(&t, &m, '1', "a");
    test_runner_done(&t);
}

/* The berthd before took its report and let it end; the one that came after knows its name alone, and asks for its end. */
static void test_kill_of_one_that_ends(void) {
    _cleanup_close_ int guard = -1, pidfd = -1;
    struct pollfd p = {.events = POLLIN};

    test_runner_begin(&t, TEST_SH("a", "exit 0") TEST_SH("waits", "echo >@/there; exec sleep 1000"), getuid());
    test_runner_begin_run(&t, &m, '1', "waits");
    free(test_runner_read(&t, "there"));
    pidfd = pidfd_open(guard_pid('1'), 0);
    CU_ASSERT_FATAL(pidfd >= 0);
    guard = test_runner_guard(&t, '1');
    test_await(guard, &m, PROTOCOL_STATE);
    test_say(guard, PROTOCOL_STOP, "reason", "stopped");
    test_await(guard, &m, PROTOCOL_STOPPING);
    test_await(guard, &m, PROTOCOL_REPORT);
    CU_ASSERT_FATAL(kill(t.pid, SIGSTOP) == 0);
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id('1')); /* what it reads first when it goes on */
    test_say(guard, PROTOCOL_DONE, NULL, NULL);
    p.fd = pidfd;
    CU_ASSERT(poll(&p, 1, 10000) == 1);
    CU_ASSERT_FATAL(kill(t.pid, SIGCONT) == 0);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "run", test_runner_id('1'));
    TEST_FIELD(&m, "lost", "1");
    test_runner_run(&t, &m, '1', "a");
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"guard dies", test_guard_dies},
    {"guard dies, others live", test_guard_dies_others_live},
    {"session", test_session},
    {"runner dies", test_runner_dies},
    {"both die", test_both_die},
    {"a command is not left alone", test_command_is_not_left_alone},
    {"many reports", test_many_reports},
    {"recovered waits", test_recovered_waits},
    {"all away", test_all_away},
    {"berthd away", test_berthd_away},
    {"a process outlives its kill", test_outlives_kill},
    {"kill unknown", test_kill_unknown},
    {"kill of one that ends", test_kill_of_one_that_ends},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "runner-deaths", .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
