/* SPDX-License-Identifier: PostgreSQL
 * probe_tls.h: TLS by libpq as the links of workers have it.
 * Runs in: monitor, control, the command line. libpq answers every failure of "prefer" by going on
 * in clear, also a certificate that does not verify and a wrong password, and takes an authority's
 * file that is not there for none. So "prefer" is two attempts of ours, each with a mode that has
 * no way out. Pure, but for what the connection says of itself. */
#ifndef PGP_PROBE_TLS_H
#define PGP_PROBE_TLS_H

#include <libpq-fe.h>
#include <stdbool.h>

/* What libpq is told instead of `mode`, in the first attempt or in the one without TLS. `ca` is the
 * file of the known authority, empty: none. */
const char *probe_tls_word(const char *mode, const char *ca, bool in_clear);
/* libpq's key for the oldest version of TLS; NULL, which ends a list of keys, where libpq (before
 * 13) has none. */
const char *probe_tls_min_key(void);
/* True when a first attempt of `mode` that failed may be followed by one without TLS: the server
 * has no TLS, or it failed for another reason than a certificate, or the server has room for such a
 * login without TLS alone. `was` is PQstatus before the call that failed; the verbosity of errors
 * must be PQERRORS_VERBOSE. */
bool probe_tls_may_go_in_clear(const char *mode, const PGconn *conn, ConnStatusType was);

#endif
