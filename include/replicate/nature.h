/* SPDX-License-Identifier: PostgreSQL
 * nature.h: what native replication has to know of a statement's kind. Pure. Runs in: workers. */
#ifndef PGP_REPLICATE_NATURE_H
#define PGP_REPLICATE_NATURE_H

#include <stdbool.h>

#include "parser/parser.h"

/* Which rows a write changes: those with one value in one column that it does not change, as a key
 * nearly always is; or others, which it chooses by what they hold. */
enum repl_choice { REPL_CHOICE_NONE, REPL_CHOICE_VALUE, REPL_CHOICE_FREE };
#define REPL_MAX_CHOICE(a, b) ((a) > (b) ? (a) : (b))
enum repl_choice repl_choice_of(struct slice text, const struct sql_stmt *s);
/* The statement leaves something behind that a new connection would not have. */
bool repl_leaves_state(const struct sql_stmt *s);
/* Nothing is lost when one node has done it and another has not: settings, what is the session's.
 */
bool repl_changes_nothing(const struct sql_stmt *s);
/* Names may mean something else behind it: search_path. */
bool repl_changes_names(const struct sql_stmt *s);
/* PostgreSQL takes it within a transaction, and ends none with it. `isolates`: of one snapshot,
 * where what commits within says that it cannot (2D000). */
bool repl_fits_in_transaction(struct slice text, const struct sql_stmt *s, bool isolates);
/* The statement takes no snapshot of its transaction. */
bool repl_takes_no_snapshot(const struct sql_stmt *s);
/* Nothing of it is ever rewritten, locked or named as what differs, and nobody looks where in the
 * text its parts stand: true of all texts that differ from it in numbers alone. */
bool repl_is_plain(struct slice text, const struct sql_stmt *s);
/* The half of it that is true of all statements with the fingerprint of `s`. */
bool repl_kind_is_plain(const struct sql_stmt *s);
/* A text in which only numbers, and those of parameters, can differ from one with the same
 * fingerprint. */
bool repl_has_numbers_alone(struct slice text);
/* The main node does it alone: LISTEN and its like, SHOW, and SET TRANSACTION SNAPSHOT, as
 * pg_export_snapshot() told that node's. */
bool repl_is_of_main(const struct sql_stmt *s);
/* A SELECT that may be known to read. */
bool repl_only_reads(const struct sql_stmt *s);
bool repl_is_one_read(const struct sql_facts *facts);
/* Where a statement that stands alone begins and ends in its text. */
void repl_place_alone(struct slice text, struct sql_stmt *s);
/* What native replication refuses, by its name; NULL: nothing of it. */
const char *repl_unsupported(const struct sql_stmt *s);
/* A number of the catalogue may be asked for by a name: 'x'::regclass::oid, to_regtype('x'). */
bool repl_shows_numbers(struct slice text);
struct arena;
/* Takes functions out of statement `i` that are volatile and only say what is so on their node: how
 * large a table is, of what a partition is one. Makes a copy in `a`; false: it has none. */
bool repl_leave_out_looks(struct arena *a, struct sql_facts *facts, uint32_t i);
/* CREATE TABLE AS EXECUTE, EXPLAIN ANALYZE EXECUTE. */
bool repl_hides_execute(const struct sql_stmt *s);

#endif
