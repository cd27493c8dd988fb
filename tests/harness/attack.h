/* SPDX-License-Identifier: MIT */
#pragma once

/* Processes of other users that attack a socket without pause until they are killed. */

#include <stdbool.h>
#include <sys/types.h>

struct attack; /* shared with the attacking process */

enum attack_kind {
    ATTACK_FREEZE, /* attaches sockets whose close sleeps (slow-close.h), to bytes read, urgent or not read */
    ATTACK_SILENT, /* as many silent connections as possible */
    ATTACK_HALVES, /* the same, each with a large part of a call */
    ATTACK_SLOW,   /* a thousand connections that call again and again, and read no reply */
};

/* type: SOCK_STREAM or SOCK_SEQPACKET. uid: of the process; its only group is that of nobody. NULL with a
 * failed assertion. */
struct attack *attack_start(enum attack_kind kind, const char *path, int type, uid_t uid);
/* Waits, 20 s at most, for this number of attempts: connections with the data of the attack. */
bool attack_await(const struct attack *a, unsigned n);
/* Returns how many descriptors were sent. Connections that are refused may be closed before. */
unsigned attack_sent(const struct attack *a);
struct attack *attack_end(struct attack *a);
