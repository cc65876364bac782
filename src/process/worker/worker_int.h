/* SPDX-License-Identifier: PostgreSQL
 * worker_int.h: the worker's root struct. */
#ifndef PGP_WORKER_INT_H
#define PGP_WORKER_INT_H

#include <time.h>

#include "net/accept.h"
#include "process/common/role_loop.h"
#include "session/session.h"

struct worker;
struct place;
struct gather_load;

_Static_assert(PROC_MAX_LISTEN <= ACCEPTORS_MAX, "each listening socket has a place");

struct worker {
    struct role_loop role;
    struct sessions sessions;
    struct acceptors acceptors;     /* of the sockets that all workers share */
    bool is_paced[PROC_MAX_LISTEN]; /* net_is_paced of each */
    struct timer leave;             /* the last clients are gone, cancel requests are not */
    int64_t leaves_since_us;        /* 0: not leaving */
    bool is_retiring;     /* child_max_connections is reached: leaves with its last client */
    struct place *places; /* what is known of each worker */
    struct gather_load *loads;
    uint32_t most_clients; /* that a worker has descriptors for */
};

/* worker.c: a client was added. */
void worker_on_added(struct worker *w);

/* worker_accept.c */
void accept_init(struct worker *w);
/* The settings changed: connections accepted from now on follow them. */
void accept_on_reload(struct worker *w);
void accept_fini(struct worker *w);
/* A client that another worker accepted. */
void accept_on_mail(struct worker *w, struct mail *mail);

/* worker_gather.c */
void gather_init(struct worker *w);
void gather_fini(struct worker *w);

/* worker_place.c */
/* 0 when the clock cannot be read. */
int64_t place_clock_ns(clockid_t clock);
/* How busy a worker is that has used so much in such a time, in percent of a processor. */
int64_t place_percent(const struct worker *w, int64_t used_ns, int64_t of_ns);
/* The row of worker `i` in the table of processes. */
struct proc_row *place_row(const struct worker *w, int i);
/* False when it is not there, or its child_max_connections is reached. */
bool place_is_open(const struct worker *w, int i);
/* Clients of worker `i` as far as we know: what it published, and what we sent since. */
uint32_t place_load(struct worker *w, int i);
void place_init(struct worker *w);
void place_fini(struct worker *w);
/* The ordinal of the worker that is to serve the next client. */
int place_choose(struct worker *w);
/* A client was handed to worker `to`, which counts it when it gets there. */
void place_note(struct worker *w, int to);

#endif
