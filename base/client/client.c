/* SPDX-License-Identifier: MIT */
/* One connection to berthd: framing, passed descriptors, blocking or on an event loop. */
#include "base/client/client.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/socket.h"

#define READ_SIZE (64 * 1024)

struct buffer {
    char *data;
    size_t size, allocated;
};

struct client {
    int fd;
    int output_fd; /* a pipe: waiting ends when it has no reader; -1: none */
    int other_fd;  /* another connection: waiting for a reply ends when it has one; -1: none */
    struct buffer in, out;
    size_t scanned;    /* first bytes of `in` without a NUL */
    int received_fd;     /* a descriptor that arrived with byte received_at of `in`; -1: none */
    size_t received_at;
    sd_event_source *source; /* NULL: not on a loop */
    struct client_handler handler;
    bool busy, dead;   /* busy: in a call of a handler; dead: freed meanwhile */
};

static const char *arg_socket;

void client_set_socket(const char *path) {
    arg_socket = path;
}

const char *client_socket(void) {
    const char *variable = getenv("BERTH_SOCKET");

    if (arg_socket)
        return arg_socket;
    return variable && variable[0] ? variable : CLIENT_SOCKET_DEFAULT;
}

static int buffer_reserve(struct buffer *b, size_t more) {
    size_t wanted = b->size + more, allocated = b->allocated ? b->allocated : 4096;
    char *data;

    if (wanted <= b->allocated)
        return 0;
    while (allocated < wanted)
        allocated *= 2;
    data = realloc(b->data, allocated);
    if (!data)
        return -ENOMEM;
    b->data = data;
    b->allocated = allocated;
    return 0;
}

static void buffer_drop(struct buffer *b, size_t n) {
    memmove(b->data, b->data + n, b->size - n);
    b->size -= n;
}

/* Connects to look.sock beside control.sock, for a user who may not use that one. -EACCES: --socket named a
 * socket, or look.sock cannot be used either. -ECONNREFUSED: berthd does not run. */
static int connect_to_look(void) {
    static const char name[] = "control.sock";
    size_t length = strlen(client_socket()), folder = length - strlen(name);
    char path[PATH_MAX];
    int fd;

    if (arg_socket || length < sizeof(name) || length >= sizeof(path) || strcmp(client_socket() + folder, name) != 0)
        return -EACCES;
    snprintf(path, sizeof(path), "%.*slook.sock", (int) folder, client_socket());
    fd = socket_connect(path, SOCK_STREAM);
    return fd < 0 && fd != -EAGAIN && fd != -ECONNREFUSED ? -EACCES : fd;
}

int client_connect(struct client **ret) {
    _cleanup_(client_freep) struct client *c = calloc(1, sizeof(*c));

    if (!c)
        return -ENOMEM;
    c->received_fd = c->output_fd = c->other_fd = -1;
    c->fd = socket_connect(client_socket(), SOCK_STREAM);
    if (c->fd == -EACCES)
        c->fd = connect_to_look();
    if (c->fd < 0)
        return c->fd;
    *ret = steal_pointer(&c);
    return 0;
}

/* Closes all descriptors, even if the memory cannot be freed yet. */
static void client_close(struct client *c) {
    c->source = sd_event_source_disable_unref(c->source);
    c->fd = close_fd(c->fd);
    c->received_fd = close_fd(c->received_fd);
}

struct client *client_free(struct client *c) {
    if (!c)
        return NULL;
    client_close(c);
    c->dead = true;
    if (c->busy)
        return NULL;
    free(c->in.data);
    free(c->out.data);
    free(c);
    return NULL;
}

void client_reply_done(struct client_reply *reply) {
    reply->fd = close_fd(reply->fd);
    json_decref(reply->document);
    *reply = CLIENT_REPLY_INIT;
}

/* Writes what the socket takes. Returns 0 if all is written, 1 if the rest must wait, or a negative errno.
 */
static int client_flush(struct client *c) {
    while (c->out.size > 0) {
        ssize_t n = send(c->fd, c->out.data, c->out.size, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 1 : errno == EPIPE ? -ECONNRESET : -errno;
        buffer_drop(&c->out, (size_t) n);
    }
    return 0;
}

void client_end_with(struct client *c, int fd) {
    c->output_fd = fd;
}

void client_wake_with(struct client *c, const struct client *other) {
    c->other_fd = other ? other->fd : -1;
}

/* Waits for an event of the connection. -ETIMEDOUT: none came until then; -EAGAIN: the other
 * connection has one. */
static int client_wait(struct client *c, short events, usec_t until) {
    struct pollfd p[] = {{.fd = c->fd, .events = events}, {.fd = c->output_fd},
                         {.fd = events == POLLIN ? c->other_fd : -1, .events = POLLIN}};

    for (;;) {
        usec_t left = usec_sub(until, clock_boottime());
        int r = poll(p, ELEMENTSOF(p), (int) ((left + USEC_PER_MSEC - 1) / USEC_PER_MSEC));

        if (r > 0)
            return p[1].revents & (POLLERR | POLLHUP) ? -EPIPE : p[0].revents ? 0 : -EAGAIN;
        if (r == 0)
            return -ETIMEDOUT;
        if (errno != EINTR)
            return -errno;
    }
}

static int client_append(struct client *c, const char *method, json_t *params, enum client_flags flags) {
    json_t *call = json_pack("{s:s, s:O*}", "method", method, "parameters", params);
    size_t size;
    int r = -ENOMEM;

    if (!call)
        return -ENOMEM;
    if ((flags & CLIENT_MORE && json_object_set_new(call, "more", json_true()) < 0) ||
        (flags & CLIENT_ONEWAY && json_object_set_new(call, "oneway", json_true()) < 0))
        goto finish;
    size = json_dumpb(call, NULL, 0, JSON_COMPACT);
    if (size == 0 || buffer_reserve(&c->out, size + 1) < 0)
        goto finish;
    c->out.size += json_dumpb(call, c->out.data + c->out.size, size, JSON_COMPACT);
    c->out.data[c->out.size++] = '\0';
    r = 0;
finish:
    json_decref(call);
    return r;
}

int client_send(struct client *c, const char *method, json_t *params, enum client_flags flags) {
    int r = c->fd < 0 ? -ENOTCONN : client_append(c, method, params, flags);

    json_decref(params);
    if (r < 0)
        return r;
    while ((r = client_flush(c)) > 0) {
        if (c->source)
            return sd_event_source_set_io_events(c->source, EPOLLIN | EPOLLOUT);
        r = client_wait(c, POLLOUT, usec_add(clock_boottime(), CLIENT_ANSWER_TIME));
        if (r < 0)
            return r;
    }
    return r;
}

/* Keeps the first descriptor of a recvmsg(), unless one already waits for its message. */
static void client_take_fds(struct client *c, struct msghdr *message) {
    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h)) {
        size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(h) + i * sizeof(fd), sizeof(fd));
            if (c->received_fd >= 0) {
                close_fd(fd);
                continue;
            }
            /* A receive ends with the piece that carried descriptors (unix(7)), so its last byte is of their message. */
            c->received_fd = fd;
            c->received_at = c->in.size - 1;
        }
    }
}

/* Returns 0 if something arrived, -EAGAIN, -ECONNRESET at the end, or another negative errno. */
static int client_read(struct client *c) {
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(8 * sizeof(int))];
    } control;
    struct iovec iov;
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    ssize_t n;

    if (c->in.size > CLIENT_MESSAGE_MAX)
        return -EMSGSIZE;
    if (buffer_reserve(&c->in, READ_SIZE) < 0)
        return -ENOMEM;
    iov = (struct iovec) {c->in.data + c->in.size, READ_SIZE};
    do
        n = recvmsg(c->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    if (n == 0)
        return -ECONNRESET;
    c->in.size += (size_t) n;
    client_take_fds(c, &message);
    return 0;
}

static int reply_parse(struct client_reply *reply, const char *data, size_t size) {
    json_t *error, *continues;

    reply->document = json_loadb(data, size, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(reply->document))
        return -EBADMSG;
    error = json_object_get(reply->document, "error");
    continues = json_object_get(reply->document, "continues");
    reply->params = json_object_get(reply->document, "parameters");
    if (!reply->params) {
        reply->params = json_object();
        if (!reply->params || json_object_set_new(reply->document, "parameters", reply->params) < 0)
            return -ENOMEM;
    }
    if (!json_is_object(reply->params) || (error && !json_is_string(error)) || (continues && !json_is_boolean(continues)))
        return -EBADMSG;
    reply->error = json_string_value(error);
    reply->continues = json_is_true(continues);
    return 0;
}

/* Takes the next whole message. 0; -EAGAIN if there is none; -EBADMSG; -ENOMEM. */
static int client_take(struct client *c, struct client_reply *ret) {
    struct client_reply reply = CLIENT_REPLY_INIT;
    char *end = c->in.size > c->scanned ? memchr(c->in.data + c->scanned, '\0', c->in.size - c->scanned) : NULL;
    size_t size;
    int r;

    if (!end) {
        c->scanned = c->in.size;
        return -EAGAIN;
    }
    size = (size_t) (end - c->in.data);
    r = reply_parse(&reply, c->in.data, size);
    c->scanned = 0;
    buffer_drop(&c->in, size + 1);
    if (c->received_fd >= 0) {
        if (c->received_at <= size)
            reply.fd = steal_fd(&c->received_fd);
        else
            c->received_at -= size + 1;
    }
    if (r < 0)
        client_reply_done(&reply);
    else
        *ret = reply;
    return r;
}

int client_receive_until(struct client *c, struct client_reply *ret, usec_t until) {
    bool is_late = false;

    for (;;) {
        int r = client_take(c, ret);

        if (r != -EAGAIN)
            return r;
        if (is_late)
            return -ETIMEDOUT; /* also if bytes keep coming */
        is_late = clock_boottime() >= until;
        r = client_read(c); /* also if this process could not run until now */
        if (r == -EAGAIN)
            r = client_wait(c, POLLIN, until);
        if (r < 0)
            return r;
    }
}

bool client_has_begun(const struct client *c) {
    return c->in.size > 0;
}

/* Hands out one reply at a time; the handler may free the client. */
static int client_dispatch(struct client *c) {
    while (!c->dead) {
        _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;
        int r = client_take(c, &reply);

        if (r < 0)
            return r == -EAGAIN ? 0 : r;
        c->handler.on_reply(c, &reply, c->handler.userdata);
    }
    return 0;
}

static int client_on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
    struct client *c = userdata;
    int r = 0;

    (void) fd;
    if (revents & EPOLLOUT) {
        r = client_flush(c);
        if (r == 0)
            r = sd_event_source_set_io_events(source, EPOLLIN);
    }
    c->busy = true;
    /* Replies that berthd sent before it closed are read even if a write has failed. */
    if (revents & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        int read = client_read(c);

        if (read == 0)
            read = client_dispatch(c);
        if (read < 0 && read != -EAGAIN)
            r = read;
        else if (r == -ECONNRESET)
            r = 0; /* the read will report the end */
    }
    if (r < 0 && !c->dead) {
        client_close(c);
        c->handler.on_gone(c, r, c->handler.userdata);
    }
    c->busy = false;
    if (c->dead)
        client_free(c);
    return 0;
}

int client_attach(struct client *c, sd_event *event, int64_t priority, const struct client_handler *handler) {
    uint32_t events = EPOLLIN | (c->out.size > 0 ? EPOLLOUT : 0);
    int r;

    c->handler = *handler;
    r = sd_event_add_io(event, &c->source, c->fd, events, client_on_io, c);
    return r < 0 ? r : sd_event_source_set_priority(c->source, priority);
}
