/* SPDX-License-Identifier: PostgreSQL
 * locks.h: what has to be locked so that every node numbers rows and large objects alike. Pure.
 * Runs in: workers. */
#ifndef PGP_REPLICATE_LOCKS_H
#define PGP_REPLICATE_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "parser/parser.h"
#include "replicate/rewrite.h"

/* Whether the rows of an INSERT get their numbers under a lock: insert_lock, or what the comment in
 * front of the statement says. `serial`: the table has such a default (struct repl_plan). */
bool repl_must_lock(struct slice text, const struct sql_stmt *stmt, bool insert_lock, bool serial);
struct repl_lock_rules {
    bool insert_lock;
    bool has_row_locks;          /* pgpool_catalog.insert_lock is there */
    const char *lobj_lock_table; /* empty: none */
};
/* Appends lock number `i` that a statement (NULL: a function call) takes first on the main node:
 * of sequences, named by *sequence, of large objects, of its table, of what it reads. False: there
 * are no more. */
bool repl_lock_at(struct slice text, const struct sql_stmt *stmt, const struct repl_plan *plan,
    const struct repl_lock_rules *rules, uint32_t i, struct slice *sequence, struct buf *sql);
/* The table an INSERT writes; NULL: it is none. */
const struct sql_table *repl_insert_target(const struct sql_stmt *stmt);

/* The lock, to be taken on the main node first: of a row of pgpool_catalog.insert_lock where that
 * table exists (`has_row_locks`), which is made if need be, else of the table itself. */
void repl_lock_sql(struct slice relation, bool has_row_locks, struct buf *sql);
/* The table of row locks, pgpool_catalog.insert_lock. */
const struct sql_table *repl_row_locks(void);
/* What a COPY locks by itself when it begins, taken before: so its columns stay what they are. */
void repl_copy_lock_sql(struct slice relation, struct buf *sql);
/* The lock of lobj_lock_table, which everybody takes who makes a large object. */
void repl_lobj_lock_sql(struct slice lock_table, struct buf *sql);
/* A file of the server becomes a large object: lo_import(). */
bool repl_imports_lobj(const struct sql_stmt *stmt);
/* An expression whose value is the number that the main node picks for one. */
struct slice repl_lobj_ask(void);
/* The function call protocol: body of a FunctionCall message (behind its length). Whether it makes
 * a large object under a number that the server picks; then a body with `oid` can be appended. */
bool repl_lobj_is_made(struct slice body);
bool repl_lobj_function_call(struct slice body, uint32_t oid, struct buf *out);
/* Whether it is one of PostgreSQL's functions for large objects, all of which answer alike. */
bool repl_is_lobj_function(struct slice body);

#endif
