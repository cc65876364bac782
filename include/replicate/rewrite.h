/* SPDX-License-Identifier: PostgreSQL
 * rewrite.h: a statement that is to run on several nodes, changed so that it does the same on each:
 * what tells the time, and what is random, becomes a value that one node gives for all. Pure.
 * Runs in: workers.
 *
 * Two steps. repl_rewrite_plan finds what has to be replaced and says what to ask the main node
 * (repl_rewrite_asks: a SELECT, in the transaction of the statement); repl_rewrite_text splices
 * the answers into the text at the parser's offsets, as literals or as parameters. Everything lives
 * in the arena given, or in the text and the facts: keep these as long. */
#ifndef PGP_REPLICATE_REWRITE_H
#define PGP_REPLICATE_REWRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "parser/parser.h"
#include "replicate/copy.h"

struct arena;

/* A column as the catalogue has it. */
struct repl_column {
    struct slice name; /* without quotes */
    struct slice type; /* as format_type says */
    struct slice def;  /* the default as an expression; empty: none */
    bool is_generated; /* GENERATED ALWAYS AS (...): never written */
    bool is_sequence;  /* an identity, or a default that calls nextval or a volatile function of
                          one's own: runs on every node, under a lock of the table */
};

struct repl_table {
    const struct repl_column *columns;
    uint32_t ncolumns;
    uint32_t nhidden; /* behind them: columns of its table that a view does not show */
    bool is_view;
    bool can_lock;  /* the user may LOCK it against writers; else it is a table, and he may not */
    bool is_shared; /* others may write to it while it is read */
};

/* What is known of tables. `find` gives NULL when the catalogue was not asked yet, and a table
 * without columns when there is none of that name. */
struct repl_catalog {
    const struct repl_table *(*find)(void *ctx, const struct sql_table *table);
    void *ctx;
};

enum repl_verdict {
    REPL_KEEP,    /* runs as it is */
    REPL_REWRITE, /* ask for `nasks` values, then splice */
    REPL_ASK,     /* the catalogue has to be asked for `table` first */
    REPL_FAILED   /* the arena is exhausted, the text is none, or it holds what cannot be spliced */
};

/* A value that the main node is asked for. */
struct repl_ask {
    struct slice expr; /* gives text that `cast` reads */
    struct slice cast; /* a type */
};

/* Replaces `len` bytes at `offset`. In `text` the value of ask N stands as "\1N\2". */
struct repl_splice {
    uint32_t offset;
    uint32_t len;
    uint32_t number; /* of several at one place: as they were found */
    struct slice text;
};

/* COPY FROM STDIN: the first asks are values, as text, for columns that every row gets at its end.
 */
struct repl_copy_plan {
    struct repl_copy_form form;
    struct slice *names; /* of the columns, without quotes */
    uint32_t n;
};

/* A statement that takes numbers of more is refused. */
#define REPL_MAX_SEQUENCES 8

/* In how many modes tables that are read are locked. */
#define REPL_MAX_LOCKS 2

struct repl_plan {
    enum repl_verdict verdict;
    const struct sql_table *table;
    struct repl_ask *asks;
    uint32_t nasks;
    struct repl_splice *splices; /* by offset */
    uint32_t nsplices;
    bool as_params;       /* spliced as parameters: PREPARE, or the extended protocol */
    uint32_t first_param; /* the number of the first of them */
    /* What may still differ between nodes: a call, by name; n is 0 when there is nothing. */
    struct slice differs;
    bool skips_locked; /* SKIP LOCKED: passes over rows that others hold in this moment */
    /* What locks the tables that it goes by (replicate/reads.h): statements, on each node first. */
    struct slice locks[REPL_MAX_LOCKS];
    uint32_t nlocks;
    /* The table whose rows get numbers of a sequence: to be locked (insert_lock); NULL: none. */
    const struct sql_table *serial;
    bool serial_is_view;
    bool serial_is_free; /* and is not, as the user may not */
    /* Sequences whose numbers it takes, as expressions that can be cast to regclass: to be locked,
     * for several tables may share one. */
    struct slice sequences[REPL_MAX_SEQUENCES];
    uint32_t nsequences;
    bool makes_lobj; /* a large object, under a number that the server picks */
    /* Rows that have to be filled in; NULL: none. */
    const struct repl_copy_plan *copy;
};

/* Plans the rewriting of statement `stmt` of `text`. `nparams`: how many parameters a Parse message
 * declares types for; `is_parse`: it is the text of one. Returns plan->verdict. */
enum repl_verdict repl_rewrite_plan(struct arena *a, struct slice text, const struct sql_stmt *stmt,
    const struct repl_catalog *catalog, bool is_parse, uint32_t nparams, struct repl_plan *plan);
/* Appends the question, behind `first` values that `sql` asks for already: a column of text for
 * each, in rows of a thousand. */
void repl_rewrite_asks(const struct repl_plan *plan, uint32_t first, struct buf *sql);
/* True when all values are the time of the transaction: in it the main node gives them to the
 * statement as the client wrote it, too. */
bool repl_asks_of_transaction(const struct repl_plan *plan);
/* Appends the statement's text with the answers in it (`values` is not read with as_params). */
void repl_rewrite_text(const struct repl_plan *plan, struct slice text, const struct sql_stmt *stmt,
    const struct slice *values, struct buf *sql);
/* An EXECUTE of what was prepared with `plan`: appends it with the values as further arguments. */
void repl_rewrite_execute(const struct repl_plan *plan, struct slice text,
    const struct sql_stmt *stmt, const struct slice *values, struct buf *sql);
/* A text that PostgreSQL reads as a time by its clock, where a time is meant: `now`, `today`. */
bool repl_word_moves(struct slice s);
/* The answer to the question: rows, each behind its length (4 bytes), as a DataRow has them. Values
 * that are not NULL are kept in the arena; `values` has to be empty before. */
void repl_take_values(struct arena *a, struct slice rows, struct slice *values, uint32_t n);
/* Appends the question which transaction its connection is at; the number in the answer, which each
 * one adds one to; 0: there is none. */
void repl_which_sql(struct buf *sql);
uint64_t repl_which_number(struct slice which);
/* The first value of a Bind (from its formats on) that is such a text and may be a time, by the
 * types of its Parse (their count in front; may be empty): from 1 on; 0: none is. */
uint32_t repl_bind_moves(struct slice rest, struct slice types);
/* Appends a name, quoted. */
void repl_put_name(struct buf *out, struct slice name);
/* Appends a string constant, right under any setting. */
void repl_put_literal(struct buf *out, struct slice value);

/* The question about a table, and a row of its answer: columns as named in struct repl_column,
 * whether it is a view, and whether it can be locked (NULL: it need not be). `relation` is the name
 * as it would be written. */
#define REPL_TABLE_VALUES 7
void repl_table_sql(struct slice relation, struct buf *sql);
/* Reads one into `columns`, behind those that are there, and counts it; the slices are kept. */
void repl_table_row(
    const struct slice *values, struct repl_column *columns, struct repl_table *table);
/* Appends the question which functions of the database, and tables with triggers, do another thing
 * on each node, by the words of their texts, at most `limit`: for each whether it is a table ('t'
 * or 'f'), its name, and how it is shown. */
void repl_functions_sql(uint32_t limit, struct buf *sql);
/* The table's name as a relation of the catalogue, quoted. */
void repl_table_name(const struct sql_table *table, struct buf *out);

#endif
