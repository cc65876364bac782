/* SPDX-License-Identifier: PostgreSQL
 * tool_tls.c: TLS of the pcp_* tools: the connection begins with it. With a CA file the server's
 * certificate must be signed by it and be for the host; without, TLS keeps listeners out but proves
 * nothing about the server. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "pcp_tool.h"

#define REASON_BYTES 256

static bool failed(const char *what)
{
    char reason[REASON_BYTES] = "no reason is given";
    unsigned long code = ERR_peek_last_error();

    if (code != 0)
        ERR_error_string_n(code, reason, sizeof reason);
    fprintf(stderr, "ERROR: %s: %s\n", what, reason);
    if (ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER)
        fprintf(
            stderr, "HINT:  The server does not speak TLS there: ssl = on in its pgpool.conf.\n");
    return false;
}

static bool load_authorities(SSL_CTX *ctx, const char *file)
{
    unsigned long code;

    ERR_clear_error();
    errno = 0;
    if (SSL_CTX_load_verify_file(ctx, file) == 1)
        return true;
    code = ERR_peek_last_error();
    fprintf(stderr, "ERROR: could not read certificates from \"%s\": %s\n", file,
        errno != 0                                           ? strerror(errno)
        : code == 0 || ERR_reason_error_string(code) == NULL ? "there is none in it"
                                                             : ERR_reason_error_string(code));
    return false;
}

/* 1 done; 0 wait for l->wants; -1 failed. */
static int judge(struct tool_link *l, SSL *ssl, int rc)
{
    switch (SSL_get_error(ssl, rc)) {
    case SSL_ERROR_NONE:
        return 1;
    case SSL_ERROR_WANT_READ:
        l->wants = POLLIN;
        return 0;
    case SSL_ERROR_WANT_WRITE:
        l->wants = POLLOUT;
        return 0;
    default:
        return -1;
    }
}

static bool set_host(SSL *ssl, const char *host, bool verify)
{
    unsigned char address[sizeof(struct in6_addr)];
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    bool is_address =
        inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;

    if (!is_address && SSL_set_tlsext_host_name(ssl, host) != 1)
        return false;
    if (!verify)
        return true;
    SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    if (is_address)
        return X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1;
    return X509_VERIFY_PARAM_set1_host(param, host, 0) == 1;
}

/* NULL: that is said. */
static SSL *make(struct tool_link *l, const char *host, const char *ca_file)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = NULL;

    if (ctx != NULL && ca_file != NULL && !load_authorities(ctx, ca_file)) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    if (ctx != NULL && SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1)
        ssl = SSL_new(ctx);
    SSL_CTX_free(ctx); /* the connection keeps it */
    if (ssl != NULL && SSL_set_fd(ssl, l->fd) == 1 && set_host(ssl, host, ca_file != NULL))
        return ssl;
    (void)failed("could not prepare TLS");
    SSL_free(ssl);
    return NULL;
}

bool tool_tls_start(struct tool_link *l, const char *host, const char *ca_file)
{
    SSL *ssl = make(l, host, ca_file);
    int rc;

    if (ssl == NULL)
        return false;
    l->tls = ssl;
    while ((rc = judge(l, ssl, SSL_connect(ssl))) == 0) {
        if (!tool_link_wait(l, l->wants)) {
            fprintf(stderr, "ERROR: the server did not answer the TLS handshake in time\n");
            return false;
        }
    }
    if (rc == 1)
        return true;
    if (ERR_peek_last_error() == 0) {
        fprintf(stderr, "ERROR: the server closed the connection: it may not speak TLS\n");
        return false;
    }
    return failed("TLS failed");
}

ssize_t tool_tls_recv(struct tool_link *l, char *p, size_t n)
{
    int got = SSL_read(l->tls, p, (int)n);

    switch (judge(l, l->tls, got)) {
    case 1:
        return got;
    case 0:
        errno = EAGAIN;
        return -1;
    default:
        return 0; /* closed, or as good as that */
    }
}

ssize_t tool_tls_send(struct tool_link *l, const char *p, size_t n)
{
    int sent = SSL_write(l->tls, p, (int)n);

    switch (judge(l, l->tls, sent)) {
    case 1:
        return sent;
    case 0:
        errno = EAGAIN;
        return -1;
    default:
        errno = EPIPE;
        return -1;
    }
}

void tool_tls_server_cert(const struct tool_link *l, struct buf *der)
{
    X509 *cert = l->tls == NULL ? NULL : SSL_get0_peer_certificate(l->tls);
    int n = cert == NULL ? 0 : i2d_X509(cert, NULL);
    unsigned char *p;

    if (n <= 0)
        return;
    p = (unsigned char *)buf_reserve(der, (size_t)n);
    (void)i2d_X509(cert, &p);
    buf_advance(der, (size_t)n);
}

void tool_tls_end(struct tool_link *l)
{
    SSL_free(l->tls);
    l->tls = NULL;
}
