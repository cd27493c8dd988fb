/* SPDX-License-Identifier: MIT */

/* The context: trusted certificates, our certificate and its key, and the tickets of earlier sessions. berth reads the
 * files itself, so that their size is bounded and errors name them. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "conf/hash.h"
#include "conf/settings.h"
#include "store/redis/client/secret.h"
#include "store/redis/client/tls-internal.h"

#define FILE_MAX ((size_t) 1 << 20)

enum tls_file { TLS_FILE_CA, TLS_FILE_CERTIFICATE, TLS_FILE_KEY, TLS_FILES };

static const struct {
    const char *option, *credential;
} names[TLS_FILES] = {
    [TLS_FILE_CA] = {"tls-ca", "redis-ca"},
    [TLS_FILE_CERTIFICATE] = {"tls-certificate", "redis-certificate"},
    [TLS_FILE_KEY] = {"tls-key", "redis-key"},
};

struct tls_reading { /* a context while it is made */
    struct tls_context *context;
    char *why;
    size_t size;
    char paths[TLS_FILES][SECRET_PATH_SIZE]; /* "": none */
    const char *path;                        /* of the file under way */
    enum tls_file file;
};

static int refuse(const struct tls_reading *reading, const char *wrong) {
    (void) snprintf(reading->why, reading->size, "%s %s: %s", names[reading->file].option, reading->path,
                    wrong);
    return TLS_E_FILES;
}

/* --- whether something has changed --- */

struct folder {
    const char *path;
    struct tls_reading *reading; /* NULL: for the stamp alone */
    uint64_t stamp;              /* a sum over all files, whatever their order */
    unsigned n;                  /* certificates in them */
};

static int stamp_entry(const char *name, void *userdata) {
    struct folder *folder = userdata;
    uint64_t stamp = HASH_EMPTY;
    char path[SECRET_PATH_SIZE];

    if ((size_t) snprintf(path, sizeof(path), "%s/%s", folder->path, name) < sizeof(path))
        redis_secret_add_stamp(&stamp, path);
    folder->stamp += stamp;
    return 0;
}

static void find_paths(struct tls_reading *reading, const struct tls_settings *settings) {
    const char *const options[TLS_FILES] = {settings->ca, settings->certificate, settings->key};

    for (unsigned i = 0; i < TLS_FILES; i++)
        (void) redis_secret_path(options[i], names[i].credential, reading->paths[i]);
}

static uint64_t stamp_of(const struct tls_reading *reading, const struct tls_settings *settings) {
    struct folder folder = {.path = reading->paths[TLS_FILE_CA]};
    uint64_t stamp = HASH_EMPTY;

    for (unsigned i = 0; i < TLS_FILES; i++)
        redis_secret_add_stamp(&stamp, reading->paths[i]);
    if (*folder.path)
        (void) directory_each(folder.path, stamp_entry, &folder);
    hash_add_number(&stamp, "folder", folder.stamp);
    hash_add_text(&stamp, "server-name", settings->server_name ? settings->server_name : "");
    hash_add_number(&stamp, "minimum", settings->minimum);
    return stamp;
}

/* --- files --- */

/* Gives no passphrase for a key: a daemon cannot ask for one. */
static int no_passphrase(_unused_ char *buffer, _unused_ int size, _unused_ int rwflag,
                         _unused_ void *userdata) {
    return -1;
}

static int read_pem(struct tls_reading *reading, const char *path, BIO **ret, char **ret_text) {
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r;

    reading->path = path;
    r = file_read(path, FILE_MAX, &text, &size);
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        return refuse(reading, strerror(-r));
    *ret = openssl.BIO_new_mem_buf(text, (int) size);
    if (!*ret)
        return -ENOMEM;
    *ret_text = steal_pointer(&text);
    return 0;
}

static void done_pem(BIO *bio, char *text) {
    (void) openssl.BIO_free(bio);
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

/* Adds each certificate of a file to the trusted ones. */
static int trust_file(struct tls_reading *reading, const char *path, unsigned *n) {
    BIO *bio = NULL;
    char *text = NULL;
    X509 *certificate;
    int r = read_pem(reading, path, &bio, &text);

    while (r == 0 && (certificate = openssl.PEM_read_bio_X509(bio, NULL, no_passphrase, NULL))) {
        if (openssl.X509_STORE_add_cert(openssl.SSL_CTX_get_cert_store(reading->context->ctx),
                                        certificate) != 1)
            r = -ENOMEM;
        openssl.X509_free(certificate);
        ++*n;
    }
    done_pem(bio, text);
    return r;
}

static int trust_entry(const char *name, void *userdata) {
    struct folder *folder = userdata;
    char path[SECRET_PATH_SIZE];
    char why[TLS_REASON_SIZE];
    struct tls_reading quiet = {.context = folder->reading->context, .why = why, .size = sizeof(why)};
    int r;

    if ((size_t) snprintf(path, sizeof(path), "%s/%s", folder->path, name) >= sizeof(path))
        return 0;
    r = trust_file(&quiet, path, &folder->n); /* another kind of file is no error */
    return r < 0 ? r : 0;
}

static int read_trusted(struct tls_reading *reading) {
    struct folder folder = {.path = reading->paths[TLS_FILE_CA], .reading = reading};
    struct stat st;
    int r;

    reading->file = TLS_FILE_CA;
    reading->path = folder.path;
    if (*folder.path == '\0')
        return openssl.SSL_CTX_set_default_verify_paths(reading->context->ctx) == 1 ? 0 : -ENOMEM;
    if (stat(folder.path, &st) < 0)
        return refuse(reading, strerror(errno));
    r = S_ISDIR(st.st_mode) ? directory_each(folder.path, trust_entry, &folder)
                            : trust_file(reading, folder.path, &folder.n);
    if (r < 0 && r != -ENOMEM)
        return refuse(reading, strerror(-r));
    return r != 0 ? r : folder.n == 0 ? refuse(reading, "no certificate in it") : 0;
}

/* The first certificate is ours, the others are its chain. */
static int read_certificate(struct tls_reading *reading) {
    SSL_CTX *ctx = reading->context->ctx;
    BIO *bio = NULL;
    char *text = NULL;
    unsigned n = 0;
    int r;

    reading->file = TLS_FILE_CERTIFICATE;
    for (r = read_pem(reading, reading->paths[TLS_FILE_CERTIFICATE], &bio, &text); r == 0; n++) {
        X509 *certificate = openssl.PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);

        if (!certificate)
            break;
        if (n == 0 && openssl.SSL_CTX_use_certificate(ctx, certificate) != 1)
            r = refuse(reading, "OpenSSL does not accept it");
        else if (n > 0 && openssl.SSL_CTX_ctrl(ctx, SSL_CTRL_CHAIN_CERT, 1, certificate) != 1)
            r = -ENOMEM;
        openssl.X509_free(certificate);
    }
    done_pem(bio, text);
    return r == 0 && n == 0 ? refuse(reading, "no certificate in it") : r;
}

static int read_key(struct tls_reading *reading) {
    BIO *bio = NULL;
    char *text = NULL;
    EVP_PKEY *key;
    int r;

    reading->file = TLS_FILE_KEY;
    r = read_pem(reading, reading->paths[TLS_FILE_KEY], &bio, &text);
    if (r == 0) {
        key = openssl.PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
        if (!key)
            r = refuse(reading, strstr(text, "ENCRYPTED")
                                    ? "the key has a passphrase, which berthd cannot ask for"
                                    : "no private key in it");
        else if (openssl.SSL_CTX_use_PrivateKey(reading->context->ctx, key) != 1 ||
                 openssl.SSL_CTX_check_private_key(reading->context->ctx) != 1)
            r = refuse(reading, "does not belong to tls-certificate");
        openssl.EVP_PKEY_free(key);
    }
    done_pem(bio, text);
    return r;
}

static void note_mode(struct tls_reading *reading) {
    const char *path = reading->paths[TLS_FILE_KEY];
    struct stat st;

    if (stat(path, &st) == 0 && st.st_mode & S_IRWXO)
        (void) snprintf(reading->context->warning, sizeof(reading->context->warning),
                        "tls-key %.150s is open to every user of this machine; run: chmod o-rwx", path);
}

/* Reads our certificate and key. Having none is no error. */
static int read_ours(struct tls_reading *reading) {
    int r;

    if (reading->paths[TLS_FILE_CERTIFICATE][0] == '\0' && reading->paths[TLS_FILE_KEY][0] == '\0')
        return 0;
    for (unsigned i = TLS_FILE_CERTIFICATE; i <= TLS_FILE_KEY; i++)
        if (reading->paths[i][0] == '\0') {
            (void) snprintf(reading->why, reading->size, "%s is missing beside %s", names[i].option,
                            reading->paths[i == TLS_FILE_KEY ? TLS_FILE_CERTIFICATE : TLS_FILE_KEY]);
            return TLS_E_FILES;
        }
    r = read_certificate(reading);
    if (r == 0)
        r = read_key(reading);
    if (r == 0)
        note_mode(reading);
    reading->context->has_certificate = r == 0;
    return r;
}

/* --- OpenSSL's side --- */

/* Replaces a server's earlier ticket by its new one. Returns 1: the ticket is ours now. */
static int context_on_ticket(SSL *ssl, SSL_SESSION *resumable) {
    struct tls_session *session = tls_session_of(ssl);
    struct tls_context *context = session->context;
    struct tls_ticket *ticket = NULL;

    for (unsigned i = 0; i < TLS_TICKETS_MAX && !ticket; i++)
        if (!context->tickets[i].session || strcmp(context->tickets[i].name, session->name) == 0)
            ticket = &context->tickets[i];
    if (!ticket)
        ticket = &context->tickets[context->next_ticket++ % TLS_TICKETS_MAX];
    openssl.SSL_SESSION_free(ticket->session);
    memcpy(ticket->name, session->name, sizeof(ticket->name));
    ticket->session = resumable;
    return 1;
}

static int context_on_asked(SSL *ssl, _unused_ void *userdata) {
    tls_session_of(ssl)->is_asked = true;
    return 1;
}

static int context_on_certificate(int is_ok, X509_STORE_CTX *store) {
    SSL *ssl = openssl.X509_STORE_CTX_get_ex_data(store, openssl.SSL_get_ex_data_X509_STORE_CTX_idx());

    if (!is_ok && ssl)
        tls_note_certificate(tls_session_of(ssl), store);
    return is_ok;
}

/* Ciphers and groups are those of the system (openssl.cnf). */
static bool set_rules(SSL_CTX *ctx, enum tls_minimum minimum) {
    X509_VERIFY_PARAM *param = openssl.SSL_CTX_get0_param(ctx);

    (void) openssl.SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    (void) openssl.SSL_CTX_ctrl(ctx, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, NULL);
    (void) openssl.SSL_CTX_ctrl(ctx, SSL_CTRL_SET_SESS_CACHE_MODE,
                                SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL, NULL);
    openssl.SSL_CTX_sess_set_new_cb(ctx, context_on_ticket);
    openssl.SSL_CTX_set_cert_cb(ctx, context_on_asked, NULL);
    openssl.SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, context_on_certificate);
    openssl.X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    /* Any certificate in tls-ca is a trust anchor, so that it can pin a server's own. */
    return openssl.X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN) == 1 &&
           openssl.SSL_CTX_ctrl(ctx, SSL_CTRL_SET_MIN_PROTO_VERSION,
                                minimum == TLS_MINIMUM_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION, NULL) == 1;
}

/* --- made and freed --- */

static int context_new(struct tls_context **ret, struct tls_reading *reading,
                       const struct tls_settings *settings, uint64_t stamp) {
    _cleanup_(tls_context_unrefp) struct tls_context *context = calloc(1, sizeof(*context));
    int r;

    if (!context)
        return -ENOMEM;
    reading->context = context;
    context->references = 1;
    context->stamp = stamp;
    (void) snprintf(context->server_name, sizeof(context->server_name), "%s",
                    settings->server_name ? settings->server_name : "");
    openssl.ERR_clear_error();
    context->ctx = openssl.SSL_CTX_new(openssl.TLS_client_method());
    if (!context->ctx || !set_rules(context->ctx, settings->minimum))
        return -ENOMEM;
    r = read_trusted(reading);
    if (r == 0)
        r = read_ours(reading);
    openssl.ERR_clear_error(); /* for OpenSSL the end of a file is an error */
    if (r == 0)
        *ret = steal_pointer(&context);
    return r;
}

uint64_t tls_settings_stamp(const struct tls_settings *settings) {
    struct tls_reading reading = {};

    find_paths(&reading, settings);
    return stamp_of(&reading, settings);
}

int tls_context_load(struct tls_context **context, const struct tls_settings *settings, char *why,
                     size_t size) {
    struct tls_reading reading = {.why = why, .size = size};
    struct tls_context *made;
    uint64_t stamp;
    int r;

    if (tls_library_load(why, size) < 0)
        return TLS_E_FILES;
    find_paths(&reading, settings);
    stamp = stamp_of(&reading, settings);
    if (*context && (*context)->stamp == stamp)
        return 0;
    r = context_new(&made, &reading, settings, stamp);
    if (r != 0)
        return r;
    tls_context_unref(*context);
    *context = made;
    return 0;
}

static bool may_read(const struct tls_reading *reading) {
    for (unsigned i = 0; i < TLS_FILES; i++)
        if (reading->paths[i][0] && access(reading->paths[i], R_OK) < 0 && errno == EACCES)
            return false;
    return true;
}

/* Checks the end of our certificate. */
static int check_time(const struct tls_context *context, time_t now, char *why, size_t size) {
    const X509 *ours = openssl.SSL_CTX_get0_certificate(context->ctx);
    time_t until = ours ? tls_time(openssl.X509_get0_notAfter(ours)) : 0;
    char date[16] = "";
    struct tm tm;

    if (until == 0 || until >= now)
        return 0;
    (void) strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&until, &tm));
    (void) snprintf(why, size, "tls-certificate: not valid after %s; renew it", date);
    return TLS_E_FILES;
}

int tls_settings_check(const struct tls_settings *settings, usec_t now_realtime, char *why, size_t size) {
    _cleanup_(tls_context_unrefp) struct tls_context *context = NULL;
    struct tls_reading reading = {};
    int r;

    find_paths(&reading, settings);
    if (!may_read(&reading))
        return 0;
    r = tls_context_load(&context, settings, why, size);
    return r == 0 ? check_time(context, (time_t) (now_realtime / USEC_PER_SEC), why, size) : r;
}

struct tls_context *tls_context_unref(struct tls_context *context) {
    if (!context || --context->references > 0)
        return NULL;
    for (unsigned i = 0; i < TLS_TICKETS_MAX; i++)
        if (context->tickets[i].session)
            openssl.SSL_SESSION_free(context->tickets[i].session);
    if (context->ctx)
        openssl.SSL_CTX_free(context->ctx);
    free(context);
    return NULL;
}

const char *tls_context_warning(const struct tls_context *context) {
    return *context->warning ? context->warning : NULL;
}
