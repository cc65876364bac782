/* SPDX-License-Identifier: PostgreSQL
 * tls_int.h: what stream.c and the files of TLS share. Nothing of OpenSSL shows here: stream.c is
 * built without it too. */
#ifndef PGP_NET_TLS_INT_H
#define PGP_NET_TLS_INT_H

#include <sys/types.h>

#include "net/tls.h"

/* The stream functions of a stream that speaks TLS; same contracts as in stream.h. */
ssize_t tls_recv(struct stream *s, char *p, size_t n);
int tls_send(struct stream *s, const char *p, size_t n);
/* True when bytes wait inside that no poll would tell of. */
bool tls_has_input(const struct stream *s);
/* Reading was switched on: what waits inside is told of, soon. */
void tls_on_resumed(struct stream *s);
/* The socket takes more, which the handshake waited for (stream_await_room): it goes on, soon. */
void tls_on_room(struct stream *s);
/* Says goodbye if it can and frees the state; the descriptor is still open. */
void tls_end(struct stream *s);

/* Sends encrypted or plain bytes as they are; keeps the remainder. */
int stream_send_raw(struct stream *s, const char *p, size_t n);
/* Calls tls_on_room once when the socket takes more and what was kept is sent. */
void stream_await_room(struct stream *s);

#endif
