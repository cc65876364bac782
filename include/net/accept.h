/* SPDX-License-Identifier: PostgreSQL
 * accept.h: takes connections from the listening sockets of a process.
 * Runs in: workers, control, web, watchdog. The sockets are made elsewhere and stay their owner's.
 * When descriptors or memory run out the queues are left alone for a moment instead of spinning. */
#ifndef PGP_NET_ACCEPT_H
#define PGP_NET_ACCEPT_H

#include <stdbool.h>
#include <sys/socket.h>

#include "event/loop.h"

#define ACCEPTORS_MAX 64

struct acceptors;

/* A connection of the listening socket at place `i`, non-blocking: the callee owns `fd`. It may
 * call acceptors_stop. */
typedef void accepted_fn(
    struct acceptors *a, int i, int fd, const struct sockaddr_storage *from, socklen_t len);

struct acceptor {
    struct io io;
    struct acceptors *of;
};

/* What to do, and in what words to complain. */
struct acceptors_how {
    accepted_fn *fn;
    const char *complaint; /* in front of the system's reason; lives as long as the process */
    int per_turn;          /* connections of one socket, at most, before others have their turn */
    int events;            /* IO_READ, and IO_EXCLUSIVE where processes share the sockets */
};

struct acceptors {
    struct loop *lp;
    struct acceptors_how how;
    struct acceptor one[ACCEPTORS_MAX];
    int n;
    bool is_started;
    struct timer retry;
};

/* Watches `n` sockets (at most ACCEPTORS_MAX) that listen, and takes nothing yet. */
void acceptors_open(
    struct acceptors *a, struct loop *lp, const int *fds, int n, const struct acceptors_how *how);
/* Harmless when it is so already. */
void acceptors_start(struct acceptors *a);
/* Nothing more is taken, not even what waits in this turn. Harmless when it is so already. */
void acceptors_stop(struct acceptors *a);
/* Stops watching: the loop may end, or the sockets be closed. The memory has to stay for the rest
 * of the turn. */
void acceptors_close(struct acceptors *a);

#endif
