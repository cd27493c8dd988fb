/* SPDX-License-Identifier: MIT */

/* One connection of a control client. It ends in one of three ways: the client shuts down its sending side
 * (and still gets its replies), it hangs up, or the server drops it (too slow, or not Varlink). A client is
 * freed only at the end of one of its own callbacks, never while one of its calls is answered. */

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/connection.h"
#include "base/discard.h"
#include "base/memory.h"
#include "daemon/control/control-internal.h"

/* First size of the input buffer, which grows with the input. A silent client has none. */
#define ROOM_BYTES ((size_t) 1024)
#define CALLS_A_TURN 4                        /* then other clients are served */
#define TIMER_PRIORITY (CONTROL_PRIORITY - 2) /* before a client that keeps sending bytes */

/* Without memory for it berthd exits, because it may report the end of a command. */
static const char call_of_client[] = "the call of a client";

static void client_forget_input(struct control_client *c) {
    account_give(c->control, c->account, c->in.allocated);
    free(steal_pointer(&c->in.data));
    c->in.allocated = 0;
}

/* --- the end --- */

struct control_client *control_client_free(struct control_client *c) {
    if (!c)
        return NULL;
    c->hung_up = true;
    while (!list_is_empty(&c->calls)) {
        struct control_call *call = list_first(&c->calls, struct control_call, link);

        list_unlink(&call->link);
        c->n_calls--;
        call->dispatching = true; /* on_gone must not free the call */
        if (call->on_gone)
            call->on_gone(call, call->userdata);
        free(call);
    }
    output_discard(c);
    timer_done(&c->timer);
    list_unlink(&c->woken);
    list_unlink(&c->link);
    c->control->n_clients--;
    c->account->n_clients--;
    /* A close alone would leave the socket in the epoll while a forked child has a copy of it. */
    (void) epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
    discard_connection(c->control->discard, c->fd);
    client_forget_input(c);
    free(c);
    return NULL;
}

/* --- reading --- */

/* Reading pauses while too much input is unanswered, or too many replies are unread. */
static bool client_is_full(const struct control_client *c) {
    return c->in.size > c->control->limits.message_bytes;
}
static bool client_is_slow(const struct control_client *c) {
    return c->out_bytes > c->control->limits.message_bytes;
}
/* A client that sends "oneway" need not wait for replies before its next call. A client that hung up has all
 * its input processed and is freed in one turn. */
static bool client_is_busy(const struct control_client *c) {
    return !c->hung_up && c->n_calls >= c->control->limits.calls;
}

/* Ends a connection that is not Varlink. The client gets an error, unless that could be mistaken for the
 * reply to an earlier call. */
static void client_refuse(struct control_client *c, const char *why) {
    if (c->current) {
        c->failed = true;
        return;
    }
    (void) control_client_send(c, json_pack("{s:s, s:{s:s}}", "error", "io.berth.BadRequest", "parameters", "text", why), -1);
    c->closing = true;
    c->in.size = c->in.kept = c->in.scanned = 0;
    c->in.since = 0;
}

/* Makes room for more input. Returns false if the client was refused or has failed. */
static bool client_reserve(struct control_client *c) {
    size_t allocated = c->in.allocated > 0 ? 2 * c->in.allocated : ROOM_BYTES;
    char text[ACCOUNT_TEXT_SIZE], *in;
    const char *why;

    if (c->in.size < c->in.allocated)
        return true;
    why = account_room(c->control, c->account, allocated - c->in.allocated, text, sizeof(text));
    if (why) {
        client_refuse(c, why);
        return false;
    }
    in = realloc(c->in.data, allocated);
    if (!in)
        memory_exit(call_of_client);
    account_take(c->control, c->account, allocated - c->in.allocated);
    c->in.data = in;
    c->in.allocated = allocated;
    return true;
}

static void client_abused(struct control_client *c) {
    account_refuse(c->control, c->account, c->peer.pid);
    client_refuse(c, "the call has a descriptor attached; berthd accepts none");
}

static void client_read(struct control_client *c) {
    size_t most = c->control->limits.message_bytes + 1 - c->in.size, room;
    ssize_t n;

    if (c->eof || c->closing || client_is_full(c))
        return;
    if (!client_reserve(c))
        return;
    room = c->in.allocated - c->in.size;
    n = connection_receive(c->fd, c->in.data + c->in.size, room < most ? room : most);
    if (n > 0)
        c->in.size += (size_t) n;
    else if (n == 0)
        c->eof = true;
    else if (n == -ECONNRESET)
        c->eof = c->hung_up = true;
    else if (n == -EBADMSG)
        client_abused(c);
    else if (n != -EAGAIN && n != -EINTR)
        c->failed = true;
}

static bool get_flag(const json_t *document, const char *key, bool *ret) {
    const json_t *flag = json_object_get(document, key);

    *ret = json_is_true(flag);
    return !flag || json_is_boolean(flag) || json_is_null(flag);
}

/* Returns the error of a call, or NULL. */
static const char *check_call(json_t *document, bool *ret_more, bool *ret_oneway) {
    const json_t *params = json_object_get(document, "parameters");
    bool upgrade;

    if (!json_is_object(document))
        return "the message is not a JSON object";
    if (!json_is_string(json_object_get(document, "method")))
        return "the call names no method";
    if (params && !json_is_object(params) && !json_is_null(params))
        return "the parameters are not an object";
    if (!get_flag(document, "more", ret_more) || !get_flag(document, "oneway", ret_oneway) ||
        !get_flag(document, "upgrade", &upgrade))
        return "more, oneway and upgrade are true or false";
    if (upgrade)
        return "upgrade is not offered";
    if (*ret_more && *ret_oneway)
        return "more and oneway exclude each other";
    return NULL;
}

static void client_drop_message(struct control_client *c, size_t begin, size_t size) {
    memmove(c->in.data + begin, c->in.data + begin + size, c->in.size - begin - size);
    c->in.size -= size;
    if (begin < c->in.kept)
        c->in.kept -= size;
    c->in.scanned = c->in.kept;
    c->in.since = 0;
}

static void client_run(struct control_client *c, json_t *document, bool more, bool oneway) {
    json_t *given = json_object_get(document, "parameters");
    json_t *params = json_is_object(given) ? json_incref(given) : json_object();

    if (!params)
        c->failed = true;
    else if (control_call_run(c, json_string_value(json_object_get(document, "method")), params, more, oneway) < 0)
        memory_exit(call_of_client);
    json_decref(params);
}

/* Returns NULL if the text is not JSON. jansson has no error of its own for lack of memory. */
static json_t *load(const char *text, size_t size) {
    json_t *document;

    errno = 0;
    document = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    if (!document && errno == ENOMEM)
        memory_exit(call_of_client);
    return document;
}

/* Runs a whole message. Leaves it in place if an earlier call is unanswered and this one is not oneway. */
static void client_take_message(struct control_client *c, size_t begin, size_t size) {
    json_t *document = load(c->in.data + begin, size - 1);
    bool more = false, oneway = false;
    const char *wrong = document ? check_call(document, &more, &oneway) : "the message is not valid JSON";

    c->has_called = true;
    if (wrong) {
        client_refuse(c, wrong);
    } else if (c->current && !oneway) {
        c->in.kept = c->in.scanned = begin + size;
        c->in.since = 0;
    } else {
        client_drop_message(c, begin, size);
        client_run(c, document, more, oneway);
    }
    json_decref(document);
}

/* Runs the next message that can be taken now. Returns false if there is none. */
static bool client_take(struct control_client *c) {
    bool again = !c->current && c->in.kept > 0; /* left in place before */
    size_t begin = c->current ? c->in.kept : 0, from = again ? 0 : c->in.scanned;
    const char *end;

    if (c->failed || c->closing || client_is_busy(c) || (!c->hung_up && client_is_slow(c)))
        return false;
    end = c->in.size > from ? memchr(c->in.data + from, '\0', c->in.size - from) : NULL;
    if (end) {
        client_take_message(c, begin, (size_t) (end - c->in.data) - begin + 1);
        return true;
    }
    c->in.scanned = c->in.size;
    if (c->in.kept == 0 && client_is_full(c))
        client_refuse(c, "the message is too long");
    return false;
}

/* --- time limits --- */

/* Returns whether the rest of a message is awaited. */
static bool client_is_unfinished(const struct control_client *c) {
    return !c->eof && !c->closing && !client_is_full(c) && !client_is_slow(c) && !client_is_busy(c) &&
           c->in.size > c->in.kept;
}

/* Returns whether the client must read its replies now: there are many, or nothing else is left to do. */
static bool client_must_listen(const struct control_client *c) {
    return !list_is_empty(&c->out) && (client_is_slow(c) || c->closing || (c->eof && !c->current));
}

static usec_t client_deadline(struct control_client *c) {
    usec_t limit = c->control->limits.message_usec, deadline = USEC_INFINITY;

    if (!client_is_unfinished(c))
        c->in.since = 0;
    else if (c->in.since == 0)
        c->in.since = clock_boottime();
    if (c->in.since > 0)
        deadline = usec_add(c->in.since, limit);
    if (client_must_listen(c) && usec_add(c->out_since, limit) < deadline)
        deadline = usec_add(c->out_since, limit);
    return deadline;
}

static void client_arm(struct control_client *c) {
    uint32_t events = (c->eof || c->closing || client_is_full(c) || client_is_slow(c) ? 0 : EPOLLIN) |
                      (list_is_empty(&c->out) ? 0 : EPOLLOUT);
    usec_t deadline = client_deadline(c);
    struct epoll_event wanted = {.events = events, .data.ptr = c};
    int r = 0;

    if (events != c->events && epoll_ctl(c->epoll_fd, EPOLL_CTL_MOD, c->fd, &wanted) < 0)
        r = -errno;
    c->events = events;
    /* Only on a change, because setting the time resets a pending timer: a client that sends single bytes
     * could keep it from firing. */
    if (r >= 0 && deadline != c->deadline) {
        timer_set(&c->timer, deadline);
        c->deadline = deadline;
    }
    if (r < 0) {
        c->failed = true;
        control_client_wake(c);
    }
}

static bool client_is_over(const struct control_client *c) {
    if (c->failed)
        return true;
    if (client_is_busy(c)) /* more calls wait behind the current ones */
        return false;
    if (c->hung_up && (c->eof || c->closing || client_is_full(c)))
        return true;
    return list_is_empty(&c->out) && (c->closing || (c->eof && !c->current));
}

/* Takes the input that has arrived, then frees the client or arranges for the next turn. */
void control_client_work(struct control_client *c) {
    unsigned n = 0;

    while (n < CALLS_A_TURN && client_take(c))
        n++;
    if (n == CALLS_A_TURN && !c->failed) {
        control_client_wake(c);
    } else if (client_is_over(c)) {
        control_client_free(c);
        return;
    }
    if (c->in.size == 0)
        client_forget_input(c);
    client_arm(c);
}

/* Sends waiting output, and lets the current call go on when all is sent. */
static void client_write(struct control_client *c) {
    output_flush(c);
    if (list_is_empty(&c->out) && c->current && c->current->on_room)
        c->current->on_room(c->current->userdata);
}

void control_client_io(struct control_client *c, uint32_t revents) {
    if (revents & EPOLLOUT)
        client_write(c);
    if (revents & (EPOLLHUP | EPOLLERR))
        c->hung_up = true;
    if (c->hung_up)
        output_discard(c);
    if (revents & (EPOLLIN | EPOLLHUP | EPOLLERR))
        client_read(c);
    control_client_work(c);
}

static void client_on_time(void *userdata) {
    struct control_client *c = userdata;
    usec_t now = clock_boottime(), limit = c->control->limits.message_usec;

    c->deadline = USEC_INFINITY; /* a oneshot is off now */
    if (client_must_listen(c) && now >= usec_add(c->out_since, limit))
        c->failed = true;
    else if (c->in.since > 0 && now >= usec_add(c->in.since, limit))
        client_refuse(c, "the message was not finished in time");
    control_client_work(c);
}

void control_client_wake(struct control_client *c) {
    if (!list_is_linked(&c->woken))
        list_insert_before(account_is_trusted(c->peer.uid) ? c->control->woken.next : &c->control->woken, &c->woken);
    defer_set(&c->control->work_woken);
}

int control_client_new(struct control *control, int fd, const struct peer *peer, struct control_account *account, bool looks_only) {
    struct control_client *c = calloc(1, sizeof(*c));
    struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = c};
    int r = 0;

    if (!c) {
        discard_connection(control->discard, fd);
        return -ENOMEM;
    }
    c->control = control;
    c->account = account;
    c->fd = fd;
    c->epoll_fd = account_is_trusted(peer->uid) ? control->trusted_epoll_fd : control->epoll_fd;
    c->peer = *peer;
    c->looks_only = looks_only;
    c->deadline = USEC_INFINITY;
    c->events = EPOLLIN;
    list_init(&c->woken);
    list_init(&c->out);
    list_init(&c->calls);
    list_init(&c->link);
    list_append(&control->clients, &c->link);
    control->n_clients++;
    account->n_clients++;
    if (epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &wanted) < 0)
        r = -errno;
    if (r >= 0)
        r = timer_init(&c->timer, control->event, TIMER_PRIORITY, client_on_time, c);
    if (r < 0)
        control_client_free(c);
    return r;
}
