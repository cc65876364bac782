/* SPDX-License-Identifier: PostgreSQL
 * dbstats.h: what was done for each database: counters and histograms of times, in the region
 * DBSTATS of shared memory. Written by: each worker, its own rows. Read by: whoever answers SHOW or
 * metrics, who adds up the rows of all workers. The counters never go back, also when a worker is
 * replaced: its successor goes on with its rows.
 *
 * A worker has room for DBSTATS_DATABASES names; what comes later is counted in one row called
 * DBSTATS_OTHER. Counting is a plain store to memory that only the worker writes: no system call,
 * no shared cache line. */
#ifndef PGP_IPC_DBSTATS_H
#define PGP_IPC_DBSTATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/slice.h"
#include "ipc/rows.h"
#include "ipc/shm.h"

#define DBSTATS_DATABASES 128
#define DBSTATS_OTHER     "<other databases>"

/* X(field, column in SHOW POOL_STATS, what) */
#define DBSTATS_COUNTERS(X)                                                                        \
    X(logins, "logins", "clients that logged in")                                                  \
    X(assignments, "assignments", "times a client was given a server connection")                  \
    X(transactions, "transactions", "transactions that ended at a server")                         \
    X(queries, "queries", "statements sent")                                                       \
    X(bytes_in, "bytes_received", "bytes from clients")                                            \
    X(bytes_out, "bytes_sent", "bytes to clients")                                                 \
    X(transaction_us, "transaction_time_us", "time in transactions, microseconds")                 \
    X(query_us, "query_time_us", "time between a request and the end of its answer")               \
    X(wait_us, "wait_time_us", "time spent waiting for a server connection")

/* Rates are of the last period that is complete, as PgBouncer has them. */
#define DBSTATS_PERIOD_US 60000000

#define DBSTATS_ORDINAL(field, column, text) DBSTATS_N_##field,
enum dbstats_ordinal { DBSTATS_COUNTERS(DBSTATS_ORDINAL) DBSTATS_NCOUNTERS };
#undef DBSTATS_ORDINAL

/* One database in one worker. All counters that a statement moves are in one cache line. */
struct dbstats_row {
    char database[ROWS_NAME_BYTES];
#define DBSTATS_FIELD(field, column, text) _Atomic uint64_t field;
    DBSTATS_COUNTERS(DBSTATS_FIELD)
#undef DBSTATS_FIELD
    _Atomic uint32_t is_used;                 /* set last: then the name holds */
    _Atomic int64_t period_us;                /* when the present period began, monotonic clock */
    _Atomic uint64_t npins[PIN_REASON_COUNT]; /* clients that began to keep their link, by reason */
    struct histogram query;
    struct histogram wait;
    struct histogram transaction;
    _Atomic int64_t last_us; /* how long the last period was; 0: there was none */
    _Atomic uint64_t at_start[DBSTATS_NCOUNTERS]; /* of the present period */
    _Atomic uint64_t last[DBSTATS_NCOUNTERS];     /* what the last one added */
} __attribute__((aligned(64)));

_Static_assert(
    offsetof(struct dbstats_row, transactions) / 64 == offsetof(struct dbstats_row, query_us) / 64,
    "one cache line");

/* The sum over all workers. */
struct dbstats_sum {
    char database[ROWS_NAME_BYTES];
#define DBSTATS_FIELD(field, column, text) uint64_t field;
    DBSTATS_COUNTERS(DBSTATS_FIELD)
#undef DBSTATS_FIELD
    uint64_t npins[PIN_REASON_COUNT];
    double per_second[DBSTATS_NCOUNTERS];
    struct histogram_sum query;
    struct histogram_sum wait;
    struct histogram_sum transaction;
};

/* Size of the region, and its first content. Supervisor, before the first fork. */
size_t dbstats_region_bytes(int nworkers);
void dbstats_region_init(struct shm *shm, int nworkers);
/* The row of `database` for the worker of `ordinal`, made when there is none. Never NULL: when the
 * table is full it is the common row. Only that worker may write into it. */
struct dbstats_row *dbstats_row_of(struct shm *shm, int ordinal, struct slice database);
/* Adds to one counter of an own row. */
static inline void dbstats_add(_Atomic uint64_t *cell, uint64_t n)
{
    atomic_store_explicit(
        cell, atomic_load_explicit(cell, memory_order_relaxed) + n, memory_order_relaxed);
}
/* A time, in the sum and in the histogram: from a request to the end of its answer; for which a
 * connection was waited; of a transaction that has ended. Only the owner of the row. */
void dbstats_answered(struct dbstats_row *row, struct histogram_value took);
void dbstats_waited(struct dbstats_row *row, int64_t waited_us);
void dbstats_ended(struct dbstats_row *row, struct histogram_value took);
/* Begins a new period. Only the owner of the row. */
void dbstats_turn(struct dbstats_row *row, int64_t now_us);
/* Begins a new period when it is time. Only the owner of the row. */
static inline void dbstats_look(struct dbstats_row *row, int64_t now_us)
{
    if (now_us - atomic_load_explicit(&row->period_us, memory_order_relaxed) >= DBSTATS_PERIOD_US)
        dbstats_turn(row, now_us);
}
/* Walks the databases of all workers: start with *at = 0; each call fills `out` with the sums of
 * one database; false at the end. */
bool dbstats_next(const struct shm *shm, uint32_t *at, struct dbstats_sum *out);

#endif
