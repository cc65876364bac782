/* SPDX-License-Identifier: PostgreSQL
 * sim.h: the simulated machine under real workers: one random number generator, one clock, sockets
 * that are queues of bytes, and a libuv whose turns are taken one by one.
 *
 * Everything above the system calls is the product's own code (streams, dials, timers, pools,
 * links, sessions). What is below is replaced at link time: libuv by sim_uv.c, mailboxes by
 * sim_mail.c, sockets, clocks and random bytes by sim_net.c and sim_core.c (`ld --wrap`). One
 * thread, and every choice comes from the generator: a seed is a run, the same each time. */
#ifndef PGP_TEST_SIM_H
#define PGP_TEST_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/slice.h"

/* Simulated descriptors are numbered from here on, so that none is ever one of the process's. */
#define SIM_FD_BASE 100000
#define SIM_MAX_FDS 1024

#define SIM_MS INT64_C(1000)
#define SIM_S  INT64_C(1000000)

/* ---- sim_core.c: chance, time, what happened, and the heap ---- */

struct sim_core {
    uint64_t seed;
    uint64_t random;
    int64_t now_us;
    uint64_t nevents;
    uint64_t digest; /* of all events: two runs of a seed must agree */
    bool tracing;
    bool failed;
    int64_t live_blocks; /* of the product's heap */
    const char *replay;  /* options of the run, for the replay command */
};
extern struct sim_core sim;

void sim_core_start(uint64_t seed);
uint64_t sim_random(void);
/* What clocks on walls say. */
int64_t sim_wall_us(void);
/* 0 to n - 1. */
uint32_t sim_below(uint32_t n);
/* True once in n. */
bool sim_one_in(uint32_t n);
/* Something happened: goes into the ring of last events and into the digest. */
void sim_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* `nmsgs` whole messages of a client as text, for the record. */
void sim_describe(char *text, size_t size, const char *msg, uint32_t nmsgs);
/* An invariant does not hold: said with the replay command and the last events; the run is over.
 * The first one counts. */
void sim_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints the last events and how to see this run again. */
void sim_print_failure(const char *why);

/* ---- sim_net.c: sockets ---- */

struct sim_sock;

/* The other end of a connection whose one end belongs to a worker. */
struct sim_sock *sim_sock_dialed(int port); /* a worker called connect: its server's end, or NULL */
/* A client connects: *fd is the worker's end. */
struct sim_sock *sim_sock_connect(int *fd);
/* What has arrived; consume with buf_consume. */
struct buf *sim_sock_in(struct sim_sock *s);
void sim_sock_put(struct sim_sock *s, const char *p, size_t n);
bool sim_sock_has_room(const struct sim_sock *s);
/* The end (or a reset) of the other side has arrived and everything before it was taken. */
bool sim_sock_is_over(const struct sim_sock *s);
bool sim_sock_was_reset(const struct sim_sock *s);
/* Says goodbye: the other side reads what was put, then the end. With `reset` an error. */
void sim_sock_close(struct sim_sock **sp, bool reset);
/* The connection breaks in the middle: both sides get a reset, what travels is lost. */
void sim_sock_cut(struct sim_sock *s);

void sim_net_start(void);
void sim_net_end(void);
/* Something travels. */
bool sim_net_has_traffic(void);
/* Lets a part of something travel arrive, or a connection be made. */
void sim_net_step(void);
/* Connections to this port are refused, or are never answered, or (0) all is well. */
void sim_net_set_port(int port, int connect_errno, bool is_silent);
/* What epoll says of a descriptor: EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLERR. */
uint32_t sim_net_epoll(int fd);
/* Every descriptor that is still open on the workers' side. */
int sim_net_open_fds(void);
/* For sim_mail.c: a descriptor like dup makes it, and one that is ready when *flag is true. */
int sim_net_dup(int fd);
int sim_net_flag_fd(const bool *flag);

/* ---- sim_epoll.c ---- */

/* A descriptor of the set is ready. */
bool sim_epoll_is_ready(int set);
/* True when `fd` was a set: it is gone. */
bool sim_epoll_close(int fd);
/* `fd` is closed; `is_last`: what it stands for is open nowhere else. */
void sim_epoll_forget(int fd, bool is_last);

/* ---- sim_uv.c: loops ---- */

/* Something could be done in a turn of this loop. */
bool sim_uv_is_ready(uv_loop_t *loop);

/* ---- sim_mail.c ---- */

struct mailboxes;
struct mailboxes *sim_mail_new(int nslots, int own_slot, struct mailboxes *like);
void sim_mail_free(struct mailboxes *m);
/* Every n-th message finds its box full; 0: none. */
void sim_mail_set_full(struct mailboxes *m, uint32_t one_in);

#endif
