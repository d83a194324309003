/* SPDX-License-Identifier: MIT */
/* TLS, by OpenSSL and hiredis_ssl, where lapse is built with them.
 *
 *  - hiredis 1.2 checks the chain of a server and not its name (verify_name came with 1.4), so the
 *    SSL is our own, and knows the name that it expects.
 *  - redisInitiateSSL() begins the handshake, and would do so again on an SSL that has done it; and
 *    it lets commands be queued behind it. So the handshake goes on here, and hiredis is asked to
 *    read and write when it is done.
 *  - A server of TLS 1.3 that refuses our certificate says so after the handshake; then hiredis
 *    says "Success", and OpenSSL's queue of errors why. */
#include "redis/tls.h"
#include <stdio.h>

#ifdef LAPSE_WITH_TLS
#include <arpa/inet.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>

static bool given(const char *text)
{
    return text && *text;
}

/* ---- what went wrong ---- */
static const char *openssl_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason ? reason : "unknown error";
}

/* The first error of several is the cause. */
static bool tls_file_failed(struct tls *t, const char *option, const char *file)
{
    unsigned long error = ERR_peek_error();
    const char *why = ERR_reason_error_string(error);

    if (ERR_SYSTEM_ERROR(error)) {
        why = strerror(ERR_GET_REASON(error));
    }
    snprintf(t->why, sizeof t->why, "%s %.200s: %s", option, file, why ? why : "unknown error");
    return false;
}

/* Names the certificate that did not pass, and what it did not pass. */
static int on_verify(int ok, X509_STORE_CTX *store)
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls *t = SSL_get_app_data(ssl);
    const X509 *certificate = X509_STORE_CTX_get_current_cert(store);
    int error = X509_STORE_CTX_get_error(store);
    char subject[160] = "";

    if (ok || !t) {
        return ok;
    }

    if (certificate) {
        X509_NAME_oneline(X509_get_subject_name(certificate), subject, sizeof subject);
    }
    if (error == X509_V_ERR_HOSTNAME_MISMATCH || error == X509_V_ERR_IP_ADDRESS_MISMATCH) {
        snprintf(t->why, sizeof t->why,
                 "TLS: %s: the certificate %s is not one of %s (tls_name, or else the host of the "
                 "URL)",
                 X509_verify_cert_error_string(error), subject, t->expected);
    } else {
        snprintf(t->why, sizeof t->why, "TLS: %s: the certificate %s, of the chain of %s",
                 X509_verify_cert_error_string(error), subject, t->expected);
    }

    return ok;
}

/* ---- the beginning ---- */
/* A key with a passphrase is refused: nobody is there to be asked. */
static int no_passphrase(char *out, int size, int writing, void *arg)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)arg;
    return -1;
}

static bool tls_read_files(struct tls *t, SSL_CTX *settings, const struct address *a)
{
    if (!given(a->tls_ca)) {
        SSL_CTX_set_default_verify_paths(settings);
    } else if (SSL_CTX_load_verify_locations(settings, a->tls_ca, NULL) != 1) {
        return tls_file_failed(t, "tls_ca", a->tls_ca);
    }

    if (!given(a->tls_cert) && !given(a->tls_key)) {
        return true;
    }
    if (!given(a->tls_cert) || !given(a->tls_key)) { /* the program's own connections get here */
        snprintf(t->why, sizeof t->why, "%s", TLS_PAIR);
        return false;
    }
    if (SSL_CTX_use_certificate_chain_file(settings, a->tls_cert) != 1) {
        return tls_file_failed(t, "tls_cert", a->tls_cert);
    }
    if (SSL_CTX_use_PrivateKey_file(settings, a->tls_key, SSL_FILETYPE_PEM) != 1) {
        return tls_file_failed(t, "tls_key", a->tls_key);
    }
    return true;
}

static const char *tls_name(const struct address *a)
{
    return given(a->tls_name) ? a->tls_name : a->host;
}

/* The name, or the number, that the certificate must have. */
static bool tls_expect(SSL *ssl, const char *name)
{
    unsigned char number[sizeof(struct in6_addr)];

    if (inet_pton(AF_INET, name, number) == 1 || inet_pton(AF_INET6, name, number) == 1) {
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    }
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

static SSL *tls_make(struct tls *t, SSL_CTX *settings, const struct address *a)
{
    if (!settings || SSL_CTX_set_min_proto_version(settings, TLS1_2_VERSION) != 1) {
        snprintf(t->why, sizeof t->why, "TLS: %s", openssl_reason());
        return NULL;
    }
    SSL_CTX_set_verify(settings, SSL_VERIFY_PEER, on_verify);
    SSL_CTX_set_options(settings, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_default_passwd_cb(settings, no_passphrase);
    if (!tls_read_files(t, settings, a)) {
        return NULL;
    }

    SSL *ssl = SSL_new(settings);
    if (!ssl || !tls_expect(ssl, tls_name(a))) {
        snprintf(t->why, sizeof t->why, "TLS: %.200s: %s", t->expected, openssl_reason());
        SSL_free(ssl);
        return NULL;
    }
    return ssl;
}

bool tls_built(void)
{
    return true;
}

/* ---- the handshake ---- */
static void tls_explain(struct tls *t, int error, int saved_errno)
{
    if (*t->why) {
        return; /* on_verify() knew it better */
    }
    if (ERR_peek_last_error() &&
        ERR_GET_REASON(ERR_peek_last_error()) != SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        snprintf(t->why, sizeof t->why,
                 "TLS: the handshake failed: %s (TLS 1.2 or later is needed)", openssl_reason());
    } else if (error == SSL_ERROR_SYSCALL && saved_errno) {
        snprintf(t->why, sizeof t->why, "TLS: the handshake failed: %s", strerror(saved_errno));
    } else {
        snprintf(t->why, sizeof t->why,
                 "TLS: the connection was closed in the handshake; is this a port for TLS?");
    }
}

bool tls_begin(struct tls *t, const struct address *a, struct redisContext *c)
{
    *t = (struct tls){.ssl = NULL};
    snprintf(t->expected, sizeof t->expected, "%s", tls_name(a));
    ERR_clear_error();

    SSL_CTX *settings = SSL_CTX_new(TLS_client_method());
    SSL *ssl = tls_make(t, settings, a);
    SSL_CTX_free(settings); /* the SSL has its own share of it */
    if (!ssl) {
        return false;
    }

    SSL_set_app_data(ssl, t);
    if (redisInitiateSSL(c, ssl) != REDIS_OK) {
        if (!*t->why) {
            snprintf(t->why, sizeof t->why, "TLS: %.200s", c->errstr);
        }
        SSL_free(ssl);
        return false;
    }

    t->ssl = ssl;
    return true;
}

enum tls_step tls_step(struct tls *t)
{
    ERR_clear_error();
    errno = 0;

    int rc = SSL_do_handshake(t->ssl);
    int saved_errno = errno;
    int error = SSL_get_error(t->ssl, rc);

    if (rc == 1 && SSL_get_verify_result(t->ssl) == X509_V_OK) {
        SSL_set_app_data(t->ssl, NULL); /* it may outlive t */
        return TLS_DONE;
    }
    if (rc != 1 && error == SSL_ERROR_WANT_READ) {
        return TLS_READ;
    }
    if (rc != 1 && error == SSL_ERROR_WANT_WRITE) {
        return TLS_WRITE;
    }
    tls_explain(t, error, saved_errno);
    return TLS_FAILED;
}

/* ---- after the handshake ---- */
bool tls_write(struct tls *t, const void *bytes, size_t len)
{
    ERR_clear_error();
    return len == 0 || SSL_write(t->ssl, bytes, (int)len) == (int)len;
}

void tls_forget_errors(void)
{
    ERR_clear_error();
}

const char *tls_error(struct tls *t)
{
    if (!ERR_peek_last_error()) {
        return NULL;
    }
    snprintf(t->why, sizeof t->why, "TLS: %s", openssl_reason());
    return t->why;
}

#else
bool tls_built(void)
{
    return false;
}

bool tls_begin(struct tls *t, const struct address *a, struct redisContext *c)
{
    (void)a;
    (void)c;
    *t = (struct tls){.ssl = NULL};
    snprintf(t->why, sizeof t->why, "%s", TLS_NEEDS);
    return false;
}

enum tls_step tls_step(struct tls *t)
{
    (void)t;
    return TLS_FAILED;
}

void tls_forget_errors(void)
{
}

const char *tls_error(struct tls *t)
{
    (void)t;
    return NULL;
}
#endif
