/* SPDX-License-Identifier: MIT */

/* What a client may send to control.sock: the bytes go through a real connection, in two parts. */

#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/socket.h"
#include "daemon/control/control.h"
#include "tests/fuzz/fuzz.h"

static sd_event *event;
static struct control *control;
static char path[64];

static int answer(struct control_call *call, json_t *params, void *userdata) {
    (void) userdata;
    return control_call_answer(call, json_incref(params));
}

static int notify(struct control_call *call, json_t *params, void *userdata) {
    (void) userdata;
    if (control_call_wants_more(call))
        (void) control_call_notify(call, json_incref(params), -1);
    return control_call_error(call, "io.berth.NoSuchPool", NULL);
}

static void remove_socket(void) {
    (void) unlink(path);
}

static const struct settings *get_settings(void *userdata) {
    static const struct settings settings = {.connections = 64, .user_connections = 64, .user_buffer = 16 << 20};

    (void) userdata;
    return &settings;
}

static void set_up(void) {
    static const struct control_method methods[] = {
        {"io.berth.Runs", answer, RIGHT_LOOK, "runs", false}, {"io.berth.Hold", notify, RIGHT_RUN, "run", false}, {0}};
    static const struct control_service service = {methods, "interface io.berth\n", get_settings};

    (void) signal(SIGPIPE, SIG_IGN);
    snprintf(path, sizeof(path), "/tmp/berth-fuzz-control-%d", (int) getpid());
    FUZZ_ASSERT(sd_event_new(&event) >= 0);
    FUZZ_ASSERT(control_new(&control, event, path, -1, &service, NULL) == 0);
    (void) atexit(remove_socket);
}

static void turn(void) {
    for (int i = 0; i < 64 && sd_event_run(event, 0) > 0; i++)
        ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_close_ int fd = -1;
    char answers[4096];
    size_t half = size / 2;

    if (!control)
        set_up();
    fd = socket_connect(path, SOCK_STREAM);
    FUZZ_ASSERT(fd >= 0);
    (void) !send(fd, data, half, MSG_DONTWAIT | MSG_NOSIGNAL);
    turn();
    (void) !send(fd, data + half, size - half, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void) shutdown(fd, SHUT_WR);
    turn();
    while (recv(fd, answers, sizeof(answers), MSG_DONTWAIT) > 0)
        turn();
    fd = close_fd(fd);
    turn();
    return 0;
}
