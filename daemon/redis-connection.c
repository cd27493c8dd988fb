/* SPDX-License-Identifier: MIT */
#include "daemon/redis-connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/list.h"
#include "daemon/redis-compat.h"

#define ANSWER_ELEMENTS_MAX 65536          /* of one array */
#define ANSWER_SIZE_MAX ((size_t) 32 << 20) /* unread bytes of one answer */

struct pending { /* a command that waits for its answer */
    struct redis_connection *connection;
    struct list link; /* on connection->pendings, oldest first; a subscription leaves it with its acknowledgment */
    usec_t deadline;
    redis_reply_fn fn;
    void *userdata;
    bool subscription;
};

struct redis_connection {
    const struct redis_connection_options *options;
    redisAsyncContext *context; /* NULL: over */
    sd_event_source *io, *timer, *defer;
    uint32_t wanted;            /* EPOLLIN | EPOLLOUT: what hiredis asks for */
    unsigned busy;              /* > 0: hiredis is on the stack, so its context must not be freed */
    bool freed, down_told, up_told;
    struct list pendings;       /* struct pending */
    struct list subscriptions;  /* struct pending, acknowledged */
    enum redis_error error;
    char text[256];
};

/* --- what went wrong --- */

static void note_error(struct redis_connection *c, enum redis_error error, const char *text) {
    if (c->text[0] != '\0')
        return;
    c->error = error;
    (void) snprintf(c->text, sizeof(c->text), "%s", text && *text ? text : "connection lost");
}

static void destroy(struct redis_connection *c) {
    list_foreach_safe(p, &c->pendings, struct pending, link) {
        list_unlink(&p->link);
        free(p);
    }
    list_foreach_safe(p, &c->subscriptions, struct pending, link) {
        list_unlink(&p->link);
        free(p);
    }
    sd_event_source_disable_unref(c->timer);
    sd_event_source_disable_unref(c->defer);
    free(c);
}

/* Leaves hiredis's stack behind, then does what was put off on it. */
static void settle(struct redis_connection *c) {
    if (c->busy > 0)
        return;
    if (c->context && (c->freed || c->text[0] != '\0')) {
        c->busy++;
        redisAsyncFree(c->context);
        c->busy--;
    }
    if (c->freed) {
        destroy(c);
    } else if (!c->context && !c->down_told) {
        note_error(c, REDIS_ERROR_RETRY, NULL);
        c->down_told = true;
        c->options->on_down(c, c->error, c->text, c->options->userdata); /* may free it */
    }
}

/* Ends the connection from outside a callback of the event loop's own: told a turn later. */
static void fail(struct redis_connection *c, enum redis_error error, const char *text) {
    note_error(c, error, text);
    (void) sd_event_source_set_enabled(c->defer, SD_EVENT_ONESHOT);
}

static int connection_on_defer(sd_event_source *source, void *userdata) {
    (void) source;
    settle(userdata);
    return 0;
}

/* --- deadlines --- */

static void arm(struct redis_connection *c) {
    struct pending *first = list_first(&c->pendings, struct pending, link);

    if (!first) {
        (void) sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
        return;
    }
    (void) sd_event_source_set_time(c->timer, first->deadline);
    (void) sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
}

static int connection_on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
    struct redis_connection *c = userdata;

    (void) source, (void) usec;
    note_error(c, REDIS_ERROR_RETRY, c->up_told ? "no answer in time" : "cannot connect in time");
    settle(c);
    return 0;
}

/* --- the adapter: hiredis asks, the event loop tells --- */

static int connection_on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
    struct redis_connection *c = userdata;

    (void) source, (void) fd;
    c->busy++;
    if (c->context && (revents & (EPOLLIN | EPOLLERR | EPOLLHUP)) && (c->wanted & EPOLLIN)) {
        if (c->context->c.reader->len > ANSWER_SIZE_MAX)
            note_error(c, REDIS_ERROR_RETRY, "an answer is too long");
        else
            redisAsyncHandleRead(c->context);
    }
    if (c->context && c->text[0] == '\0' && (revents & (EPOLLOUT | EPOLLERR | EPOLLHUP)) && (c->wanted & EPOLLOUT))
        redisAsyncHandleWrite(c->context);
    c->busy--;
    settle(c);
    return 0;
}

static void want(struct redis_connection *c, uint32_t events, bool on) {
    uint32_t wanted = on ? c->wanted | events : c->wanted & ~events;

    if (wanted == c->wanted || !c->io)
        return;
    c->wanted = wanted;
    if (sd_event_source_set_io_events(c->io, wanted) < 0 && c->text[0] == '\0')
        fail(c, REDIS_ERROR_RETRY, "cannot watch the connection");
}

static void connection_add_read(void *data) {
    want(data, EPOLLIN, true);
}
static void connection_del_read(void *data) {
    want(data, EPOLLIN, false);
}
static void connection_add_write(void *data) {
    want(data, EPOLLOUT, true);
}
static void connection_del_write(void *data) {
    want(data, EPOLLOUT, false);
}

/* hiredis frees its context, whoever wanted it; after this it must not be touched. */
static void connection_cleanup(void *data) {
    struct redis_connection *c = data;
    const char *text = c->context && c->context->err ? c->context->errstr : NULL;

    if (text)
        note_error(c, strncmp(text, "NO", 2) == 0 || strncmp(text, "ERR ", 4) == 0 ? redis_error_class(text) : REDIS_ERROR_RETRY,
                   text);
    c->context = NULL;
    c->io = sd_event_source_disable_unref(c->io);
}

/* --- commands --- */

static void connection_on_reply(redisAsyncContext *context, void *reply, void *privdata) {
    struct pending *p = privdata;
    struct redis_connection *c = p->connection;

    (void) context;
    if (!reply || c->freed || c->text[0] != '\0')
        return; /* going down: destroy() frees it */
    if (p->subscription) {
        if (list_is_linked(&p->link)) {
            list_unlink(&p->link);
            list_append(&c->subscriptions, &p->link);
            arm(c);
        }
        p->fn(reply, p->userdata);
        return;
    }
    list_unlink(&p->link);
    arm(c);
    p->fn(reply, p->userdata);
    free(p);
}

static int call(struct redis_connection *c, size_t argc, const char *const *argv, redis_reply_fn fn, void *userdata,
                bool subscription) {
    struct pending *p;

    if (!c->context || c->freed || c->text[0] != '\0')
        return -ENOTCONN;
    p = malloc(sizeof(*p));
    if (!p)
        return -ENOMEM;
    *p = (struct pending) {.connection = c, .fn = fn, .userdata = userdata, .subscription = subscription,
                           .deadline = usec_add(clock_boottime(), c->options->settings->timeout_usec)};
    list_append(&c->pendings, &p->link);
    if (redisAsyncCommandArgv(c->context, connection_on_reply, p, (int) argc, (const char **) (uintptr_t) argv, NULL) != REDIS_OK) {
        list_unlink(&p->link);
        free(p);
        fail(c, REDIS_ERROR_RETRY, "cannot write a command");
        return -ENOTCONN;
    }
    arm(c);
    return 0;
}

int redis_connection_call(struct redis_connection *c, size_t argc, const char *const *argv, redis_reply_fn fn, void *userdata) {
    return call(c, argc, argv, fn, userdata, false);
}

int redis_connection_subscribe(struct redis_connection *c, const char *channel, redis_reply_fn fn, void *userdata) {
    return call(c, 2, (const char *[]) {"SUBSCRIBE", channel}, fn, userdata, true);
}

/* --- connecting --- */

static void connection_on_setup(const struct redisReply *reply, void *userdata) {
    struct redis_connection *c = userdata;
    const char *error = reply_error(reply);

    if (error)
        fail(c, redis_error_class(error), error);
}

/* Naming the connection is for people only: whatever the answer, the ones before it were good. */
static void connection_on_named(const struct redisReply *reply, void *userdata) {
    struct redis_connection *c = userdata;
    const char *error = reply_error(reply);

    if (error && redis_error_class(error) != REDIS_ERROR_FATAL) {
        fail(c, redis_error_class(error), error);
    } else if (error && strncmp(error, "NOAUTH", 6) == 0) {
        fail(c, REDIS_ERROR_FATAL, error);
    } else {
        c->up_told = true;
        c->options->on_up(c, c->options->userdata);
    }
}

static int set_up(struct redis_connection *c) {
    const struct redis_settings *s = c->options->settings;
    int r = 0;

    if (c->options->password && s->username && *s->username)
        r = call(c, 3, (const char *[]) {"AUTH", s->username, c->options->password}, connection_on_setup, c, false);
    else if (c->options->password)
        r = call(c, 2, (const char *[]) {"AUTH", c->options->password}, connection_on_setup, c, false);
    if (r >= 0 && s->db > 0) {
        char db[16];

        (void) snprintf(db, sizeof(db), "%u", s->db);
        r = call(c, 2, (const char *[]) {"SELECT", db}, connection_on_setup, c, false);
    }
    return r < 0 ? r
                 : call(c, 3, (const char *[]) {"CLIENT", "SETNAME", c->options->client_name}, connection_on_named, c, false);
}

/* hiredis 0.14 believes whatever count an array announces (CVE-2021-32765); ours does not. */
static void *(*create_array)(const redisReadTask *, redis_elements);
static void *create_bounded_array(const redisReadTask *task, redis_elements n) {
    return n > ANSWER_ELEMENTS_MAX ? NULL : create_array(task, n);
}
static void bound_arrays(redisReader *reader) {
    static redisReplyObjectFunctions functions;

    if (!create_array) {
        functions = *reader->fn;
        create_array = functions.createArray;
        functions.createArray = create_bounded_array;
    }
    reader->fn = &functions;
}

/* A peer that vanished without a word is noticed even where nothing is sent (the subscription). */
static void watch_peer(int fd, usec_t timeout) {
    int on = 1, seconds = (int) (timeout / USEC_PER_SEC) + 1, probes = 3;
    unsigned milliseconds = (unsigned) (timeout / USEC_PER_MSEC);

    (void) setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static int attach(struct redis_connection *c, sd_event *event) {
    redisAsyncContext *context = c->context;
    int r;

    if (!c->options->settings->unix_path)
        watch_peer(context->c.fd, c->options->settings->timeout_usec);
    bound_arrays(context->c.reader);
    r = sd_event_add_time(event, &c->timer, CLOCK_BOOTTIME, 0, 1000, connection_on_timer, c);
    if (r >= 0)
        r = sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
    if (r >= 0)
        r = sd_event_add_defer(event, &c->defer, connection_on_defer, c);
    if (r >= 0)
        r = sd_event_source_set_enabled(c->defer, SD_EVENT_OFF);
    if (r >= 0)
        r = sd_event_add_io(event, &c->io, context->c.fd, 0, connection_on_io, c);
    if (r < 0)
        return r;
    context->data = c;
    context->ev.data = c;
    context->ev.addRead = connection_add_read;
    context->ev.delRead = connection_del_read;
    context->ev.addWrite = connection_add_write;
    context->ev.delWrite = connection_del_write;
    context->ev.cleanup = connection_cleanup;
    /* hiredis waits for the connection by its first write. */
    want(c, EPOLLOUT, true);
    return set_up(c);
}

int redis_connection_new(struct redis_connection **ret, sd_event *event, const struct redis_connection_options *options) {
    const struct redis_settings *s = options->settings;
    struct redis_connection *c = calloc(1, sizeof(*c));
    int r;

    if (!c)
        return -ENOMEM;
    c->options = options;
    list_init(&c->pendings);
    list_init(&c->subscriptions);
    c->context = s->unix_path ? redisAsyncConnectUnix(s->unix_path) : redisAsyncConnect(s->host, s->port);
    if (!c->context) {
        r = -ENOMEM;
    } else if (c->context->err) {
        r = c->context->err == REDIS_ERR_IO && errno > 0 ? -errno : -ECONNREFUSED;
    } else {
        r = attach(c, event);
    }
    if (r < 0) {
        redis_connection_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

struct redis_connection *redis_connection_free(struct redis_connection *c) {
    if (c) {
        c->freed = true;
        settle(c);
    }
    return NULL;
}
