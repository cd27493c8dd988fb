/* SPDX-License-Identifier: MIT */
#include "runner/berthd-link.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/connection.h"
#include "base/discard.h"
#include "base/list.h"
#include "base/listener.h"
#include "base/outbox.h"
#include "base/protocol.h"

#define CONNECTIONS_MAX 16

struct connection {
    struct list link; /* on berthd_link.connections */
    struct berthd_link *owner;
    int fd;
    sd_event_source *source;
    struct outbox outbox;
};

struct berthd_link {
    sd_event *event;
    const struct access *access;
    struct berthd_link_handler handler;
    struct discard *discard;
    struct listener *listener; /* NULL: berth-runner has a socketpair */
    struct list connections;   /* struct connection, oldest first */
    size_t n_connections;
    struct connection *berthd; /* the one with the latest hello; NULL: none */
};

static struct connection *connection_free(struct connection *c) {
    struct berthd_link *l = c->owner;

    if (l->berthd == c)
        l->berthd = NULL;
    list_unlink(&c->link);
    l->n_connections--;
    sd_event_source_disable_unref(c->source);
    discard_connection(l->discard, c->fd);
    outbox_done(&c->outbox);
    free(c);
    return NULL;
}

static void end_connection(struct connection *c) {
    struct berthd_link *l = c->owner;
    bool is_berthd = l->berthd == c;

    connection_free(c);
    l->handler.on_gone(is_berthd, l->handler.userdata);
}

bool berthd_link_is_up(const struct berthd_link *l) {
    return l->berthd != NULL;
}

void berthd_link_shut(struct berthd_link *l) {
    if (l->berthd)
        (void) shutdown(l->berthd->fd, SHUT_RDWR); /* freed when its end is read: callers may still use it */
}

void berthd_link_send(struct berthd_link *l, const struct message_writer *w) {
    struct connection *c = l->berthd;
    int k;

    if (!c)
        return;
    k = outbox_send(&c->outbox, c->fd, w);
    if (k == OUTBOX_E_KEPT)
        (void) sd_event_source_set_io_events(c->source, EPOLLIN | EPOLLOUT);
    else if (k < 0)
        berthd_link_shut(l);
}

static int take(struct berthd_link *l, struct connection *c, const struct message *m) {
    if (message_is(m, PROTOCOL_HELLO)) {
        list_foreach_safe(other, &l->connections, struct connection, link)
            if (other != c)
                connection_free(other); /* without reading on: its berthd is gone */
        l->berthd = c;
        return l->handler.on_hello(m, l->handler.userdata);
    }
    return c == l->berthd ? l->handler.on_message(m, l->handler.userdata) : -EBADMSG;
}

static int connection_on_io(_unused_ sd_event_source *source, int fd, uint32_t revents, void *userdata) {
    struct connection *c = userdata;
    struct berthd_link *l = c->owner;
    struct message m;
    int k;

    if ((revents & EPOLLOUT) && outbox_flush(&c->outbox, fd) == 0)
        (void) sd_event_source_set_io_events(c->source, EPOLLIN);
    k = message_receive(fd, &m);
    if (k == 0)
        k = take(l, c, &m);
    if (k == 0 || k == -EAGAIN)
        return 0;
    if (k == -EBADMSG)
        l->handler.on_bad(l->handler.userdata);
    end_connection(c);
    return 0;
}

int berthd_link_add(struct berthd_link *l, int fd) {
    struct connection *c = calloc(1, sizeof(*c));
    int k;

    if (!c) {
        discard_connection(l->discard, fd);
        return -ENOMEM;
    }
    c->owner = l;
    c->fd = fd;
    outbox_init(&c->outbox);
    list_append(&l->connections, &c->link);
    l->n_connections++;
    k = sd_event_add_io(l->event, &c->source, fd, EPOLLIN, connection_on_io, c);
    if (k < 0)
        connection_free(c);
    return k;
}

static void on_connection(int fd, void *userdata) {
    struct berthd_link *l = userdata;

    if (l->n_connections < CONNECTIONS_MAX && access_is_allowed(l->access, fd) && connection_prepare(fd) == 0)
        (void) berthd_link_add(l, fd);
    else
        discard_connection(l->discard, fd);
}

int berthd_link_listen(struct berthd_link *l, int fd) {
    return listener_new(&l->listener, l->event, fd, SD_EVENT_PRIORITY_NORMAL, on_connection, l);
}

int berthd_link_new(struct berthd_link **ret, sd_event *event, const struct access *access,
                    const struct berthd_link_handler *handler) {
    _cleanup_(berthd_link_freep) struct berthd_link *l = calloc(1, sizeof(*l));
    int k;

    if (!l)
        return -ENOMEM;
    l->event = sd_event_ref(event);
    l->access = access;
    l->handler = *handler;
    list_init(&l->connections);
    k = discard_new(&l->discard, event);
    if (k < 0)
        return k;
    *ret = steal_pointer(&l);
    return 0;
}

struct berthd_link *berthd_link_free(struct berthd_link *l) {
    if (!l)
        return NULL;
    list_foreach_safe(c, &l->connections, struct connection, link)
        connection_free(c);
    listener_free(l->listener);
    discard_free(l->discard);
    sd_event_unref(l->event);
    free(l);
    return NULL;
}
