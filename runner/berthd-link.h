/* SPDX-License-Identifier: MIT */
#pragma once

/* The connections to berth-runner. The one with the latest hello is berthd's. A hello closes the others, and
 * what they still hold is not read. */

#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/message.h"
#include "runner/access.h"

struct berthd_link;

/* A negative errno closes the connection; -EBADMSG: berthd sends no such message. */
struct berthd_link_handler {
    int (*on_hello)(const struct message *m, void *userdata);
    int (*on_message)(const struct message *m, void *userdata); /* of berthd, after its hello */
    void (*on_bad)(void *userdata);                             /* -EBADMSG closed a connection */
    void (*on_gone)(bool is_berthd, void *userdata);            /* a connection has ended */
    void *userdata;
};

/* 0 or a negative errno. access must outlive the link. */
int berthd_link_new(struct berthd_link **ret, sd_event *event, const struct access *access, const struct berthd_link_handler *handler);
struct berthd_link *berthd_link_free(struct berthd_link *l);
DEFINE_CLEANUP(struct berthd_link, berthd_link_free)

/* Adds a connection whose peer was checked. Takes ownership of fd, also on failure. Returns 0 or a negative
 * errno. */
int berthd_link_add(struct berthd_link *l, int fd);
/* Accepts connections of users with access. The caller keeps fd. Returns 0 or a negative errno. */
int berthd_link_listen(struct berthd_link *l, int fd);

bool berthd_link_is_up(const struct berthd_link *l);
/* Sends a message to berthd. If that fails, closes the connection; berthd's next hello requests all
 * states. */
void berthd_link_send(struct berthd_link *l, const struct message_writer *w);
/* Closes the connection, so that berthd reconnects. */
void berthd_link_shut(struct berthd_link *l);
