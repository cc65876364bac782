/* SPDX-License-Identifier: PostgreSQL
 * session_tls.h: the certificate and the rules of the settings, for all who accept TLS.
 * Runs in: workers (clients), control (PCP), supervisor (checking). */
#ifndef PGP_SESSION_SESSION_TLS_H
#define PGP_SESSION_SESSION_TLS_H

#include "base/err.h"
#include "net/tls.h"

struct conf_gen;

/* Makes the context that the ssl_* settings of `gen` describe. In *passphrase is kept what
 * ssl_passphrase_command says and opens the key. Owned by the caller; NULL with *err: no good. */
struct tls_context *session_tls_make_context(struct tls_env *env, const struct conf_gen *gen,
    struct tls_passphrase *passphrase, struct err *err);

#endif
