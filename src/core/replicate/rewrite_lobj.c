/* SPDX-License-Identifier: PostgreSQL
 * rewrite_lobj.c: a large object that is made under a number which the server picks gets the one
 * that the main node would have picked. Runs in: workers. Pure.
 *
 * The main node makes an object, says its number and removes it again: nobody else gets that
 * number, for servers go on counting, and it is free in this transaction. So no lock is needed. */
#include "config.h"

#include "replicate/locks.h"

#include "rewrite_int.h"

static const char number_of_one[] =
    "(SELECT o FROM pg_catalog.lo_create(0) AS o WHERE pg_catalog.lo_unlink(o) "
    "OPERATOR(pg_catalog.=) 1)";

static bool is_own(const struct sql_func *f)
{
    return f->schema.n == 0 || slice_eq_str(f->schema, "pg_catalog");
}

bool repl_imports_lobj(const struct sql_stmt *stmt)
{
    for (uint32_t i = 0; i < stmt->nfuncs; i++) {
        if (is_own(&stmt->funcs[i]) && slice_eq_str(stmt->funcs[i].name, "lo_import"))
            return true;
    }
    return false;
}

static bool is_zero(struct slice tok)
{
    return slice_eq_str(tok, "0") || slice_eq_str(tok, "'0'");
}

/* lo_create(x), lo_from_bytea(x, ...): 0 means any number. */
static void first_arg(struct repl_work *w, const struct sql_func *f)
{
    uint32_t open = repl_token_at(w, f->offset + f->len);
    uint32_t close = repl_token_at(w, f->offset + f->call_len) - 1;
    uint32_t end = repl_item_end(w, open + 1, close);
    const struct sql_token *first = &w->tok[open + 1];
    const struct sql_token *last = &w->tok[end - 1];

    if (!repl_is_sign(w, open, '(') || end == open + 1)
        return;
    if (end == open + 2 && is_zero(repl_tok(w, open + 1))) {
        repl_splice(w, first->offset, first->len, "\1%u\2",
            repl_ask(w, slice_of_str(number_of_one), slice_of_str("oid"), false));
        return;
    }
    if (end == open + 2 && first->kind == SQL_TOKEN_NUMBER)
        return; /* the client picks it */
    repl_splice(w, first->offset, 0,
        "(SELECT CASE WHEN pgp_l.v OPERATOR(pg_catalog.=) 0 THEN \1%u\2 ELSE pgp_l.v END FROM "
        "(SELECT CAST(",
        repl_ask(w, slice_of_str(number_of_one), slice_of_str("oid"), false));
    repl_splice(w, last->offset + last->len, 0, " AS oid) OFFSET 0) AS pgp_l(v))");
}

void repl_lobjs(struct repl_work *w)
{
    for (uint32_t i = 0; i < w->stmt->nfuncs; i++) {
        const struct sql_func *f = &w->stmt->funcs[i];
        uint32_t nasks = w->plan->nasks;

        if (!is_own(f) || (f->flags & SQL_FUNC_FIELD) != 0)
            continue;
        if (slice_eq_str(f->name, "lo_creat"))
            repl_splice(w, f->offset, f->call_len, "pg_catalog.lo_create(\1%u\2)",
                repl_ask(w, slice_of_str(number_of_one), slice_of_str("oid"), false));
        else if (slice_eq_str(f->name, "lo_create") || slice_eq_str(f->name, "lo_from_bytea"))
            first_arg(w, f);
        w->plan->makes_lobj = w->plan->makes_lobj || w->plan->nasks > nasks;
    }
}

struct slice repl_lobj_ask(void)
{
    return slice_of(number_of_one, sizeof number_of_one - 1);
}
