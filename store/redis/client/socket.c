/* SPDX-License-Identifier: MIT */
#include "store/redis/client/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "store/redis/client/compat.h"

#define CHUNK ((size_t) 16 << 10)

/* --- made and closed --- */

/* Detects a dead peer also on the subscription, where nothing is sent. */
static void watch_peer(int fd, usec_t timeout) {
    int on = 1, seconds = (int) (timeout / USEC_PER_SEC) + 1, probes = 3;
    unsigned milliseconds = (unsigned) (timeout / USEC_PER_MSEC);

    (void) setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

union address {
    struct sockaddr any;
    struct sockaddr_un un;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

/* Returns the size of the address, 0 if it is none. */
static socklen_t make_address(const struct redis_target *target, union address *address) {
    *address = (union address){};
    if (target->unix_path) {
        address->un.sun_family = AF_UNIX;
        if (strlen(target->unix_path) >= sizeof(address->un.sun_path))
            return 0;
        memcpy(address->un.sun_path, target->unix_path, strlen(target->unix_path) + 1);
        return sizeof(address->un);
    }
    if (inet_pton(AF_INET, target->address, &address->in.sin_addr) == 1) {
        address->in.sin_family = AF_INET;
        address->in.sin_port = htons(target->port);
        return sizeof(address->in);
    }
    if (inet_pton(AF_INET6, target->address, &address->in6.sin6_addr) == 1) {
        address->in6.sin6_family = AF_INET6;
        address->in6.sin6_port = htons(target->port);
        return sizeof(address->in6);
    }
    return 0;
}

int redis_socket_open(struct redis_socket *s, const struct redis_target *target, usec_t timeout) {
    union address address;
    socklen_t size = make_address(target, &address);

    *s = (struct redis_socket){.fd = -1, .context = target->tls, .is_network = !target->unix_path};
    if (size == 0)
        return -EADDRNOTAVAIL;
    if (s->is_network) {
        const char *name = target->name ? target->name : target->address;

        (void) snprintf(s->name, sizeof(s->name), "%s", name);
        (void) snprintf(s->where, sizeof(s->where), strchr(name, ':') ? "[%.250s]:%u" : "%.253s:%u", name,
                        target->port);
    }
    s->fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->fd < 0)
        return -errno;
    if (s->is_network)
        watch_peer(s->fd, timeout);
    return connect(s->fd, &address.any, size) < 0 && errno != EINPROGRESS ? -errno : 0;
}

void redis_socket_done(struct redis_socket *s) {
    s->tls = tls_session_free(s->tls);
    s->fd = close_fd(s->fd);
}

/* --- errors --- */

static int fail(struct redis_socket *s, const char *reason) {
    (void) snprintf(s->reason, sizeof(s->reason), "%s", reason);
    return -1;
}

static int fail_tls(struct redis_socket *s, const char *reason) {
    (void) snprintf(s->reason, sizeof(s->reason), "TLS with %s: %s", s->where, reason);
    return -1;
}

/* A server that expects TLS closes a plain connection without a reply. */
static int fail_closed(struct redis_socket *s, const char *reason) {
    if (s->has_answered || !s->is_network || s->context)
        return fail(s, reason);
    s->is_turned_away = true;
    (void) snprintf(s->reason, sizeof(s->reason),
                    "%s: closed before the first answer: should url begin with rediss://?", s->where);
    return -1;
}

static bool is_shaking_hands(const struct redis_socket *s) {
    return s->tls && tls_state(s->tls) == TLS_STATE_HANDSHAKE;
}

const char *redis_socket_explain_silence(struct redis_socket *s) {
    if (is_shaking_hands(s))
        (void) fail_tls(s, "no answer in time: does it speak TLS on this port?");
    else
        (void) fail(s, s->has_answered ? "no answer in time" : "cannot connect in time");
    return s->reason;
}

/* --- plain --- */

static int send_plain(struct redis_socket *s, struct redis_outbuf *out) {
    ssize_t sent =
        send(s->fd, out->data, out->size, MSG_NOSIGNAL | MSG_DONTWAIT); /* hiredis would raise SIGPIPE */

    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        return errno == EPIPE || errno == ECONNRESET ? fail_closed(s, strerror(errno))
                                                     : fail(s, strerror(errno));
    if (sent > 0)
        redis_outbuf_consume(out, (size_t) sent);
    return 0;
}

/* --- TLS --- */

static int send_ciphertext(struct redis_socket *s) {
    const char *data;
    size_t n = tls_pending(s->tls, &data);
    ssize_t sent;

    if (n == 0)
        return 0;
    sent = send(s->fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        return fail_tls(s, strerror(errno));
    if (sent > 0)
        tls_sent(s->tls, (size_t) sent);
    return 0;
}

static int fail_session(struct redis_socket *s) {
    (void) send_ciphertext(s); /* the alert, for the server's log */
    s->is_refused = tls_is_refused(s->tls);
    return fail_tls(s, tls_error(s->tls));
}

static int send_tls(struct redis_socket *s, struct redis_outbuf *out) {
    if (out->size > 0 && tls_state(s->tls) == TLS_STATE_UP) {
        int r = tls_write(s->tls, out->data, out->size);

        if (r == -EPROTO)
            return fail_session(s);
        if (r < 0)
            return fail(s, strerror(-r));
        redis_outbuf_consume(out, out->size);
    }
    return send_ciphertext(s);
}

static int receive_tls(struct redis_socket *s, redisReader *reader, const char *data, size_t size) {
    char plain[CHUNK];
    ssize_t n;

    s->is_turned_away = size == 0 && is_shaking_hands(s);

    if (tls_feed(s->tls, data, size) < 0)
        return fail(s, strerror(ENOMEM));
    while ((n = tls_read(s->tls, plain, sizeof(plain))) > 0)
        if (redisReaderFeed(reader, plain, (size_t) n) != REDIS_OK)
            return fail(s, reader->errstr);
    return n == 0 ? 0 : n == -EPIPE ? fail(s, "Server closed the connection") : fail_session(s);
}

/* --- both --- */

int redis_socket_finish(struct redis_socket *s) {
    int error = 0, r;
    socklen_t size = sizeof(error);

    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    if (error > 0)
        return fail(s, strerror(error));
    s->is_connected = true;
    r = s->context ? tls_session_new(&s->tls, s->context, s->name) : 0;
    return r < 0 ? fail(s, strerror(-r)) : 0;
}

int redis_socket_send(struct redis_socket *s, struct redis_outbuf *out) {
    return s->tls ? send_tls(s, out) : send_plain(s, out);
}

bool redis_socket_awaits_room(const struct redis_socket *s, const struct redis_outbuf *out) {
    const char *data;

    return s->tls ? tls_pending(s->tls, &data) > 0 : out->size > 0;
}

bool redis_socket_is_up(const struct redis_socket *s) {
    return s->is_connected && (!s->tls || tls_state(s->tls) == TLS_STATE_UP);
}

int redis_socket_receive(struct redis_socket *s, redisReader *reader) {
    char data[CHUNK];
    ssize_t n = recv(s->fd, data, sizeof(data), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0 && errno == ECONNRESET && is_shaking_hands(s))
        n = 0; /* a Redis with too many clients closes before it reads the handshake */
    if (n < 0)
        return s->tls && !s->has_answered ? fail_tls(s, strerror(errno))
               : errno == ECONNRESET      ? fail_closed(s, strerror(errno))
                                          : fail(s, strerror(errno));
    if (s->tls)
        return receive_tls(s, reader, data, (size_t) n);
    if (n == 0)
        return fail_closed(s, "Server closed the connection");
    return redisReaderFeed(reader, data, (size_t) n) == REDIS_OK ? 0 : fail(s, reader->errstr);
}
