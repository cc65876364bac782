/* SPDX-License-Identifier: PostgreSQL
 * listen.h: opens listening sockets.
 * Runs in: supervisor. */
#ifndef PGP_SYS_LISTEN_H
#define PGP_SYS_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Identity of a socket file. */
struct listen_file {
    uint64_t ino; /* 0: none */
    int64_t birth_ns;
    uint32_t dev_major;
    uint32_t dev_minor;
};

/* One listening socket: non-blocking, close-on-exec. */
struct listen_sock {
    int fd;
    bool is_unix;
    char name[160];          /* "127.0.0.1:9999", "[::1]:9999" or the path */
    struct listen_file file; /* of a unix socket: which file is ours */
};

struct listen_unix_opts {
    unsigned mode;     /* permission bits */
    const char *group; /* name or number; NULL or empty leaves the group alone */
    const char *name;  /* of the file, before the port; NULL: ".s.PGSQL." */
};

/* The backlog for `wanted`, at least 1,024 and not above the kernel's limit. */
int listen_backlog(long wanted);
/* Opens a TCP socket for each address `host` resolves to ('*': all of IPv4 and IPv6, each its own
 * socket). Appends to socks[*n], at most `max`. Returns 0; -1 with *err when none could be opened
 * or an address is in use. Addresses that this machine cannot listen on are told through the log
 * while another one works. */
int listen_open_tcp(const char *host, int port, int backlog, struct listen_sock *socks, int *n,
    int max, struct err *err);
/* Opens the unix socket `dir`/.s.PGSQL.`port`, or as opts->name says. A socket file is replaced
 * only when nobody answers on it; two that start at once are kept apart by a lock on the folder,
 * which leaves nothing behind. */
int listen_open_unix(const char *dir, int port, const struct listen_unix_opts *opts, int backlog,
    struct listen_sock *sock, struct err *err);
/* Removes the socket file if it is still ours, and ends listening in every process that shares the
 * socket: from now on new clients are refused, and do not wait in a queue that nobody empties. */
void listen_close(struct listen_sock *sock);

#endif
