/* SPDX-License-Identifier: PostgreSQL
 * route_oracle.h: the router's questions about the catalogue, as SQL, and the cache of answers.
 * Runs in: workers. Sends nothing itself: the session asks on a link. */
#ifndef PGP_ROUTE_ROUTE_ORACLE_H
#define PGP_ROUTE_ROUTE_ORACLE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "route/route.h"

struct route_cache;

/* Appends one SELECT that answers all `n` questions: one row each, columns index and bits, both
 * as text of integers. It depends on no setting but search_path, which resolves names without a
 * schema; names that do not exist are answers, not errors. */
void route_oracle_sql(const struct route_question *q, unsigned n, struct buf *out);
/* Reads one row of the reply. Returns 0, or -1 when it is not an answer to one of `n` questions. */
int route_oracle_parse_row(
    struct slice index, struct slice bits, unsigned n, unsigned *index_r, uint32_t *bits_r);

/* False when a relation of the statement is known (`lookup`, as route_input's; NULL: none is) to be
 * a view that writes, or more are not known than can be asked. What is not known is added to the
 * questions of `missing`. */
struct sql_stmt;
bool route_views_read(const struct sql_stmt *s,
    int (*lookup)(void *ctx, const struct route_question *q, uint32_t *bits), void *ctx,
    struct route_decision *missing);

struct route_cache_stats {
    uint64_t hits;
    uint64_t misses;
    uint64_t expired; /* misses that were known once */
    uint64_t evictions;
    uint32_t entries;
};

/* Makes a cache of `size` answers of each kind (a few at least, so that one statement can always be
 * decided), which hold for `expire_ms` (0: for ever). Answers that other sessions may falsify
 * without a word (no such relation, a temporary one) hold for one second. */
struct route_cache *route_cache_new(uint32_t size, int64_t expire_ms);
/* Frees it and clears *cp. */
void route_cache_free(struct route_cache **cp);
/* What names mean to a session, as hashes. */
struct route_scope {
    uint64_t database; /* for names with a schema */
    uint64_t names;    /* for those without: the database, the role, and whatever search_path is */
};

/* Finds an answer. Returns 0, or -1 when it has to be asked for. */
int route_cache_get(struct route_cache *c, struct route_scope scope, const struct route_question *q,
    int64_t now_us, uint32_t *bits_r);
/* How long an answer holds that was given at `now_us`. */
int64_t route_cache_valid_until(
    const struct route_cache *c, const struct route_question *q, int64_t now_us, uint32_t bits);
/* Remembers an answer until then. */
void route_cache_put(struct route_cache *c, struct route_scope scope,
    const struct route_question *q, int64_t until_us, uint32_t bits);
/* Another number after every change of what is answered, for `scope` alone: never 0. */
uint64_t route_cache_id(struct route_cache *c, struct route_scope scope, int64_t now_us);
/* The settings by which answers are judged have changed: all those numbers do. */
void route_cache_touch(struct route_cache *c);
/* Forgets everything: the schema has changed. */
void route_cache_clear(struct route_cache *c);
void route_cache_stats(const struct route_cache *c, struct route_cache_stats *out);

#endif
