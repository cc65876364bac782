/* SPDX-License-Identifier: PostgreSQL
 * rewrite.c: plans what of a statement is replaced, and splices. Runs in: workers. Pure.
 *
 * The text is never put together anew: what is not replaced goes to the server byte by byte as the
 * client wrote it. */
#include "config.h"

#include "base/arena.h"
#include "rewrite_int.h"

#include <stdlib.h>
#include <string.h>

/* A server takes 1,664 columns at most. */
#define ASKS_PER_SELECT 1000

/* Statements whose text runs now, on every node; a definition that is kept (a default, a view) is
 * left as it is. */
static bool runs_now(const struct sql_stmt *stmt)
{
    enum sql_kind kind = stmt->kind;

    if (kind == SQL_EXPLAIN || kind == SQL_PREPARE || kind == SQL_DECLARE)
        kind = stmt->inner;
    switch (kind) {
    case SQL_SELECT:
    case SQL_VALUES:
    case SQL_INSERT:
    case SQL_UPDATE:
    case SQL_DELETE:
    case SQL_MERGE:
    case SQL_EXECUTE:
    case SQL_CALL:
    case SQL_COPY_TO:
    case SQL_COPY_FROM:
        return true;
    case SQL_DDL:
        return stmt->verb == SQL_VERB_CREATE_AS || stmt->verb == SQL_VERB_ALTER;
    default:
        return false;
    }
}

/* A materialized view keeps its query. */
static bool keeps_query(const struct repl_work *w)
{
    return w->stmt->kind == SQL_DDL && repl_is(w, w->from + 1, "materialized");
}

static int by_offset(const void *a, const void *b)
{
    const struct repl_splice *x = a;
    const struct repl_splice *y = b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1; /* what is put in front of what is replaced */
    return (x->number > y->number) - (x->number < y->number);
}

/* PREPARE name (types): how many. */
static uint32_t declared_types(const struct repl_work *w)
{
    uint32_t end;
    uint32_t n = 1;
    uint32_t depth = 0;

    if (!repl_is_sign(w, w->from + 2, '('))
        return 0;
    end = repl_skip_parens(w, w->from + 2);
    for (uint32_t i = w->from + 2; i < end; i++) {
        if (repl_is_sign(w, i, '(') || repl_is_sign(w, i, '['))
            depth++;
        else if (repl_is_sign(w, i, ')') || repl_is_sign(w, i, ']'))
            depth--;
        else if (repl_is_sign(w, i, ',') && depth == 1)
            n++;
    }
    return n;
}

static void find_statement(struct repl_work *w, uint32_t ntokens)
{
    w->to = ntokens;
    w->from = repl_token_at(w, w->stmt->offset);
    w->to = repl_token_at(w, w->stmt->offset + w->stmt->len);
}

/* ALTER c ADD GENERATED ... AS IDENTITY gives numbers to rows that come; pg_dump writes it. */
static bool adds_to_column(const struct repl_work *w, uint32_t i)
{
    return repl_is(w, i + 1, "generated") &&
           (repl_is(w, i + 2, "always") || repl_is(w, i + 2, "by"));
}

/* ALTER TABLE fills the rows that are there: ADD COLUMN ... DEFAULT now(), TYPE ... USING. The text
 * is a definition, which stays. */
static bool fills_rows(const struct repl_work *w)
{
    for (uint32_t i = w->from; i < w->to; i++) {
        if ((repl_is(w, i, "add") && !adds_to_column(w, i)) || repl_is(w, i, "using"))
            return true;
    }
    return false;
}

static bool numbers_rows(const struct repl_work *w)
{
    static const char *const word[] = {
        "serial", "bigserial", "smallserial", "serial4", "serial8", "identity"};

    for (uint32_t i = w->from; i < w->to; i++) {
        for (unsigned k = 0; k < sizeof word / sizeof word[0]; k++) {
            if (repl_is(w, i, word[k]))
                return true;
        }
    }
    return false;
}

/* A definition that is kept, and whose rows are made now. */
static void definition(struct repl_work *w)
{
    const struct sql_stmt *s = w->stmt;
    const char *type;

    if (s->verb == SQL_VERB_ALTER && !fills_rows(w))
        return;
    if (s->ntimes > 0)
        repl_differs(w, slice_of(w->text.p + s->times[0].span.offset, s->times[0].span.len));
    for (uint32_t i = 0; i < s->nfuncs; i++) {
        if (repl_call_kind(&s->funcs[i], &type) != REPL_CALL_SAME)
            repl_differs(w, s->funcs[i].name);
    }
    if (s->verb == SQL_VERB_ALTER && numbers_rows(w))
        repl_differs(w, slice_of_str("numbers of rows"));
}

/* What was found, in its order. */
static enum repl_verdict put_in_order(struct repl_work *w)
{
    struct repl_plan *p = w->plan;

    if (w->failed)
        return REPL_FAILED;
    if (p->nsplices == 0)
        return REPL_KEEP;
    qsort(p->splices, p->nsplices, sizeof *p->splices, by_offset);
    for (uint32_t i = 1; i < p->nsplices; i++) {
        if (p->splices[i].offset < p->splices[i - 1].offset + p->splices[i - 1].len)
            return REPL_FAILED; /* one within another: lo_creat(extract(epoch from now())::int) */
    }
    return REPL_REWRITE;
}

static enum repl_verdict plan_it(struct repl_work *w)
{
    const struct sql_span *values;
    uint32_t nvalues;

    if (!repl_defaults(w, &values, &nvalues) || (w->stmt->kind == SQL_COPY_FROM && !repl_copy(w)))
        return REPL_ASK;
    repl_times(w);
    repl_calls(w, values, nvalues);
    repl_lobjs(w);
    return put_in_order(w);
}

/* The bounds of a partition are reckoned now; all else of a definition stays. */
static bool plan_bounds(struct repl_work *w)
{
    uint32_t at = w->stmt->kind == SQL_DDL ? repl_bound_at(w) : w->to;

    if (at == w->to)
        return false;
    w->from = at;
    repl_times(w);
    w->plan->verdict = put_in_order(w);
    return true;
}

enum repl_verdict repl_rewrite_plan(struct arena *a, struct slice text, const struct sql_stmt *stmt,
    const struct repl_catalog *catalog, bool is_parse, uint32_t nparams, struct repl_plan *plan)
{
    struct repl_work w = {.arena = a, .text = text, .stmt = stmt, .catalog = catalog, .plan = plan};
    uint32_t n;

    *plan = (struct repl_plan){0};
    if (!runs_now(stmt) && stmt->kind != SQL_DDL && stmt->kind != SQL_DO)
        return plan->verdict;
    if (sql_tokens(a, text, &w.tok, &n) == -1) {
        plan->verdict = REPL_FAILED;
        return plan->verdict;
    }
    find_statement(&w, n);
    if (repl_bodies(&w) || plan_bounds(&w) || !runs_now(stmt))
        return plan->verdict;
    if (keeps_query(&w) || stmt->verb == SQL_VERB_ALTER) {
        definition(&w);
        return plan->verdict;
    }
    plan->as_params = is_parse || stmt->kind == SQL_PREPARE;
    if (stmt->kind == SQL_PREPARE)
        nparams = declared_types(&w);
    plan->first_param = (nparams > stmt->max_param ? nparams : stmt->max_param) + 1;
    plan->verdict = plan_it(&w);
    return plan->verdict;
}

void repl_rewrite_asks(const struct repl_plan *plan, uint32_t first, struct buf *sql)
{
    for (uint32_t i = 0; i < plan->nasks; i++) {
        if ((first + i) % ASKS_PER_SELECT == 0)
            repl_put(sql, first + i > 0 ? ";SELECT " : "SELECT ");
        else
            repl_put(sql, ", ");
        buf_put(sql, plan->asks[i].expr.p, plan->asks[i].expr.n);
    }
}

static void put_value(
    const struct repl_plan *plan, uint32_t i, const struct slice *values, struct buf *sql)
{
    struct slice cast = plan->asks[i].cast;

    repl_put(sql, "CAST(");
    if (plan->as_params)
        buf_printf(sql, "$%u", plan->first_param + i);
    else if (values[i].p == NULL)
        repl_put(sql, "NULL");
    else
        repl_put_literal(sql, values[i]);
    repl_put(sql, " AS ");
    buf_put(sql, cast.p, cast.n);
    buf_put_byte(sql, ')');
}

static void put_spliced(
    const struct repl_plan *plan, struct slice text, const struct slice *values, struct buf *sql)
{
    for (size_t i = 0; i < text.n; i++) {
        uint32_t n = 0;

        const char *mark = memchr(text.p + i, '\1', text.n - i);
        size_t plain = mark == NULL ? text.n - i : (size_t)(mark - text.p) - i;

        buf_put(sql, text.p + i, plain);
        i += plain;
        if (i == text.n)
            break;
        for (i++; i < text.n && text.p[i] != '\2'; i++)
            n = n * 10 + (uint32_t)(text.p[i] - '0');
        /* A mark that is not ours would be a hole: repl_plain lets none in. */
        if (i < text.n && n < plan->nasks)
            put_value(plan, n, values, sql);
    }
}

void repl_rewrite_text(const struct repl_plan *plan, struct slice text, const struct sql_stmt *stmt,
    const struct slice *values, struct buf *sql)
{
    uint32_t at = stmt->offset;

    for (uint32_t i = 0; i < plan->nsplices; i++) {
        const struct repl_splice *s = &plan->splices[i];

        buf_put(sql, text.p + at, s->offset - at);
        put_spliced(plan, s->text, values, sql);
        at = s->offset + s->len;
    }
    buf_put(sql, text.p + at, stmt->offset + stmt->len - at);
}

void repl_rewrite_execute(const struct repl_plan *plan, struct slice text,
    const struct sql_stmt *stmt, const struct slice *values, struct buf *sql)
{
    struct slice all = slice_of(text.p + stmt->offset, stmt->len);
    bool has_args = all.n > 0 && all.p[all.n - 1] == ')';

    if (has_args)
        all.n--;
    buf_put(sql, all.p, all.n);
    for (uint32_t i = 0; i < plan->nasks; i++) {
        buf_printf(sql, "%s", i > 0 || has_args ? ", " : "(");
        if (values[i].p == NULL)
            buf_printf(sql, "NULL");
        else
            repl_put_literal(sql, values[i]);
    }
    if (has_args || plan->nasks > 0)
        buf_put_byte(sql, ')');
}
