/* SPDX-License-Identifier: PostgreSQL
 * tls_facts.c: what is known of a TLS stream: version, cipher, certificates. */
#include "config.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <string.h>

#include "tls_openssl.h"

static SSL *secured_ssl(const struct stream *s)
{
    return stream_is_secured(s) ? s->tls->ssl : NULL;
}

const char *stream_tls_version(const struct stream *s)
{
    const SSL *ssl = secured_ssl(s);

    return ssl == NULL ? "" : SSL_get_version(ssl);
}

const char *stream_tls_cipher(const struct stream *s)
{
    const SSL *ssl = secured_ssl(s);

    return ssl == NULL ? "" : SSL_get_cipher_name(ssl);
}

int stream_tls_bits(const struct stream *s)
{
    const SSL *ssl = secured_ssl(s);

    return ssl == NULL ? 0 : SSL_get_cipher_bits(ssl, NULL);
}

int stream_tls_version_no(const struct stream *s)
{
    const SSL *ssl = secured_ssl(s);

    return ssl == NULL ? 0 : SSL_version(ssl) - TLS1_VERSION + 10;
}

int stream_tls_cipher_no(const struct stream *s)
{
    const SSL *ssl = secured_ssl(s);

    return ssl == NULL ? 0 : SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(ssl));
}

unsigned stream_tls_kernel(const struct stream *s)
{
    return s->tls == NULL ? 0 : s->tls->kernel;
}

/* Not counted up: valid for as long as the stream. */
static X509 *peer_cert(const struct stream *s)
{
    SSL *ssl = secured_ssl(s);

    return ssl == NULL ? NULL : SSL_get0_peer_certificate(ssl);
}

bool stream_tls_has_peer_cert(const struct stream *s)
{
    return peer_cert(s) != NULL;
}

bool stream_tls_is_peer_verified(const struct stream *s)
{
    SSL *ssl = secured_ssl(s);

    return peer_cert(s) != NULL && (SSL_get_verify_mode(ssl) & SSL_VERIFY_PEER) != 0 &&
           SSL_get_verify_result(ssl) == X509_V_OK;
}

static int refuse_nul(struct err *err, const char *what)
{
    err_set(err, "28000", "the certificate's %s holds a NUL", what);
    return -1;
}

int stream_tls_peer_cn(const struct stream *s, struct buf *out, struct err *err)
{
    X509 *cert = peer_cert(s);
    X509_NAME *subject = cert == NULL ? NULL : X509_get_subject_name(cert);
    int at = subject == NULL ? -1 : X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    unsigned char *utf8 = NULL;
    int n;
    int rc = 0;

    if (at == -1)
        return -1;
    n = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (n < 0) {
        ERR_clear_error();
        return -1;
    }
    if (memchr(utf8, '\0', (size_t)n) != NULL)
        rc = refuse_nul(err, "common name");
    else
        buf_put(out, utf8, (size_t)n);
    OPENSSL_free(utf8);
    return rc;
}

int stream_tls_peer_dn(const struct stream *s, struct buf *out, struct err *err)
{
    X509 *cert = peer_cert(s);
    BIO *bio = cert == NULL ? NULL : BIO_new(BIO_s_mem());
    char *text = NULL;
    long n;
    int rc = -1;

    if (bio == NULL)
        return -1;
    if (X509_NAME_print_ex(bio, X509_get_subject_name(cert), 0, XN_FLAG_RFC2253) != -1) {
        n = BIO_get_mem_data(bio, &text);
        if (n > 0 && memchr(text, '\0', (size_t)n) != NULL) {
            rc = refuse_nul(err, "distinguished name");
        } else if (n > 0) {
            buf_put(out, text, (size_t)n);
            rc = 0;
        }
    }
    BIO_free(bio);
    ERR_clear_error();
    return rc;
}

/* OpenSSL has taken this certificate apart: doing that again, key and all, was a sixth of what a
 * login costs. */
int stream_tls_server_cert(const struct stream *s, struct buf *der, int *digest_nid)
{
    SSL *ssl = secured_ssl(s);
    X509 *cert;
    unsigned char *p;
    int n;

    if (ssl == NULL)
        return -1;
    cert = SSL_is_server(ssl) ? SSL_get_certificate(ssl) : SSL_get0_peer_certificate(ssl);
    n = cert == NULL ? -1 : i2d_X509(cert, NULL);
    if (n <= 0) {
        ERR_clear_error();
        return -1;
    }
    *digest_nid = NID_undef;
    if (X509_get_signature_info(cert, digest_nid, NULL, NULL, NULL) != 1)
        ERR_clear_error();
    p = (unsigned char *)buf_reserve(der, (size_t)n);
    (void)i2d_X509(cert, &p);
    buf_advance(der, (size_t)n);
    return 0;
}
