/* SPDX-License-Identifier: MIT */
#pragma once

/* A real control server (daemon/control/control.h) with its own table of methods. Its clients are sockets of the
 * same process, so tests control the order of events. Only time limits take time. */

#include <sys/types.h>

#include "base/clock.h"
#include "daemon/control/control.h"

#define SERVER_PATIENCE (5 * USEC_PER_SEC)
#define SERVER_SLOW (15 * USEC_PER_MSEC)

/* Its methods are io.test. ... Echo: answers its parameters; Note: counts; Slow: counts after SERVER_SLOW of work; Keep:
 * answers when the test does (kept[]); Fail, Forget: a flawed method; Big: answers "size" bytes; Pass: "first", then "granted" with pass_fd, then "over"; PassBig: pass_fd with 2 MB;
 * Run, Secret: Echo, for who may run, for who operates. */
extern struct server {
    char directory[64], path[96];
    sd_event *event;
    struct control *control;
    struct control_call *kept[16]; /* NULL: gone */
    size_t n_kept;
    unsigned n_notes, n_gone;      /* calls of Note, Slow and Look; kept calls whose client has gone */
    int pass_fd;                   /* of the test */
    struct settings settings;      /* run_group and operate_group of the test */
} server;

/* CUnit's init and clean-up functions of a suite: a directory and an event loop. */
int server_make(void);
int server_remove(void);

/* Start a server with these limits (NULL: berthd's) and all counts 0; end it. */
extern const struct control_limits server_small; /* 4 KiB a message, 1 MiB of answers, 16 clients, 100 ms a message, 8 calls */
void server_up(const struct control_limits *limits);
/* Starts a server whose listening socket is handed in. */
void server_up_on(int listen_fd);
void server_down(void); /* the test closes the socket; checks that no client is left */
/* Lets the server finish all current work. */
void server_turn(void);
/* Returns a new connection, to be closed. */
int server_client(void);

/* The client of fd sends bytes; sends a text with its NUL and lets the server reply. */
void peer_put(int fd, const void *data, size_t size);
void peer_send(int fd, const char *text);
/* One recvmsg(), like recv(2); sets *ret_fd if a descriptor was passed. */
ssize_t peer_receive(int fd, void *data, size_t size, int *ret_fd);
/* Returns the next message, "" at the end of the connection, or "(nothing)" if none arrives. peer_received
 * has it until the next call, with its descriptor or -1. */
const char *peer_answer(int fd);
/* Like peer_answer(), but waits for the server's time limits. */
const char *peer_late_answer(int fd);
/* Calls Echo and expects its reply. */
void peer_expect_ok(int fd);

extern struct peer_received {
    char text[70000];
    size_t size;
    int fd;
} peer_received;

#define ECHO "{\"method\":\"io.test.Echo\",\"parameters\":{\"a\":[1,\"\\u00e9\",null]}}"
#define ECHOED "{\"parameters\":{\"a\":[1,\"é\",null]}}"
