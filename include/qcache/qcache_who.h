/* SPDX-License-Identifier: PostgreSQL
 * qcache_who.h: who asks, as bytes. Runs in: workers. */
#ifndef PGP_QCACHE_QCACHE_WHO_H
#define PGP_QCACHE_QCACHE_WHO_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/pool.h"
#include "backend/varset.h"
#include "base/buf.h"

/* All sessions with these settings in this pool. */
struct qcache_who {
    const struct pool *pool; /* its address alone means nothing: it is compared with what follows */
    uint64_t npools_gone;    /* when that was looked at last, */
    int64_t place_since_us;  /* and what the pool told then */
    struct varset *vars;     /* counted; NULL: nobody yet */
    int node;
    uint16_t user_len;
    uint16_t database_len;
    struct buf names;
    struct buf there;    /* the name of the database at the server */
    bool says_isolation; /* the session has its say about the isolation of its transactions */
    uint64_t hash;       /* of `key` */
    struct buf key;      /* in front of the key of a result */
    struct buf asks;     /* in front of a question about names */
};

/* Who asked last. Zeroed: nobody. */
#define QCACHE_WHOS 64
struct qcache_whos {
    struct qcache_who who[QCACHE_WHOS];
};

/* Never NULL; valid until the next call. */
const struct qcache_who *qcache_who_find(
    struct qcache_whos *w, const struct pool *pool, struct varset *vars);
void qcache_whos_fini(struct qcache_whos *w);

/* What stands behind `key` of whoever asks in the key of a result; behind it the tables that are
 * read, and the length of the text and the text. */
struct qcache_key_head {
    uint64_t system; /* which server's data they are, as far as the view knows */
    uint32_t node;
    uint32_t timeline;
    uint32_t version;
    uint16_t nreads;
    char kind;
    char zero;
};
_Static_assert(sizeof(struct qcache_key_head) == 24, "no byte of a key is left to chance");
/* The text in a key of results in shared memory; p == NULL: it is another database's or user's. */
struct slice qcache_key_text(struct slice key, struct slice database, struct slice user);

#endif
