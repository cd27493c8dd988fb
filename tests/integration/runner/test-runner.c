/* SPDX-License-Identifier: MIT */
/* What a real berth-runner starts, refuses and reports. The test is berthd. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/protocol.h"
#include "runner/runs.h"
#include "tests/harness/runner/runner.h"
#include "tests/harness/test.h"

static struct test_runner t;
static struct message m; /* large */

static void test_start(void) {
    test_runner_begin(&t, TEST_SH("five", "exit 5"), getuid());
    test_runner_run(&t, &m, '1', "five");
    TEST_FIELD(&m, "job", "five");
    TEST_FIELD(&m, "token", "1763640079123456");
    TEST_FIELD(&m, "ticket", "1763640079123455");
    TEST_FIELD(&m, "pools", "db:2,net:1");
    TEST_FIELD(&m, "queued", "1763640079123000");
    TEST_FIELD(&m, "queued-boot", "1000000");
    TEST_FIELD(&m, "reason", "none");
    TEST_FIELD(&m, "code", "5");
    TEST_FIELD(&m, "signal", NULL);
    TEST_FIELD(&m, "errno", NULL);
    TEST_FIELD(&m, "lost", NULL);
    TEST_FIELD(&m, "gone-before", NULL); /* it had no deadline */
    CU_ASSERT(message_get(&m, "started") && message_get(&m, "ended") && message_get(&m, "ended-boot") &&
              message_get(&m, "maxrss-kib"));
    test_runner_settle(&t);
    CU_ASSERT(!test_runner_has_file(&t, '1', ".report") && !test_runner_has_file(&t, '1', ".sock") &&
              !test_runner_has_file(&t, '1', ".guard"));
    test_runner_done(&t);
}

static void test_exists(void) {
    struct message_writer w;

    test_runner_begin(&t, TEST_SH("long", "sleep 1000"), getuid());
    for (int i = 0; i < 3; i++) {
        test_runner_send_start(&t, '1', "long");
        test_await(t.fd, &m, i == 0 ? PROTOCOL_STARTING : PROTOCOL_EXISTS);
        TEST_FIELD(&m, "run", test_runner_id('1'));
    }
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id('1'));
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "lost", "1");
    /* The id is in use until berthd sends "forget", also for another job. */
    test_runner_begin_start(&w, '1', "unknown", "0123456789abcdef");
    TEST_INT(message_send(t.fd, &w), 0);
    test_await(t.fd, &m, PROTOCOL_EXISTS);
    test_say(t.fd, PROTOCOL_FORGET, "run", test_runner_id('1'));
    test_runner_begin_run(&t, &m, '1', "long");
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id('1'));
    test_await(t.fd, &m, PROTOCOL_REPORT);
    test_runner_done(&t);
}

static void refused(const struct message_writer *w, const char *reason) {
    TEST_INT(message_send(t.fd, w), 0);
    test_await(t.fd, &m, PROTOCOL_REFUSED);
    TEST_FIELD(&m, "run", test_runner_id('1'));
    TEST_FIELD(&m, "reason", reason);
    CU_ASSERT(message_get(&m, "text") && *message_get(&m, "text"));
    CU_ASSERT(!test_runner_has_file(&t, '1', ".sock") && !test_runner_has_file(&t, '1', ".guard") &&
              !test_runner_has_file(&t, '1', ".report"));
}

/* Sends a start with another value of one field, or without the field (NULL): it is refused. */
static void refused_with(const char *key, const char *value) {
    struct message_writer whole, w;

    test_runner_begin_start(&whole, '1', "a", test_runner_hash(&t, "a"));
    TEST_INT(message_parse(&m, whole.text, whole.size), 0);
    message_begin(&w, PROTOCOL_START);
    for (size_t i = 0; i < m.n_fields; i++)
        if (strcmp(m.fields[i].key, key) != 0)
            message_put(&w, m.fields[i].key, m.fields[i].value);
    if (value)
        message_put(&w, key, value);
    refused(&w, "bad-request");
}

static void test_refused(void) {
    static const char *const needed[] = {"job", "hash", "token", "ticket", "pools", "scopes", "namespace", "host",
                                         "queued", "queued-boot"};
    struct message_writer w;

    test_runner_begin(&t, TEST_SH("a", "exit 0"), getuid());
    test_runner_begin_start(&w, '1', "b", test_runner_hash(&t, "a"));
    refused(&w, "unknown-job");
    test_runner_begin_start(&w, '1', "a", "0123456789abcdef");
    refused(&w, "config-differs");
    for (size_t i = 0; i < ELEMENTSOF(needed); i++)
        refused_with(needed[i], NULL);
    refused_with("job", "../a");
    refused_with("hash", "x");
    refused_with("hash", "0123456789ABCDEF");
    refused_with("pools", "db:0");
    refused_with("pools", "db:2,");
    refused_with("scopes", "c");
    refused_with("token", "-1");
    refused_with("deadline", "soon");
    refused_with("host", "a b");
    refused_with("cgroup", "/"); /* fields that only the runner writes */
    refused_with("guard", "1");
    test_runner_run(&t, &m, '1', "a"); /* the runner still works */
    test_runner_done(&t);
}

static void test_no_resources(void) {
    struct message_writer w;

    test_runner_begin(&t, TEST_SH("a", "exit 0"), getuid());
    /* A directory is where its socket should be. */
    char path[160];
    snprintf(path, sizeof(path), "%s/run/runner/runs/%s.sock", t.directory, test_runner_id('1'));
    CU_ASSERT_FATAL(mkdir(path, 0700) == 0);
    test_runner_begin_start(&w, '1', "a", test_runner_hash(&t, "a"));
    TEST_INT(message_send(t.fd, &w), 0);
    test_await(t.fd, &m, PROTOCOL_REFUSED);
    TEST_FIELD(&m, "reason", "resources");
    TEST_INT(rmdir(path), 0);
    test_runner_run(&t, &m, '1', "a");
    test_runner_done(&t);
}

static void test_reload(void) {
    struct message_writer w;
    char old[17];

    test_runner_begin(&t, TEST_SH("a", "exit 1"), getuid());
    memcpy(old, test_runner_hash(&t, "a"), sizeof(old));
    test_runner_configure(&t, TEST_SH("a", "exit 2") TEST_SH("b", "exit 3"));
    test_runner_run(&t, &m, '1', "a"); /* an unknown hash makes the runner read the files */
    TEST_FIELD(&m, "code", "2");
    test_runner_run(&t, &m, '2', "b");
    TEST_FIELD(&m, "code", "3");
    test_runner_begin_start(&w, '1', "a", old);
    refused(&w, "config-differs");
    /* A bad config changes nothing. */
    test_runner_begin_start(&w, '4', "b", test_runner_hash(&t, "b"));
    test_runner_configure(&t, "job \"a\" {");
    TEST_INT(message_send(t.fd, &w), 0);
    test_await(t.fd, &m, PROTOCOL_STARTING);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "code", "3");
    test_runner_begin_start(&w, '1', "new", "0123456789abcdef");
    refused(&w, "unknown-job");
    test_runner_done(&t);
}

static void test_hello(void) {
    _cleanup_close_ int other = -1, first = -1;
    struct message_writer w;

    test_runner_init(&t, TEST_SH("a", "exit 0"), getuid());
    first = test_runner_connect(&t);
    test_runner_hello(&t, first);
    test_await(first, &m, PROTOCOL_RECOVERED);
    other = test_runner_connect(&t);
    /* Stopped, the runner finds hello of the new berthd before a start of the old one. */
    CU_ASSERT(kill(t.pid, SIGSTOP) == 0);
    CU_ASSERT(waitpid(t.pid, NULL, WUNTRACED) == t.pid);
    test_say(other, PROTOCOL_HELLO, "version", "1");
    CU_ASSERT(kill(t.pid, SIGCONT) == 0);
    test_await(other, &m, PROTOCOL_HELLO);
    test_await(other, &m, PROTOCOL_RECOVERED);
    test_runner_begin_start(&w, '1', "a", test_runner_hash(&t, "a"));
    test_await_end(first);
    TEST_INT(message_send(first, &w), -EPIPE);
    t.fd = steal_fd(&other);
    test_runner_settle(&t);
    CU_ASSERT(!test_runner_has_file(&t, '1', ".guard"));
    /* The same connection may send hello again. */
    test_runner_hello(&t, t.fd);
    test_await(t.fd, &m, PROTOCOL_RECOVERED);
    test_runner_done(&t);
}

/* The runner closes a connection that sends this text. */
static void closes(const char *text, size_t size, bool after_hello) {
    _cleanup_close_ int fd = test_runner_connect(&t);

    if (after_hello) {
        test_runner_hello(&t, fd);
        test_await(fd, &m, PROTOCOL_RECOVERED);
    }
    TEST_INT(send(fd, text, size, MSG_NOSIGNAL), size);
    test_await_end(fd);
}
#define CLOSES(text, after_hello) closes(text, sizeof(text) - 1, after_hello)

static void test_malformed(void) {
    static char large[MESSAGE_SIZE_MAX + 1];

    test_runner_init(&t, TEST_SH("a", "exit 0"), getuid());
    CLOSES("nonsense", false);
    CLOSES("hello\n", false);
    CLOSES("hello\nversion=one\n", false);
    CLOSES("kill\nrun=11111111111111111111111111111111\n", false); /* before hello */
    CLOSES("start\n", true);
    CLOSES("start\nrun=1\n", true);
    CLOSES("start\nrun=../../../../../../../../../../etc/pw\n", true);
    CLOSES("stop\nrun=11111111111111111111111111111111\n", true);
    CLOSES("kill\nrun=1111111111111111111111111111111/\n", true);
    memset(large, 'a', sizeof(large));
    closes(large, sizeof(large), true);
    test_runner_join(&t); /* other connections work */
    test_runner_run(&t, &m, '1', "a");
    test_runner_done(&t);
}

#define SOCKET "run/" PROTOCOL_RUNNER_SOCKET

static void fail_to_call_runner(void) {
    test_runner_cannot_connect(&t, SOCKET);
}

static void call_runner(void) {
    test_await_end(test_runner_connect(&t));
}

/* A user other than berthd's cannot connect. If the mode of the socket lets them, the runner hangs up. */
static void test_strangers(void) {
    test_runner_begin(&t, TEST_SH("a", "exit 0"), getuid());
    test_as_stranger(fail_to_call_runner);
    test_runner_open_up(&t, SOCKET);
    test_as_stranger(call_runner);
    test_runner_run(&t, &m, '1', "a");
    test_runner_done(&t);
}

/* The runner sends WATCHDOG=1 to its service manager. */
static void test_watchdog(void) {
    static char *const environment[] = {(char *) "WATCHDOG_USEC=200000", NULL};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct pollfd p = {.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), .events = POLLIN};
    char text[64] = "";

    test_runner_prepare(&t, getuid());
    t.environment = environment;
    test_runner_configure(&t, TEST_SH("a", "exit 0"));
    test_runner_start(&t);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", test_runner_path(&t, "notify"));
    (void) unlink(address.sun_path); /* the socket that received READY=1 is closed */
    CU_ASSERT_FATAL(bind(p.fd, (struct sockaddr *) &address, sizeof(address)) == 0);
    TEST_INT(poll(&p, 1, 10000), 1);
    CU_ASSERT(recv(p.fd, text, sizeof(text) - 1, MSG_DONTWAIT) > 0);
    TEST_STRING(text, "WATCHDOG=1");
    close_fd(p.fd);
    test_runner_done(&t);
}

/* --- a berthd that starts too much --- */

static void start_is_refused(char run, const char *job, const char *reason) {
    test_runner_send_start(&t, run, job);
    test_await(t.fd, &m, PROTOCOL_REFUSED);
    TEST_FIELD(&m, "run", test_runner_id(run));
    TEST_FIELD(&m, "reason", reason);
    CU_ASSERT(message_get(&m, "text") && *message_get(&m, "text"));
    CU_ASSERT(!test_runner_has_file(&t, run, ".sock") && !test_runner_has_file(&t, run, ".guard"));
}

static void end_run(char run) {
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id(run));
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "run", test_runner_id(run));
    test_say(t.fd, PROTOCOL_FORGET, "run", test_runner_id(run));
}

/* The runner starts one run of a job at once, unless its config allows more, also after a restart. */
static void test_overlap(void) {
    test_runner_begin(&t, TEST_OUT("skip", "sleep 1000", "") TEST_OUT("queue", "sleep 1000", "overlap = queue")
                      TEST_OUT("allow", "sleep 1000", "overlap = allow"), getuid());
    test_runner_begin_run(&t, &m, '1', "skip");
    test_runner_begin_run(&t, &m, '2', "queue");
    test_runner_begin_run(&t, &m, '3', "allow");
    test_runner_begin_run(&t, &m, '4', "allow");
    start_is_refused('5', "skip", "overlap");
    start_is_refused('5', "queue", "overlap");
    test_runner_end(&t, SIGKILL);
    test_runner_start(&t);
    close_fd(t.fd);
    t.fd = test_runner_connect(&t);
    test_runner_hello(&t, t.fd);
    for (int i = 0; i < 4; i++)
        test_await(t.fd, &m, PROTOCOL_GUARD);
    test_await(t.fd, &m, PROTOCOL_RECOVERED);
    start_is_refused('5', "skip", "overlap");
    end_run('1');
    test_runner_begin_run(&t, &m, '5', "skip");
    for (const char *run = "2345"; *run; run++)
        end_run(*run);
    test_runner_done(&t);
}

/* A guard whose run is over waits for berthd. The next run of the job does not wait for that guard. */
static void test_overlap_after_end(void) {
    int guard;

    test_runner_begin(&t, TEST_OUT("a", "read line <@/go", "overlap = skip"), getuid());
    CU_ASSERT_FATAL(mkfifo(test_runner_path(&t, "go"), 0600) == 0);
    test_runner_begin_run(&t, &m, '1', "a");
    guard = test_runner_guard(&t, '1');
    test_await(guard, &m, PROTOCOL_STATE);
    start_is_refused('2', "a", "overlap");
    test_runner_write(&t, "go", "\n");
    do
        test_await_any(guard, &m);
    while (strcmp(m.verb, PROTOCOL_REPORT) != 0);
    test_runner_begin_run(&t, &m, '2', "a"); /* the first guard still lives */
    CU_ASSERT(test_runner_has_file(&t, '1', ".guard"));
    test_say(guard, PROTOCOL_DONE, "run", test_runner_id('1'));
    close_fd(guard);
    end_run('2');
    test_runner_done(&t);
}

/* The runner counts the runs that have a guard or a report. */
static void test_too_many(void) {
    char name[80], run[ID_TEXT_SIZE];
    size_t n = 0;

    test_runner_begin(&t, TEST_OUT("a", "exit 0", ""), getuid());
    for (; n < RUNS_MAX; n++) {
        snprintf(run, sizeof(run), "%032zx", n + 1);
        snprintf(name, sizeof(name), "run/" PROTOCOL_RUNS "/%s" PROTOCOL_REPORT_SUFFIX, run);
        test_runner_write(&t, name, "report\n");
    }
    start_is_refused('1', "a", "too-many-runs");
    test_say(t.fd, PROTOCOL_FORGET, "run", run);
    test_runner_run(&t, &m, '1', "a");
    test_runner_done(&t);
}

static void request_reap(char id, const char *token) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_REAP);
    message_put(&w, "run", test_runner_id(id));
    if (token)
        message_put(&w, "token", token);
    TEST_INT(message_send(t.fd, &w), 0);
}

static void await_reaped(char id) {
    test_await(t.fd, &m, PROTOCOL_REAPED);
    TEST_FIELD(&m, "run", test_runner_id(id));
}

/* Only the processes of the grant that berthd names. */
static void test_reap(void) {
    pid_t old, new;
    int status;

    test_runner_begin(&t, "", getuid());
    old = test_runner_start_adhoc('7', "5", 0);
    new = test_runner_start_adhoc('7', "55", 0);
    request_reap('7', "5");
    await_reaped('7');
    TEST_INT(waitpid(old, &status, 0), old);
    TEST_INT(waitpid(new, &status, WNOHANG), 0);
    request_reap('7', NULL);
    await_reaped('7');
    TEST_INT(waitpid(new, &status, 0), new);
    test_runner_done(&t);
}

/* Each of several runs, and no other one. */
static void test_reap_several(void) {
    static const char ids[] = "123456";
    pid_t pids[sizeof(ids) - 1], other;
    int status;

    test_runner_begin(&t, "", getuid());
    other = test_runner_start_adhoc('7', "5", 0);
    for (size_t i = 0; ids[i]; i++)
        pids[i] = test_runner_start_adhoc(ids[i], "5", 0);
    for (size_t i = 0; ids[i]; i++)
        request_reap(ids[i], "5");
    for (size_t i = 0; ids[i]; i++)
        await_reaped(ids[i]);
    for (size_t i = 0; ids[i]; i++)
        TEST_INT(waitpid(pids[i], &status, WNOHANG), pids[i]);
    TEST_INT(waitpid(other, &status, WNOHANG), 0);
    request_reap('7', "5");
    await_reaped('7');
    TEST_INT(waitpid(other, &status, 0), other);
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"start", test_start},
    {"exists", test_exists},
    {"refused", test_refused},
    {"no resources", test_no_resources},
    {"reload", test_reload},
    {"hello", test_hello},
    {"malformed", test_malformed},
    {"strangers", test_strangers},
    {"watchdog", test_watchdog},
    {"overlap", test_overlap},
    {"overlap after the end", test_overlap_after_end},
    {"too many", test_too_many},
    {"reap", test_reap},
    {"reap several", test_reap_several},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "runner", .pTests = tests});
