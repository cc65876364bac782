/* SPDX-License-Identifier: PostgreSQL
 * reads.h: the tables that a write goes by: what it changes depends on rows that others change.
 * Pure. Runs in: workers. */
#ifndef PGP_REPLICATE_READS_H
#define PGP_REPLICATE_READS_H

#include <stdbool.h>
#include <stdint.h>

#include "parser/parser.h"
#include "replicate/rewrite.h"

struct arena;

/* The table at *at or the next one behind it that a write reads, once for each name; *at is behind
 * it then. NULL: there is none, or it does not write. Tables of the system are left out. */
const struct sql_table *repl_reads_next(const struct sql_stmt *stmt, uint32_t *at);
/* Whether it writes to that table, too, as far as the name tells. */
bool repl_reads_target(const struct sql_stmt *stmt, const struct sql_table *table);

enum repl_reads_rule {
    REPL_READS_SAME,   /* all nodes read the same in any case */
    REPL_READS_NAMED,  /* a lock is of no use, or not wanted: they are named */
    REPL_READS_TARGET, /* only what it writes to, too, is locked; the others are named */
    REPL_READS_LOCKED
};

/* Plans the locks of a statement (plan->locks), or names in plan->differs what it reads unlocked.
 * REPL_ASK: the catalogue has to be asked for plan->table first; else plan->verdict. */
enum repl_verdict repl_reads_plan(struct arena *a, const struct sql_stmt *stmt,
    const struct repl_catalog *catalog, enum repl_reads_rule rule, struct repl_plan *plan);

#endif
