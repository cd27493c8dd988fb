/* SPDX-License-Identifier: MIT */

/* Outgoing messages of a control client, in order, each with a descriptor if it has one. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/control/control-internal.h"

/* Frees a message that no client has. */
static void output_drop(struct control_output *o) {
    close_fd(o->fd);
    control_text_unref(o->text);
    free(o);
}

static void output_free(struct control_client *c, struct control_output *o) {
    list_unlink(&o->link);
    c->out_bytes -= o->text->size - o->sent;
    account_give(c->control, c->account, o->text->size);
    output_drop(o);
}

void output_discard(struct control_client *c) {
    list_foreach_safe(o, &c->out, struct control_output, link)
        output_free(c, o);
}

static ssize_t output_send(struct control_client *c, const struct control_output *o) {
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {};
    struct iovec iov = {o->text->data + o->sent, o->text->size - o->sent};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    struct cmsghdr *h;

    if (o->fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        h = CMSG_FIRSTHDR(&message);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(h), &o->fd, sizeof(int));
    }
    return sendmsg(c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void output_flush(struct control_client *c) {
    while (!list_is_empty(&c->out)) {
        struct control_output *o = list_first(&c->out, struct control_output, link);
        ssize_t n = output_send(c, o);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) { /* the client is gone; its earlier input is still processed */
            c->hung_up = true;
            output_discard(c);
            return;
        }
        o->fd = close_fd(o->fd);
        o->sent += (size_t) n;
        c->out_bytes -= (size_t) n;
        c->out_since = clock_boottime();
        if (o->sent == o->text->size)
            output_free(c, o);
    }
}

/* Steals the text. Returns NULL without memory, or if the descriptor cannot be duplicated. */
static struct control_output *output_new(struct control_text *text, int fd) {
    struct control_output *o = text ? calloc(1, sizeof(*o)) : NULL;

    if (o) {
        list_init(&o->link);
        o->text = text;
        o->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (fd < 0 || o->fd >= 0)
            return o;
        free(o);
    }
    control_text_unref(text);
    return NULL;
}

static void output_add(struct control_client *c, struct control_output *o) {
    if (list_is_empty(&c->out))
        c->out_since = clock_boottime();
    list_append(&c->out, &o->link);
    c->out_bytes += o->text->size;
    account_take(c->control, c->account, o->text->size);
}

/* The user has no memory left for the reply. The client gets this error instead, and is disconnected. */
static int output_refuse(struct control_client *c, struct control_output **o, const char *why) {
    json_t *error = json_pack("{s:s, s:{s:s}}", "error", "io.berth.Away", "parameters", "text", why);
    struct control_output *instead = error ? output_new(control_text_of(error), -1) : NULL;

    json_decref(error);
    if (!instead)
        return -ENOMEM;
    output_drop(*o);
    *o = instead;
    c->closing = true;
    return 0;
}

/* Returns whether the client gets no more messages. */
static bool client_is_deaf(const struct control_client *c) {
    return c->hung_up || c->closing || c->failed;
}

/* Steals the message. NULL: no memory. */
static int output_queue(struct control_client *c, struct control_output *o) {
    bool was_empty = list_is_empty(&c->out);
    char text[ACCOUNT_TEXT_SIZE];
    const char *why = o ? account_room(c->control, c->account, o->text->size, text, sizeof(text)) : NULL;
    int r = o ? 0 : -ENOMEM;

    if (why)
        r = output_refuse(c, &o, why);
    if (o)
        output_add(c, o);
    if (r < 0 || c->out_bytes > c->control->limits.output_bytes) {
        c->failed = true; /* the client must not mistake the next reply for the lost one */
        control_client_wake(c);
        return r;
    }
    if (was_empty)
        output_flush(c);
    if (!list_is_empty(&c->out) || c->closing)
        control_client_wake(c); /* enables EPOLLOUT */
    return 0;
}

int control_client_send(struct control_client *c, json_t *document, int fd) {
    int r = 0;

    if (!document || !client_is_deaf(c))
        r = output_queue(c, document ? output_new(control_text_of(document), fd) : NULL);
    json_decref(document);
    return r;
}

int control_client_send_text(struct control_client *c, struct control_text *text) {
    if (text && client_is_deaf(c))
        return 0;
    return output_queue(c, text ? output_new(control_text_ref(text), -1) : NULL);
}
