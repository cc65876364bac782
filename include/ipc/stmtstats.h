/* SPDX-License-Identifier: PostgreSQL
 * stmtstats.h: what each statement did: calls, times, rows and errors by fingerprint, database and
 * node, in the region STMTSTATS of shared memory. Written by: each worker, its own rows. Read by:
 * whoever answers SHOW, who adds up the rows of all workers.
 *
 * A worker finds the row of a statement by a book of its own, which holds so many statements as
 * track_statements_max says; for one more, one that was not used lately goes, and what it did is
 * added to the row of all that went. Counting is a plain store to memory that only the worker
 * writes. */
#ifndef PGP_IPC_STMTSTATS_H
#define PGP_IPC_STMTSTATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/slice.h"
#include "ipc/rows.h"
#include "ipc/shm.h"

#define STMTSTATS_TEXT_BYTES 512
#define STMTSTATS_MAX        16384 /* statements of one worker */
#define STMTSTATS_OTHER      (-1)  /* node of the row of all that have none of their own */
/* Four buckets for each doubling: good to an eighth of the value. */
#define STMTSTATS_MERGED  4
#define STMTSTATS_BUCKETS (HISTOGRAM_BUCKETS / STMTSTATS_MERGED)

/* One statement of one database on one node, in one worker. */
struct stmtstats_row {
    struct shm_seq seq; /* about what it is the row of; figures change without it */
    int16_t node;
    bool is_used;             /* once it was, for ever */
    _Atomic uint32_t nresets; /* of a worker's first row: the resets that it has followed */
    uint64_t fingerprint;
    _Atomic uint64_t calls;
    _Atomic uint64_t nrows;
    _Atomic uint64_t nerrors;
    _Atomic uint64_t total_us;
    _Atomic uint64_t max_us;
    _Atomic uint64_t hits; /* answered from the query cache: no calls */
    _Atomic uint32_t bucket[STMTSTATS_BUCKETS];
    char database[ROWS_NAME_BYTES];
    char text[STMTSTATS_TEXT_BYTES];
} __attribute__((aligned(64)));

/* A copy, and the sum of several. A zeroed one is empty. */
struct stmtstats_sum {
    int16_t node;
    uint64_t fingerprint;
    uint64_t calls;
    uint64_t nrows;
    uint64_t nerrors;
    uint64_t total_us;
    uint64_t max_us;
    uint64_t hits;
    uint32_t bucket[STMTSTATS_BUCKETS];
    char database[ROWS_NAME_BYTES];
    char text[STMTSTATS_TEXT_BYTES];
};

/* Size of the region, 0 when `max` is 0, and its first content. Supervisor, before the first fork.
 */
size_t stmtstats_region_bytes(int nworkers, int max);
void stmtstats_region_init(struct shm *shm, int nworkers, int max);

/* A statement of a database on a node as a worker knows it; 0: none. It may have gone meanwhile. */
typedef uint32_t stmtstats_handle;

/* Which statement. */
struct stmtstats_key {
    uint64_t hi; /* hashes of it, with a seed that no client knows */
    uint64_t lo;
    const void *database; /* any pointer that is the same for it each time */
    int node;
};

/* What went together: as one exchange of a client with a node. */
struct stmtstats_use {
    uint32_t calls; /* of this statement, at least one */
    uint32_t nerrors;
    uint64_t nrows;
    int64_t took_us;
};

struct stmtstats_book;

/* The book of worker `ordinal`; NULL when there is no region. Rows of the worker that had this
 * number before are kept: a statement finds them again by its fingerprint. */
struct stmtstats_book *stmtstats_open(struct shm *shm, int ordinal);
/* Frees it and clears *bp. */
void stmtstats_close(struct stmtstats_book **bp);
/* 0: not known. */
stmtstats_handle stmtstats_find(struct stmtstats_book *b, const struct stmtstats_key *key);
/* True while it stands for a statement of that database on that node. */
bool stmtstats_is(
    const struct stmtstats_book *b, stmtstats_handle h, const void *database, int node);
/* What SHOW POOL_STATEMENTS calls it. False: it stands for nothing any more. */
bool stmtstats_fingerprint(
    const struct stmtstats_book *b, stmtstats_handle h, uint64_t *fingerprint);
/* Makes a row for one that is not known: its fingerprint is the same in all workers, its text is
 * without values. */
stmtstats_handle stmtstats_add(struct stmtstats_book *b, const struct stmtstats_key *key,
    uint64_t fingerprint, struct slice database, struct slice text);
/* Counts. With a handle that stands for nothing any more: in the row of all others. */
void stmtstats_count(struct stmtstats_book *b, stmtstats_handle h, const struct stmtstats_use *use);
/* Counts a statement that was answered from the query cache. */
void stmtstats_count_hit(struct stmtstats_book *b, stmtstats_handle h);

/* Forgets all figures of all workers: each of them when it counts next, readers at once. Any
 * process. */
void stmtstats_reset(const struct shm *shm);
/* Walks the rows that have counted anything: start with *at = 0; false at the end. */
bool stmtstats_next(const struct shm *shm, uint32_t *at, struct stmtstats_sum *out);
/* Adds what `from` did to *sum. */
void stmtstats_sum_add(struct stmtstats_sum *sum, const struct stmtstats_sum *from);
/* The time that `parts` of a thousand calls did not exceed; 0 when there was none. */
int64_t stmtstats_quantile(const struct stmtstats_sum *sum, unsigned parts);

#endif
