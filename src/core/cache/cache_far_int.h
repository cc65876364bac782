/* SPDX-License-Identifier: PostgreSQL
 * cache_far_int.h: memcached: what runs on threads, and how it is told what to do. */
#ifndef PGP_CACHE_FAR_INT_H
#define PGP_CACHE_FAR_INT_H

#include "base/buf.h"
#include "base/list.h"
#include "cache/cache_far.h"

#include "cache_int.h"

/* How the servers are talked to; made once, shared by the threads, never changed. */
struct far_spec {
    _Atomic uint32_t refs;
    int64_t timeout_ms;
    char *user;
    char *password;
    struct cache_far_state *state; /* in shared memory: where they are, and how they do */
};

/* Frees it when nobody uses it any more. */
void far_spec_release(struct far_spec *spec);

/* A connection to all servers, of one thread at a time. */
struct far_conn;
struct far_conn *far_conn_new(struct far_spec *spec, struct err *err);
void far_conn_free(struct far_conn **cp);

/* The value of a result in memcached: this, generations, key, result. */
struct far_head {
    uint32_t magic;
    uint32_t key_len;
    uint32_t took_us;
    uint32_t ngens;
};

/* A look-up, or a result to be kept: one of several that a thread takes at once. */
struct far_req {
    struct list node;            /* while it waits */
    struct cache_far_call *call; /* the loop's: who waits for it; NULL: nobody does */
    bool keeps;                  /* else it is a look-up */
    struct cache_key key;        /* its bytes are in key_bytes */
    char *key_bytes;
    struct cache_far_deps deps;
    struct buf result; /* appended to by a look-up */
    int64_t expire_s;
    uint32_t took_us;
    enum cache_far_found found;
};
/* So many at once. */
#define FAR_BATCH 32

/* Blocking; from a thread. What is to be kept goes first, so that a look-up behind it finds it. */
void far_conn_run(struct far_conn *c, struct far_req *const *reqs, unsigned n);
bool far_conn_bump(struct far_conn *c, const cache_cell *cells, size_t n);
bool far_conn_bar(struct far_conn *c, cache_cell cell);

#endif
