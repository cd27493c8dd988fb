/* SPDX-License-Identifier: MIT */
#pragma once

/* The connections to berth-runner. berthd's is the last one that sent hello; the others are closed then, unread. */

#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/message.h"
#include "runner/access.h"

struct berthd_link;

/* Each returns 0 or a negative errno, which closes the connection; -EBADMSG: what came is not a message of berthd. */
struct berthd_link_handler {
    int (*on_hello)(const struct message *m, void *userdata);
    int (*on_message)(const struct message *m, void *userdata); /* of berthd, after its hello */
    void (*on_bad)(void *userdata);                             /* a connection was closed for -EBADMSG */
    void (*on_gone)(bool is_berthd, void *userdata);            /* a connection has ended */
    void *userdata;
};

/* 0 or a negative errno. access must outlive the link. */
int berthd_link_new(struct berthd_link **ret, sd_event *event, const struct access *access, const struct berthd_link_handler *handler);
struct berthd_link *berthd_link_free(struct berthd_link *l);
DEFINE_CLEANUP(struct berthd_link, berthd_link_free)

/* Takes over a connection that is allowed; fd in any case. 0 or a negative errno. */
int berthd_link_add(struct berthd_link *l, int fd);
/* Accepts connections of those who have access; fd stays the caller's. 0 or a negative errno. */
int berthd_link_listen(struct berthd_link *l, int fd);

bool berthd_link_is_up(const struct berthd_link *l);
/* Sends a message. One that cannot be sent closes the connection: berthd comes again, and its hello asks for all. */
void berthd_link_send(struct berthd_link *l, const struct message_writer *w);
/* Closes the connection, so that berthd comes again. */
void berthd_link_shut(struct berthd_link *l);
