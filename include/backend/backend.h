/* SPDX-License-Identifier: PostgreSQL
 * backend.h: a worker's side towards the servers: its pools, its links, and their limits.
 * Runs in: workers. */
#ifndef PGP_BACKEND_BACKEND_H
#define PGP_BACKEND_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/paramset.h"
#include "backend/retire.h"
#include "backend/varset.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/slice.h"
#include "event/loop.h"
#include "ipc/mailbox.h"
#include "ipc/rows.h"
#include "ipc/shm.h"

/* Large enough for a message that is collected (CLIENT_COLLECT_MAX) and a read behind it. */
#define BACKEND_READ_BYTES 262144
/* One read takes at most this much: a bulk stream leaves room for others. */
#define BACKEND_TAKE_BYTES 65536
/* What was kept of an incomplete message, and is put in front of a read, is no more than this. */
#define BACKEND_CARRY_MAX (BACKEND_READ_BYTES - BACKEND_TAKE_BYTES)

struct auth_book;
struct backend_tls;
struct conf;
struct conf_gen;
struct link;
struct pool;
struct tls_env;

/* One per worker. */
struct backend {
    /* What every statement looks at stands together. */
    struct loop *loop;
    struct shm *shm;
    const _Atomic uint32_t *orders_any; /* 0: nobody has ordered anything */
    const struct conf *conf;            /* the present generation */
    /* The one read buffer of the worker: valid within one callback, never owned by a socket. */
    char *read_buf;
    const struct link *has_more; /* bytes behind its message at hand were read with it */
    struct rows_header *link_rows;
    uint64_t next_epoch;
    int64_t wall_offset_us; /* wall clock minus the loop's clock */
    uint64_t npools_gone;   /* pools that were freed */
    uint64_t nrows;         /* that command tags told of in what is being passed on */
    int ordinal;
    bool is_stopping;                     /* nothing is cached any more */
    struct list idle_lru;                 /* idle links of all pools, least recently used first */
    struct list links;                    /* every other link */
    const struct link_pool_ops *pool_ops; /* what links tell their pools */
    struct auth_book *book;               /* what logs in to servers, by user */
    struct backend_tls *tls;              /* certificates and rules per node */
    struct jobs *jobs;                    /* derivations of keys, and what sessions ask outside */
    struct hash_table pools;
    struct varset_store varsets;     /* settings of links and of the clients that share them */
    struct paramset_store paramsets; /* what servers reported, and links were opened with */
    struct list kept;          /* pools with idle links and no client, longest without one first */
    struct list waiting_pools; /* pools somebody waits for, the one served last at the end */
    uint32_t nrequests;        /* waiting requests */
    struct list cancels;       /* cancel requests on their way to servers */
    unsigned ncancels;         /* so many are there */
    struct task retry;         /* lets waiting requests try again */
    struct timer
        sweep; /* starts `retry` now and then while somebody waits: nothing is waited for in vain */
    struct timer maint; /* life spans of links, pools kept warm */
    bool is_retrying;
    bool is_sweeping; /* in this retry nothing is left to others who wait longer */
    bool is_serving;  /* a waiting client is being served: not another one inside that */
    struct row_alloc *row_alloc;
    struct link_retired retired[RETIRE_KEPT]; /* of late */
    unsigned nretired;
    int gives_to;              /* this worker has too much to do, that one has time; -1: none */
    uint64_t epoch_mismatches; /* must stay 0 */
    /* Posts a message to worker `ordinal`, with a descriptor or -1; 0 when it is on its way. */
    int (*post)(
        struct backend *be, int ordinal, enum mail_type type, const void *body, size_t len, int fd);
    /* A server has ended a link that nobody had: the server may be going. NULL: nobody cares. */
    void (*on_free_ended)(struct backend *be, int node);
    void *ctx;
};

/* Makes a worker's backend side: no links yet. Everything given must live as long as *be. */
void backend_init(
    struct backend *be, struct loop *loop, struct shm *shm, const struct conf *conf, int ordinal);
/* Closes every link. */
void backend_fini(struct backend *be);
/* Takes over a new configuration generation. */
void backend_set_conf(struct backend *be, const struct conf *conf);
/* TLS towards the servers as `gen` wants it, from now on; what cannot be used is logged, and what
 * was in use stays. Also the first time, before any link. */
void backend_tls_set_conf(struct backend *be, const struct conf_gen *gen);
/* 0 when everything that `gen` names for it is usable; -1 and *err says what is not. */
int backend_tls_check(const struct conf_gen *gen, struct err *err);
/* What all TLS streams of the worker share. */
struct tls_env *backend_tls_env(struct backend *be);
/* Lets waiting requests try again, soon: quota was freed, or a link they waited for is gone. */
void backend_post_retry(struct backend *be);
/* Another worker wants a link, or room for one (MAIL_LINK_WANTED). */
void backend_on_wanted(struct backend *be, const void *body, size_t len);
/* Another worker has links for clients that wait here (MAIL_CLIENT_WANTED). */
void backend_on_called(struct backend *be, const void *body, size_t len);
/* Another worker has closed a link, and one is to be opened here in its place (MAIL_LINK_PLACE).
 * `body` is wiped. */
void backend_on_place(struct backend *be, void *body, size_t len);
/* A link that another worker handed over; `fd` is taken over. */
void backend_on_offer(struct backend *be, const void *body, size_t len, int fd);
/* Closes all idle links; lent ones are closed when they come back. */
void backend_stop_caching(struct backend *be);
/* Wall clock, microseconds, without a system call. */
static inline int64_t backend_wall_us(const struct backend *be)
{
    return loop_now_us(be->loop) + be->wall_offset_us;
}

#endif
