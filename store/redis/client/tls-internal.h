/* SPDX-License-Identifier: MIT */
#pragma once

/* For tls*.c alone. */

#include "store/redis/client/tls-library.h"
#include "store/redis/client/tls.h"

#define TLS_NAME_SIZE 256
#define TLS_TICKETS_MAX 16

struct tls_ticket { /* resumes the next session with a server; never written to a file */
    char name[TLS_NAME_SIZE];
    SSL_SESSION *session;
};

struct tls_context {
    unsigned references; /* one of the owner and one of each session */
    SSL_CTX *ctx;
    uint64_t stamp; /* of the settings, and of size, time and inode of the files */
    bool has_certificate;
    char server_name[TLS_NAME_SIZE]; /* "": the host that is connected to */
    char warning[TLS_REASON_SIZE];   /* "": none */
    struct tls_ticket tickets[TLS_TICKETS_MAX];
    unsigned next_ticket; /* the one to replace when there is no room */
};

struct tls_session {
    struct tls_context *context;
    SSL *ssl;
    BIO *in, *out; /* ciphertext; owned by `ssl` */
    size_t sent;   /* bytes of `out` that are sent */
    enum tls_state state;
    bool is_ended; /* the peer sends nothing more */
    bool is_asked; /* the server asks for a certificate of ours */
    bool is_refused;
    char name[TLS_NAME_SIZE]; /* the name that the certificate must have */
    char reason[TLS_REASON_SIZE];
    time_t until;
};

/* Returns the session of an SSL. */
struct tls_session *tls_session_of(const SSL *ssl);
/* Notes why OpenSSL does not accept the server's certificate. */
void tls_note_certificate(struct tls_session *session, X509_STORE_CTX *store);
/* Notes OpenSSL's last error as the session's reason, unless it has one. */
void tls_note_failure(struct tls_session *session);
/* Returns a time of a certificate; 0: it cannot be read. */
time_t tls_time(const ASN1_TIME *time);
