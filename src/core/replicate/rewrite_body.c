/* SPDX-License-Identifier: PostgreSQL
 * rewrite_body.c: bodies of functions that are made or are there, and of DO: what in them is
 * another thing on each node is named, by its words. Runs in: workers. Pure.
 *
 * A function runs on the servers alone, where nothing can be replaced, a trigger's for instance. */
#include "config.h"

#include "base/arena.h"
#include "rewrite_int.h"

#include <string.h>
#include <strings.h>

static const char *const no_call[] = {
    "current_timestamp", "current_date", "current_time", "localtime", "localtimestamp"};
static const char *const call[] = {
    "now", "transaction_timestamp", "statement_timestamp", "clock_timestamp", "timeofday"};

static bool is_of(struct slice word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (slice_ieq_str(word, list[i]))
            return true;
    }
    return false;
}

static bool call_differs(struct repl_work *w, struct slice word)
{
    struct sql_func f = {.name = word};
    char *low = arena_strndup(w->arena, word.p, word.n);
    const char *type;

    if (low == NULL)
        return false;
    for (size_t i = 0; i < word.n; i++)
        low[i] = (char)(low[i] | ((low[i] >= 'A' && low[i] <= 'Z') ? 0x20 : 0));
    f.name.p = low;
    return repl_call_kind(&f, &type) != REPL_CALL_SAME;
}

/* A body is a constant of the statement, or stands in it; what is quoted `within` is not looked
 * into. */
static void look(struct repl_work *w, struct slice text, uint32_t from, uint32_t to,
    const struct sql_token *tok, bool within)
{
    for (uint32_t i = from; i < to; i++) {
        struct slice word = slice_of(text.p + tok[i].offset, tok[i].len);
        bool is_called = i + 1 < to && text.p[tok[i + 1].offset] == '(';
        const struct sql_token *inner;
        struct slice body;
        uint32_t n;

        if (tok[i].kind == SQL_TOKEN_STRING && !within) {
            body = repl_inside(word);
            if (sql_tokens(w->arena, body, &inner, &n) == 0)
                look(w, body, 0, n, inner, true);
        } else if (tok[i].kind == SQL_TOKEN_WORD &&
                   (is_of(word, no_call, sizeof no_call / sizeof no_call[0]) ||
                       (is_called && (is_of(word, call, sizeof call / sizeof call[0]) ||
                                         call_differs(w, word))))) {
            repl_differs(w, word);
        }
    }
}

static bool makes_function(const struct repl_work *w)
{
    uint32_t i = w->from + 1;

    if (w->stmt->kind == SQL_DO)
        return true;
    if (w->stmt->kind != SQL_DDL || !repl_is(w, w->from, "create"))
        return false;
    if (repl_is(w, i, "or"))
        i += 2;
    return repl_is(w, i, "function") || repl_is(w, i, "procedure");
}

bool repl_bodies(struct repl_work *w)
{
    if (!makes_function(w))
        return false;
    look(w, w->text, w->from, w->to, w->tok, false);
    return true;
}

/* ---- what was there before ---- */

/* A regular expression of PostgreSQL: the words from above, in any case, the calls in front of a
 * parenthesis. */
static void put_words(struct buf *out)
{
    buf_printf(out, "\\m(");
    for (unsigned i = 0; i < sizeof no_call / sizeof no_call[0]; i++)
        buf_printf(out, "%s%s", i == 0 ? "" : "|", no_call[i]);
    buf_printf(out, ")\\M|\\m(nextval|setval");
    for (unsigned i = 0; i < sizeof call / sizeof call[0]; i++)
        buf_printf(out, "|%s", call[i]);
    for (unsigned i = 0; repl_call_name(i) != NULL; i++)
        buf_printf(out, "|%s", repl_call_name(i));
    buf_printf(out, ")\\s*\\(");
}

void repl_functions_sql(uint32_t limit, struct buf *sql)
{
    struct buf words = {0};

    put_words(&words);
    buf_printf(sql, "WITH f AS (SELECT p.oid, p.proname, n.nspname FROM pg_catalog.pg_proc p "
                    "JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace "
                    "JOIN pg_catalog.pg_language l ON l.oid = p.prolang "
                    "WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pgpool_catalog') "
                    "AND l.lanname NOT IN ('c', 'internal') AND p.prosrc ~* ");
    repl_put_literal(sql, buf_slice(&words));
    buf_printf(sql,
        " AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.deptype = 'e' "
        "AND d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = p.oid)) "
        "SELECT 'f', f.proname, pg_catalog.format('%%I.%%I(%%s)', f.nspname, f.proname, "
        "pg_catalog.pg_get_function_identity_arguments(f.oid)) FROM f UNION ALL "
        "SELECT DISTINCT 't', c.relname, pg_catalog.format('%%I.%%I by its trigger %%I', "
        "n.nspname, c.relname, t.tgname) FROM f JOIN pg_catalog.pg_trigger t ON t.tgfoid = f.oid "
        "JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid "
        "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE NOT t.tgisinternal AND t.tgparentid = 0 ORDER BY 1, 3 LIMIT %u",
        limit);
    buf_free(&words);
}
