/* SPDX-License-Identifier: MIT */
#include "tests/harness/host/control-server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/socket.h"
#include "tests/harness/test.h"

struct server server;
struct peer_received peer_received;

const struct control_limits server_small = {
    .message_bytes = 4096, .output_bytes = 1024 * 1024, .clients = 16, .message_usec = 100 * USEC_PER_MSEC, .calls = 8};

/* --- the methods --- */

static int call_echo(struct control_call *call, json_t *params, _unused_ void *userdata) {
    return control_call_answer(call, json_incref(params));
}

static int call_note(struct control_call *call, _unused_ json_t *params, void *userdata) {
    CU_ASSERT_PTR_EQUAL(userdata, &server);
    server.n_notes++;
    return control_call_done(call);
}

static void on_gone(struct control_call *call, _unused_ void *userdata) {
    server.n_gone++;
    for (size_t i = 0; i < server.n_kept; i++)
        if (server.kept[i] == call)
            server.kept[i] = NULL;
}

static int call_slow(struct control_call *call, _unused_ json_t *params, _unused_ void *userdata) {
    usec_t end = clock_boottime() + SERVER_SLOW;

    while (clock_boottime() < end)
        ;
    server.n_notes++;
    return control_call_done(call);
}

static int call_keep(struct control_call *call, _unused_ json_t *params, _unused_ void *userdata) {
    server.kept[server.n_kept++] = call;
    control_call_keep(call, on_gone, NULL);
    return 0;
}

static int call_fail(_unused_ struct control_call *call, _unused_ json_t *params, _unused_ void *userdata) {
    return -EIO;
}

static int call_forget(_unused_ struct control_call *call, _unused_ json_t *params, _unused_ void *userdata) {
    return 0;
}

static int call_big(struct control_call *call, json_t *params, _unused_ void *userdata) {
    size_t size = (size_t) json_integer_value(json_object_get(params, "size"));
    char *text = malloc(size);
    int r;

    memset(text, 'x', size);
    r = control_call_answer(call, json_pack("{s:s%}", "text", text, size));
    free(text);
    return r;
}

static int call_pass(struct control_call *call, _unused_ json_t *params, _unused_ void *userdata) {
    int r = control_call_notify(call, json_pack("{s:s}", "state", "first"), -1);

    if (r == 0)
        r = control_call_notify(call, json_pack("{s:s}", "state", "granted"), server.pass_fd);
    if (r == 0)
        r = control_call_answer(call, json_pack("{s:s}", "state", "over"));
    return r;
}

static int call_pass_big(struct control_call *call, _unused_ json_t *params, _unused_ void *userdata) {
    char *text = malloc(2000000);
    int r;

    memset(text, 'x', 2000000);
    r = control_call_notify(call, json_pack("{s:s%}", "text", text, (size_t) 2000000), server.pass_fd);
    free(text);
    return r < 0 ? r : control_call_done(call);
}

static const struct control_method methods[] = {
    {"io.test.Echo", call_echo, RIGHT_LOOK, "echo", false},
    {"io.test.Note", call_note, RIGHT_RUN, "note", false},
    {"io.test.Slow", call_slow, RIGHT_LOOK, "slow", false},
    {"io.test.Keep", call_keep, RIGHT_RUN, "keep", false},
    {"io.test.Fail", call_fail, RIGHT_LOOK, "fail", false},
    {"io.test.Forget", call_forget, RIGHT_LOOK, "forget", false},
    {"io.test.Big", call_big, RIGHT_LOOK, "big", false},
    {"io.test.Look", call_note, RIGHT_LOOK, "look", false},
    {"io.test.Await", call_keep, RIGHT_LOOK, "await", false},
    {"io.test.Pass", call_pass, RIGHT_LOOK, "pass", false},
    {"io.test.PassBig", call_pass_big, RIGHT_LOOK, "pass", false},
    {"io.test.Run", call_echo, RIGHT_RUN, "run", false},
    {"io.test.Secret", call_echo, RIGHT_OPERATE, "secret", false},
    {NULL, NULL, RIGHT_MISSING, NULL, false},
};

static const struct settings *get_settings(_unused_ void *userdata) {
    return &server.settings;
}

static const struct control_service service = {methods, "interface io.test\n", get_settings};

/* --- the server --- */

int server_make(void) {
    server.settings.connections = 4096;
    server.settings.user_connections = 1024;
    server.settings.user_buffer = 16 << 20;
    snprintf(server.directory, sizeof(server.directory), "/tmp/berth-control-XXXXXX");
    if (!mkdtemp(server.directory) || sd_event_new(&server.event) < 0)
        return 1;
    snprintf(server.path, sizeof(server.path), "%s/control.sock", server.directory);
    return 0;
}

int server_remove(void) {
    server.event = sd_event_unref(server.event);
    return rmdir(server.directory);
}

void server_up_on(int listen_fd) {
    server.n_kept = server.n_notes = server.n_gone = 0;
    TEST_INT(control_new(&server.control, server.event, server.path, listen_fd, &service, &server), 0);
}

void server_up(const struct control_limits *limits) {
    server_up_on(-1);
    if (limits)
        control_set_limits(server.control, limits);
}

void server_down(void) {
    server.control = control_free(server.control);
    CU_ASSERT_NOT_EQUAL(access(server.path, F_OK), 0);
}

void server_turn(void) {
    while (sd_event_run(server.event, 0) > 0)
        ;
}

/* --- its clients --- */

int server_client(void) {
    int fd = socket_connect(server.path, SOCK_STREAM);

    CU_ASSERT_FATAL(fd >= 0);
    server_turn();
    return fd;
}

void peer_put(int fd, const void *data, size_t size) {
    TEST_INT(send(fd, data, size, MSG_NOSIGNAL), (ssize_t) size);
}

void peer_send(int fd, const char *text) {
    peer_put(fd, text, strlen(text) + 1);
    server_turn();
}

ssize_t peer_receive(int fd, void *data, size_t size, int *ret_fd) {
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {data, size};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;

    if (h && h->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(h), sizeof(int));
    return n;
}

const char *peer_answer(int fd) {
    usec_t until = clock_boottime() + SERVER_PATIENCE;

    peer_received.size = 0;
    peer_received.fd = -1;
    while (clock_boottime() < until && peer_received.size < sizeof(peer_received.text)) {
        ssize_t n = peer_receive(fd, peer_received.text + peer_received.size, 1, &peer_received.fd);

        if (n == 0 || (n < 0 && errno == ECONNRESET))
            return "";
        if (n < 0) {
            if (sd_event_run(server.event, 0) <= 0)
                return "(nothing)";
            continue;
        }
        if (peer_received.text[peer_received.size++] == '\0')
            return peer_received.text;
    }
    return "(too much)";
}

const char *peer_late_answer(int fd) {
    usec_t until = clock_boottime() + SERVER_PATIENCE;

    while (clock_boottime() < until) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        if (poll(&p, 1, 0) > 0)
            return peer_answer(fd);
        (void) sd_event_run(server.event, 20 * USEC_PER_MSEC);
    }
    return "(never)";
}

void peer_expect_ok(int fd) {
    peer_send(fd, "{\"method\":\"io.test.Echo\",\"parameters\":{\"still\":\"here\"}}");
    TEST_STRING(peer_answer(fd), "{\"parameters\":{\"still\":\"here\"}}");
}
