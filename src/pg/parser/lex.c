/* SPDX-License-Identifier: PostgreSQL
 * lex.c: the filter between scanner and grammar: looks one token ahead where the grammar could not.
 * Runs in: workers. NOT, NULLS, WITH, WITHOUT and FORMAT become other tokens in front of certain
 * words; U& tokens are joined with their UESCAPE. It also notes what tokens alone tell: literals,
 * parameters, where a statement begins and ends. */
#include "config.h"

#include "sqlp_int.h"
#include "sqlgram.h"

#include <string.h>

static int next_token(struct sql_tok *v, struct sqlp *st)
{
    if (!st->has_peek)
        return sqlscan_token(v, st->scanner);
    st->has_peek = false;
    *v = st->peek;
    return st->peek_token;
}

static int peek_token(struct sqlp *st)
{
    if (!st->has_peek) {
        st->peek_token = sqlscan_token(&st->peek, st->scanner);
        st->has_peek = true;
    }
    return st->peek_token;
}

/* The character that UESCAPE 'c' names, 0 when it may not be one. */
static char uescape_char(const struct sql_tok *v)
{
    char c = v->n == 1 ? v->p[0] : '\0';

    if (c == '\'' || c == '"' || c == '+' || c == ' ' || (c >= '\t' && c <= '\r'))
        return '\0';
    if ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'))
        return '\0';
    return c;
}

/* Returns the plain token for a U& one, decoded, or SQLP_BROKEN when it is invalid. */
static int join_uescape(int token, struct sql_tok *v, struct sqlp *st)
{
    struct sql_tok t;
    char esc = '\\';

    if (peek_token(st) == K_UESCAPE) {
        next_token(&t, st);
        if (next_token(&t, st) != SCONST || (esc = uescape_char(&t)) == '\0')
            return SQLP_BROKEN;
        v->end = t.end;
        st->escaped = true;
    }
    if (sqltext_unicode(st, v, esc) == -1)
        return SQLP_BROKEN;
    return token == UIDENT ? IDENT : SCONST;
}

static int look_ahead(int token, struct sql_tok *v, struct sqlp *st)
{
    int next;

    switch (token) {
    case K_NOT:
        next = peek_token(st);
        return next == K_BETWEEN || next == K_IN || next == K_LIKE || next == K_ILIKE ||
                       next == K_SIMILAR
                   ? NOT_LA
                   : token;
    case K_NULLS:
        next = peek_token(st);
        return next == K_FIRST || next == K_LAST ? NULLS_LA : token;
    case K_WITH:
        next = peek_token(st);
        return next == K_TIME || next == K_ORDINALITY ? WITH_LA : token;
    case K_WITHOUT:
        return peek_token(st) == K_TIME ? WITHOUT_LA : token;
    case K_FORMAT:
        return peek_token(st) == K_JSON ? FORMAT_LA : token;
    default:
        return join_uescape(token, v, st);
    }
}

static void note_literal(struct sqlp *st, const struct sql_tok *v, enum sql_literal_kind kind)
{
    struct sql_literal *l = sqlp_push(st, &st->literals, sizeof(*l));

    if (l == NULL)
        return;
    l->kind = kind;
    l->span.offset = v->off;
    l->span.len = v->end - v->off;
}

/* A number beyond an int is no parameter: up to PostgreSQL 16 it wraps, later it is refused. */
static void note_param(struct sqlp *st, const struct sql_tok *v)
{
    uint64_t n = 0;

    for (uint32_t i = 1; i < v->n && n <= INT32_MAX; i++)
        n = n * 10 + (uint64_t)(v->p[i] - '0');
    if (n <= INT32_MAX && n > st->cur.max_param)
        st->cur.max_param = (uint32_t)n;
}

int sqlgram_lex(struct sql_tok *v, struct sqlp *st)
{
    int token = next_token(v, st);

    /* Before anything is looked ahead for: comments behind the first token are no hints. */
    if (!st->in_stmt && token != ';' && token != 0) {
        st->in_stmt = true;
        st->cur.offset = v->off;
    }
    switch (token) {
    case K_NOT:
    case K_NULLS:
    case K_WITH:
    case K_WITHOUT:
    case K_FORMAT:
    case UIDENT:
    case USCONST:
        st->escaped |= token == USCONST;
        token = look_ahead(token, v, st);
        if (token == SCONST)
            note_literal(st, v, SQL_LIT_STRING);
        break;
    case SCONST:
        note_literal(st, v, SQL_LIT_STRING);
        break;
    case ICONST:
        note_literal(st, v, SQL_LIT_INTEGER);
        break;
    case FCONST:
        note_literal(st, v, SQL_LIT_NUMERIC);
        break;
    case BCONST:
    case XCONST:
        note_literal(st, v, SQL_LIT_BIT);
        break;
    case PARAM:
        note_param(st, v);
        break;
    default:
        break;
    }
    st->prev_off = st->last_off;
    st->last_off = v->off;
    if (token == ';' || token == 0)
        return token;
    if (st->escaped) {
        /* Literals to the fingerprint: but an escape decides what a name is, and a U&'' string
         * whether the text is valid. */
        st->cur.flags |= SQL_F_LITERAL_DEPENDS;
        st->escaped = false;
    }
    st->stmt_end = v->end;
    return token;
}
