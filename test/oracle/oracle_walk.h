/* SPDX-License-Identifier: PostgreSQL
 * oracle_walk.h: the facts of a statement, read off libpg_query's tree.
 * Runs in: the test program oracle_dump only. */
#ifndef PGP_ORACLE_WALK_H
#define PGP_ORACLE_WALK_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct oracle_json;

/* A growing list of names; sorted and freed of doubles when the walk is over. */
struct oracle_names {
    const char **v;
    size_t n;
    size_t cap;
};

struct oracle_facts {
    const char *kind;
    struct oracle_names tables;
    struct oracle_names functions;
    long params;
    bool read_only;
    bool locking;
    bool dml_in_cte;
    bool into;
    bool temp;
};

/* Walks `stmt`, the value of a RawStmt's member "stmt" in the tree of `sql`. Names live in the
 * arena. */
struct oracle_facts oracle_walk(struct arena *a, const char *sql, const struct oracle_json *stmt);

#endif
