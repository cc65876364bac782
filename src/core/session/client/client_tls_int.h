/* SPDX-License-Identifier: PostgreSQL
 * client_tls_int.h: TLS with clients, as the files of this module share it. */
#ifndef PGP_SESSION_CLIENT_TLS_INT_H
#define PGP_SESSION_CLIENT_TLS_INT_H

#include "client_int.h"

/* client_tls.c */
/* The worker's certificate as the present settings want it; when it is not usable, the one in use
 * stays, and the log says so. */
void session_tls_set_conf(struct sessions *ss);
void session_tls_fini(struct sessions *ss);
/* May this client have TLS at all? */
bool client_tls_is_offered(const struct client *c);
/* SSLRequest: answers S, and TLS follows. -1 and *err: the client is to be refused. */
int client_tls_on_request(struct client *c, struct err *err);
/* Does a TLS handshake begin at `p`, the client's very first byte? Then it is begun with the bytes
 * that are here. */
bool client_tls_is_direct(const struct client *c, const char *p);
int client_tls_on_direct(struct client *c, struct slice bytes, struct err *err);
/* Reading said EPROTO. */
void client_tls_log_failure(const struct client *c);
/* The client asked for a cancel with TLS: its connection ends when the descriptor returned (-1 when
 * there is none to be had) is closed by who delivers the cancel. */
int client_tls_cancel_wait(struct client *c);
void client_tls_cancel_free(struct client *c);

#endif
