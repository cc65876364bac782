/* SPDX-License-Identifier: PostgreSQL
 * rewrite_int.h: what the parts of the rewriting share. Runs in: workers. */
#ifndef PGP_REPLICATE_REWRITE_INT_H
#define PGP_REPLICATE_REWRITE_INT_H

#include "parser/tokens.h"
#include "replicate/rewrite.h"

/* More values than this are not asked for in one statement: it is refused then. As parameters they
 * have to fit beside the client's own. */
#define REPL_MAX_ASKS       60000
#define REPL_MAX_ASK_PARAMS 1600

struct repl_work {
    struct arena *arena;
    struct slice text;
    const struct sql_stmt *stmt;
    const struct repl_catalog *catalog;
    const struct sql_token *tok; /* of the whole text */
    uint32_t from;               /* the statement's tokens */
    uint32_t to;
    struct repl_plan *plan;
    uint32_t splice_cap;
    uint32_t ask_cap;
    struct buf *scratch;
    bool *settled; /* by token: a constant whose words are dealt with; NULL: none is */
    bool failed;
};

/* Tokens. `i` may be w->to or beyond: then nothing matches. */
struct slice repl_tok(const struct repl_work *w, uint32_t i);
bool repl_is(const struct repl_work *w, uint32_t i, const char *word);
bool repl_is_sign(const struct repl_work *w, uint32_t i, char sign);
bool repl_is_name(const struct repl_work *w, uint32_t i);
/* The token behind the one that closes the parenthesis at `i`. */
uint32_t repl_skip_parens(const struct repl_work *w, uint32_t i);
/* The comma of a list at or behind `i` that stands in no parentheses, or `end`. */
uint32_t repl_item_end(const struct repl_work *w, uint32_t i, uint32_t end);
/* The first token at or behind `offset`. */
uint32_t repl_token_at(const struct repl_work *w, uint32_t offset);
/* Whether a name as written is the column. */
bool repl_names_column(struct slice written, const struct repl_column *column);

/* Adds a value, or finds the one with the same expression (`once`): its number. */
uint32_t repl_ask(struct repl_work *w, struct slice expr, struct slice cast, bool once);
/* Appends a text; the mark of a value that was asked for. */
void repl_put(struct buf *out, const char *text);
void repl_put_mark(struct buf *out, uint32_t ask);
/* What others wrote and becomes part of a splice: it must not look like our marks (then w->failed).
 */
struct slice repl_plain(struct repl_work *w, struct slice s);
/* Adds a splice, its text formatted. */
void repl_splice(struct repl_work *w, uint32_t offset, uint32_t len, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds a splice whose text lives in the arena. */
void repl_splice_text(struct repl_work *w, uint32_t offset, uint32_t len, struct slice text);
void repl_differs(struct repl_work *w, struct slice what);

/* rewrite_time.c: times of day in the statement, from token w->from on; constants that the server
 * would read by its clock and that are not settled are named. */
void repl_times(struct repl_work *w);
/* FOR VALUES of a partition, which are what they are when it is made; w->to: there are none. */
uint32_t repl_bound_at(const struct repl_work *w);
/* A constant like 'now' that is a value of a column of `type`; true when it was replaced. */
bool repl_time_value(struct repl_work *w, uint32_t i, struct slice type);
/* What a default becomes where it is written into the statement: empty when it may stay where it
 * is. `each`: it is evaluated once for this place. */
struct slice repl_default(struct repl_work *w, const struct repl_column *column, bool each);

/* rewrite_words.c: constants that move with the clock. */
/* The constant at token `i` is replaced, or is a text and stays one. */
void repl_settle(struct repl_work *w, uint32_t i);
bool repl_is_settled(const struct repl_work *w, uint32_t i);
/* A quoted constant of any kind that would be such a word where a time is meant. */
bool repl_constant_moves(struct slice quoted);
/* What stands between the quotes: 'x', E'x', $tag$x$tag$. */
struct slice repl_inside(struct slice quoted);
/* A type by format_type's name is a text: what is written into it stays as it is written. */
bool repl_is_text_type(struct slice type);

/* rewrite_calls.c: calls whose results differ. */
enum repl_call { REPL_CALL_SAME, REPL_CALL_VALUE, REPL_CALL_SERIAL, REPL_CALL_OTHER };
/* The names of calls, from 0 on; NULL: there are no more. */
const char *repl_call_name(unsigned i);
enum repl_call repl_call_kind(const struct sql_func *f, const char **type);
/* Sequences whose numbers are taken: by the calls of a statement; by a column's default, or its
 * identity, where `table` is the name as written. */
void repl_sequences(struct repl_work *w, struct slice text, const struct sql_stmt *stmt);
void repl_default_sequences(
    struct repl_work *w, struct slice table, const struct repl_column *column);
void repl_add_sequence(struct repl_work *w, struct slice expr);
/* `values`: spans of rows of VALUES, where a call is evaluated once. */
void repl_calls(struct repl_work *w, const struct sql_span *values, uint32_t n);

/* rewrite_body.c: functions that are made, and DO. False: it is something else. */
bool repl_bodies(struct repl_work *w);

/* rewrite_lobj.c: numbers of large objects. */
void repl_lobjs(struct repl_work *w);

/* rewrite_insert.c: columns that are left out, and DEFAULT. False when the catalogue has to be
 * asked. Spans of the rows of VALUES come back. */
bool repl_defaults(struct repl_work *w, const struct sql_span **values, uint32_t *n);

/* rewrite_copy.c: columns that COPY leaves out. False when the catalogue has to be asked. */
bool repl_copy(struct repl_work *w);

#endif
