/* SPDX-License-Identifier: PostgreSQL
 * dial.h: opens a connection to a server: name, address or unix socket directory.
 * Runs in: workers. Never blocks: names are resolved on libuv's thread pool, addresses are tried
 * one after the other. One dial is one attempt; pooling and retry policy live above. */
#ifndef PGP_NET_DIAL_H
#define PGP_NET_DIAL_H

#include <stdbool.h>

#include "base/err.h"
#include "event/loop.h"

struct dial;

/* Called once: `fd` is connected and non-blocking (the callee owns it), or -1 with *err. */
typedef void dial_fn(int fd, const struct err *err, void *ctx);

/* Starts connecting to `host` (empty: "/tmp"; starting with '/': directory of the socket
 * .s.PGSQL.<port>) within `timeout_ms` (0: none). `fn` is never called before dial_start returns.
 */
struct dial *dial_start(
    struct loop *lp, const char *host, int port, int64_t timeout_ms, dial_fn *fn, void *ctx);
/* Where a connected socket leads, as dial_start wants it: an address in numbers, or the directory
 * of a Unix socket. A name may lead elsewhere by now, or each time. False: it cannot be told. */
#define NET_PEER_BYTES 128
bool net_peer(int fd, char host[NET_PEER_BYTES], int *port);
/* Gives up without calling back; clears *dp. */
void dial_cancel(struct dial **dp);

/* Socket options every connection gets: TCP_NODELAY, keep-alive. Harmless on unix sockets. */
void net_tune_socket(int fd);
/* Is what a socket sends paced (by BBR)? Those that a listening one accepts are like it. */
bool net_is_paced(int fd);
/* What is sent to an address of the loopback is paced no longer. */
void net_unpace(int fd, const struct sockaddr *peer);
/* When a silent peer is probed, how often, and how often in vain, in milliseconds and by count. 0
 * takes the operating system's choice. Does nothing to unix sockets. */
void net_set_keepalive(int fd, int64_t idle_ms, int64_t interval_ms, int count);

#endif
