/* SPDX-License-Identifier: PostgreSQL
 * tokens.c: a text cut into tokens, for who splices it.
 * Runs in: workers. The scanner is the grammar's: what is a comment or within quotes here is so
 * there. */
#include "config.h"

#include "base/arena.h"
#include "parser/tokens.h"
#include "sqlp_int.h"
#include "sqlgram.h"

#include <string.h>

static enum sql_token_kind kind_of(int token, const struct sql_tok *v, char first)
{
    switch (token) {
    case SCONST:
    case USCONST:
    case BCONST:
    case XCONST:
        return SQL_TOKEN_STRING;
    case ICONST:
    case FCONST:
        return SQL_TOKEN_NUMBER;
    case PARAM:
        return SQL_TOKEN_PARAM;
    case UIDENT:
        return SQL_TOKEN_NAME;
    default:
        break;
    }
    if ((v->flags & TOK_QUOTED) != 0 || first == '"')
        return SQL_TOKEN_NAME;
    if ((first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') || first == '_' ||
        (unsigned char)first >= 0x80)
        return SQL_TOKEN_WORD;
    return SQL_TOKEN_SIGN;
}

int sql_tokens(struct arena *a, struct slice text, const struct sql_token **out, uint32_t *n)
{
    struct sqlp_vec vec = {0};
    struct sqlp st;
    struct sql_tok v;
    int token;

    *out = NULL;
    *n = 0;
    memset(&st, 0, sizeof st);
    if (text.n >= UINT32_MAX / 4 || (text.n > 0 && memchr(text.p, '\0', text.n) != NULL))
        return -1;
    st.arena = a;
    st.text = text.p;
    st.size = (uint32_t)text.n;
    st.in_stmt = true; /* comments are of no interest */
    st.base = sqlp_copy_text(a, text);
    if (st.base == NULL || sqlscan_open(&st) == -1)
        return -1;
    while ((token = sqlscan_token(&v, st.scanner)) != 0) {
        struct sql_token *t;

        if (token == SQLP_BROKEN)
            return -1;
        t = sqlp_push(&st, &vec, sizeof *t);
        if (t == NULL)
            return -1;
        t->kind = kind_of(token, &v, text.p[v.off]);
        t->offset = v.off;
        t->len = v.end - v.off;
    }
    *out = vec.items;
    *n = vec.count;
    return 0;
}
