/* SPDX-License-Identifier: PostgreSQL
 * head.y: first part of sqlgram.y, the SQL grammar of PostgreSQL 15 to 18 made of these parts.
 * Runs in: workers. It builds no tree: actions note facts in struct sqlp and enforce what
 * PostgreSQL's own raw parser enforces. There is one semantic type, a token; names are chains of
 * tokens, lists only count. It must never recurse, and every list is left-recursive, so that the
 * stack grows with nesting only, up to YYMAXDEPTH, which is the server's own limit. */
%define api.pure full
%define api.prefix {sqlgram_}
%define api.value.type {struct sql_tok}
%parse-param {struct sqlp *st}
%lex-param {struct sqlp *st}
%expect 0

%code requires {
struct sqlp;
struct sql_tok;
}

%code {
#include "config.h"

#include "base/mem.h"
#include "sqlp_int.h"

#define YYMAXDEPTH 10000
#define YYMALLOC   mem_alloc
#define YYFREE     mem_free

#define FLAG(f)     (st->cur.flags |= (f))
#define KIND(k)     (st->cur.kind = (k))
#define VERB(v)     (st->cur.verb = (v))
#define NAME(t)     (st->cur.name = sqlp_fold(st, &(t)))
#define LOCKMODE(m) (st->cur.lock_mode = (m))
#define NONE(t)     ((t) = (struct sql_tok){0})
#define BAD(why)                                                                                   \
    do {                                                                                           \
        sqlp_reject(st, why, st->last_off);                                                        \
        YYABORT;                                                                                   \
    } while (0)
/* A select with more clauses. */
#define MORE(result, select, more)                                                                 \
    do {                                                                                           \
        uint32_t more_ = (more);                                                                   \
        const char *why_;                                                                          \
        (result) = (select);                                                                       \
        why_ = merge_select(&(result), more_);                                                     \
        if (why_ != NULL)                                                                          \
            BAD(why_);                                                                             \
    } while (0)
#define SORT_FLAG(order) ((order).flags & SEL_SORT ? ARG_SORT : 0)
#define NOTE_CALL(name, nargs, flags, close) sqlp_func(st, &(name), nargs, flags, (close).end)
/* Grammar that PostgreSQL 15 refuses. */
#define NEWER() (st->newer = true)
/* What is a plain function up to PostgreSQL 15 and syntax later, called without that syntax. */
#define NOTE_OLD_CALL(is_plain, name, nargs, close)                                                \
    do {                                                                                           \
        if (is_plain)                                                                              \
            sqlp_old_func(st, &(name), nargs, (close).end);                                        \
        else                                                                                       \
            NEWER();                                                                               \
    } while (0)
#define CREATED(rel, temp) sqlp_rel(st, &(rel), SQL_TABLE_CREATED | (temp).flags)
#define CREATED_AS(rel, temp, select)                                                              \
    do {                                                                                           \
        CREATED(rel, temp);                                                                        \
        VERB(SQL_VERB_CREATE_AS);                                                                  \
        set_select_kind(st, &(select));                                                            \
        st->cur.inner = st->cur.kind;                                                              \
    } while (0)
#define CHECK_ATTRS(attrs, allowed)                                                                \
    do {                                                                                           \
        if ((attrs).n & ~((allowed) | ATTR_NOT_DEFERRABLE | ATTR_IMMEDIATE))                       \
            BAD("constraint cannot be marked so");                                                 \
    } while (0)
#define TAKE_ATTRS(result, attrs, allowed)                                                         \
    do {                                                                                           \
        CHECK_ATTRS(attrs, allowed);                                                               \
        (result).n = (attrs).n;                                                                    \
    } while (0)
#define TX(kind_, op_)                                                                             \
    do {                                                                                           \
        KIND(kind_);                                                                               \
        st->cur.tx.op = (op_);                                                                     \
    } while (0)
#define TX_GID(t)                                                                                  \
    do {                                                                                           \
        FLAG(SQL_F_LITERAL_DEPENDS);                                                               \
        st->cur.tx.name = sqltext_string_value(st, &(t));                                          \
    } while (0)
#define NOTE_SET(scope_)                                                                           \
    do {                                                                                           \
        KIND(SQL_SET);                                                                             \
        if (st->cur.set.scope == SQL_SET_NONE)                                                     \
            st->cur.set.scope = (scope_);                                                          \
    } while (0)
/* A SET inside another statement says nothing about this session. */
#define FORGET_SET()                                                                               \
    do {                                                                                           \
        st->cur.set = (struct sql_set){0};                                                         \
        st->cur.tx = (struct sql_tx){0};                                                           \
        st->cur.flags &= ~SQL_F_ALL;                                                               \
    } while (0)

static void yyerror(struct sqlp *st, const char *why);
static void take_inner(struct sqlp *st, uint32_t off);
static void set_select_kind(struct sqlp *st, const struct sql_tok *select);
static const char *merge_select(struct sql_tok *select, uint32_t more);
}

%token IDENT SCONST ICONST FCONST BCONST XCONST PARAM OP
%token TYPECAST DOT_DOT COLON_EQUALS EQUALS_GREATER LESS_EQUALS GREATER_EQUALS NOT_EQUALS
%token NOT_LA NULLS_LA WITH_LA WITHOUT_LA FORMAT_LA UIDENT USCONST

