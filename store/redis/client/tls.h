/* SPDX-License-Identifier: MIT */
#pragma once

/* TLS as a filter of bytes, on OpenSSL: no descriptor, no event loop. The context has our certificate and
 * the trusted ones. A session is one connection. Names are always verified. OpenSSL is loaded with the first
 * context (tls-library.h). */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define TLS_REASON_SIZE 224

struct tls_settings;
struct tls_context;
struct tls_session;

enum tls_state {
    TLS_STATE_HANDSHAKE,
    TLS_STATE_UP,
    TLS_STATE_OVER, /* closed or failed */
};

/* --- the context --- */

/* Loads *context (NULL at first) from the settings and the files as they are now; keeps it if nothing has changed, and
 * after an error. 0, a negative errno, or TLS_E_FILES: `why` names the file and what is wrong with it. */
enum { TLS_E_FILES = 1 };
int tls_context_load(struct tls_context **context, const struct tls_settings *settings, char *why,
                     size_t size);
/* Returns a hash of the settings and of the files as they are now (size, time, inode). */
uint64_t tls_settings_stamp(const struct tls_settings *settings);
/* Loads a context and drops it. 0, a negative errno, or TLS_E_FILES: a file is wrong, or our certificate has expired. A
 * file that this process may not read is no error. */
int tls_settings_check(const struct tls_settings *settings, usec_t now_realtime, char *why, size_t size);
/* Drops the owner's reference; sessions stay valid. Returns NULL. */
struct tls_context *tls_context_unref(struct tls_context *context);
DEFINE_CLEANUP(struct tls_context, tls_context_unref)
/* Returns a warning about the files, or NULL. */
const char *tls_context_warning(const struct tls_context *context);

/* --- a session --- */

/* Begins the handshake: tls_pending() has the first bytes. host: the server's name or numeric address;
 * tls-server-name replaces it. 0 or a negative errno. */
int tls_session_new(struct tls_session **ret, struct tls_context *context, const char *host);
struct tls_session *tls_session_free(struct tls_session *session);
/* Takes received ciphertext for tls_read(). n: 0: the peer has closed the connection. 0 or -ENOMEM. */
int tls_feed(struct tls_session *session, const void *data, size_t n);
/* Continues the handshake, and reads. > 0: the number of bytes; 0: none yet; -EPIPE: the peer has closed the
 * connection after the handshake; -EPROTO: failed, see tls_error(). */
ssize_t tls_read(struct tls_session *session, void *data, size_t size);
/* Encrypts all of it; the state must be UP. 0, -ENOMEM, -EPROTO. */
int tls_write(struct tls_session *session, const void *data, size_t n);
/* Returns the number of bytes of ciphertext at *ret to be sent. */
size_t tls_pending(const struct tls_session *session, const char **ret);
void tls_sent(struct tls_session *session, size_t n);
enum tls_state tls_state(const struct tls_session *session);
/* Returns the reason of -EPROTO. */
const char *tls_error(const struct tls_session *session);
/* Returns whether an administrator must change a certificate before another attempt can succeed. */
bool tls_is_refused(const struct tls_session *session);
/* Returns the end of the server's certificate; 0 before the state is UP. */
time_t tls_until(const struct tls_session *session);
/* Returns the version, such as "TLSv1.3". */
const char *tls_version(const struct tls_session *session);
/* Returns whether the session resumed an earlier one. */
bool tls_is_resumed(const struct tls_session *session);
