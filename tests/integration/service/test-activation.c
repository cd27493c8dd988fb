/* SPDX-License-Identifier: MIT */
/* Sockets of a service manager exist before the programs and stay after their end; clients wait meanwhile.
 * Here the test is the service manager. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/message.h"
#include "base/protocol.h"
#include "base/socket.h"
#include "tests/harness/host/host.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

static struct host *ant;

static void up(void) {
    cluster_up_without_redis();
    ant = host_add_alone("ant", "pool \"two\" { limit = 2 scope = \"host\" }\n");
    if (mkdir(ant->runtime, 0755) < 0)
        CU_FAIL("no runtime directory");
}

/* Returns a socket that a child inherits. */
static int listen_at(const char *path, int type) {
    int fd = socket_listen(path, type, 0660);

    CU_ASSERT_FATAL(fd >= 0 && fcntl(fd, F_SETFD, 0) == 0);
    return fd;
}

/* Starts berthd with descriptors "7,8" under names "control:other". */
static void launch(const char *fds, const char *names) {
    ant->passed = fds;
    ant->passed_names = names;
    host_launch(ant);
    ant->passed = NULL;
}

/* Waits until a client is in the socket's queue. */
static void await_caller(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    usec_t until = clock_boottime() + HOST_PATIENCE;

    while (poll(&p, 1, 0) == 0 && clock_boottime() < until)
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
    CU_ASSERT_FATAL(p.revents == POLLIN);
}

/* Checks that berthd exits at once, with 78 and a reason. */
static void assert_refuses(const char *why) {
    CU_ASSERT_FATAL(child_await(ant->berthd, HOST_PATIENCE));
    TEST_INT(ant->berthd->exit_code, 78);
    if (!strstr(child_text(ant->berthd, 2), why)) {
        printf("not \"%s\" but: %s\n", why, child_text(ant->berthd, 2));
        CU_FAIL("berthd gives another reason");
    }
    ant->berthd = child_free(ant->berthd);
    ant->mark = 0;
}

/* --- berthd --- */

static void test_clients_wait(void) {
    _cleanup_close_ int fd = listen_at(ant->socket, SOCK_STREAM);
    struct child *early = berth_start(ant, "pools --json"), *late;

    host_launch_on(ant, fd);
    host_await(ant, "ready", " ");
    TEST_INT(berth_end(early), 0);
    TEST_INT(berth(ant, "run -p two -- true"), 0);
    host_stop(ant);
    CU_ASSERT(access(ant->socket, F_OK) == 0); /* it is not berthd's to remove */
    late = berth_start(ant, "run -p two -- sh -c 'exit 5'");
    CU_ASSERT(!child_await(late, 300 * USEC_PER_MSEC));
    host_launch_on(ant, fd);
    TEST_INT(berth_end(late), 5);
    host_stop(ant);
    (void) unlink(ant->socket);
}

/* The manager passes both sockets in any order, and berthd removes neither. */
static void test_look_socket(void) {
    char path[128], fds[40], command[200];
    _cleanup_close_ int fd = listen_at(ant->socket, SOCK_STREAM), look = -1;

    snprintf(path, sizeof(path), "%s/look.sock", ant->runtime);
    snprintf(command, sizeof(command), "--socket %s pools", path);
    look = listen_at(path, SOCK_STREAM);
    snprintf(fds, sizeof(fds), "%d,%d", look, fd);
    launch(fds, "look:control");
    host_await(ant, "ready", " ");
    TEST_INT(berth(ant, "%s", command), 0);
    TEST_INT(berth(ant, "--socket %s pause two", path), 77);
    TEST_INT(berth(ant, "pause two"), 0);
    host_stop(ant);
    CU_ASSERT(access(path, F_OK) == 0 && access(ant->socket, F_OK) == 0);
    TEST_INT(unlink(path), 0);
    host_launch_on(ant, fd); /* control.sock alone: berthd makes no socket where the manager does */
    host_await(ant, "ready", " ");
    CU_ASSERT(access(path, F_OK) != 0);
    host_stop(ant);
    (void) unlink(ant->socket);
}

/* Starts a run, and one that waits behind it. */
static void begin_runs(int fd, struct child **ret_holder, struct child **ret_waiter) {
    host_launch_on(ant, fd);
    host_await(ant, "ready", " ");
    *ret_holder = berth_start(ant, "run -p two:2 -- %s --exit 6", cluster.at_gate);
    host_await(ant, "started", " ");
    *ret_waiter = berth_start(ant, "run -p two -- sh -c 'exit 7'");
    host_await(ant, "queued", " ");
}

static void end_runs(struct child *holder, struct child *waiter) {
    host_await(ant, "ready", " ");
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 6);
    TEST_INT(berth_end(waiter), 7);
    host_stop(ant);
    (void) unlink(ant->socket);
}

/* Both runs survive a restart of berthd, and the socket stays. */
static void test_restart(void) {
    _cleanup_close_ int fd = listen_at(ant->socket, SOCK_STREAM);
    struct child *holder, *waiter;

    begin_runs(fd, &holder, &waiter);
    host_kill(ant);
    host_launch_on(ant, fd);
    TEST_INT(berth(ant, "pools"), 0);
    end_runs(holder, waiter);
}

static void test_bad_config(void) {
    _cleanup_close_ int fd = listen_at(ant->socket, SOCK_STREAM);
    struct child *client;

    host_set_config(ant, "pool \"two\" { limt = 2 }\n");
    client = berth_start(ant, "pools");
    await_caller(fd);
    host_launch_on(ant, fd);
    assert_refuses("unknown option \"limt\"");
    CU_ASSERT_FATAL(child_await(client, HOST_PATIENCE));
    TEST_INT(client->exit_code, 69);
    TEST_STRING(child_text(client, 2),
                "berth: berthd cannot start: its config is wrong, see `berthd --check` and `journalctl -t berthd`\n");
    child_free(client);
    client = berth_start(ant, "doctor -c %s --only daemon", ant->config);
    await_caller(fd);
    host_launch_on(ant, fd);
    assert_refuses("unknown option \"limt\"");
    CU_ASSERT_FATAL(child_await(client, HOST_PATIENCE));
    TEST_INT(client->exit_code, 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(child_text(client, 1), "CRIT daemon            berthd cannot start: its config is wrong"));
    child_free(client);
    (void) unlink(ant->socket);
}

/* A claim that waits for permits is not refused because of a config with an error. */
static void test_bad_config_while_waiting(void) {
    _cleanup_close_ int fd = listen_at(ant->socket, SOCK_STREAM);
    static const char good[] = "pool \"two\" { limit = 2 scope = \"host\" }\n";
    struct child *holder, *waiter;

    begin_runs(fd, &holder, &waiter);
    host_kill(ant);
    await_caller(fd); /* one of the two */
    host_set_config(ant, "pool \"two\" { limt = 2 }\n");
    host_launch_on(ant, fd);
    assert_refuses("unknown option \"limt\"");
    await_caller(fd);
    CU_ASSERT(!waiter->ended && !holder->ended);
    host_set_config(ant, good);
    host_launch_on(ant, fd);
    end_runs(holder, waiter);
}

static void test_something_else(void) {
    static const char not_ours[] = "that of berthd.socket, with";
    _cleanup_close_ int fd = listen_at(ant->socket, SOCK_STREAM), packets = -1, elsewhere = -1;
    char path[100], fds[40], others[6][40];
    const char *names[] = {"contrl", "control", "control:control", "control", "look", "control:lok"};

    snprintf(path, sizeof(path), "%s/other", cluster.folder);
    packets = listen_at(path, SOCK_SEQPACKET);
    (void) unlink(path);
    elsewhere = listen_at(path, SOCK_STREAM);
    snprintf(others[0], 40, "%d", fd);           /* another name */
    snprintf(others[1], 40, "%d", packets);      /* another type */
    snprintf(others[2], 40, "%d,%d", fd, elsewhere); /* one too many */
    snprintf(others[3], 40, "0");                /* not a socket */
    snprintf(others[4], 40, "%d", fd);           /* that of berthd-look.socket alone */
    snprintf(others[5], 40, "%d,%d", fd, elsewhere);
    for (size_t i = 0; i < ELEMENTSOF(others); i++) {
        launch(others[i], names[i]);
        assert_refuses(not_ours);
    }
    snprintf(fds, sizeof(fds), "%d", elsewhere);
    launch(fds, "control");
    assert_refuses("ListenStream= of berthd.socket must match");
    snprintf(fds, sizeof(fds), "%d,%d", fd, elsewhere);
    launch(fds, "control:look");
    assert_refuses("ListenStream= of berthd-look.socket must match");
    (void) unlink(path);
    (void) unlink(ant->socket);
}

/* --- berth-runner --- */

static struct child *runner_start(int fd) {
    static char activate[512], runner[512], number[16];
    char *argv[] = {activate, number, (char *) "runner", runner, (char *) "-c", ant->config, NULL};

    (void) place_program(activate, sizeof(activate), "tests/tools/activate");
    (void) place_program(runner, sizeof(runner), "berth-runner");
    snprintf(number, sizeof(number), "%d", fd);
    return child_start(argv, NULL);
}

static int say_hello(const char *path) {
    struct message_writer w;
    int fd = socket_connect(path, SOCK_SEQPACKET);

    message_begin(&w, PROTOCOL_HELLO);
    message_put_u64(&w, "version", PROTOCOL_VERSION);
    CU_ASSERT_FATAL(fd >= 0 && send(fd, w.text, w.size, MSG_NOSIGNAL) == (ssize_t) w.size);
    return fd;
}

/* Returns whether berth-runner replies before the connection ends. */
static bool is_answered(int fd) {
    struct message m;
    int k;

    for (usec_t until = clock_boottime() + HOST_PATIENCE; (k = message_receive(fd, &m)) == -EAGAIN && clock_boottime() < until;)
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
    return k == 0 && message_is(&m, PROTOCOL_HELLO);
}

static int listen_for_runner(char path[static 120]) {
    snprintf(path, 120, "%s/runner", ant->runtime);
    CU_ASSERT_FATAL(mkdir(path, 0711) == 0);
    snprintf(path, 120, "%s/" PROTOCOL_RUNNER_SOCKET, ant->runtime);
    return listen_at(path, SOCK_SEQPACKET);
}

/* Awaits that berth-runner refuses its config or socket. Returns the process, to be freed. */
static struct child *runner_refuses(int fd) {
    struct child *runner = runner_start(fd);

    CU_ASSERT(child_await(runner, HOST_PATIENCE));
    TEST_INT(runner->exit_code, 78);
    return runner;
}

static void test_runner(void) {
    _cleanup_close_ int fd = -1, first = -1, second = -1;
    char path[120];
    struct child *runner;

    fd = listen_for_runner(path);
    first = say_hello(path);
    runner = runner_start(fd);
    CU_ASSERT(is_answered(first));
    child_kill(runner, SIGKILL);
    CU_ASSERT(child_await(runner, HOST_PATIENCE));
    child_free(runner);
    second = say_hello(path); /* while no berth-runner runs */
    runner = runner_start(fd);
    CU_ASSERT(is_answered(second));
    child_kill(runner, SIGTERM);
    CU_ASSERT(child_await(runner, HOST_PATIENCE));
    TEST_INT(runner->exit_code, 0);
    child_free(runner);
    CU_ASSERT(access(path, F_OK) == 0);
    (void) unlink(path);
}

static void test_runner_bad_config(void) {
    _cleanup_close_ int fd = -1, caller = -1, stream = -1;
    char path[120];
    struct child *runner;

    host_set_config(ant, "pool \"two\" { limt = 2 }\n");
    fd = listen_for_runner(path);
    caller = say_hello(path);
    child_free(runner_refuses(fd));
    CU_ASSERT(!is_answered(caller)); /* and not waiting for ever */
    fd = close_fd(fd);
    (void) unlink(path);
    stream = listen_at(path, SOCK_STREAM);
    runner = runner_refuses(stream);
    CU_ASSERT(strstr(child_text(runner, 2), "that of berth-runner.socket") != NULL);
    child_free(runner);
    (void) unlink(path);
}

static CU_TestInfo tests[] = {
    {"clients wait for berthd", test_clients_wait},
{"look.sock", test_look_socket},
    {"a restart loses nobody", test_restart},
    {"waiting clients get the error of a bad config", test_bad_config},
    {"a bad config while runs wait", test_bad_config_while_waiting},
    {"something else was passed", test_something_else},
    {"berth-runner", test_runner},
    {"berth-runner with a bad config", test_runner_bad_config},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "activation", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
