/* SPDX-License-Identifier: PostgreSQL
 * tls_openssl.h: what the files of TLS that know OpenSSL share. */
#ifndef PGP_NET_TLS_OPENSSL_H
#define PGP_NET_TLS_OPENSSL_H

#include <openssl/ssl.h>

#include "base/buf.h"
#include "event/loop.h"

#include "tls_int.h"

/* One read from a socket: a full record of 16 KB with its frame and most of a second one would be
 * enough; bulk data comes in larger pieces with fewer system calls. */
#define TLS_IN_BYTES 65536
/* The shared output buffer gives its memory back when it grew beyond this. */
#define TLS_OUT_KEEP_BYTES 131072
#define TLS_ERROR_BYTES    160

struct tls_env {
    BIO_METHOD *bio_method;
    char *in;       /* one read of encrypted bytes */
    struct buf out; /* what OpenSSL wants to send, within one call */
};

struct tls_context {
    SSL_CTX *ssl_ctx;
    struct tls_env *env;
    bool verifies;
};

/* TLS of one stream. The session itself is made when the first bytes arrive: who asks for TLS and
 * then stays silent costs nothing more than this. */
struct tls {
    SSL *ssl;     /* NULL before the first bytes */
    SSL_CTX *ctx; /* of a server until then */
    BIO *sock;    /* when the kernel may be given the keys; NULL: OpenSSL never sees the socket */
    struct tls_env *env;
    struct stream *stream;
    struct task again;  /* something waits inside */
    const char *source; /* what OpenSSL may read now: in `env->in` or `left` */
    size_t source_len;
    struct buf left; /* encrypted bytes read but not taken; mostly empty */
    char *error;     /* NULL: none */
    int lost_errno;  /* of is_lost */
    unsigned kernel; /* TLS_KERNEL_SENDS and TLS_KERNEL_RECEIVES */
    bool is_secured;
    bool need_alpn;
    bool has_ended; /* the other side said "close notify" */
    bool has_failed;
    bool flush_waits; /* what was encrypted before the kernel has the keys has not left yet */
    bool is_lost;     /* `sock` met the end of the connection, or an error, in the handshake */
    bool cert_was_bad;
    bool is_quiet; /* no "close notify" of ours */
};

/* A stream whose context wants the kernel's TLS: OpenSSL gets to see the socket. */
void tls_kernel_attach(struct tls *t);
void tls_kernel_detach(struct tls *t);
/* The handshake is over: what the kernel has taken over is known. */
void tls_kernel_settle(struct tls *t);
/* What our BIO does with the help of the socket's. */
int tls_kernel_bio_read(struct tls *t, BIO *bio, char *p, int n);
int tls_kernel_bio_write(struct tls *t, BIO *bio, const char *p, int n);
/* Receives in clear, as recvmsg does, but -1 with errno 0 never. 0 with something in `left`: it was
 * no data, and is for OpenSSL. */
ssize_t tls_kernel_recv(struct stream *s, char *p, size_t n);
/* True for an errno that says the record was wrong, not the connection. */
bool tls_kernel_is_bad_record(int errnum);

/* Puts OpenSSL's newest error (or `otherwise`) into `out` and empties its queue. */
void tls_error_text(char *out, size_t cap, const char *otherwise);
extern const unsigned char tls_alpn_postgresql[11];

#endif
