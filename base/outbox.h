/* SPDX-License-Identifier: MIT */
#pragma once

/* Messages for a slow peer: sent at once if possible, else kept in order. */

#include "base/list.h"
#include "base/message.h"

#define OUTBOX_MAX 65536 /* messages: more than a host has runs; a slower peer is disconnected */

struct outbox {
    struct list messages; /* struct outbox_message */
    size_t n;
};

void outbox_init(struct outbox *o);
void outbox_done(struct outbox *o); /* drops unsent messages */
/* 0: sent; OUTBOX_E_KEPT: kept, so wait for EPOLLOUT and flush; the writer's error; -ENOBUFS above OUTBOX_MAX; -ENOMEM; another
 * negative errno of send(2). */
enum { OUTBOX_E_KEPT = 1 };
int outbox_send(struct outbox *o, int fd, const struct message_writer *w);
/* 0: all were sent; OUTBOX_E_KEPT: some are left; a negative errno of send(2). */
int outbox_flush(struct outbox *o, int fd);
