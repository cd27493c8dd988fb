/* SPDX-License-Identifier: MIT */
#pragma once

/* A node of a cluster that another node names ("MOVED SLOT HOST:PORT"), and the slot of a key. */

#include <stdint.h>

#define MOVED_HOST_SIZE 256 /* a name has at most 253 bytes */

struct moved {
    char host[MOVED_HOST_SIZE]; /* name or address, IPv6 without brackets; "": that of the node that replied */
    uint16_t port;              /* 0: no node is named */
};

/* Parses an error of Redis. 0, or -EBADMSG: it names no node. */
int moved_parse(const char *error, struct moved *ret);
/* Returns the slot of a key, 0 to 16383: that of the text in its first braces, if it has any. */
unsigned moved_slot(const char *key);
