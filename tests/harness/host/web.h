/* SPDX-License-Identifier: MIT */
#pragma once

/* berth-web of a host, with actions, on TCP and on a unix socket for a proxy; and HTTP requests. */

#include "tests/harness/host/host.h"

#define WEB_TOKEN "0123456789abcdef0123456789abcdef"
#define WEB_SITE "berth.example.net"    /* its --host */
#define WEB_USER_HEADER "X-Remote-User" /* believed on the unix socket */

struct web {
    struct child *child;
    unsigned port; /* of 127.0.0.1 */
    char unix_path[96];
};

/* Starts berth-web, and awaits the first picture of its berthd. */
void web_up(struct web *w, const struct host *h);
/* SIGTERM. A failed assertion if it ends with another status than 0, or has written errors. */
void web_down(struct web *w);

/* Connects to a port of 127.0.0.1. Returns the descriptor, -1: refused. */
int web_connect(unsigned port);
/* Sends a request and reads until the server closes the connection, for HOST_PATIENCE at most: a stream does not end. fd: closed; -1: no
 * connection. Returns the status (0: none). *ret is the whole reply, valid until the next call. */
unsigned web_send(int fd, const char *text, const char **ret);
/* The same with a request of these parts; headers: lines. */
unsigned web_ask(int fd, const char *method, const char *path, const char *headers, const char *body, const char **ret);
