/* SPDX-License-Identifier: PostgreSQL
 * tls_peer.h: for test_tls.c: certificates made on the spot, and the other side of a connection,
 * spoken by OpenSSL alone over the other end of a socket pair. */
#ifndef PGP_TEST_TLS_PEER_H
#define PGP_TEST_TLS_PEER_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* A certificate and its key, also as PEM files in a folder of the test's own. */
struct peer_cert {
    X509 *cert;
    EVP_PKEY *key;
    char cert_file[128];
    char key_file[128];
};

/* The other side. `chunk` > 0: encrypted bytes go out in pieces of that many. */
struct peer {
    SSL_CTX *ctx;
    SSL *ssl;
    int fd;
    size_t chunk;
    bool has_ended; /* our "close notify" or the end arrived */
};

/* Makes a certificate for `name` (n bytes), signed by `issuer` or by itself. */
void peer_cert_make(struct peer_cert *pc, const char *dir, const char *stem, const char *name,
    size_t n, const struct peer_cert *issuer);
void peer_cert_free(struct peer_cert *pc);
/* `own` (may be NULL) is shown; a server needs one. */
void peer_init(struct peer *p, int fd, bool is_server, const struct peer_cert *own);
void peer_fini(struct peer *p);
/* Moves what is to be moved and goes on with the handshake; true when it is over. */
bool peer_step(struct peer *p);
/* Encrypts and sends; reads what there is and appends it to `got`. */
void peer_write(struct peer *p, const void *data, size_t n);
void peer_read(struct peer *p, struct buf *got);
/* Sends what OpenSSL has to send. */
void peer_flush(struct peer *p);

#endif
