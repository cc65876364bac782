/* SPDX-License-Identifier: PostgreSQL
 * qcache_row.c: which rows of its tables a statement can have to do with, by its text: those with a
 * value in a column. Runs in: workers. Pure.
 *
 * Only the plainest of shapes is known, word by word; of anything else it is said that nothing is
 * known, which is never wrong:
 *   SELECT ... FROM table {, table | [INNER | CROSS] JOIN table [ON conditions]} [WHERE conditions]
 *       where a table is name [[AS] alias]
 *   UPDATE name [[AS] alias] SET ... WHERE conditions ...
 *   DELETE FROM name [[AS] alias] WHERE conditions ...
 *   INSERT INTO name (column, ...) VALUES (value, ...) [RETURNING ...]
 * Who joins in another way (OUTER, NATURAL, USING) has rows that no condition speaks of. */
#include "config.h"

#include <string.h>

#include "qcache_words_int.h"

/* Longer texts are not looked at. */
#define TEXT_MAX 16384

/* Behind conditions. */
static const char *const ends[] = {
    "group", "order", "limit", "offset", "having", "fetch", "for", "window", "returning", NULL};

/* Up to `word`, which has to come next but for an alias. */
static bool take_alias(struct words *w, const char *word)
{
    if (words_take(w, word))
        return true;
    (void)words_take(w, "as");
    if (!words_is_name(w, w->at))
        return false;
    w->at++;
    return words_take(w, word);
}

/* With one of these AND may not be what it seems, or there is more than one SELECT. */
static bool has_odd_word(const struct words *w)
{
    static const char *const odd[] = {
        "or", "between", "case", "union", "intersect", "except", "from", "using", "current", NULL};

    return words_find(w, w->at, w->n, odd) < w->n;
}

/* Behind WHERE. */
static void read_where(const struct words *w, struct qcache_row *out)
{
    uint32_t to = words_find(w, w->at, w->n, ends);

    if (has_odd_word(w))
        return;
    if (to > w->at && words_is_sign(w, to - 1, ";"))
        to--;
    words_conditions(w, w->at, to, out);
}

/* --- SELECT --- */

/* What follows a table in FROM: no alias is called so. */
static bool is_alias(const struct words *w, uint32_t i)
{
    static const char *const others[] = {"cross", "except", "fetch", "for", "from", "full", "group",
        "having", "inner", "intersect", "into", "join", "lateral", "left", "limit", "natural",
        "offset", "on", "order", "outer", "returning", "right", "tablesample", "union", "using",
        "where", "window", NULL};

    return words_is_name(w, i) && !words_is_any(w, i, others);
}

/* The words from `from` on are the name of the table in the facts. */
static bool is_in_facts(const struct words *w, uint32_t from, const struct sql_table *t)
{
    struct words_name name;
    bool has_schema = w->at - from == 3;

    if (t->catalog.n > 0 || (t->schema.n > 0) != has_schema || (!has_schema && w->at - from != 1))
        return false;
    return (!has_schema || (words_name(w, from, &name) && words_name_is(&name, t->schema))) &&
           words_name(w, w->at - 1, &name) && words_name_is(&name, t->name);
}

/* One table; `stmt` is what the facts say. */
static bool take_named(struct words *w, const struct sql_stmt *stmt)
{
    uint32_t from = w->at;

    if (w->nnames == stmt->ntables || !words_take_table(w))
        return false;
    if (!is_in_facts(w, from, &stmt->tables[w->nnames]) && stmt->ntables > 1)
        return false;
    if (words_take(w, "as") || is_alias(w, w->at))
        w->at++;
    if (!words_name(w, w->at - 1, &w->name[w->nnames]) && stmt->ntables > 1)
        return false;
    w->nnames++;
    return !words_is_sign(w, w->at, "("); /* columns have other names */
}

/* Behind JOIN: the table, and its conditions from *on up to *on_end. */
static bool take_joined(
    struct words *w, const struct sql_stmt *stmt, uint32_t *on, uint32_t *on_end)
{
    static const char *const next[] = {"cross", "full", "inner", "join", "left", "natural", "on",
        "right", "using", "where", "group", "order", "limit", "offset", "having", "fetch", "for",
        "window", NULL};
    uint32_t comma;

    if (!take_named(w, stmt) || !words_take(w, "on"))
        return false;
    *on = w->at;
    *on_end = words_find(w, w->at, w->n, next);
    comma = words_find_comma(w, *on, w->n);
    if (comma < *on_end)
        *on_end = comma;
    w->at = *on_end;
    if (w->at == w->n && words_is_sign(w, w->n - 1, ";"))
        --*on_end;
    return true;
}

struct joined {
    uint32_t on;
    uint32_t end;
};

/* All tables of FROM. Returns how many have conditions; -1: something else is in it. */
static int take_from(
    struct words *w, const struct sql_stmt *stmt, struct joined joined[QCACHE_ROW_TABLES])
{
    int n = 0;

    if (!take_named(w, stmt))
        return -1;
    for (;;) {
        if (words_take_sign(w, ",") || (words_is(w, w->at + 1, "join") && words_take(w, "cross"))) {
            (void)words_take(w, "join");
            if (!take_named(w, stmt))
                return -1;
            continue;
        }
        (void)words_take(w, "inner");
        if (!words_take(w, "join"))
            return n;
        if (!take_joined(w, stmt, &joined[n].on, &joined[n].end))
            return -1;
        n++;
    }
}

static void read_select(struct words *w, const struct sql_stmt *stmt, struct qcache_row *out)
{
    static const char *const from[] = {"from", NULL};
    struct joined joined[QCACHE_ROW_TABLES];
    int n;
    int i;

    w->at = words_find(w, w->at, w->n, from);
    if (!words_take(w, "from") || has_odd_word(w) || (n = take_from(w, stmt, joined)) == -1 ||
        w->nnames != stmt->ntables)
        return;
    if (words_take(w, "where"))
        read_where(w, out);
    else if (n == 0 ||
             (w->at < w->n && !words_is_sign(w, w->at, ";") && !words_is_any(w, w->at, ends)))
        return;
    for (i = 0; i < n; i++)
        words_conditions(w, joined[i].on, joined[i].end, out);
    out->ntables = w->nnames;
}

/* --- what writes --- */

static void read_update(struct words *w, struct qcache_row *out)
{
    static const char *const next[] = {"where", "from", NULL};

    if (!words_take_table(w) || !take_alias(w, "set"))
        return;
    w->set = w->at;
    w->set_end = w->at = words_find(w, w->at, w->n, next);
    if (words_take(w, "where"))
        read_where(w, out);
}

static void read_delete(struct words *w, struct qcache_row *out)
{
    if (words_take(w, "from") && words_take_table(w) && take_alias(w, "where"))
        read_where(w, out);
}

/* Columns that are not among those that are found have values that nobody knows. */
static void read_insert(struct words *w, struct qcache_row *out)
{
    uint32_t column;
    uint32_t at;
    uint32_t value;
    uint32_t n = 0;

    if (!words_take(w, "into") || !words_take_table(w) || !words_take_sign(w, "("))
        return;
    column = w->at;
    while (words_is_name(w, column + 2 * n) && words_is_sign(w, column + 2 * n + 1, ","))
        n++;
    w->at = column + 2 * n + 1;
    if (!words_is_name(w, column + 2 * n) || !words_take_sign(w, ")") || !words_take(w, "values") ||
        !words_take_sign(w, "("))
        return;
    n++;
    for (value = w->at; n > 0; n--, column += 2, value += 2) {
        if (!words_is_sign(w, value + 1, n == 1 ? ")" : ","))
            break;
        at = column;
        if (out->n < QCACHE_ROW_MAX && words_field(w, &at, &out->equal[out->n].field) &&
            words_value(w, value, &out->equal[out->n]))
            out->n++;
    }
    if (n > 0 ||
        (value < w->n && !words_is(w, value, "returning") && !words_is_sign(w, value, ";")))
        out->n = 0;
}

/* Where each parameter stands, also where nothing else is understood. */
static void count_places(const struct words *w, struct qcache_row *row)
{
    struct qcache_equal at;
    uint32_t i;
    unsigned k;

    for (i = 0; i < w->n; i++) {
        if (w->tok[i].kind != SQL_TOKEN_PARAM || !words_value(w, i, &at))
            continue;
        for (k = 0; k < row->n; k++)
            if (row->equal[k].param == at.param)
                row->equal[k].nplaces++;
    }
}

void qcache_row_find(
    struct arena *a, const struct sql_facts *facts, struct slice text, struct qcache_row *out)
{
    struct words w = {.text = text};

    out->ntables = 1;
    out->n = out->nsame = 0;
    if (facts->status != SQL_OK || facts->nstmts != 1 || facts->stmts[0].ntables == 0 ||
        facts->stmts[0].ntables > QCACHE_ROW_TABLES || text.n > TEXT_MAX ||
        sql_tokens(a, text, &w.tok, &w.n) == -1)
        return;
    w.reads = words_take(&w, "select");
    if (w.reads)
        read_select(&w, &facts->stmts[0], out);
    else if (facts->stmts[0].ntables > 1)
        return;
    else if (words_take(&w, "update"))
        read_update(&w, out);
    else if (words_take(&w, "delete"))
        read_delete(&w, out);
    else if (words_take(&w, "insert"))
        read_insert(&w, out);
    count_places(&w, out);
}
