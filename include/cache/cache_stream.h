/* SPDX-License-Identifier: PostgreSQL
 * cache_stream.h: for which databases it is known that no write goes unseen, and how.
 * Written by: the invalidator; workers add the names of databases. Read by: workers, before they
 * use or keep a result; SHOW POOL_CACHE_STREAMS.
 *
 *   n = cache_stream_find(streams, database)      once per session
 *   on a hit: cache_stream_is_good(streams, n, now), or it is no hit
 *   on a fill: cache_deps_read(...), then cache_stream_is_good(...), or do not keep it
 *
 * A database is good while results may be used and kept: with `wal`, for as long as the last word
 * about the stream holds (a lease: nobody has to notice that the invalidator hangs); with
 * `statement`, always. When a stream was broken, all results of its database are made invalid
 * before it is good again. */
#ifndef PGP_CACHE_CACHE_STREAM_H
#define PGP_CACHE_CACHE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "ipc/shm.h"

/* Databases; results of others are not kept. A name stays. */
#define CACHE_STREAM_MAX   64
#define CACHE_STREAM_NONE  (-1)
#define CACHE_STREAM_BYTES 64 /* of a name, with its NUL */

struct cache_streams; /* in shared memory */

/* Size of the region. */
size_t cache_streams_bytes(void);
/* NULL: there is no query cache. */
struct cache_streams *cache_streams_of(const struct shm *shm);

/* Number of a database by its name at the servers; adds it. CACHE_STREAM_NONE: there are too many.
 */
int cache_stream_find(struct cache_streams *s, struct slice database);
/* Whether results of it may be used and kept at `now_us` (clock_mono_us). Also says that somebody
 * is interested. */
bool cache_stream_is_good(struct cache_streams *s, int n, int64_t now_us);

/* Whether it is good because its stream is: not for ever, by what is written through pgpool alone.
 */
bool cache_stream_is_followed(const struct cache_streams *s, int n, int64_t now_us);

/* A client wants to drop it, and nobody may be connected then: the stream lets go of it, for some
 * seconds. Nothing happens when it is not known. */
void cache_stream_let_go(struct cache_streams *s, struct slice database, int64_t now_us);

/* What is done about a database. X(symbol, text in SHOW) */
#define CACHE_STREAM_STATES(X)                                                                     \
    X(WANTED, "wanted")       /* nobody has looked at it yet */                                    \
    X(IDLE, "idle")           /* nobody asks: no stream */                                         \
    X(STATEMENT, "statement") /* only what is written through pgpool is seen */                    \
    X(STARTING, "starting")                                                                        \
    X(STREAMING, "streaming")                                                                      \
    X(LATE, "late")     /* beyond memqcache_wal_lag */                                             \
    X(BROKEN, "broken") /* it will be tried again */
#define CACHE_STREAM_STATE(sym, text) CACHE_STREAM_##sym,
enum cache_stream_state { CACHE_STREAM_STATES(CACHE_STREAM_STATE) CACHE_STREAM_STATE_COUNT };
const char *cache_stream_state_text(enum cache_stream_state state);

#define CACHE_STREAM_WHY_BYTES 192
/* What is told about one; written whole by the invalidator. */
struct cache_stream_row {
    uint8_t state; /* enum cache_stream_state */
    int32_t node;
    int64_t since_us; /* wall clock: in this state */
    uint64_t lsn;     /* everything up to here was dealt with */
    uint64_t restarts;
    uint64_t transactions;
    uint64_t row_changes;   /* of which the values are known, or some of them */
    uint64_t table_changes; /* TRUNCATE, and rows of which nothing is known */
    uint64_t emptied;       /* all results of the database were made invalid: DDL, a new stream */
    uint64_t waiting;       /* transactions that are committed and not visible yet */
    int64_t lag_us;         /* from a commit until its results were invalid: the last one, */
    int64_t lag_p99_us;     /* and 99 of 100 */
    char why[CACHE_STREAM_WHY_BYTES];
};
/* Name and row `n`; false when there is none. `name` may be NULL. */
bool cache_stream_row(const struct cache_streams *s, int n, char name[CACHE_STREAM_BYTES],
    struct cache_stream_row *out);

/* Whether it is good now, for SHOW: nobody's interest is noted. */
bool cache_stream_shows_good(const struct cache_streams *s, int n);

/* --- the invalidator --- */

/* Replaces what is told about one. */
void cache_stream_publish(struct cache_streams *s, int n, const struct cache_stream_row *row);
/* Good until then; 0: not; INT64_MAX: for ever. */
void cache_stream_lease(struct cache_streams *s, int n, int64_t until_us);
/* When somebody asked last, clock_mono_us; 0: never. Good to a second. */
int64_t cache_stream_asked_us(const struct cache_streams *s, int n);
/* Not to be followed before that; 0: nobody minds. */
int64_t cache_stream_leave_until_us(const struct cache_streams *s, int n);
/* Which server was the primary when the marks of writes were last thrown away. Outlives the
 * invalidator. `epoch` 0: none yet. */
struct cache_stream_primary {
    int32_t node;
    uint64_t epoch;
};
struct cache_stream_primary cache_stream_primary(const struct cache_streams *s);
void cache_stream_set_primary(struct cache_streams *s, struct cache_stream_primary p);
/* The supervisor: the invalidator is dead. What it followed is not good any more. */
void cache_streams_died(struct shm *shm);

#endif
