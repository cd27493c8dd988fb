/* SPDX-License-Identifier: MIT */

/* hiredis only parses replies here. Its asynchronous API is not used: version 0.14 aborts the program when a server
 * sends something unexpected. */

#include "store/redis/client/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/timer.h"
#include "store/redis/client/compat.h"
#include "store/redis/client/pendings.h"
#include "store/redis/client/reply-bounds.h"

struct redis_connection {
    const struct redis_connection_options *options;
    struct redis_socket socket;
    redisReader *reader;
    struct redis_meter meter;
    struct redis_outbuf out;  /* commands not sent yet */
    sd_event_source *io;
    struct timer timer;        /* the deadline of the first command, or the next check of a silent subscription */
    struct defer defer, flush; /* reports the failure; sends this turn's commands */
    bool awaits_room;      /* io waits for writability: connecting, or the socket was full */
    bool is_up, down_reported, freed;
    unsigned busy;         /* callbacks on the stack; while there are any, freeing is postponed */
    struct redis_pendings pendings; /* a subscription's messages are no replies */
    struct redis_subscription subscription; /* once acknowledged */
    enum redis_error error;
    char text[SOCKET_REASON_SIZE]; /* of the error; "": none */
};

/* --- the end --- */

static bool is_over(const struct redis_connection *c) {
    return c->freed || c->text[0] != '\0';
}

static void note_error(struct redis_connection *c, enum redis_error error, const char *text) {
    if (is_over(c))
        return;
    c->error = error;
    (void) snprintf(c->text, sizeof(c->text), "%s", *text ? text : "connection lost");
    /* on_down is called a turn later, never from inside a call. */
    (void) sd_event_source_set_enabled(c->io, SD_EVENT_OFF);
    defer_off(&c->flush);
    timer_off(&c->timer);
    defer_set(&c->defer);
}

static void note_socket_error(struct redis_connection *c) {
    enum redis_error error = c->socket.is_turned_away ? REDIS_ERROR_LATER : REDIS_ERROR_RETRY;

    note_error(c, c->socket.is_refused ? REDIS_ERROR_FATAL : error, c->socket.reason);
}

static void destroy(struct redis_connection *c) {
    redis_pendings_done(&c->pendings);
    sd_event_source_disable_unref(c->io);
    timer_done(&c->timer);
    defer_done(&c->defer);
    defer_done(&c->flush);
    redis_socket_done(&c->socket);
    if (c->reader)
        redisReaderFree(c->reader);
    redis_outbuf_done(&c->out);
    free(c);
}

struct redis_connection *redis_connection_free(struct redis_connection *c) {
    if (!c)
        return NULL;
    c->freed = true;
    if (c->busy == 0)
        destroy(c);
    return NULL;
}

static void leave(struct redis_connection *c) {
    if (--c->busy == 0 && c->freed)
        destroy(c);
}

static void connection_on_defer(void *userdata) {
    struct redis_connection *c = userdata;

    if (c->down_reported)
        return;
    c->down_reported = true;
    c->busy++;
    c->options->on_down(c, c->error, c->text, c->options->userdata);
    leave(c);
}

/* --- deadlines --- */

/* Sets the timer: for the first command and after the last reply. In between it may fire too early, and is set again.
 * Setting it with each reply would cost more than the reply. */
static void arm(struct redis_connection *c) {
    const struct redis_pending *first = redis_pendings_first(&c->pendings);
    usec_t silence = c->subscription.fn ? c->options->silence_usec : 0;

    if (is_over(c))
        timer_off(&c->timer);
    else if (first)
        timer_set(&c->timer, first->deadline);
    else
        timer_set(&c->timer, silence > 0 ? usec_add(clock_boottime(), silence) : USEC_INFINITY);
}

/* --- replies --- */

static void dispatch(struct redis_connection *c, const redisReply *reply) {
    bool is_awaited = redis_pendings_first(&c->pendings);
    struct redis_pending answered;

    c->socket.has_answered = true;
    if (!is_awaited && c->subscription.fn) {
        if (redis_subscription_receive(&c->subscription, reply))
            arm(c);
        return;
    }
    if (!is_awaited) { /* such as "max number of clients reached", sent before any command */
        const char *error = reply_error(reply);

        note_error(c, error ? redis_error_class(error) : REDIS_ERROR_RETRY, error ? error : "a reply without a command");
        return;
    }
    redis_pendings_take(&c->pendings, &answered);
    if (answered.subscription && !reply_error(reply))
        c->subscription = (struct redis_subscription) {.fn = answered.fn, .userdata = answered.userdata};
    if (!redis_pendings_first(&c->pendings))
        arm(c);
    answered.fn(reply, answered.userdata);
}

/* Returns whether there was a reply. */
static bool parse_replies(struct redis_connection *c) {
    char why[sizeof(c->text)];
    bool any = false;

    while (!is_over(c)) {
        redisReply *reply = NULL;
        int r = redis_meter_next(&c->meter, c->reader, &reply, why, sizeof(why));

        if (r < 0)
            note_error(c, REDIS_ERROR_RETRY, why);
        if (r <= 0)
            break;
        dispatch(c, reply);
        freeReplyObject(reply);
        any = true;
    }
    return any;
}

static void write_commands(struct redis_connection *c);

/* Returns whether there was a reply. Replies that came before the connection ended still count. */
static bool read_replies(struct redis_connection *c) {
    bool was_up = redis_socket_is_up(&c->socket), any;
    int r = redis_socket_receive(&c->socket, c->reader);

    any = parse_replies(c);
    if (r < 0)
        note_socket_error(c);
    /* The handshake of TLS has bytes to send, and after it the first commands. */
    else if (c->socket.tls && !is_over(c) && (!was_up || redis_socket_awaits_room(&c->socket, &c->out)) && !c->awaits_room)
        write_commands(c);
    return any;
}

/* Returns whether the peer of a subscription may be alive. */
static bool check_silence(struct redis_connection *c) {
    switch (redis_subscription_check(&c->subscription)) {
    case REDIS_SILENCE_NONE:
        arm(c);
        return true;
    case REDIS_SILENCE_ASK:
        timer_set(&c->timer, usec_add(clock_boottime(), c->options->settings->timeout_usec));
        redis_connection_flush(c);
        return redis_outbuf_append(&c->out, 1, (const char *[]) {"PING"}) == 0;
    case REDIS_SILENCE_DEAD:
        break;
    }
    return false;
}

/* After this process was suspended, replies that arrived in time may be unread while the timer is already due. */
static void connection_on_timer(void *userdata) {
    struct redis_connection *c = userdata;
    const struct redis_pending *first = redis_pendings_first(&c->pendings);

    c->busy++;
    if ((first && first->deadline > clock_boottime()) || (c->socket.is_connected && read_replies(c)))
        arm(c);
    else if (first || !c->subscription.fn || !check_silence(c))
        note_error(c, c->is_up ? REDIS_ERROR_RETRY : REDIS_ERROR_BUSY,
                   c->is_up ? "no answer in time" : redis_socket_explain_silence(&c->socket));
    leave(c);
}

/* --- the socket --- */

static int await_room(struct redis_connection *c, bool wanted) {
    if (c->awaits_room == wanted)
        return 0;
    c->awaits_room = wanted;
    return sd_event_source_set_io_events(c->io, wanted ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void write_commands(struct redis_connection *c) {
    if (!c->socket.is_connected && redis_socket_finish(&c->socket) < 0) {
        note_socket_error(c);
        return;
    }
    if (c->options->on_writing && redis_socket_is_up(&c->socket))
        c->options->on_writing(c, c->options->userdata);
    defer_off(&c->flush); /* what was added goes out now */
    if (is_over(c))
        return;
    if (redis_socket_send(&c->socket, &c->out) < 0) {
        if (!c->socket.has_answered && !c->socket.tls)
            (void) read_replies(c); /* a server that refuses a client sends the reason before it closes */
        note_socket_error(c);
    }
    if (!is_over(c) && await_room(c, redis_socket_awaits_room(&c->socket, &c->out)) < 0)
        note_error(c, REDIS_ERROR_RETRY, "cannot watch the connection");
}

static void connection_on_flush(void *userdata) {
    struct redis_connection *c = userdata;

    c->busy++;
    if (!c->awaits_room && !is_over(c))
        write_commands(c);
    leave(c);
}

static int connection_on_io(_unused_ sd_event_source *source, _unused_ int fd, uint32_t revents, void *userdata) {
    struct redis_connection *c = userdata;

    c->busy++;
    if (revents & EPOLLOUT)
        write_commands(c);
    if ((revents & (EPOLLIN | EPOLLERR | EPOLLHUP)) && !is_over(c)) {
        if (c->socket.is_connected)
            (void) read_replies(c);
        else if (!(revents & EPOLLOUT))
            write_commands(c); /* reads the error */
    }
    leave(c);
    return 0;
}

void redis_connection_flush(struct redis_connection *c) {
    if (!is_over(c) && !c->awaits_room)
        defer_set(&c->flush);
}

void redis_connection_send(struct redis_connection *c) {
    if (c->socket.has_answered) /* before the first reply, sending may read a refusal and call its fn */
        connection_on_flush(c);
}

/* deadline: 0: `timeout` from now. */
static int call(struct redis_connection *c, size_t argc, const char *const *argv, redis_reply_fn fn, void *userdata,
                usec_t deadline, bool subscription) {
    struct redis_pending pending = {.fn = fn, .userdata = userdata, .subscription = subscription};
    usec_t timeout = c->options->settings->timeout_usec, patience = c->options->patience_usec;
    bool is_first = !redis_pendings_first(&c->pendings);
    int r;

    if (is_over(c))
        return -ENOTCONN;
    pending.deadline = deadline > 0 ? deadline : usec_add(clock_boottime(), timeout > patience ? timeout : patience);
    r = redis_pendings_add(&c->pendings, &pending);
    if (r < 0)
        return r;
    r = redis_outbuf_append(&c->out, argc, argv);
    if (r < 0) {
        redis_pendings_drop_last(&c->pendings);
        return r;
    }
    redis_connection_flush(c); /* sent at the end of this turn */
    if (is_first)
        arm(c);
    return 0;
}

int redis_connection_call(struct redis_connection *c, size_t argc, const char *const *argv, redis_reply_fn fn, void *userdata) {
    return call(c, argc, argv, fn, userdata, 0, false);
}

uint64_t redis_connection_next_serial(const struct redis_connection *c) {
    return c->pendings.n_commands + 1;
}

uint64_t redis_connection_answered_serial(const struct redis_connection *c) {
    return c->pendings.n_replies;
}

int redis_connection_subscribe(struct redis_connection *c, const char *channel, redis_reply_fn fn, void *userdata) {
    c->meter.bounds = &redis_bounds_push;
    return call(c, 2, (const char *[]) {"SSUBSCRIBE", channel}, fn, userdata, 0, true);
}

/* --- connecting --- */

static void connection_on_setup(const struct redisReply *reply, void *userdata) {
    struct redis_connection *c = userdata;
    const char *error = reply_error(reply);

    if (error)
        note_error(c, redis_error_class(error), error);
}

/* The name is for people. A user may lack the right to set it, so most errors prove that the commands before succeeded. */
static void connection_on_named(const struct redisReply *reply, void *userdata) {
    struct redis_connection *c = userdata;
    const char *error = reply_error(reply);

    if (error && (redis_error_class(error) != REDIS_ERROR_FATAL || redis_error_is_of_client(error))) {
        note_error(c, redis_error_class(error), error);
    } else {
        c->is_up = true;
        c->options->on_up(c, c->options->userdata);
    }
}

static int set_up(struct redis_connection *c, const struct redis_target *target) {
    const struct redis_settings *s = c->options->settings;
    bool is_named = s->username && *s->username;
    const char *password = target->password ? target->password : is_named ? "" : NULL; /* a user may have none */
    usec_t deadline = target->deadline;
    char db[16];
    int r = 0;

    c->out.is_secret = target->password;
    if (password)
        r = call(c, is_named ? 3 : 2, (const char *[]) {"AUTH", is_named ? s->username : password, password},
                 connection_on_setup, c, deadline, false);
    if (r >= 0 && s->db > 0) {
        (void) snprintf(db, sizeof(db), "%u", s->db);
        r = call(c, 2, (const char *[]) {"SELECT", db}, connection_on_setup, c, deadline, false);
    }
    return r < 0 ? r
                 : call(c, 3, (const char *[]) {"CLIENT", "SETNAME", c->options->client_name}, connection_on_named, c, deadline,
                        false);
}

static int attach(struct redis_connection *c, sd_event *event, const struct redis_target *target) {
    int r;

    c->reader = redisReaderCreate();
    if (!c->reader)
        return -ENOMEM;
    c->meter.bounds = &redis_bounds_reply;
    redis_meter_attach(&c->meter, c->reader);
    r = timer_init(&c->timer, event, SD_EVENT_PRIORITY_NORMAL, connection_on_timer, c);
    if (r >= 0)
        r = defer_init(&c->defer, event, SD_EVENT_PRIORITY_NORMAL, connection_on_defer, c);
    if (r >= 0)
        r = defer_init(&c->flush, event, SD_EVENT_PRIORITY_NORMAL, connection_on_flush, c);
    c->awaits_room = true; /* the socket is writable when connect has finished */
    if (r >= 0)
        r = sd_event_add_io(event, &c->io, c->socket.fd, EPOLLOUT, connection_on_io, c);
    return r < 0 ? r : set_up(c, target);
}

int redis_connection_new(struct redis_connection **ret, sd_event *event, const struct redis_target *target,
                         const struct redis_connection_options *options) {
    struct redis_connection *c = calloc(1, sizeof(*c));
    int r;

    if (!c)
        return -ENOMEM;
    c->options = options;
    redis_pendings_init(&c->pendings);
    r = redis_socket_open(&c->socket, target, options->settings->timeout_usec);
    if (r >= 0)
        r = attach(c, event, target);
    if (r < 0) {
        redis_connection_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void redis_connection_set_options(struct redis_connection *c, const struct redis_connection_options *options) {
    c->options = options;
}

const struct tls_session *redis_connection_tls(const struct redis_connection *c) {
    return c->socket.tls;
}
