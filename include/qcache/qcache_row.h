/* SPDX-License-Identifier: PostgreSQL
 * qcache_row.h: results and writes by row: which cells stand for the rows that a statement can have
 * to do with, by its text, its parameters, and what the catalogue says of its tables. Runs in:
 * workers. Pure. */
#ifndef PGP_QCACHE_QCACHE_ROW_H
#define PGP_QCACHE_QCACHE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "cache/cache_gen.h"
#include "parser/parser.h"
#include "qcache/qcache.h"

struct arena;

/* Conditions, or values of an INSERT, that are looked at. */
#define QCACHE_ROW_MAX 16

/* [table.]column, as written. */
struct qcache_field {
    struct slice column;
    bool is_quoted; /* the name of the column */
    uint8_t table;  /* which of the tables in FROM; QCACHE_ROW_ANY: it is not said */
};
#define QCACHE_ROW_ANY 255

/* column = value */
struct qcache_equal {
    struct qcache_field field;
    struct slice value;
    uint32_t param;   /* $n; 0: a constant */
    uint32_t nplaces; /* of this parameter in the text */
    bool is_string;
    uint8_t nset; /* this and so many less one behind it are column IN (value, ...); 1: by itself */
};

/* column = column */
struct qcache_same {
    struct qcache_field a;
    struct qcache_field b;
};

/* All rows that a SELECT reads of one of its tables, or an UPDATE or DELETE changes, have each of
 * the values that are said of that table, and have them afterwards; of an INSERT: the new row has
 * them. None: nothing is known. */
struct qcache_row {
    unsigned ntables; /* in the order of the facts; each time that one is named counts */
    unsigned n;
    struct qcache_equal equal[QCACHE_ROW_MAX];
    unsigned nsame;
    struct qcache_same same[QCACHE_ROW_MAX];
};
/* `facts` are of this text, or of one like it. */
void qcache_row_find(
    struct arena *a, const struct sql_facts *facts, struct slice text, struct qcache_row *out);

/* What the extended protocol gives: types of the Parse (their number and OIDs), formats and values
 * of the Bind. Empty: there are none. */
struct qcache_params {
    struct slice types;
    struct slice values;
};

/* Cells that a result by row depends on, beside its database's: for each table the table's, a
 * column's of it, and those of the values that are asked for. Returns how many; 0: it depends on
 * its tables. */
#define QCACHE_ROW_READS (CACHE_DEPS_MAX - 1)
unsigned qcache_row_reads(const struct qcache_judgement *j, const struct qcache_row *row,
    const struct qcache_params *params, cache_cell database, cache_cell cell[QCACHE_ROW_READS]);

/* Cells that a write by row moves. 0: all rows of its tables. */
#define QCACHE_ROW_WRITES (1 + QCACHE_COLUMNS_MAX)
unsigned qcache_row_writes(const struct qcache_judgement *j, const struct qcache_row *row,
    const struct qcache_params *params, cache_cell database, cache_cell cell[QCACHE_ROW_WRITES]);

/* The number of no table: the cell of `table` with it is that of what names mean (results_ask.c).
 */
#define QCACHE_OID_NONE 0
/* All results of a text depend on it: for PGPOOL SET CACHE DELETE. */
cache_cell qcache_cell_text(cache_cell database, struct slice user, struct slice text);

#endif
