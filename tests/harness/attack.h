/* SPDX-License-Identifier: MIT */
#pragma once

/* Processes of other users that attack a socket of ours, without pause, until they are ended. */

#include <stdbool.h>
#include <sys/types.h>

struct attack; /* shared with its process */

enum attack_kind {
    ATTACK_FREEZE, /* attaches sockets whose close sleeps (linger.h): to bytes that are read, to urgent ones, to what nobody reads */
    ATTACK_SILENT, /* as many connections as it gets, on which it says nothing */
    ATTACK_HALVES, /* the same, each with a large part of a call */
    ATTACK_SLOW,   /* a thousand connections that call again and again, and read no answer */
};

/* type: SOCK_STREAM or SOCK_SEQPACKET. uid: who it becomes, with no group but that of nobody. NULL with a failed assertion. */
struct attack *attack_start(enum attack_kind kind, const char *path, int type, uid_t uid);
/* Waits, 20 s at most, until it has tried so often: connected, and sent what it sends. */
bool attack_await(const struct attack *a, unsigned n);
/* How many descriptors got through: who is not heard is hung up on, sometimes before it has sent one. */
unsigned attack_sent(const struct attack *a);
struct attack *attack_end(struct attack *a);
