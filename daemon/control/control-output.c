/* SPDX-License-Identifier: MIT */

/* Outgoing messages of a control client, in order, each with a descriptor if it has one. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/control/control-internal.h"

#define PIECES_MAX 16 /* in one write; a socket takes less */

/* Frees a message that no client has. */
static void output_drop(struct control_output *o) {
    close_fd(o->fd);
    control_piece_unref(o->piece);
    free(o);
}

static void output_free(struct control_client *c, struct control_output *o) {
    list_unlink(&o->link);
    c->out_bytes -= o->size - o->sent;
    account_give(c->control, c->account, o->size);
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
    struct iovec iov[PIECES_MAX];
    struct msghdr message = {.msg_iov = iov};
    struct cmsghdr *h;

    for (struct control_piece *p = o->piece; p && message.msg_iovlen < PIECES_MAX; p = p->next)
        iov[message.msg_iovlen++] = (struct iovec){p->bytes, p->size};
    iov[0].iov_base = o->piece->bytes + o->piece_sent;
    iov[0].iov_len -= o->piece_sent;
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

/* Notes n sent bytes. A piece that is sent may be freed. */
static void output_advance(struct control_output *o, size_t n) {
    o->sent += n;
    o->piece_sent += n;
    while (o->piece && o->piece_sent >= o->piece->size) {
        struct control_piece *sent = o->piece;

        o->piece_sent -= sent->size;
        o->piece = sent->next ? control_piece_ref(sent->next) : NULL;
        control_piece_unref(sent);
    }
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
        output_advance(o, (size_t) n);
        c->out_bytes -= (size_t) n;
        c->out_since = clock_boottime();
        if (o->sent == o->size)
            output_free(c, o);
    }
}

/* Returns NULL without memory, or if the descriptor cannot be duplicated. */
static struct control_output *output_new(const struct control_text *text, int fd) {
    struct control_output *o = text ? calloc(1, sizeof(*o)) : NULL;

    if (o) {
        list_init(&o->link);
        o->size = text->size;
        o->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (fd < 0 || o->fd >= 0) {
            o->piece = control_piece_ref(text->first);
            return o;
        }
        free(o);
    }
    return NULL;
}

static struct control_output *output_of(const json_t *document, int fd) {
    _cleanup_(control_text_freep) struct control_text *text = document ? control_text_of(document) : NULL;

    return output_new(text, fd);
}

static void output_add(struct control_client *c, struct control_output *o) {
    if (list_is_empty(&c->out))
        c->out_since = clock_boottime();
    list_append(&c->out, &o->link);
    c->out_bytes += o->size;
    account_take(c->control, c->account, o->size);
}

/* The user has no memory left for the reply. The client gets this error instead, and is disconnected. */
static int output_refuse(struct control_client *c, struct control_output **o, const char *why) {
    json_t *error = json_pack("{s:s, s:{s:s}}", "error", "io.berth.Away", "parameters", "text", why);
    struct control_output *instead = output_of(error, -1);

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
    const char *why = o ? account_room(c->control, c->account, o->size, text, sizeof(text)) : NULL;
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
        r = output_queue(c, output_of(document, fd));
    json_decref(document);
    return r;
}

int control_client_send_text(struct control_client *c, struct control_text *text) {
    if (text && client_is_deaf(c))
        return 0;
    return output_queue(c, output_new(text, -1));
}
