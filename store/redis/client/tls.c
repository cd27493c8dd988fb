/* SPDX-License-Identifier: MIT */

/* OpenSSL has a memory BIO on either side, so it never reads or writes a descriptor, and only waits for bytes. */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/client/resolve.h"
#include "store/redis/client/tls-internal.h"

struct tls_session *tls_session_of(const SSL *ssl) {
    return openssl.SSL_get_ex_data(ssl, 0);
}

/* --- made and freed --- */

/* No SNI for an address (RFC 6066, section 3). */
static bool set_name(struct tls_session *session) {
    if (redis_resolve_is_address(session->name))
        return openssl.X509_VERIFY_PARAM_set1_ip_asc(openssl.SSL_get0_param(session->ssl), session->name) ==
               1;
    return openssl.SSL_set1_host(session->ssl, session->name) == 1 &&
           openssl.SSL_ctrl(session->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                            session->name) == 1;
}

static void resume(struct tls_session *session) {
    for (unsigned i = 0; i < TLS_TICKETS_MAX; i++) {
        const struct tls_ticket *ticket = &session->context->tickets[i];

        if (ticket->session && strcmp(ticket->name, session->name) == 0)
            (void) openssl.SSL_set_session(session->ssl, ticket->session);
    }
}

static bool set_up(struct tls_session *session) {
    SSL *ssl = session->ssl = openssl.SSL_new(session->context->ctx);

    if (!ssl)
        return false;
    session->in = openssl.BIO_new(openssl.BIO_s_mem());
    session->out = openssl.BIO_new(openssl.BIO_s_mem());
    if (!session->in || !session->out) {
        (void) openssl.BIO_free(session->in);
        (void) openssl.BIO_free(session->out);
        return false;
    }
    openssl.SSL_set_bio(ssl, session->in, session->out);
    openssl.SSL_set_connect_state(ssl);
    return openssl.SSL_set_ex_data(ssl, 0, session) == 1 && set_name(session);
}

int tls_session_new(struct tls_session **ret, struct tls_context *context, const char *host) {
    struct tls_session *session = calloc(1, sizeof(*session));
    int result;

    if (!session)
        return -ENOMEM;
    session->context = context;
    context->references++;
    (void) snprintf(session->name, sizeof(session->name), "%s",
                    *context->server_name ? context->server_name : host);
    openssl.ERR_clear_error();
    if (!set_up(session)) {
        tls_session_free(session);
        return -ENOMEM;
    }
    resume(session);
    result = openssl.SSL_do_handshake(session->ssl);
    if (openssl.SSL_get_error(session->ssl, result) != SSL_ERROR_WANT_READ) {
        tls_session_free(session);
        return -ENOMEM;
    }
    *ret = session;
    return 0;
}

struct tls_session *tls_session_free(struct tls_session *session) {
    if (!session)
        return NULL;
    openssl.SSL_free(session->ssl);
    tls_context_unref(session->context);
    free(session);
    return NULL;
}

/* --- bytes in --- */

int tls_feed(struct tls_session *session, const void *data, size_t n) {
    if (n == 0) {
        session->is_ended = true;
        (void) openssl.BIO_ctrl(session->in, BIO_C_SET_BUF_MEM_EOF_RETURN, 0, NULL);
        return 0;
    }
    return n <= INT_MAX && openssl.BIO_write(session->in, data, (int) n) == (int) n ? 0 : -ENOMEM;
}

static ssize_t fail(struct tls_session *session) {
    tls_note_failure(session);
    session->state = TLS_STATE_OVER;
    return -EPROTO;
}

static void note_peer(struct tls_session *session) {
    X509 *certificate = openssl.SSL_get1_peer_certificate(session->ssl);

    session->until = certificate ? tls_time(openssl.X509_get0_notAfter(certificate)) : 0;
    openssl.X509_free(certificate);
}

ssize_t tls_read(struct tls_session *session, void *data, size_t size) {
    int result;

    if (session->state == TLS_STATE_OVER)
        return -EPROTO;
    openssl.ERR_clear_error();
    if (session->state == TLS_STATE_HANDSHAKE) {
        result = openssl.SSL_do_handshake(session->ssl);
        if (result != 1)
            return openssl.SSL_get_error(session->ssl, result) == SSL_ERROR_WANT_READ ? 0 : fail(session);
        session->state = TLS_STATE_UP;
        note_peer(session);
    }
    result = openssl.SSL_read(session->ssl, data, size < INT_MAX ? (int) size : INT_MAX);
    if (result > 0)
        return result;
    switch (openssl.SSL_get_error(session->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        session->state = TLS_STATE_OVER;
        return -EPIPE;
    }
    if (session->is_ended && (openssl.ERR_peek_error() == 0 || ERR_GET_REASON(openssl.ERR_peek_error()) ==
                                                                   SSL_R_UNEXPECTED_EOF_WHILE_READING)) {
        session->state = TLS_STATE_OVER;
        return -EPIPE;
    }
    return fail(session);
}

/* --- bytes out --- */

int tls_write(struct tls_session *session, const void *data, size_t n) {
    const char *from = data;

    if (session->state != TLS_STATE_UP)
        return -EPROTO;
    openssl.ERR_clear_error();
    while (n > 0) {
        int result = openssl.SSL_write(session->ssl, from, n < INT_MAX ? (int) n : INT_MAX);

        if (result <= 0)
            return (int) fail(session);
        from += result;
        n -= (size_t) result;
    }
    return 0;
}

size_t tls_pending(const struct tls_session *session, const char **ret) {
    char *data = NULL;
    long n = openssl.BIO_ctrl(session->out, BIO_CTRL_INFO, 0, &data);

    if (n <= 0 || (size_t) n <= session->sent)
        return 0;
    *ret = data + session->sent;
    return (size_t) n - session->sent;
}

void tls_sent(struct tls_session *session, size_t n) {
    const char *rest;

    session->sent += n;
    if (tls_pending(session, &rest) > 0)
        return;
    (void) openssl.BIO_ctrl(session->out, BIO_CTRL_RESET, 0, NULL);
    session->sent = 0;
}

/* --- what it is --- */

enum tls_state tls_state(const struct tls_session *session) {
    return session->state;
}

const char *tls_error(const struct tls_session *session) {
    return *session->reason ? session->reason : "failed";
}

bool tls_is_refused(const struct tls_session *session) {
    return session->is_refused;
}

time_t tls_until(const struct tls_session *session) {
    return session->until;
}

const char *tls_version(const struct tls_session *session) {
    return openssl.SSL_get_version(session->ssl);
}

bool tls_is_resumed(const struct tls_session *session) {
    return openssl.SSL_session_reused(session->ssl) == 1;
}
