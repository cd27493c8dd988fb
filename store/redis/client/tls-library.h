/* SPDX-License-Identifier: MIT */
#pragma once

/* The functions of OpenSSL. libssl is loaded when the first context is made: linked, it would cost a berthd without TLS
 * 1.7 MB of memory (4.4 to 6.0 MB, OpenSSL 3.0). Many names in OpenSSL's manual are macros around these. */

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

/* clang-format off */
#define TLS_LIBRARY(X) \
    X(ASN1_STRING_get0_data) X(ASN1_STRING_length) X(ASN1_TIME_to_tm) X(BIO_ctrl) X(BIO_free) X(BIO_new) \
    X(BIO_new_mem_buf) X(BIO_s_mem) X(BIO_write) X(ERR_clear_error) X(ERR_peek_error) \
    X(ERR_peek_last_error) X(ERR_reason_error_string) X(EVP_PKEY_free) X(GENERAL_NAMES_free) \
    X(OPENSSL_sk_num) X(OPENSSL_sk_value) X(PEM_read_bio_PrivateKey) X(PEM_read_bio_X509) \
    X(SSL_CTX_check_private_key) X(SSL_CTX_ctrl) X(SSL_CTX_free) X(SSL_CTX_get0_certificate) \
    X(SSL_CTX_get0_param) X(SSL_CTX_get_cert_store) X(SSL_CTX_new) X(SSL_CTX_sess_set_new_cb) \
    X(SSL_CTX_set_cert_cb) X(SSL_CTX_set_default_verify_paths) X(SSL_CTX_set_options) \
    X(SSL_CTX_set_verify) X(SSL_CTX_use_PrivateKey) X(SSL_CTX_use_certificate) X(SSL_SESSION_free) \
    X(SSL_ctrl) X(SSL_do_handshake) X(SSL_free) X(SSL_get0_param) X(SSL_get1_peer_certificate) \
    X(SSL_get_error) X(SSL_get_ex_data) X(SSL_get_ex_data_X509_STORE_CTX_idx) X(SSL_get_version) \
    X(SSL_new) X(SSL_read) X(SSL_session_reused) X(SSL_set1_host) X(SSL_set_bio) X(SSL_set_connect_state) \
    X(SSL_set_ex_data) X(SSL_set_session) X(SSL_write) X(TLS_client_method) X(X509_NAME_get_text_by_NID) \
    X(X509_NAME_print_ex) X(X509_STORE_CTX_get_current_cert) X(X509_STORE_CTX_get_error) \
    X(X509_STORE_CTX_get_ex_data) X(X509_STORE_add_cert) X(X509_VERIFY_PARAM_set1_ip_asc) \
    X(X509_VERIFY_PARAM_set_flags) X(X509_VERIFY_PARAM_set_hostflags) X(X509_free) X(X509_get0_notAfter) \
    X(X509_get0_notBefore) X(X509_get_ext_d2i) X(X509_get_issuer_name) X(X509_get_subject_name) \
    X(X509_verify_cert_error_string)
/* clang-format on */

struct tls_library {
#define X(name) __typeof__(name) *name;
    TLS_LIBRARY(X)
#undef X
};

extern struct tls_library openssl; /* all set once tls_library_load() has succeeded */

/* 0, or -ENOENT: `why` names what is missing. */
int tls_library_load(char *why, size_t size);
