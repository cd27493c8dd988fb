/* SPDX-License-Identifier: MIT */
/* Draining a control server whose listening socket a successor takes over: it replies to accepted clients
 * and leaves queued connections to the successor. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/socket.h"
#include "tests/harness/host/control-server.h"
#include "tests/harness/test.h"

#define LONG (60 * USEC_PER_SEC)
#define KEEP "{\"method\":\"io.test.Keep\"}"
#define KEEP_MORE "{\"method\":\"io.test.Keep\",\"more\":true}"

static unsigned n_quiet;
static int listener;

static void on_drained(_unused_ void *userdata) {
    n_quiet++;
}

static void up(void) {
    n_quiet = 0;
    listener = socket_listen(server.path, SOCK_STREAM, 0660);
    CU_ASSERT_FATAL(listener >= 0);
    server_up_on(fcntl(listener, F_DUPFD_CLOEXEC, 0));
}

static void down(void) {
    listener = close_fd(listener);
    CU_ASSERT(access(server.path, F_OK) == 0); /* the server must not remove it */
    (void) unlink(server.path);
    server_down();
}

static void leave(usec_t within) {
    TEST_INT(control_drain(server.control, within, on_drained, NULL), 0);
    TEST_INT(n_quiet, 0); /* not from inside the call */
    server_turn();
}

static void test_nobody(void) {
    up();
    leave(LONG);
    TEST_INT(n_quiet, 1);
    TEST_INT(control_drain(server.control, LONG, on_drained, NULL), -EALREADY);
    server_turn();
    TEST_INT(n_quiet, 1);
    down();
}

static void test_own_socket(void) {
    n_quiet = 0;
    server_up(NULL);
    TEST_INT(control_drain(server.control, LONG, on_drained, NULL), CONTROL_E_OURS);
    server_turn();
    TEST_INT(n_quiet, 0);
    server_down();
}

/* A call that is answered later, and an accepted client that has not sent anything yet. */
static void test_answered_first(void) {
    _cleanup_close_ int waits = -1, silent = -1, idle = -1, late = -1;

    up();
    idle = server_client();
    peer_expect_ok(idle);
    waits = server_client();
    peer_send(waits, KEEP);
    silent = server_client();
    leave(LONG);
    TEST_INT(n_quiet, 0);
    late = server_client(); /* in the listen queue: left to the successor */
    peer_put(late, ECHO, sizeof(ECHO));
    TEST_STRING(peer_answer(late), "(nothing)");
    peer_expect_ok(silent);
    TEST_INT(n_quiet, 0);
    peer_put(silent, "{\"meth", 6); /* a message has begun */
    server_turn();
    TEST_INT(control_call_done(server.kept[0]), 0);
    server_turn();
    TEST_INT(n_quiet, 0);
    peer_send(silent, "od\":\"io.test.Note\"}");
    TEST_INT(n_quiet, 1);
    TEST_STRING(peer_answer(waits), "{\"parameters\":{}}");
    TEST_STRING(peer_answer(silent), "{\"parameters\":{}}");
    server.control = control_free(server.control);
    server_up_on(fcntl(listener, F_DUPFD_CLOEXEC, 0));
    TEST_STRING(peer_answer(late), ECHOED);
    down();
}

/* The drain does not wait for streams: a stream may last for days, and its client reconnects. */
static void test_stream(void) {
    _cleanup_close_ int stream = -1;

    up();
    stream = server_client();
    peer_send(stream, KEEP_MORE);
    leave(LONG);
    TEST_INT(n_quiet, 1);
    down();
}

static void test_gone(void) {
    int waits;

    up();
    waits = server_client();
    peer_send(waits, KEEP);
    leave(LONG);
    TEST_INT(n_quiet, 0);
    waits = close_fd(waits);
    server_turn();
    TEST_INT(n_quiet, 1);
    down();
}

/* The drain waits until the client has read its reply. */
static void test_slow_reader(void) {
    _cleanup_close_ int slow = -1;

    up();
    slow = server_client();
    peer_send(slow, "{\"method\":\"io.test.Big\",\"parameters\":{\"size\":2000000}}");
    leave(LONG);
    TEST_INT(n_quiet, 0);
    for (size_t size = 0; size < 2000000;) {
        char data[65536];
        int fd = -1;
        ssize_t n = peer_receive(slow, data, sizeof(data), &fd);

        CU_ASSERT_FATAL(n > 0 || errno == EAGAIN);
        size += n > 0 ? (size_t) n : 0;
        server_turn();
    }
    TEST_INT(n_quiet, 1);
    down();
}

static void test_bound(void) {
    usec_t until = clock_boottime() + SERVER_PATIENCE;
    _cleanup_close_ int silent = -1;

    up();
    silent = server_client();
    leave(50 * USEC_PER_MSEC);
    TEST_INT(n_quiet, 0);
    while (n_quiet == 0 && clock_boottime() < until)
        (void) sd_event_run(server.event, 10 * USEC_PER_MSEC);
    TEST_INT(n_quiet, 1);
    peer_expect_ok(silent); /* after the time limit; the callback runs only once */
    TEST_INT(n_quiet, 1);
    down();
}

static CU_TestInfo tests[] = {
    {"no client", test_nobody}, {"the server's own socket", test_own_socket}, {"answered first", test_answered_first},
    {"stream", test_stream},          {"gone", test_gone},                        {"slow reader", test_slow_reader},
    {"bound", test_bound},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "control-drain", .pInitFunc = server_make, .pCleanupFunc = server_remove,
             .pTests = tests});
