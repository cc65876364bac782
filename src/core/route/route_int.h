/* SPDX-License-Identifier: PostgreSQL
 * route_int.h: what the files of the router share.
 *
 *   route_class.c    what a statement is, by syntax and the lists of the settings
 *   route_check.c    what the catalogue says of its functions and tables
 *   route_decide.c   the order of the rules, and the node
 *   route_choose.c   the node for reads: preferences, weights, lag
 *   route_reads.c    the same for most reads, as a table
 *   route_tx.c       what a read asks of its own transaction
 */
#ifndef PGP_ROUTE_INT_H
#define PGP_ROUTE_INT_H

#include <regex.h>

#include "config/conf.h"
#include "config/conf_pattern.h"
#include "route/route.h"
#include "route/route_oracle.h"
#include "route/route_rules.h"

/* Names of one string that are looked up. The cache of answers must hold as many of each kind, or a
 * statement would be asked about for ever. */
#define ROUTE_MAX_LOOKUPS 100

/* A compiled list of patterns. */
struct route_patterns {
    regex_t *re;
    int n;
};

struct route_preference {
    regex_t re;
    struct conf_preference is;
};

struct route_preferences {
    struct route_preference *item;
    int n;
};

/* A write to (or a call of) the left one counts as a write to the right one. */
struct route_relation {
    struct slice from_schema;
    struct slice from;
    bool from_function;
    struct slice to_schema;
    struct slice to;
};

struct route_rules {
    const struct conf *conf;
    struct arena *arena;
    struct route_patterns read_functions;
    struct route_patterns write_functions;
    struct route_patterns primary_queries;
    struct route_preferences by_app;
    struct route_preferences by_database;
    struct route_preferences by_user;
    struct route_relation *relation;
    int nrelations;
};

/* One statement as it is judged. */
struct route_case {
    const struct route_input *in;
    struct slice text; /* of this statement, comments before it included */
    const struct sql_stmt *stmt;
    struct route_decision *out;
    enum route_reason denied; /* why the read may not be balanced; NONE: it may */
    bool is_alone;            /* the only statement of its string */
    bool runs_functions;      /* the functions named in it are called */
    bool unknown_function;
    bool unknown_relation;
    bool reads_volatile; /* a view or policy that calls what may write */
    unsigned nlookups;
    bool has_database_bits;
    uint32_t database_bits;
    bool is_read_only_begin;
    bool asks_of_tx;                  /* its answer depends on the transaction it is asked in */
    const struct sql_facts *prepared; /* EXECUTE: of the statement it runs */
    struct slice prepared_text;
    uint64_t *verdict; /* kept with the facts of a string that is this statement alone, or NULL */
};

/* route_cache.c: what a question is kept under. */
uint64_t route_question_scope(struct route_scope scope, const struct route_question *q);
uint64_t route_question_hash(struct route_scope scope, const struct route_question *q);

/* route_text.c: what the text begins with. */
struct route_lead {
    bool has_blank;
    bool has_hint;
    bool has_comment;
    size_t offset; /* of the first token */
};
struct route_lead route_lead_of(struct slice text);
/* The constant pid in pg_terminate_backend(pid, ...) or pg_cancel_backend(pid); 0 when there is
 * none. */
int32_t route_text_pid(struct slice text);
/* An operator, or a name or another word, without its quotes. */
struct route_token {
    struct slice text;
    bool is_operator;
    bool is_quoted;
    bool is_behind; /* a colon, a dot, AS or RETURNING, a column's name in a list of columns are in
                       front of it, or a string behind it: the name of a type, perhaps */
};
/* Calls fn for each of them outside of strings and comments, until it returns false. */
typedef bool route_token_fn(void *ctx, const struct route_token *token);
void route_text_tokens(struct slice text, route_token_fn *fn, void *ctx);
/* True when the word stands in the text, in any case, wherever. */
bool route_text_has(struct slice text, const char *word);

/* route_rules.c */
bool route_patterns_match(const struct route_patterns *p, struct slice text);
/* The first preference of the list that fits, or NULL. */
const struct route_preference *route_preference_of(
    const struct route_preferences *list, struct slice name);

/* route_decide.c: what is better read on the primary, but can be read on the node of a read-only
 * transaction. True also of NONE. */
bool route_is_soft(enum route_reason denied);

/* route_class.c: sets class, reason and is_write by syntax. */
void route_classify(struct route_case *c, const struct sql_stmt *stmt);

/* route_check.c */
/* Functions: sets class PRIMARY when one writes, asks for those not known. */
void route_check_functions(struct route_case *c, struct slice text, const struct sql_stmt *stmt);
/* Relations: sets c->denied, if nothing worse is there, and class PRIMARY when reading one may
 * write; asks for those not known. */
void route_check_relations(struct route_case *c, struct slice text, const struct sql_stmt *stmt);
/* What runs code when it is read. */
void route_check_views(struct route_case *c, const struct sql_stmt *stmt);

/* True when the user's transactions are serializable by default: no standby can run them. False
 * also when that is not known yet (and asked). */
bool route_check_serializable(struct route_case *c);
/* True when they keep one snapshot by default. */
bool route_check_repeatable(struct route_case *c);

/* route_tx.c: true when the statement asks for what its transaction has for itself: its time, its
 * level. */
bool route_asks_of_tx(struct slice text, const struct sql_stmt *s);

/* route_choose.c */
/* The node for a read and why; keeps what was chosen for the session in out->balance_node. */
void route_place_read(const struct route_input *in, struct route_decision *out);
/* May reads go there at all? */
bool route_is_candidate(const struct view *v, int node);
/* What the node has replayed says nothing of what `primary` has written. */
bool route_is_on_other_timeline(const struct view *v, int node, int primary);
/* From 0 up to, but without, 1. */
double route_unit_of(uint64_t random);

#endif
