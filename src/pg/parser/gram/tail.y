/* SPDX-License-Identifier: PostgreSQL
 * tail.y: part of sqlgram.y: the functions that the actions call. Runs in: workers. */

%%

static void yyerror(struct sqlp *st, const char *why)
{
    sqlp_reject(st, why, st->last_off);
}

/* The statement that EXPLAIN contains is known: remember it before its kind is overwritten. */
static void take_inner(struct sqlp *st, uint32_t off)
{
    st->cur.inner = st->cur.kind;
    st->cur.body.offset = off;
}

static void set_select_kind(struct sqlp *st, const struct sql_tok *select)
{
    KIND(select->flags & SEL_VALUES ? SQL_VALUES : SQL_SELECT);
}

/* Adds clauses to a select that may have some already. Returns why not, or NULL. */
static const char *merge_select(struct sql_tok *select, uint32_t more)
{
    if (select->flags & more & (SEL_SORT | SEL_LIMIT | SEL_OFFSET | SEL_WITH))
        return "clause given twice";
    select->flags |= more;
    if ((more & SEL_TIES) && !(select->flags & SEL_SORT))
        return "WITH TIES cannot be specified without ORDER BY clause";
    if ((more & SEL_TIES) && (select->flags & SEL_SKIP))
        return "SKIP LOCKED and WITH TIES options cannot be used together";
    return NULL;
}
