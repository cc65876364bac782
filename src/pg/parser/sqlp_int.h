/* SPDX-License-Identifier: PostgreSQL
 * sqlp_int.h: what scanner, grammar and fact collector share during one parse.
 * Runs in: workers. One struct sqlp per parse, nothing outlives it but what `out` points at. */
#ifndef PGP_PARSER_SQLP_INT_H
#define PGP_PARSER_SQLP_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parser/parser.h"

struct arena;

/* A token that no grammar rule knows. */
#define SQLP_BROKEN 1

/* Flags of a token or of what the grammar made of it. */
#define TOK_QUOTED    0x0001u /* p, n are between the quotes, "" not yet undoubled */
#define TOK_DECODED   0x0002u /* p, n are final (U&"...") */
#define TOK_STAR      0x0004u /* a name that contains .* */
#define TOK_SUBSCRIPT 0x0008u /* a name that contains [...] */
#define TOK_STAR_MID  0x0010u /* .* with something after it */
#define TOK_ONLY      0x0020u
#define TOK_ESCAPED   0x0040u /* a plain string that contains '' or is in pieces, or an E string */
#define TOK_NEGATIVE  0x0080u
#define TOK_STRING    0x10000u /* any string constant */
#define TOK_ESCAPES   0x20000u /* a string constant with backslash escapes */

/* What the grammar says of function arguments, parameters and publication objects. */
#define ARG_NAMED          0x100000u
#define ARG_SORT           0x200000u
#define ARG_DISTINCT       0x400000u
#define ARG_VARIADIC       0x800000u
#define ARG_GIVEN          0x1000000u
#define PUB_TABLES         0x100000u
#define PUB_SCHEMAS        0x200000u
#define PUB_NOT_SCHEMA     0x400000u
#define PUB_CURRENT_SCHEMA 0x800000u
#define PARAM_OUT          0x1u
#define PARAM_DEFAULT      0x2u
#define PARAM_VARIADIC     0x4u
#define PARAM_MANY         0x8u

/* A call of what is syntax after PostgreSQL 15; beside SQL_FUNC_*. */
#define FUNC_OLD 0x80000000u
/* Of a token: a call without parentheses that was a plain name up to PostgreSQL 15. */
#define FUNC_BARE_NAME 0x40000000u
/* Of a function in FROM: without an alias it has a name that the text does not say. */
#define FUNC_SYNTAX 0x20000000u

/* Attributes of a constraint. */
#define ATTR_NOT_DEFERRABLE 0x01u
#define ATTR_DEFERRABLE     0x02u
#define ATTR_IMMEDIATE      0x04u
#define ATTR_DEFERRED       0x08u
#define ATTR_NOT_VALID      0x10u
#define ATTR_NO_INHERIT     0x20u
#define ATTR_NOT_ENFORCED   0x40u
#define ATTR_ENFORCED       0x80u
#define ATTR_TIMING         (ATTR_DEFERRABLE | ATTR_DEFERRED)
#define ATTR_ENFORCEMENT    (ATTR_NOT_ENFORCED | ATTR_ENFORCED)

/* Flags of a select in the grammar. */
#define SEL_SORT   0x0100u
#define SEL_LIMIT  0x0200u
#define SEL_OFFSET 0x0400u
#define SEL_WITH   0x0800u
#define SEL_VALUES 0x1000u
#define SEL_TIES   0x2000u
#define SEL_SKIP   0x4000u

/* The one semantic type: a token, a name (a chain of parts, last part first), or a count. */
struct sql_tok {
    const char *p;
    uint32_t n; /* length of p, or whatever a rule counts */
    uint32_t off;
    uint32_t end;
    uint32_t flags;
    struct sql_tok *prev;
};

/* A CTE's name and the part of the text where it hides relations. */
struct sqlp_cte {
    struct slice name;
    uint32_t from;
    uint32_t to;
    int32_t next; /* the one before it in the same WITH, -1 for none */
};

/* Names of functions in FROM that are told apart. */
#define FROM_FUNCS_MAX 8
/* There are more, or one has a name that the text does not say. */
#define FROM_FUNCS_ANY (FROM_FUNCS_MAX + 1)

/* name.name */
struct sqlp_column {
    struct sql_tok of;
    struct sql_tok name;
};

/* A growing array in the arena. */
struct sqlp_vec {
    void *items;
    uint32_t count;
    uint32_t cap;
};

struct sqlp {
    struct arena *arena;
    void *scanner;
    const char *text; /* as given */
    const char *base; /* the scanner's copy of the text */
    uint32_t size;
    const char *signs_end; /* up to here there are only plus and minus signs */
    bool old_words;        /* words newer than PostgreSQL 15 are identifiers */
    bool saw_new_word;
    bool no_memory;
    bool odd_name; /* who knows how the server folds it */
    bool escaped;  /* the token had a UESCAPE, or is a U&'' string */
    bool has_peek;
    int peek_token;
    struct sql_tok peek;
    uint32_t last_off;    /* of the token given last to the grammar */
    uint32_t prev_off;    /* of the one before */
    uint32_t stmt_end;    /* end of the last token of the statement */
    bool in_stmt;         /* a token of the statement was seen */
    bool newer;           /* PostgreSQL 15 refuses the statement */
    uint32_t nfrom_funcs; /* of the statement: functions in FROM; or FROM_FUNCS_ANY */
    struct slice from_func[FROM_FUNCS_MAX];
    uint32_t first_table; /* of the present statement */
    uint32_t first_func;
    uint32_t first_time;
    uint32_t first_literal;
    uint32_t first_cte;
    uint32_t first_column;
    struct sql_stmt cur;
    struct sqlp_vec stmts;
    struct sqlp_vec tables;
    struct sqlp_vec funcs;
    struct sqlp_vec times;
    struct sqlp_vec literals;
    struct sqlp_vec ctes;
    struct sqlp_vec columns; /* written name.name */
    const char *error;
    uint32_t error_offset;
};

/* Where 24 bytes of a word can be read at once. The copy has been written to byte by byte just now,
 * and a wide load behind narrow stores would wait for them: the text as given has not. */
static inline const char *sqlp_word_bytes(const struct sqlp *st, const struct sql_tok *v)
{
    size_t at = (size_t)(v->p - st->base);

    return st->size - at >= 24 ? st->text + at : v->p;
}

/* scan.l: one raw token; 0 at the end, a token the grammar does not know when broken. sqlscan_open
 * starts on st->base; -1 when the arena is exhausted. */
int sqlscan_token(struct sql_tok *v, void *scanner);
int sqlscan_open(struct sqlp *st);
/* The token of a folded word of 2 to KW_MAX_LEN bytes: a key word's (new ones, too), or IDENT. */
struct kw_key;
int sqlscan_keyword(const struct kw_key *key);

/* scan_text.c: bodies of strings, comments, U& decoding. */
const char *sqltext_skip_line_comment(const char *p, const char *end);
const char *sqltext_skip_block_comment(const char *p, const char *end);
const char *sqltext_string_end(const char *p, const char *end, uint32_t *flags);
const char *sqltext_estring_end(struct sqlp *st, const char *p, const char *end);
bool sqltext_is_utf8(const char *p, size_t n);
const char *sqltext_bits_end(const char *p, const char *end);
const char *sqltext_ident_end(const char *p, const char *end);
const char *sqltext_dollar_end(const char *p, const char *end, const char *tag, size_t tag_len);
size_t sqltext_operator_len(const char *p, const char **signs_end);
int sqltext_unicode(struct sqlp *st, struct sql_tok *v, char esc);
struct slice sqltext_string_value(struct sqlp *st, const struct sql_tok *v);

/* parser.c: a copy of the text that the scanner may write to; NULL when the arena is exhausted. */
const char *sqlp_copy_text(struct arena *a, struct slice text);

/* lex.c: the filter between scanner and grammar. */
int sqlgram_lex(struct sql_tok *v, struct sqlp *st);

/* facts.c: called by the grammar's actions. */
void *sqlp_push(struct sqlp *st, struct sqlp_vec *v, size_t size);
struct slice sqlp_fold(struct sqlp *st, const struct sql_tok *t);
void sqlp_add_name(struct sqlp *st, const struct sql_tok *t);
bool sqlp_is_word(const struct sql_tok *t, const char *word);
bool sqlp_is_json_encoding(const struct sql_tok *t);
bool sqlp_is_role_option(const struct sql_tok *t);
int64_t sqlp_int(const struct sql_tok *t);
bool sqlp_attrs_conflict(uint32_t attrs);
void sqlp_link(struct sqlp *st, const struct sql_tok *before, struct sql_tok *t);
void sqlp_join(struct sqlp *st, const struct sql_tok *first, struct sql_tok *rest);
int sqlp_check_relname(struct sqlp *st, const struct sql_tok *t);
void sqlp_rel(struct sqlp *st, const struct sql_tok *t, uint32_t flags);
void sqlp_new_type(struct sqlp *st, const struct sql_tok *t);
void sqlp_func(
    struct sqlp *st, const struct sql_tok *t, uint32_t nargs, uint32_t flags, uint32_t end);
void sqlp_field(struct sqlp *st, const struct sql_tok *t);
void sqlp_column(struct sqlp *st, const struct sql_tok *of, const struct sql_tok *t);
void sqlp_from_func(struct sqlp *st, const struct sql_tok *func, const struct sql_tok *alias);
void sqlp_treat(struct sqlp *st, const struct sql_tok *type);
void sqlp_old_func(struct sqlp *st, const struct sql_tok *t, uint32_t nargs, uint32_t end);
void sqlp_call_procedure(struct sqlp *st);
void sqlp_time(struct sqlp *st, enum sql_time_kind kind, uint32_t off, uint32_t end);
void sqlp_recursive_view(struct sqlp *st, const struct sql_tok *name, uint32_t from);
void sqlp_set(struct sqlp *st, const struct sql_tok *name, const struct sql_tok *value);
void sqlp_set_named(struct sqlp *st, const char *name, const struct sql_tok *value);
void sqlp_explain_option(struct sqlp *st, const struct sql_tok *name, const struct sql_tok *arg);
void sqlp_reject(struct sqlp *st, const char *why, uint32_t offset);

/* stmt.c: scopes of CTEs, and what a statement's facts add up to. */
void sqlp_cte(struct sqlp *st, struct sql_tok *list, const struct sql_tok *cte, int32_t before);
void sqlp_close_with(struct sqlp *st, const struct sql_tok *with);
void sqlp_end_stmt(struct sqlp *st);

#endif
