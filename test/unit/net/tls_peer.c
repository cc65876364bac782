/* SPDX-License-Identifier: PostgreSQL
 * tls_peer.c: see tls_peer.h. */
#include "config.h"

#include "tls_peer.h"

#include <check.h>
#include <errno.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_pem(const struct peer_cert *pc)
{
    FILE *f = fopen(pc->cert_file, "w");

    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(PEM_write_X509(f, pc->cert), 1);
    ck_assert_int_eq(fclose(f), 0);
    f = fopen(pc->key_file, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(PEM_write_PrivateKey(f, pc->key, NULL, NULL, 0, NULL, NULL), 1);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(chmod(pc->key_file, 0600), 0);
}

/* A certificate that may sign others says so. */
static void add_ca_mark(X509 *cert)
{
    X509_EXTENSION *ext =
        X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE");

    ck_assert_ptr_nonnull(ext);
    ck_assert_int_eq(X509_add_ext(cert, ext, -1), 1);
    X509_EXTENSION_free(ext);
}

void peer_cert_make(struct peer_cert *pc, const char *dir, const char *stem, const char *name,
    size_t n, const struct peer_cert *issuer)
{
    X509_NAME *subject;

    pc->key = EVP_EC_gen("P-256");
    pc->cert = X509_new();
    ck_assert_ptr_nonnull(pc->key);
    ck_assert_ptr_nonnull(pc->cert);
    X509_set_version(pc->cert, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(pc->cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(pc->cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(pc->cert), 3600);
    subject = X509_get_subject_name(pc->cert);
    X509_NAME_add_entry_by_txt(
        subject, "O", MBSTRING_UTF8, (const unsigned char *)"Test, Inc", -1, -1, 0);
    X509_NAME_add_entry_by_txt(
        subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, (int)n, -1, 0);
    X509_set_issuer_name(pc->cert, issuer == NULL ? subject : X509_get_subject_name(issuer->cert));
    X509_set_pubkey(pc->cert, pc->key);
    if (issuer == NULL)
        add_ca_mark(pc->cert);
    ck_assert_int_gt(X509_sign(pc->cert, issuer == NULL ? pc->key : issuer->key, EVP_sha256()), 0);
    snprintf(pc->cert_file, sizeof pc->cert_file, "%s/%s.crt", dir, stem);
    snprintf(pc->key_file, sizeof pc->key_file, "%s/%s.key", dir, stem);
    write_pem(pc);
}

void peer_cert_free(struct peer_cert *pc)
{
    unlink(pc->cert_file);
    unlink(pc->key_file);
    X509_free(pc->cert);
    EVP_PKEY_free(pc->key);
}

void peer_init(struct peer *p, int fd, bool is_server, const struct peer_cert *own)
{
    memset(p, 0, sizeof *p);
    p->fd = fd;
    p->ctx = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    ck_assert_ptr_nonnull(p->ctx);
    if (own != NULL) {
        ck_assert_int_eq(SSL_CTX_use_certificate(p->ctx, own->cert), 1);
        ck_assert_int_eq(SSL_CTX_use_PrivateKey(p->ctx, own->key), 1);
    }
    p->ssl = SSL_new(p->ctx);
    SSL_set_bio(p->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (is_server)
        SSL_set_accept_state(p->ssl);
    else
        SSL_set_connect_state(p->ssl);
}

void peer_fini(struct peer *p)
{
    SSL_free(p->ssl);
    SSL_CTX_free(p->ctx);
    if (p->fd != -1)
        close(p->fd);
}

void peer_flush(struct peer *p)
{
    char piece[4096];
    size_t want = p->chunk == 0 || p->chunk > sizeof piece ? sizeof piece : p->chunk;
    int n;

    while ((n = BIO_read(SSL_get_wbio(p->ssl), piece, (int)want)) > 0) {
        ck_assert_int_eq(send(p->fd, piece, (size_t)n, MSG_NOSIGNAL), n);
        if (p->chunk > 0)
            return; /* the next piece goes with the next step */
    }
}

static void peer_fetch(struct peer *p)
{
    char piece[16384];
    ssize_t n;

    while ((n = recv(p->fd, piece, sizeof piece, MSG_DONTWAIT)) > 0)
        BIO_write(SSL_get_rbio(p->ssl), piece, (int)n);
    if (n == 0)
        p->has_ended = true;
}

bool peer_step(struct peer *p)
{
    int rc;

    peer_fetch(p);
    rc = SSL_do_handshake(p->ssl);
    peer_flush(p);
    return rc == 1 && BIO_pending(SSL_get_wbio(p->ssl)) == 0;
}

void peer_write(struct peer *p, const void *data, size_t n)
{
    ck_assert_int_eq(SSL_write(p->ssl, data, (int)n), (int)n);
    peer_flush(p);
}

void peer_read(struct peer *p, struct buf *got)
{
    char piece[16384];
    int n;

    peer_fetch(p);
    while ((n = SSL_read(p->ssl, piece, sizeof piece)) > 0)
        buf_put(got, piece, (size_t)n);
    if (SSL_get_error(p->ssl, n) == SSL_ERROR_ZERO_RETURN)
        p->has_ended = true;
    peer_flush(p);
}
