/* SPDX-License-Identifier: MIT */

/* Outgoing messages of a control client, in order, each with a descriptor if it has one. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/control/control-internal.h"

static void output_free(struct control_client *c, struct control_output *o) {
    list_unlink(&o->link);
    c->out_bytes -= o->size - o->sent;
    account_give(c->control, c->account, o->size);
    close_fd(o->fd);
    free(o->text);
    free(o);
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
    struct iovec iov = {o->text + o->sent, o->size - o->sent};
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
        if (o->sent == o->size)
            output_free(c, o);
    }
}

struct text { /* a message being formatted */
    char *data;
    size_t size, room;
    bool failed;
};

static int text_add(const char *bytes, size_t size, void *userdata) {
    struct text *t = userdata;
    size_t room = t->room ? t->room : 512;
    char *data = t->data;

    while (room < t->size + size)
        room *= 2;
    if (room != t->room)
        data = t->failed ? NULL : realloc(t->data, room);
    if (!data) {
        t->failed = true;
        return -1;
    }
    memcpy(data + t->size, bytes, size);
    t->data = data;
    t->size += size;
    t->room = room;
    return 0;
}

static int text_add_string(const char *string, struct text *t) {
    return text_add(string, strlen(string), t);
}

/* Adds the member to the parameters, which are the last member of the document. */
static int text_add_member(const struct control_member *member, struct text *t) {
    t->size -= strlen("}}");
    if (t->data[t->size - 1] != '{' && text_add_string(",", t) < 0)
        return -1;
    return text_add_string("\"", t) < 0 || text_add_string(member->key, t) < 0 || text_add_string("\":", t) < 0 ||
                   text_add_string(member->value, t) < 0 || text_add_string("}}", t) < 0
               ? -1
               : 0;
}

/* Returns the document as text with its NUL; NULL: no memory. jansson ignores some failures of its callback,
 * so text_add() remembers them. */
static char *text_of(const json_t *document, const struct control_member *member, size_t *ret_size) {
    struct text t = {};

    if (json_dump_callback(document, text_add, &t, JSON_COMPACT) < 0 || t.failed ||
        (member && text_add_member(member, &t) < 0) || text_add("", 1, &t) < 0) {
        free(t.data);
        return NULL;
    }
    *ret_size = t.size;
    return t.data;
}

static int output_new(struct control_output **ret, json_t *document, const struct control_member *member, int fd) {
    struct control_output *o = calloc(1, sizeof(*o));
    int r = 0;

    if (!o)
        return -ENOMEM;
    list_init(&o->link);
    o->fd = -1;
    o->text = text_of(document, member, &o->size);
    if (!o->text)
        r = -ENOMEM;
    else if (fd >= 0 && (o->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0)
        r = -errno;
    if (r < 0) {
        free(o->text);
        free(o);
        return r;
    }
    *ret = o;
    return 0;
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
    struct control_output *instead = NULL;
    int r = error ? output_new(&instead, error, NULL, -1) : -ENOMEM;

    json_decref(error);
    if (r < 0)
        return r;
    close_fd((*o)->fd);
    free((*o)->text);
    free(*o);
    *o = instead;
    c->closing = true;
    return 0;
}

int control_client_send(struct control_client *c, json_t *document, const struct control_member *member, int fd) {
    bool was_empty = list_is_empty(&c->out);
    struct control_output *o = NULL;
    char text[ACCOUNT_TEXT_SIZE];
    const char *why = NULL;
    int r = 0;

    if (document && (c->hung_up || c->closing || c->failed)) {
        json_decref(document);
        return 0;
    }
    r = document ? output_new(&o, document, member, fd) : -ENOMEM;
    json_decref(document);
    if (r >= 0)
        why = account_room(c->control, c->account, o->size, text, sizeof(text));
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
