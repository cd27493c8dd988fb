/* SPDX-License-Identifier: MIT */

/* Why a TLS session failed, for administrators: the fault, and the option to change. */

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "store/redis/client/tls-internal.h"

#define DATE_SIZE 16

time_t tls_time(const ASN1_TIME *time) {
    struct tm tm;

    return time && openssl.ASN1_TIME_to_tm(time, &tm) == 1 ? timegm(&tm) : 0;
}

static const char *format_date(const ASN1_TIME *time, char text[static DATE_SIZE]) {
    struct tm tm;

    if (!time || openssl.ASN1_TIME_to_tm(time, &tm) != 1 || strftime(text, DATE_SIZE, "%Y-%m-%d", &tm) == 0)
        (void) snprintf(text, DATE_SIZE, "?");
    return text;
}

/* --- names --- */

/* Adds ", name" to a list. Returns its new length. */
static size_t add_name(char *list, size_t used, size_t size, const char *data, size_t n) {
    char name[TLS_NAME_SIZE];

    text_escape(data, n, name, sizeof(name));
    if (used + strlen(name) + sizeof(", ") > size)
        return used; /* there is no room for more */
    return used + (size_t) snprintf(list + used, size - used, "%s%.*s", used > 0 ? ", " : "",
                                    (int) strlen(name), name);
}

/* Lists the DNS names of a certificate; its common name if there is none. */
static void list_names(X509 *certificate, char *list, size_t size) {
    GENERAL_NAMES *names = openssl.X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    const OPENSSL_STACK *stack = (const OPENSSL_STACK *) names;
    size_t used = 0;
    char common[128];
    int length;

    list[0] = '\0';
    for (int i = 0; names && i < openssl.OPENSSL_sk_num(stack); i++) {
        const GENERAL_NAME *name = openssl.OPENSSL_sk_value(stack, i);

        if (name->type == GEN_DNS)
            used = add_name(list, used, size, (const char *) openssl.ASN1_STRING_get0_data(name->d.dNSName),
                            (size_t) openssl.ASN1_STRING_length(name->d.dNSName));
    }
    openssl.GENERAL_NAMES_free(names);
    if (used > 0)
        return;
    length = openssl.X509_NAME_get_text_by_NID(openssl.X509_get_subject_name(certificate), NID_commonName,
                                               common, sizeof(common));
    if (length > 0)
        (void) add_name(list, 0, size, common, (size_t) length);
    else
        (void) snprintf(list, size, "no name");
}

static void format_issuer(X509 *certificate, char *text, size_t size) {
    BIO *bio = openssl.BIO_new(openssl.BIO_s_mem());
    char *data = NULL;
    long n = 0;

    text[0] = '\0';
    if (bio &&
        openssl.X509_NAME_print_ex(bio, openssl.X509_get_issuer_name(certificate), 0, XN_FLAG_RFC2253) >= 0)
        n = openssl.BIO_ctrl(bio, BIO_CTRL_INFO, 0, &data);
    if (n > 0)
        text_escape(data, (size_t) n, text, size);
    (void) openssl.BIO_free(bio);
}

/* --- the server's certificate --- */

void tls_note_certificate(struct tls_session *session, X509_STORE_CTX *store) {
    int error = openssl.X509_STORE_CTX_get_error(store);
    X509 *certificate = openssl.X509_STORE_CTX_get_current_cert(store);
    char text[128], date[DATE_SIZE];

    if (session->reason[0] || !certificate)
        return;
    session->is_refused = true;
    switch (error) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        list_names(certificate, text, sizeof(text));
        (void) snprintf(session->reason, sizeof(session->reason),
                        "the certificate is for another name (it has: %s): see tls-server-name", text);
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_CERT_UNTRUSTED:
        format_issuer(certificate, text, sizeof(text));
        (void) snprintf(session->reason, sizeof(session->reason),
                        "the certificate's issuer is not trusted (issuer: %s): see tls-ca", text);
        break;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        (void) snprintf(session->reason, sizeof(session->reason), "the certificate is not valid after %s",
                        format_date(openssl.X509_get0_notAfter(certificate), date));
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        (void) snprintf(session->reason, sizeof(session->reason), "the certificate is not valid before %s",
                        format_date(openssl.X509_get0_notBefore(certificate), date));
        break;
    default:
        (void) snprintf(session->reason, sizeof(session->reason), "the certificate cannot be used: %s",
                        openssl.X509_verify_cert_error_string(error));
    }
}

/* --- errors of OpenSSL --- */

#define REFUSED "the server refused our certificate (%s): see tls-certificate"
#define ASKED "the server asks for a certificate of ours: see tls-certificate"
#define VERSION_REFUSED "it speaks no version of TLS that tls-minimum allows"

/* Explains alerts of the server and errors of OpenSSL. NULL: OpenSSL's own text is used. */
static const char *explain(const struct tls_session *session, int reason) {
    switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return ASKED;
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
        return session->is_asked && !session->context->has_certificate ? ASKED : NULL;
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
        return REFUSED;
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
        return VERSION_REFUSED;
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
        return "it answers without TLS on this port; see url";
    }
    return NULL;
}

void tls_note_failure(struct tls_session *session) {
    unsigned long error = openssl.ERR_peek_error();
    const char *words = error ? openssl.ERR_reason_error_string(error) : NULL, *text;

    if (session->reason[0])
        return;
    if (session->is_ended && (!error || ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING)) {
        (void) snprintf(session->reason, sizeof(session->reason),
                        "it closed the connection: does it speak TLS on this port, and is it below maxclients?");
        return;
    }
    text = explain(session, ERR_GET_REASON(error));
    session->is_refused = text && (strcmp(text, REFUSED) == 0 || strcmp(text, ASKED) == 0);
    if (text && strcmp(text, REFUSED) == 0)
        (void) snprintf(session->reason, sizeof(session->reason), REFUSED, words ? words : "?");
    else
        (void) snprintf(session->reason, sizeof(session->reason), "%s",
                        text    ? text
                        : words ? words
                                : "failed");
}
