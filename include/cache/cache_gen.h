/* SPDX-License-Identifier: PostgreSQL
 * cache_gen.h: generations: what a cached result depends on, and how it is made invalid.
 * Runs in: workers and the invalidator. All of it stands in shared memory, without locks or lists.
 *
 * A cell is a counter that only grows. There is one for all results, one per database, and for a
 * table these: `any` (any write to it), `whole` (DDL, TRUNCATE, a write of rows that nobody knows),
 * one per column (rows whose values in it nobody knows) and one per value of a column. Cells are
 * found by hash, so two things may have one cell: then a write to one makes results of the other
 * invalid too, which is slow but right.
 *
 * A result that depends on a table as a whole depends on {all, database, any}; one whose rows of
 * the table are restricted by column = value on {all, database, whole, column, value}:
 *
 *   cache_deps_init(&deps, gens);                   adds `all` by itself
 *   cache_deps_add(&deps, cache_cell_database(db));
 *   cache_deps_add(&deps, cache_cell_table(db, oid));
 *   if (cache_deps_read(&deps, gens, now) != CACHE_FILL_OK) do not keep the result;
 *   send the query, keep the result with `deps`
 *
 * As cells only grow, the sum of them is unchanged if and only if each of them is: a result keeps
 * the numbers of its cells and their sum.
 *
 * Who writes, bumps:
 *   rows whose values are known    any, and value(old) and value(new) of each column of `cached
 *                                  columns` (or of all columns whose types have keys)
 *   new values known, old ones not any, column, value(new) need not be
 *   anything else                  any, whole
 *   the database (DROP, RENAME)    database
 *
 * through us, in this order: cache_gens_hold before the COMMIT (or the statement that commits by
 * itself) is sent; when its outcome is known, and before the client hears of it,
 * cache_gens_release. The invalidator: hold when it has decoded a change, release when the
 * transaction is seen to be visible. Bumps on the way in make what is cached invalid; while a cell
 * is held no fill of it begins; bumps on the way out make fills invalid that began in between by
 * another road. After a rollback: release, too. */
#ifndef PGP_CACHE_CACHE_GEN_H
#define PGP_CACHE_CACHE_GEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct cache_gens; /* in shared memory */

/* More cells than this: the result is not kept. */
#define CACHE_DEPS_MAX 64

/* Number of a cell, whatever the size of the table is: a hash. */
typedef uint64_t cache_cell;

/* Database `name` of the cluster. Whoever makes cells of one table uses the same name for its
 * database: that of the server, not an alias of a client. */
cache_cell cache_cell_database(struct slice name);
/* Any write to the table. `database` is the cell of its database. */
cache_cell cache_cell_table(cache_cell database, uint32_t oid);
/* DDL, TRUNCATE, unknown rows of it. */
cache_cell cache_cell_whole(cache_cell database, uint32_t oid);
/* Rows of it with unknown values in column `attnum`. */
cache_cell cache_cell_column(cache_cell database, uint32_t oid, int attnum);
/* Rows of it with the value whose key is `value`, see cache_value.h. */
cache_cell cache_cell_value(cache_cell database, uint32_t oid, int attnum, uint64_t value);

/* Why a result is not kept. X(symbol, text in SHOW POOL_CACHE_TABLES) */
#define CACHE_FILL_REASONS(X)                                                                      \
    X(OK, "")                                                                                      \
    X(OFF, "cache is off")                                                                         \
    X(HELD, "a writer is committing")                                                              \
    X(MOVED, "written meanwhile")                                                                  \
    X(STANDBY, "standby is behind")                                                                \
    X(MANY, "too many dependencies")                                                               \
    X(LARGE, "too large")                                                                          \
    X(RARE, "asked for too seldom")                                                                \
    X(FULL, "no space")
#define CACHE_FILL_SYMBOL(sym, text) CACHE_FILL_##sym,
enum cache_fill_reason { CACHE_FILL_REASONS(CACHE_FILL_SYMBOL) CACHE_FILL_REASON_COUNT };
const char *cache_fill_reason_text(enum cache_fill_reason reason);

/* What a result depends on. Plain data of the caller. */
struct cache_deps {
    uint32_t ncells;
    bool is_many; /* more cells than there is room for */
    uint32_t cell[CACHE_DEPS_MAX];
    uint64_t sum;
};

/* Depends on nothing but `all`. */
void cache_deps_init(struct cache_deps *d);
/* Adds a cell; once is enough, twice does no harm. */
void cache_deps_add(struct cache_deps *d, const struct cache_gens *g, cache_cell cell);
/* Reads the generations: to be called before the query is sent, or a write in between goes unseen.
 * OK, or why the result must not be kept: OFF, HELD, MANY. `now_us` is clock_mono_us(). */
enum cache_fill_reason cache_deps_read(struct cache_deps *d, struct cache_gens *g, int64_t now_us);
/* Nothing was written since cache_deps_read. */
bool cache_deps_hold(const struct cache_deps *d, const struct cache_gens *g);

/* A standby as the view shows it, on the primary's timeline. */
struct cache_standby {
    uint64_t replay_lsn;
    int64_t as_of_us; /* it has replayed all that was committed before this time, clock_mono_us;
                         0 when nothing says so */
};
/* Whether the last known writes of these cells are there: to be asked before the query is sent. */
bool cache_deps_standby(
    const struct cache_deps *d, const struct cache_gens *g, const struct cache_standby *s);

/* When a write was committed: `lsn` when it is known, else 0; `us` (clock_mono_us) is then the time
 * at which its outcome became known, by a clock read afterwards: a loop's own time may be earlier.
 * A zeroed struct: nothing was committed. */
struct cache_written {
    uint64_t lsn;
    int64_t us;
};

/* An outcome has just become known. */
struct cache_written cache_written_now(void);

/* Makes everything that depends on these cells invalid. `proc` is the caller's process slot. */
void cache_gens_bump(
    struct cache_gens *g, const cache_cell *cells, size_t n, struct cache_written w);
/* Makes everything that depends on these cells invalid, and no fill that depends on one of them
 * begins until cache_gens_release is called with exactly these cells. */
void cache_gens_hold(struct cache_gens *g, int proc, const cache_cell *cells, size_t n);
void cache_gens_release(
    struct cache_gens *g, int proc, const cache_cell *cells, size_t n, struct cache_written w);
/* The supervisor: this process has died. What it held is held no longer; as its commits may still
 * be on their way at the servers, the cache is off for a while then, and empty after that.
 * True when it held anything. */
bool cache_gens_died(struct cache_gens *g, int proc, int64_t now_us);

/* What a dead process held is held no longer: for one whose part others have made invalid, or will
 * before it is used again. */
void cache_gens_forget(struct cache_gens *g, int proc);

/* Everything cached is invalid from now on; a standby must have what was committed before
 * `now_us`. */
void cache_gens_empty(struct cache_gens *g, int64_t now_us);
/* Another server is the primary: empty, and what is known of LSNs means nothing any more. A standby
 * must have replayed what was committed before `now_us`. */
void cache_gens_primary_changed(struct cache_gens *g, int64_t now_us);

/* Why the cache answers nothing and keeps nothing, a bit each. X(symbol, text) */
#define CACHE_OFF_REASONS(X)                                                                       \
    X(STREAM, "the stream of changes is not whole")                                                \
    X(DIED, "a process died while it committed")                                                   \
    X(ORDER, "an operator ordered it")                                                             \
    X(FAR, "memcached does not answer")
#define CACHE_OFF_SYMBOL(sym, text) CACHE_OFF_##sym,
enum cache_off { CACHE_OFF_REASONS(CACHE_OFF_SYMBOL) CACHE_OFF_COUNT };
/* Stops; the cache is empty when it goes on. Any number of reasons may hold at a time. */
void cache_gens_off(struct cache_gens *g, enum cache_off reason);
/* `reason` holds no longer. */
void cache_gens_on(struct cache_gens *g, enum cache_off reason, int64_t now_us);
/* Bits 1 << enum cache_off; 0: the cache works. */
uint32_t cache_gens_off_bits(struct cache_gens *g, int64_t now_us);
const char *cache_off_text(enum cache_off reason);

/* Bytes for `ncells` (a power of two) and `nprocs` process slots; makes it, in zeroed memory. */
size_t cache_gens_bytes(uint32_t ncells, int nprocs);
struct cache_gens *cache_gens_init(void *mem, uint32_t ncells, int nprocs);

#endif
