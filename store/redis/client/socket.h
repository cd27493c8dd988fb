/* SPDX-License-Identifier: MIT */
#pragma once

/* The socket of a connection to Redis, plain or with TLS. It connects without blocking, sends an output buffer, and
 * passes what it receives to hiredis's reader. It knows no event loop. */

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "store/redis/client/outbuf.h"
#include "store/redis/client/tls.h"

#define SOCKET_REASON_SIZE 576
#define SOCKET_WHERE_SIZE 264

struct redisReader;

struct redis_target {      /* where to connect, and how */
    const char *unix_path; /* NULL: address and port count */
    const char *address;   /* numeric */
    uint16_t port;
    const char *name;        /* host of the url, which a certificate must name; also for people */
    struct tls_context *tls; /* NULL: plain */
    const char *password;    /* or NULL */
    usec_t deadline;         /* boottime by which the server must have answered for the first time */
};

struct redis_socket {
    int fd;
    struct tls_context *context;
    struct tls_session *tls; /* NULL: plain, or not connected yet */
    bool is_network;         /* not a unix socket */
    bool is_connected;
    bool has_answered; /* the first reply was received; set by the owner */
    bool is_turned_away; /* closed before the first answer, as by a server with too many clients */
    bool is_refused; /* a certificate is wrong, which an administrator must change */
    char name[SOCKET_WHERE_SIZE], where[SOCKET_WHERE_SIZE]; /* "redis.example:6379" */
    char reason[SOCKET_REASON_SIZE];                        /* why a call failed */
};

/* Begins to connect; the socket is writable when that is over. timeout: within which a dead peer is noticed. 0 or a
 * negative errno; redis_socket_done() in any case. */
int redis_socket_open(struct redis_socket *s, const struct redis_target *target, usec_t timeout);
void redis_socket_done(struct redis_socket *s);

/* The functions below that return int return 0, or -1: the connection is over, see reason. */

/* Takes the result of connecting, and begins TLS. */
int redis_socket_finish(struct redis_socket *s);
/* Sends what there is room for. During a TLS handshake commands stay in `out`. */
int redis_socket_send(struct redis_socket *s, struct redis_outbuf *out);
/* Returns whether bytes wait for room in the socket. */
bool redis_socket_awaits_room(const struct redis_socket *s, const struct redis_outbuf *out);
/* Receives what there is, up to 16 KiB. */
int redis_socket_receive(struct redis_socket *s, struct redisReader *reader);
/* Returns whether commands can be sent: the socket is connected, and TLS, if any, is up. */
bool redis_socket_is_up(const struct redis_socket *s);
/* Returns why the server did not answer before its deadline. */
const char *redis_socket_explain_silence(struct redis_socket *s);
