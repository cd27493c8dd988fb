/* SPDX-License-Identifier: MIT */

/* The control server: connections, rights, and calls until they are answered. */

#include "daemon/control/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/connection.h"
#include "base/discard.h"
#include "base/listener.h"
#include "daemon/control/control-internal.h"

#define CLIENTS_A_TURN 32
#define SLICE (20 * USEC_PER_MSEC) /* of a turn: the calls of many clients may take long together */

/* --- calls --- */

static void call_end(struct control_call *call) {
    struct control_client *c = call->client;

    list_unlink(&call->link);
    c->n_calls--;
    call->over = true;
    if (c->current == call)
        c->current = NULL;
    if (call->dispatching)
        return;
    free(call);
    control_client_wake(c);
}

static int call_send(struct control_call *call, json_t *document, int fd) {
    if (call->oneway || call->over) {
        json_decref(document);
        return 0;
    }
    return control_client_send(call->client, document, fd);
}

/* Packs {"parameters": params} after one more member. NULL: no memory. */
static json_t *pack(json_t *params, const char *key, json_t *value) {
    json_t *document = json_object();
    int r;

    if (!params)
        params = json_object();
    r = key ? json_object_set_new(document, key, value) : 0;
    if (json_object_set_new(document, "parameters", params) < 0 || r < 0) {
        json_decref(document);
        return NULL;
    }
    return document;
}

int control_call_answer(struct control_call *call, json_t *params) {
    int r = call_send(call, params ? pack(params, NULL, NULL) : NULL, -1);

    call_end(call);
    return r;
}

int control_call_done(struct control_call *call) {
    return control_call_answer(call, json_object());
}

int control_call_notify(struct control_call *call, json_t *params, int fd) {
    if (!call->more) {
        json_decref(params);
        return 0;
    }
    return call_send(call, params ? pack(params, "continues", json_true()) : NULL, fd);
}

int control_call_answer_text(struct control_call *call, struct control_text *text) {
    int r = call->oneway || call->over ? 0 : control_client_send_text(call->client, text);

    call_end(call);
    return r;
}

int control_call_notify_text(struct control_call *call, struct control_text *text) {
    return !call->more || call->over ? 0 : control_client_send_text(call->client, text);
}

int control_call_error(struct control_call *call, const char *name, json_t *params) {
    int r = call_send(call, pack(params, "error", json_string(name)), -1);

    call_end(call);
    return r;
}

enum right control_right(const struct control *c, int fd) {
    _cleanup_(caller_done) struct caller caller = {};

    return socket_caller(fd, &caller) < 0 ? RIGHT_LOOK : rights_get(c->service->get_settings(c->userdata), &caller);
}

void control_call_get_caller(const struct control_call *call, struct caller *ret) {
    if (socket_caller(call->client->fd, ret) < 0)
        *ret = (struct caller) {.peer = call->client->peer};
}

int control_call_refuse(struct control_call *call, enum right right, const char *format, ...) {
    char text[2 * RIGHTS_TEXT_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return control_call_error(call, "io.berth.NotAllowed",
                              json_pack("{s:s, s:s++}", "right", right_name(right), "text",
                                        call->method ? call->method->verb : "berth", ": ", text));
}

const struct control_method *control_call_method(const struct control_call *call) {
    return call->method;
}

bool control_call_wants_more(const struct control_call *call) {
    return call->more;
}

const struct peer *control_call_peer(const struct control_call *call) {
    return &call->client->peer;
}

size_t control_call_count_clients(const struct control_call *call) {
    return call->client->control->n_clients;
}

void control_call_keep(struct control_call *call, void (*on_gone)(struct control_call *call, void *userdata), void *userdata) {
    call->kept = true;
    call->on_gone = on_gone;
    call->userdata = userdata;
}

void control_call_await_room(struct control_call *call, void (*on_room)(void *userdata)) {
    call->on_room = on_room;
}

size_t control_call_count_waiting(const struct control_call *call) {
    return call->client->out_bytes;
}

/* Returns whether this caller may not make the call, whatever its target. */
static bool lacks_right(const struct control_call *call, enum right right) {
    if (call->client->looks_only)
        return right != RIGHT_LOOK;
    return (right == RIGHT_RUN || right == RIGHT_OPERATE) && control_right(call->client->control, call->client->fd) < right;
}

static int refuse_all(struct control_call *call, enum right right) {
    const struct control *c = call->client->control;
    char holders[RIGHTS_TEXT_SIZE];

    if (call->client->looks_only)
        return control_call_refuse(call, right == RIGHT_BY_TARGET ? RIGHT_RUN : right,
                                   "you may only look, because you are connected to look.sock; other calls need control.sock");
    return control_call_refuse(call, right, "you need the right to %s; %s", right_name(right),
                               rights_format_holders(c->service->get_settings(c->userdata), right, NULL, holders));
}

static int call_dispatch(struct control_call *call, const char *name, json_t *params) {
    struct control *c = call->client->control;

    for (const struct control_method *m = c->service->methods; m->name; m++) {
        if (strcmp(m->name, name) != 0)
            continue;
        call->method = m;
        if (lacks_right(call, m->right))
            return refuse_all(call, m->right);
        if (call->oneway && m->right == RIGHT_LOOK) /* no work for a result that nobody reads */
            return control_call_done(call);
        return m->fn(call, params, c->userdata);
    }
    return control_service_run(call, name, params);
}

int control_call_run(struct control_client *client, const char *method, json_t *params, bool more, bool oneway) {
    struct control_call *call = calloc(1, sizeof(*call));
    int r;

    if (!call)
        return -ENOMEM;
    call->client = client;
    call->more = more;
    call->oneway = oneway;
    call->dispatching = true;
    list_init(&call->link);
    list_append(&client->calls, &call->link);
    client->n_calls++;
    if (!oneway)
        client->current = call;
    r = call_dispatch(call, method, params);
    if (!call->over && (r < 0 || !call->kept))
        r = control_call_error(call, "io.berth.Internal", json_pack("{s:s}", "text", r < 0 ? strerror(-r) : "no answer"));
    call->dispatching = false;
    if (call->over)
        free(call);
    return 0;
}

/* --- serving --- */

/* Asks for one client at a time: the epoll then moves it behind all others, so the next turn goes on with those that
 * this one did not reach. */
static int control_on_io(_unused_ sd_event_source *source, int epoll_fd, _unused_ uint32_t revents, void *userdata) {
    usec_t end = usec_add(clock_boottime(), SLICE);
    struct epoll_event event;
    const void *first = NULL;

    for (unsigned i = 0; i < CLIENTS_A_TURN && epoll_wait(epoll_fd, &event, 1, 0) == 1 && event.data.ptr != first; i++) {
        first = i == 0 ? event.data.ptr : first;
        control_client_io(event.data.ptr, event.events);
        if (clock_boottime() >= end)
            break;
    }
    control_drain_check(userdata);
    return 0;
}

static void control_on_woken(void *userdata) {
    struct control *c = userdata;
    usec_t end = usec_add(clock_boottime(), SLICE);
    struct control_client *client;

    for (unsigned i = 0; i < CLIENTS_A_TURN && (client = list_first(&c->woken, struct control_client, woken)); i++) {
        list_unlink(&client->woken);
        control_client_work(client);
        if (clock_boottime() >= end)
            break;
    }
    if (!list_is_empty(&c->woken))
        defer_set(&c->work_woken);
    control_drain_check(c);
}

/* --- new and free --- */

static int control_add_epoll(struct control *c, int64_t priority, int *ret_fd, sd_event_source **ret_source) {
    int r;

    *ret_fd = epoll_create1(EPOLL_CLOEXEC);
    if (*ret_fd < 0)
        return -errno;
    r = sd_event_add_io(c->event, ret_source, *ret_fd, EPOLLIN, control_on_io, c);
    return r < 0 ? r : sd_event_source_set_priority(*ret_source, priority);
}

static int control_add_sources(struct control *c) {
    int r = control_add_epoll(c, CONTROL_PRIORITY, &c->epoll_fd, &c->epoll_source);

    if (r >= 0)
        r = control_add_epoll(c, CONTROL_PRIORITY - 1, &c->trusted_epoll_fd, &c->trusted_source);
    if (r >= 0)
        r = defer_init(&c->work_woken, c->event, CONTROL_PRIORITY, control_on_woken, c);
    if (r >= 0)
        r = timer_init(&c->drain_limit, c->event, SD_EVENT_PRIORITY_NORMAL, control_on_drain_due, c);
    return r;
}

static bool has_rights(const struct control_method *methods) {
    for (const struct control_method *m = methods; m->name; m++)
        if (m->right == RIGHT_MISSING || !m->verb)
            return false;
    return true;
}

int control_new(struct control **ret, sd_event *event, const char *path, int listen_fd, const struct control_service *service,
                void *userdata) {
    _cleanup_(control_freep) struct control *c = has_rights(service->methods) ? calloc(1, sizeof(*c)) : NULL;
    int r;

    if (!c) {
        close_fd(listen_fd);
        return has_rights(service->methods) ? -ENOMEM : -EINVAL;
    }
    list_init(&c->clients);
    list_init(&c->accounts);
    list_init(&c->woken);
    c->sockets[0].fd = c->sockets[1].fd = c->epoll_fd = c->trusted_epoll_fd = -1;
    c->event = sd_event_ref(event);
    c->service = service;
    c->userdata = userdata;
    c->limits = (struct control_limits) {CONTROL_MESSAGE_MAX, CONTROL_OUTPUT_MAX, SIZE_MAX, CONTROL_MESSAGE_TIME, CONTROL_CALLS_MAX};
    r = discard_new(&c->discard, event);
    if (r >= 0)
        r = control_add_sources(c);
    if (r >= 0)
        r = control_listen(c, &c->sockets[0], path, steal_fd(&listen_fd));
    close_fd(listen_fd);
    if (r < 0)
        return r;
    *ret = steal_pointer(&c);
    return 0;
}

struct control *control_free(struct control *c) {
    if (!c)
        return NULL;
    while (!list_is_empty(&c->clients))
        control_client_free(list_first(&c->clients, struct control_client, link));
    timer_done(&c->drain_limit);
    sd_event_source_disable_unref(c->epoll_source);
    sd_event_source_disable_unref(c->trusted_source);
    defer_done(&c->work_woken);
    close_fd(c->epoll_fd);
    close_fd(c->trusted_epoll_fd);
    control_close(c);
    discard_free(c->discard);
    accounts_free(c);
    sd_event_unref(c->event);
    free(c);
    return NULL;
}

void control_watch_abuse(struct control *c, void (*on_abuse)(uid_t uid, pid_t pid, void *userdata), void *userdata) {
    c->on_abuse = on_abuse;
    c->abuse_userdata = userdata;
}

void control_set_limits(struct control *c, const struct control_limits *limits) {
    c->limits = *limits;
}
