/* SPDX-License-Identifier: MIT */
/* Guards of a real berth-runner: what they tell berthd, when they stop a command, and what a command finds. */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/protocol.h"
#include "tests/harness/runner.h"
#include "tests/harness/test.h"

#define JOB(name, script, more) "job \"" name "\" { command = {\"/bin/sh\", \"-c\", \"" script "\"} stop-timeout = \"200ms\" " more " }\n"
#define OUT(name, script, more) JOB(name, script, "output = \"@/" name ".out\" " more)
#define WAITS(name, more) OUT(name, "trap 'exit 7' TERM; echo ready; sleep 1000 & wait", more)
#define DEAF(name, more) OUT(name, "trap '' TERM; setsid sleep 1000 & echo ready; while :; do sleep 1000; done", more)

static struct test_runner t;
static struct message m; /* large */

static void start(char run, const char *job, usec_t deadline) {
    struct message_writer w;

    test_runner_begin_start(&w, run, job, test_runner_hash(&t, job));
    if (deadline != USEC_INFINITY)
        message_put_u64(&w, "deadline", deadline);
    TEST_INT(message_send(t.fd, &w), 0);
    test_await(t.fd, &m, PROTOCOL_STARTING);
}

static void begin(const char *jobs, uid_t uid) {
    test_runner_init(&t, jobs, uid);
    test_runner_join(&t);
}

static uint64_t number_of(const char *key) {
    uint64_t value = 0;

    TEST_INT(message_get_u64(&m, key, &value), 0);
    return value;
}

/* A connection to the guard of run 1, once its command is ready. */
static int join_ready(const char *output) {
    int guard = test_runner_guard(&t, '1');

    free(test_runner_read(&t, output));
    test_await(guard, &m, PROTOCOL_STATE);
    if (!message_get(&m, "pid"))
        test_await(guard, &m, PROTOCOL_STARTED);
    return guard;
}

static void finish(int guard) {
    test_say(guard, PROTOCOL_DONE, NULL, NULL);
    test_await_end(guard);
}

static void say_deadline(int guard, usec_t deadline) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_DEADLINE);
    if (deadline != USEC_INFINITY)
        message_put_u64(&w, "deadline", deadline);
    TEST_INT(message_send(guard, &w), 0);
}

static bool is_clean(void) {
    static const char *const suffixes[] = {".sock", ".guard", ".report"};
    char name[80];

    for (size_t i = 0; i < ELEMENTSOF(suffixes); i++) {
        snprintf(name, sizeof(name), "run/runner/runs/%s%s", test_runner_id('1'), suffixes[i]);
        if (test_runner_has(&t, name))
            return false;
    }
    return true;
}

static void test_talk(void) {
    _cleanup_close_ int guard = -1;
    usec_t deadline = clock_boottime() + 100 * USEC_PER_SEC;
    char text[24], pid[24];

    begin(WAITS("a", ""), getuid());
    start('1', "a", deadline);
    guard = join_ready("a.out");
    close_fd(guard);
    guard = test_runner_guard(&t, '1');
    test_await(guard, &m, PROTOCOL_STATE);
    TEST_FIELD(&m, "run", test_runner_id('1'));
    TEST_FIELD(&m, "job", "a");
    TEST_FIELD(&m, "hash", test_runner_hash(&t, "a"));
    TEST_FIELD(&m, "claim", test_runner_id('c'));
    TEST_FIELD(&m, "token", "1763640079123456");
    TEST_FIELD(&m, "ticket", "1763640079123455");
    TEST_FIELD(&m, "pools", "db:2,net:1");
    TEST_FIELD(&m, "queued", "1763640079123000");
    TEST_FIELD(&m, "phase", "running");
    TEST_FIELD(&m, "on-lease-lost", "stop");
    TEST_FIELD(&m, "stop-timeout", "200000");
    TEST_FIELD(&m, "reason", NULL);
    snprintf(text, sizeof(text), "%" PRIu64, deadline);
    TEST_FIELD(&m, "deadline", text);
    CU_ASSERT(number_of("pid") > 0 && number_of("started") > 0 && number_of("guard") > 0);
    snprintf(pid, sizeof(pid), "%" PRIu64, number_of("pid"));
    test_say(guard, PROTOCOL_DONE, NULL, NULL); /* nothing is done yet: ignored */
    say_deadline(guard, deadline + 1);
    test_await(guard, &m, PROTOCOL_ACK);
    CU_ASSERT(number_of("deadline") == deadline + 1);
    say_deadline(guard, USEC_INFINITY);
    test_await(guard, &m, PROTOCOL_ACK);
    TEST_FIELD(&m, "deadline", NULL);
    test_say(guard, PROTOCOL_STOP, "reason", "revoked");
    test_await(guard, &m, PROTOCOL_STOPPING);
    TEST_FIELD(&m, "run", test_runner_id('1'));
    TEST_FIELD(&m, "reason", "revoked");
    test_await(guard, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "reason", "revoked");
    TEST_FIELD(&m, "code", "7");
    TEST_FIELD(&m, "gone-before", NULL);
    finish(guard);
    CU_ASSERT(is_clean());
    test_runner_done(&t);
}

static void test_newest_wins(void) {
    _cleanup_close_ int old = -1, new = -1;

    begin(WAITS("a", ""), getuid());
    start('1', "a", USEC_INFINITY);
    old = join_ready("a.out");
    new = test_runner_guard(&t, '1');
    test_await(new, &m, PROTOCOL_STATE);
    test_await_end(old);
    test_say(new, PROTOCOL_STOP, "reason", "stopped");
    test_await(new, &m, PROTOCOL_STOPPING);
    test_await(new, &m, PROTOCOL_REPORT);
    /* A berthd that comes only now is told all of it again. */
    close_fd(old);
    old = test_runner_guard(&t, '1');
    test_await(old, &m, PROTOCOL_STATE);
    TEST_FIELD(&m, "phase", "done");
    TEST_FIELD(&m, "reason", "stopped");
    test_await(old, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "code", "7");
    test_await_end(new);
    finish(old);
    test_runner_done(&t);
}

static void test_leaves_report(void) {
    _cleanup_close_ int guard = -1;

    begin(WAITS("a", ""), getuid());
    start('1', "a", USEC_INFINITY);
    guard = join_ready("a.out");
    test_say(guard, PROTOCOL_STOP, "reason", "stopped");
    test_await(guard, &m, PROTOCOL_STOPPING);
    test_await(guard, &m, PROTOCOL_REPORT);
    guard = close_fd(guard); /* told, but not acknowledged */
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "code", "7");
    test_runner_done(&t);
}

static void closes(const char *text) {
    _cleanup_close_ int guard = test_runner_guard(&t, '1');

    test_await(guard, &m, PROTOCOL_STATE);
    TEST_INT(send(guard, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    test_await_end(guard);
}

static void test_malformed(void) {
    _cleanup_close_ int guard = -1;
    static char large[MESSAGE_SIZE_MAX + 2];

    begin(WAITS("a", ""), getuid());
    start('1', "a", USEC_INFINITY);
    guard = join_ready("a.out");
    closes("nonsense");
    closes("hello\nversion=1\n");
    closes("stop\n");
    closes("stop\nreason=none\n");
    closes("stop\nreason=whim\n");
    closes("deadline\ndeadline=soon\n");
    closes("deadline\ndeadline=-1\n");
    memset(large, 'a', sizeof(large) - 1);
    closes(large);
    close_fd(guard);
    guard = test_runner_guard(&t, '1');
    test_await(guard, &m, PROTOCOL_STATE);
    TEST_FIELD(&m, "phase", "running");
    TEST_FIELD(&m, "deadline", NULL);
    test_say(guard, PROTOCOL_STOP, "reason", "stopped");
    test_await(guard, &m, PROTOCOL_STOPPING);
    test_await(guard, &m, PROTOCOL_REPORT);
    finish(guard);
    test_runner_done(&t);
}

static void call_guard(void) {
    test_await_end(test_runner_guard(&t, '1'));
}

static void test_strangers(void) {
    begin(WAITS("a", ""), getuid());
    start('1', "a", USEC_INFINITY);
    test_as_stranger(call_guard);
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id('1'));
    test_await(t.fd, &m, PROTOCOL_REPORT);
    test_runner_done(&t);
}

static void test_deadline(void) {
    begin(DEAF("deaf", ""), getuid());
    start('1', "deaf", clock_boottime() + 700 * USEC_PER_MSEC);
    test_await(t.fd, &m, PROTOCOL_REPORT); /* nobody had to say anything */
    TEST_FIELD(&m, "reason", "lease-lost");
    TEST_FIELD(&m, "signal", "9");
    CU_ASSERT(number_of("gone-before") > 0 && number_of("gone-before") < 250 * USEC_PER_MSEC);
    test_runner_done(&t);
}

static void test_deadline_pushed(void) {
    _cleanup_close_ int guard = -1;
    usec_t deadline;

    begin(DEAF("deaf", ""), getuid());
    start('1', "deaf", clock_boottime() + 100 * USEC_PER_SEC);
    guard = join_ready("deaf.out");
    deadline = clock_boottime() + 500 * USEC_PER_MSEC; /* an earlier one is taken, too */
    for (int i = 0; i < 3; i++) {
        deadline += 100 * USEC_PER_MSEC;
        say_deadline(guard, deadline);
        test_await(guard, &m, PROTOCOL_ACK);
    }
    test_await(guard, &m, PROTOCOL_STOPPING);
    TEST_FIELD(&m, "reason", "lease-lost");
    test_await(guard, &m, PROTOCOL_REPORT);
    CU_ASSERT(number_of("gone-before") > 0 && number_of("gone-before") < 250 * USEC_PER_MSEC);
    CU_ASSERT(number_of("ended-boot") + number_of("gone-before") == deadline); /* the last one that was pushed */
    finish(guard);
    test_runner_done(&t);
}

static void test_deadline_passed(void) {
    begin(WAITS("a", ""), getuid());
    start('1', "a", clock_boottime());
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_INT(number_of("errno"), ETIME);
    TEST_FIELD(&m, "stage", "deadline");
    TEST_FIELD(&m, "code", NULL);
    TEST_FIELD(&m, "started", NULL);
    CU_ASSERT(!test_runner_has(&t, "a.out"));
    test_runner_done(&t);
}

static void test_continue(void) {
    _cleanup_close_ int guard = -1;

    begin(WAITS("a", "on-lease-lost = \"continue\""), getuid());
    start('1', "a", clock_boottime());
    guard = join_ready("a.out");
    say_deadline(guard, clock_boottime());
    test_await(guard, &m, PROTOCOL_ACK);
    TEST_FIELD(&m, "deadline", NULL);
    close_fd(guard);
    guard = test_runner_guard(&t, '1');
    test_await(guard, &m, PROTOCOL_STATE);
    TEST_FIELD(&m, "on-lease-lost", "continue");
    TEST_FIELD(&m, "phase", "running");
    TEST_FIELD(&m, "deadline", NULL);
    test_say(guard, PROTOCOL_STOP, "reason", "shutdown");
    test_await(guard, &m, PROTOCOL_STOPPING);
    test_await(guard, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "reason", "shutdown");
    finish(guard);
    test_runner_done(&t);
}

static void test_timeout(void) {
    begin(WAITS("a", "timeout = \"200ms\""), getuid());
    start('1', "a", USEC_INFINITY);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "reason", "timeout");
    TEST_FIELD(&m, "code", "7");
    test_runner_done(&t);
}

/* --- what the command finds --- */

static void ends_with(const char *job, const char *code) {
    start('1', job, USEC_INFINITY);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "code", code);
    TEST_FIELD(&m, "errno", NULL);
    test_say(t.fd, PROTOCOL_FORGET, "run", test_runner_id('1'));
}

static void prints(const char *job, const char *expected) {
    _cleanup_free_ char *text = NULL;
    char name[40];

    ends_with(job, "0");
    snprintf(name, sizeof(name), "%s.out", job);
    text = test_runner_read(&t, name);
    TEST_STRING(text, expected);
}

static void test_environment(void) {
    char *expected = NULL;

    begin("job \"env\" { command = {\"/usr/bin/env\"} output = \"@/env.out\" user = \"root\"\n"
          "  environment = {\"A=1 2\", \"LANG=de_DE\", \"EMPTY=\"} }\n", getuid());
    if (getuid() != 0) {
        test_runner_done(&t);
        TEST_SKIP("the expected user is root");
    }
    CU_ASSERT_FATAL(asprintf(&expected,
                             "HOME=/root\nUSER=root\nLOGNAME=root\nSHELL=/bin/bash\n"
                             "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nLANG=de_DE\n"
                             "A=1 2\nEMPTY=\nBERTH_JOB=env\nBERTH_RUN=%s\nBERTH_POOLS=db:2,net:1\n"
                             "BERTH_TOKEN=1763640079123456\nBERTH_HOST=h\nBERTH_NAMESPACE=n\n",
                             test_runner_id('1')) > 0);
    prints("env", expected);
    free(expected);
    test_runner_done(&t);
}

/* What went wrong elsewhere: CVE-2012-6097, CVE-2024-21626. */
static void test_surroundings(void) {
    begin(OUT("fds", "ls /proc/$$/fd", "") OUT("stdin", "readlink /proc/$$/fd/0", "")
          OUT("where", "pwd; umask", "directory = \"/usr\" umask = \"027\"") OUT("default", "pwd; umask", "")
          OUT("signals", "grep -E '^Sig(Blk|Ign)' /proc/self/status", "")
          OUT("leader", "read -r a b c d e f g </proc/$$/stat; [ $e = $$ ] && [ $f = $$ ] && echo yes", "")
          OUT("both", "echo out; echo err >&2", "") JOB("silent", "echo out; echo err >&2", "output = \"null\"")
          JOB("journal", "echo out", ""), getuid());
    prints("fds", "0\n1\n2\n");
    prints("stdin", "/dev/null\n");
    prints("where", "/usr\n0027\n");
    prints("default", "/\n0022\n");
    prints("signals", "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    prints("leader", "yes\n");
    prints("both", "out\nerr\n");
    prints("both", "out\nerr\nout\nerr\n"); /* appended */
    ends_with("silent", "0");
    ends_with("journal", "0");
    test_runner_done(&t);
}

static void fails_at(const char *job, int error, const char *stage) {
    start('1', job, USEC_INFINITY);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_INT(number_of("errno"), error);
    TEST_FIELD(&m, "stage", stage);
    TEST_FIELD(&m, "code", NULL);
    TEST_FIELD(&m, "started", NULL);
    test_say(t.fd, PROTOCOL_FORGET, "run", test_runner_id('1'));
}

static void test_failures(void) {
    begin("job \"none\" { command = {\"/nonexistent/program\"} }\n"
          "job \"not-program\" { command = {\"/etc/passwd\"} }\n"
          "job \"no-directory\" { command = {\"/bin/true\"} directory = \"/nonexistent\" }\n"
          "job \"no-output\" { command = {\"/bin/true\"} output = \"/nonexistent/a\" }\n"
          "job \"fifo\" { command = {\"/bin/true\"} output = \"@/fifo\" }\n"
          "job \"no-user\" { command = {\"/bin/true\"} user = \"no-such-user\" }\n"
          "job \"no-group\" { command = {\"/bin/true\"} group = \"no-such-group\" }\n", getuid());
    char path[80];

    snprintf(path, sizeof(path), "%s/fifo", t.directory);
    CU_ASSERT_FATAL(mkfifo(path, 0600) == 0);
    fails_at("none", ENOENT, "exec");
    fails_at("not-program", EACCES, "exec");
    fails_at("no-directory", ENOENT, "directory");
    fails_at("no-output", ENOENT, "output");
    fails_at("fifo", ENXIO, "output"); /* that nobody reads: not waited for */
    fails_at("no-user", ESRCH, "user");
    fails_at("no-group", ESRCH, "group");
    test_runner_done(&t);
}

/* What went wrong elsewhere: CVE-2006-2607, CVE-2023-25173. */
static void test_user(void) {
    struct stat st;
    char path[80];

    if (getuid() != 0)
        TEST_SKIP("only root can become somebody else");
    begin(OUT("nobody", "id -u; id -g; id -G; echo $USER $HOME; grep -E '^(Uid|Gid|CapEff):' /proc/self/status", "user = \"nobody\"")
          OUT("group", "id -un; id -gn", "user = \"nobody\" group = \"daemon\"") OUT("only-group", "id -un; id -gn", "group = \"daemon\"")
          OUT("secret", "cat @/secret", "user = \"nobody\""), getuid());
    CU_ASSERT(chmod(t.directory, 0777) == 0); /* the output is opened as nobody */
    prints("nobody", "65534\n65534\n65534\nnobody /nonexistent\nUid:\t65534\t65534\t65534\t65534\nGid:\t65534\t65534\t65534\t65534\n"
                     "CapEff:\t0000000000000000\n");
    snprintf(path, sizeof(path), "%s/nobody.out", t.directory);
    CU_ASSERT(stat(path, &st) == 0 && st.st_uid == NOBODY && st.st_gid == NOBODY);
    prints("group", "nobody\ndaemon\n");
    prints("only-group", "root\ndaemon\n");
    /* Opened after the drop: an output that the user may not write is refused, whatever root may. */
    snprintf(path, sizeof(path), "%s/secret.out", t.directory);
    CU_ASSERT(file_write_atomic(path, "root's\n", 7, 0600) == 0);
    fails_at("secret", EACCES, "output");
    test_runner_done(&t);
}

static void test_not_root(void) {
    if (getuid() != 0)
        TEST_SKIP("only root can become somebody else");
    begin(OUT("own", "id -u; id -g", "user = \"nobody\" group = \"nogroup\"") OUT("none", "id -u; id -g", "")
          JOB("root", "exit 0", "user = \"root\"") JOB("daemon", "exit 0", "group = \"daemon\""), NOBODY);
    prints("own", "65534\n65534\n");
    prints("none", "65534\n65534\n");
    fails_at("root", EPERM, "user");
    fails_at("daemon", EPERM, "user");
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"talk", test_talk},
    {"newest wins", test_newest_wins},
    {"leaves a report", test_leaves_report},
    {"malformed", test_malformed},
    {"strangers", test_strangers},
    {"deadline", test_deadline},
    {"deadline pushed", test_deadline_pushed},
    {"deadline passed", test_deadline_passed},
    {"continue", test_continue},
    {"timeout", test_timeout},
    {"environment", test_environment},
    {"surroundings", test_surroundings},
    {"failures", test_failures},
    {"user", test_user},
    {"not root", test_not_root},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "guard", .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
