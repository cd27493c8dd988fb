/* SPDX-License-Identifier: MIT */
/* `berth run` against a fake berthd: its calls, its use of replies, exit statuses, environment. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "tests/harness/host/fake-berthd.h"
#include "tests/harness/test.h"

#define OUTER "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"

static const char *text_in(const json_t *params, const char *key) {
    return json_string_value(json_object_get(params, key));
}

/* Grants permits to a script of sh, and receives its end. */
static void ends(const char *script, int status, int code, int signal) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db -- sh -c", script);
    fake_grant(&f, 0);
    fake_expect_started(&f);
    fake_expect_ended(&f, code, signal, NULL);
    TEST_INT(fake_await_exit(&f), status);
    TEST_INT(fake_is_hold_over(&f), true);
    TEST_STRING(fake_errors(&f), "");
    fake_expect_end(&f);
    fake_done(&f);
}

static void test_exit_status(void) {
    ends("exit 0", 0, 0, -1);
    ends("exit 3", 3, 3, -1);
    ends("exit 75", 75, 75, -1);
    ends("exit 143", 143, 143, -1);
    ends("kill -TERM $$", -SIGTERM, -1, SIGTERM);
    ends("kill -INT $$", -SIGINT, -1, SIGINT);
    ends("kill -HUP $$", -SIGHUP, -1, SIGHUP);
    ends("kill -QUIT $$", 128 + SIGQUIT, -1, SIGQUIT);
    ends("kill -KILL $$", 128 + SIGKILL, -1, SIGKILL);
}

/* Only folders that anybody may read. If PATH has an unreadable one, as root's may be after su(1), the error
 * would be "Permission denied". */
static void set_path(struct fake *f) {
    (void) f;
    (void) setenv("PATH", "/usr/bin:/bin", 1);
}

static void not_started(const char *command, int status, const char *error) {
    struct fake f;
    char words[128];

    fake_init(&f);
    fake_in_child = set_path;
    snprintf(words, sizeof(words), "-p db -- %s", command);
    fake_run(&f, words, NULL);
    fake_grant(&f, 0);
    fake_expect_ended(&f, status, -1, "not-started");
    TEST_INT(fake_await_exit(&f), status);
    TEST_STRING(fake_errors(&f), error);
    fake_done(&f);
}

static void test_not_started(void) {
    not_started("/nonexistent", 127, "berth: /nonexistent: command not found\n");
    not_started("no-such-command-here", 127, "berth: no-such-command-here: command not found\n");
    not_started("/etc/passwd", 126, "berth: cannot execute /etc/passwd: Permission denied\n");
    not_started("/tmp", 126, "berth: cannot execute /tmp: Permission denied\n");
}

static void test_environment(void) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db --name nightly -- sh -c",
             "echo $BERTH_JOB $BERTH_RUN $BERTH_POOLS $BERTH_TOKEN $BERTH_HOST $BERTH_NAMESPACE $HOME.; ls -l /proc/self/fd; echo end");
    fake_grant(&f, 0);
    fake_expect_started(&f);
    fake_await_output(&f, "end\n");
    CU_ASSERT_PTR_EQUAL(strstr(f.text, "nightly " FAKE_RUN " db:1 1700000000000001 ant test /"), f.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.text, " 20 -> pipe:")); /* the hold, above 3 to 9 that scripts use */
    CU_ASSERT_PTR_NULL(strstr(f.text, "socket:"));          /* not the connection, which has the caller's rights */
    CU_ASSERT_PTR_NULL(strstr(f.text, "anon_inode:"));
    fake_expect_ended(&f, 0, -1, NULL);
    TEST_INT(fake_await_exit(&f), 0);
    fake_done(&f);
}

static void check_params(struct fake *f, const char *words, const char *expected) {
    char time_namespace[CLOCK_NAMESPACE_SIZE];
    json_t *params, *wanted;
    _cleanup_free_ char *copy = fake_quote(expected), *text = NULL;

    fake_run(f, words, NULL);
    fake_accept(f);
    params = fake_expect(f, "io.berth.Hold");
    wanted = json_loads(copy, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(wanted);
    clock_namespace(time_namespace);
    CU_ASSERT(json_object_set_new(wanted, "time_namespace", json_string(time_namespace)) == 0);
    if (!json_equal(params, wanted)) {
        text = json_dumps(params, 0);
        TEST_STRING(text, copy);
    }
    json_decref(params);
    json_decref(wanted);
    fake_reply(f, "{'error': 'io.berth.NoPermit', 'parameters': {'reason': 'busy', 'pool': 'db'}}");
    TEST_INT(fake_await_exit(f), 75);
}

static void test_params(void) {
    struct fake f;

    fake_init(&f);
    check_params(&f, "-p db -p net:2 x", "{'pools': ['db:1', 'net:2'], 'name': 'x'}");
    check_params(&f, "-n -p db --head-start 1500ms --stop-timeout 2s --on-lease-lost continue --name y x",
                 "{'pools': ['db:1'], 'name': 'y', 'nowait': true, 'head_start_ms': 1500, 'stop_timeout_ms': 2000, "
                 "'on_lease_lost': 'continue'}");
    fake_done(&f);
}

static void refused_with(const char *words, const char *reply, int status, const char *error) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, words, NULL);
    fake_accept(&f);
    json_decref(fake_expect(&f, "io.berth.Hold"));
    fake_reply(&f, reply);
    TEST_INT(fake_await_exit(&f), status);
    TEST_STRING(fake_errors(&f), error);
    fake_done(&f);
}

static void test_refused(void) {
    refused_with("-p db -n x", "{'error': 'io.berth.NoPermit', 'parameters': {'reason': 'busy', 'pool': 'db'}}", 75,
                 "berth: no permit: busy (pool db)\n");
    refused_with("-p db -n -E 9 x", "{'error': 'io.berth.NoPermit', 'parameters': {'reason': 'grace'}}", 9,
                 "berth: no permit: grace period: nothing is granted yet; berth redis says for how long\n");
    refused_with("-p db x", "{'error': 'io.berth.BadRequest', 'parameters': {'text': 'pool db has a limit of 4'}}", 64,
                 "berth: pool db has a limit of 4\n");
    refused_with("-p dbb x", "{'error': 'io.berth.NoSuchPool', 'parameters': {'name': 'dbb', 'known': ['net', 'db']}}", 65,
                 "berth: no such pool: dbb (did you mean \"db\"? known: net, db)\n");
    refused_with("-p zzzzzz x", "{'error': 'io.berth.NoSuchPool', 'parameters': {'name': 'zzzzzz', 'known': ['net', 'db']}}", 65,
                 "berth: no such pool: zzzzzz (known: net, db)\n");
    refused_with("-p db x", "{'error': 'io.berth.NoSuchPool', 'parameters': {'name': 'db', 'known': []}}", 65,
                 "berth: no such pool: db (there is no pool)\n");
    refused_with("-p db x", "{'error': 'io.berth.NotAllowed', 'parameters': {'text': 'not in the group berth'}}", 77,
                 "berth: not in the group berth\n");
    refused_with("-p db x", "{'error': 'io.berth.Away', 'parameters': {'text': 'Redis is away'}}", 69, "berth: Redis is away\n");
    refused_with("-p db x", "{'error': 'io.berth.Stopping'}", 69, "berth: berthd is stopping\n");
    refused_with("-p db x", "{'error': 'io.berth.ConfigRefused', 'parameters': {'errors': ['a:1: x', 'a:2: y']}}", 78,
                 "a:1: x\na:2: y\nberth: the config was refused; nothing was changed\n");
    refused_with("-p db x", "{'error': 'io.berth.Internal', 'parameters': {'text': 'out of memory'}}", 70, "berth: out of memory\n");
    refused_with("-p db x", "{'error': 'org.varlink.service.MethodNotFound', 'parameters': {}}", 70,
                 "berth: berthd answered org.varlink.service.MethodNotFound\n");
    refused_with("-p db x", "{'parameters': {'state': 'over', 'run': '" FAKE_RUN "', 'reason': 'stopped'}}", 75,
                 "berth: no permit: stopped\n");
}

static void test_no_varlink(void) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db x", NULL);
    fake_accept(&f);
    fake_reply(&f, "SSH-2.0-OpenSSH_9.2");
    TEST_INT(fake_await_exit(&f), 70);
    CU_ASSERT_PTR_NOT_NULL(strstr(fake_errors(&f), "does not speak Varlink"));
    fake_done(&f);
}

static void test_wrong_usage(void) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db --frob x", NULL);
    TEST_INT(fake_await_exit(&f), 64);
    TEST_STRING(fake_errors(&f), "berth run: unknown option --frob\nberth run -p POOL[:N] [OPTION...] [--] COMMAND [ARG...]\n");
    fake_run(&f, "--help", NULL);
    fake_await_output(&f, "127 command not found.\n");
    TEST_INT(fake_await_exit(&f), 0);
    fake_done(&f);
}

static void test_no_server(void) {
    char error[256];
    struct fake f;

    fake_init(&f);
    fake_stop(&f);
    fake_run(&f, "-p db x", NULL);
    TEST_INT(fake_await_exit(&f), 69);
    snprintf(error, sizeof(error), "berth: cannot reach berthd: no process listens on %s (is berthd running?)\n", f.socket);
    TEST_STRING(fake_errors(&f), error);

    (void) unlink(f.socket);
    fake_run(&f, "-p db x", NULL);
    TEST_INT(fake_await_exit(&f), 69);
    snprintf(error, sizeof(error), "berth: cannot reach berthd: %s does not exist (is berthd running? --socket names another)\n",
             f.socket);
    TEST_STRING(fake_errors(&f), error);
    fake_done(&f);
}

static void become_nobody(struct fake *f) {
    (void) f;
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
        _exit(98);
}

static void test_not_allowed(void) {
    char error[256];
    struct fake f;

    fake_init(&f);
    TEST_INT(chmod(f.socket, 0), 0);
    TEST_INT(chmod(f.directory, 0711), 0);
    fake_in_child = become_nobody;
    fake_run(&f, "-p db x", NULL);
    TEST_INT(fake_await_exit(&f), 77);
    snprintf(error, sizeof(error), "berth: not allowed to use %s (root and the group \"berth\" are; the group \"berth-look\" may look)\n", f.socket);
    TEST_STRING(fake_errors(&f), error);
    fake_done(&f);
}

static void be_nested(struct fake *f) {
    (void) f;
    (void) setenv("BERTH_RUN", OUTER, 1);
    (void) setenv("BERTH_JOB", "outer", 1);
}

static void test_nested(void) {
    json_t *params;
    struct fake f;

    fake_init(&f);
    fake_in_child = be_nested;
    fake_run(&f, "-p db -- sh -c", "echo $BERTH_RUN $BERTH_JOB; exit 6");
    fake_accept(&f);
    params = fake_expect(&f, "io.berth.Hold");
    TEST_STRING(text_in(params, "nested"), OUTER);
    json_decref(params);
    fake_reply(&f, "{'parameters': {'state': 'nested', 'run': '" OUTER "', 'token': 1, 'deadline_usec': 1}}");
    fake_await_output(&f, OUTER " outer\n");
    TEST_INT(fake_await_exit(&f), 6);
    fake_expect_end(&f);
    fake_done(&f);
}

static void be_nested_strangely(struct fake *f) {
    (void) f;
    (void) setenv("BERTH_RUN", "what's this", 1);
}

static void test_strange_run_in_environment(void) {
    struct fake f;

    fake_init(&f);
    fake_in_child = be_nested_strangely;
    check_params(&f, "-p db x", "{'pools': ['db:1'], 'name': 'x'}");
    fake_done(&f);
}

static void test_granted_without_hold(void) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db -- sh -c", "echo started");
    fake_accept(&f);
    json_decref(fake_expect(&f, "io.berth.Hold"));
    fake_reply_granted(&f, 0, false);
    TEST_INT(fake_await_exit(&f), 125);
    TEST_STRING(fake_errors(&f), "berth: granted without a hold: no descriptor is free here (ulimit -n), or berthd sent none\n");
    fake_done(&f);
}

static void test_answers_in_pieces(void) {
    static const char *const parts[] = {"{'parameters': {'state': 'wai", "ting', 'run': '" FAKE_RUN "'}, 'contin", "ues': true}"};
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db -- sh -c", "exit 2");
    fake_accept(&f);
    json_decref(fake_expect(&f, "io.berth.Hold"));
    for (size_t i = 0; i < ELEMENTSOF(parts); i++) {
        _cleanup_free_ char *part = fake_quote(parts[i]);

        TEST_INT(send(f.connection, part, strlen(part) + (i == ELEMENTSOF(parts) - 1), MSG_NOSIGNAL) > 0, true);
    }
    fake_reply(&f, FAKE_WAITING);
    fake_reply_granted(&f, 0, true); /* several replies at once: the descriptor belongs to this one */
    fake_reply(&f, "{'parameters': {'state': 'from the future'}, 'continues': true}");
    fake_expect_started(&f);
    fake_expect_ended(&f, 2, -1, NULL);
    TEST_INT(fake_await_exit(&f), 2);
    fake_done(&f);
}

static void close_standard_fds(struct fake *f) {
    (void) f;
    close(STDIN_FILENO);
    close(STDERR_FILENO);
}

static void test_closed_standard_fds(void) {
    struct fake f;

    fake_init(&f);
    fake_in_child = close_standard_fds;
    fake_run(&f, "-p db -- sh -c", "for i in 0 1 2; do [ -e /proc/$$/fd/$i ] && echo has $i; done; echo end");
    fake_grant(&f, 0);
    fake_expect_started(&f);
    fake_await_output(&f, "end");
    TEST_STRING(f.text, "has 1\nend\n"); /* as the caller had it: the connection did not become 0 or 2 */
    fake_expect_ended(&f, 0, -1, NULL);
    TEST_INT(fake_await_exit(&f), 0);
    fake_done(&f);
}

static CU_TestInfo tests[] = {
    {"exit status", test_exit_status},
    {"not started", test_not_started},
    {"environment", test_environment},
    {"params", test_params},
    {"refused", test_refused},
    {"no varlink", test_no_varlink},
    {"wrong usage", test_wrong_usage},
    {"no server", test_no_server},
    {"not allowed", test_not_allowed},
    {"nested", test_nested},
    {"strange run in environment", test_strange_run_in_environment},
    {"granted without hold", test_granted_without_hold},
    {"answers in pieces", test_answers_in_pieces},
    {"closed standard fds", test_closed_standard_fds},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "run client", .pTests = tests});
