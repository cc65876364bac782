/* SPDX-License-Identifier: PostgreSQL
 * pgpool_tls.c: reads what a server says first through the TLS that libpq has set up.
 * Runs in: the command line. */
#include "config.h"

#include "bin/pgpool/pgpool_tls.h"

#include <openssl/ssl.h>

ssize_t pgpool_tls_read(PGconn *c, char *p, size_t n)
{
    SSL *ssl = PQgetssl(c);
    int got = ssl == NULL ? -1 : SSL_read(ssl, p, (int)n);

    if (ssl != NULL && got <= 0)
        return SSL_get_error(ssl, got) == SSL_ERROR_WANT_READ ? 0 : -1;
    return got;
}
