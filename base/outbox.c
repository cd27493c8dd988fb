/* SPDX-License-Identifier: MIT */
#include "base/outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct outbox_message {
    struct list link;
    size_t size;
    char text[];
};

void outbox_init(struct outbox *o) {
    list_init(&o->messages);
    o->n = 0;
}

static void outbox_remove(struct outbox *o, struct outbox_message *m) {
    list_unlink(&m->link);
    free(m);
    o->n--;
}

void outbox_done(struct outbox *o) {
    list_foreach_safe(m, &o->messages, struct outbox_message, link)
        outbox_remove(o, m);
}

static int outbox_keep(struct outbox *o, const struct message_writer *w) {
    struct outbox_message *m;

    if (o->n >= OUTBOX_MAX)
        return -ENOBUFS;
    m = malloc(sizeof(*m) + w->size);
    if (!m)
        return -ENOMEM;
    m->size = w->size;
    memcpy(m->text, w->text, w->size);
    list_append(&o->messages, &m->link);
    o->n++;
    return OUTBOX_E_KEPT;
}

int outbox_send(struct outbox *o, int fd, const struct message_writer *w) {
    int r;

    if (w->error < 0)
        return w->error;
    if (!list_is_empty(&o->messages))
        return outbox_keep(o, w);
    r = message_send(fd, w);
    return r == -EAGAIN ? outbox_keep(o, w) : r;
}

int outbox_flush(struct outbox *o, int fd) {
    list_foreach_safe(m, &o->messages, struct outbox_message, link) {
        if (send(fd, m->text, m->size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
            if (errno == EAGAIN || errno == EINTR)
                return OUTBOX_E_KEPT;
            return -errno;
        }
        outbox_remove(o, m);
    }
    return 0;
}
