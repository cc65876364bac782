/* SPDX-License-Identifier: PostgreSQL
 * qcache_row.c: which rows of its one table a statement can have to do with, by its text: those
 * with a value in a column. Runs in: workers. Pure.
 *
 * Only the plainest of shapes is known, word by word; of anything else it is said that nothing is
 * known, which is never wrong:
 *   SELECT ... FROM name [[AS] alias] WHERE condition [AND condition ...] ...
 *       where a condition is column = value, or column IN (value, ...)
 *   UPDATE name [[AS] alias] SET ... WHERE condition [AND ...] ...
 *   DELETE FROM name [[AS] alias] WHERE condition [AND ...] ...
 *   INSERT INTO name (column, ...) VALUES (value, ...) [RETURNING ...] */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "parser/tokens.h"
#include "qcache/qcache_row.h"

/* Longer texts are not looked at. */
#define TEXT_MAX 16384

struct words {
    struct slice text;
    const struct sql_token *tok;
    uint32_t n;
    uint32_t at;
    bool reads; /* it is a SELECT: of what is written each row has to be known */
};

static struct slice text_at(const struct words *w, uint32_t i)
{
    return i < w->n ? slice_of(w->text.p + w->tok[i].offset, w->tok[i].len) : slice_of("", 0);
}

static bool is_word(const struct words *w, uint32_t i, const char *word)
{
    return i < w->n && w->tok[i].kind == SQL_TOKEN_WORD && slice_ieq_str(text_at(w, i), word);
}

static bool is_sign(const struct words *w, uint32_t i, const char *sign)
{
    return i < w->n && w->tok[i].kind == SQL_TOKEN_SIGN && slice_eq_str(text_at(w, i), sign);
}

static bool is_any_word(const struct words *w, uint32_t i, const char *const *list)
{
    for (; *list != NULL; list++)
        if (is_word(w, i, *list))
            return true;
    return false;
}

static bool take_word(struct words *w, const char *word)
{
    if (!is_word(w, w->at, word))
        return false;
    w->at++;
    return true;
}

static bool take_sign(struct words *w, const char *sign)
{
    if (!is_sign(w, w->at, sign))
        return false;
    w->at++;
    return true;
}

static bool is_name(const struct words *w, uint32_t i)
{
    return i < w->n && (w->tok[i].kind == SQL_TOKEN_WORD || w->tok[i].kind == SQL_TOKEN_NAME);
}

/* name, schema.name, catalog.schema.name */
static bool take_table(struct words *w)
{
    if (!is_name(w, w->at))
        return false;
    w->at++;
    while (is_sign(w, w->at, ".") && is_name(w, w->at + 1))
        w->at += 2;
    return true;
}

/* Up to `word`, which has to come next but for an alias. */
static bool take_alias(struct words *w, const char *word)
{
    if (take_word(w, word))
        return true;
    (void)take_word(w, "as");
    if (!is_name(w, w->at))
        return false;
    w->at++;
    return take_word(w, word);
}

/* The next place of one of these words outside of parentheses; w->n: there is none. */
static uint32_t find_word(const struct words *w, uint32_t from, const char *const *list)
{
    int depth = 0;
    uint32_t i;

    for (i = from; i < w->n; i++) {
        if (is_sign(w, i, "(") || is_sign(w, i, "["))
            depth++;
        else if (is_sign(w, i, ")") || is_sign(w, i, "]"))
            depth--;
        else if (depth == 0 && is_any_word(w, i, list))
            return i;
    }
    return w->n;
}

/* With one of these behind WHERE, AND may not be what it seems. */
static bool has_odd_word(const struct words *w, uint32_t from)
{
    static const char *const odd[] = {
        "or", "between", "case", "union", "intersect", "except", "from", "using", "current", NULL};

    return find_word(w, from, odd) < w->n;
}

/* Words that are values, not names of columns. */
static bool is_value_word(const struct words *w, uint32_t i)
{
    static const char *const values[] = {"current_catalog", "current_date", "current_role",
        "current_schema", "current_time", "current_timestamp", "current_user", "default", "false",
        "localtime", "localtimestamp", "null", "session_user", "system_user", "true", "user", NULL};

    return is_any_word(w, i, values);
}

/* A name as the catalogue has it can be compared with it. */
static bool read_column(const struct words *w, uint32_t i, struct qcache_equal *e)
{
    struct slice s = text_at(w, i);
    size_t k;

    if (!is_name(w, i))
        return false;
    e->is_quoted = w->tok[i].kind == SQL_TOKEN_NAME;
    if (e->is_quoted) {
        if (s.n < 2 || s.p[0] != '"' || memchr(s.p + 1, '"', s.n - 2) != NULL)
            return false;
        s = slice_of(s.p + 1, s.n - 2);
    }
    for (k = 0; k < s.n; k++)
        if ((unsigned char)s.p[k] >= 0x80)
            return false;
    e->column = s;
    return s.n > 0 && s.n < 64;
}

static bool read_value(const struct words *w, uint32_t i, struct qcache_equal *e)
{
    struct slice s = text_at(w, i);
    size_t k;

    e->param = 0;
    e->nset = 1;
    e->is_string = false;
    if (i >= w->n)
        return false;
    switch (w->tok[i].kind) {
    case SQL_TOKEN_STRING:
        if (s.n < 2 || s.p[0] != '\'' || s.p[s.n - 1] != '\'')
            return false;
        e->is_string = true;
        e->value = slice_of(s.p + 1, s.n - 2);
        return memchr(e->value.p, '\'', e->value.n) == NULL &&
               memchr(e->value.p, '\\', e->value.n) == NULL;
    case SQL_TOKEN_NUMBER:
        e->value = s;
        return true;
    case SQL_TOKEN_PARAM:
        for (k = 1; k < s.n && isdigit((unsigned char)s.p[k]) && e->param < 65536; k++)
            e->param = e->param * 10 + (uint32_t)(s.p[k] - '0');
        return k == s.n && e->param > 0 && e->param < 65536;
    default:
        return false;
    }
}

/* [name.]column = value, from `from` to `to` and no more. */
static bool read_condition(
    const struct words *w, uint32_t from, uint32_t to, struct qcache_equal *e)
{
    bool is_qualified = to - from == 5 && is_name(w, from) && is_sign(w, from + 1, ".");

    if (is_qualified)
        from += 2;
    return to - from == 3 && (is_qualified || !is_value_word(w, from)) && read_column(w, from, e) &&
           is_sign(w, from + 1, "=") && read_value(w, from + 2, e);
}

/* [name.]column IN (value, ...), from `from` to `to` and no more, as `room` entries at most.
 * Returns how many; 0: it is something else. */
static unsigned read_list(
    const struct words *w, uint32_t from, uint32_t to, struct qcache_equal *e, unsigned room)
{
    struct words in = *w;
    unsigned n = 0;

    in.n = to;
    in.at = from;
    if (is_name(&in, in.at) && is_sign(&in, in.at + 1, "."))
        in.at += 2;
    else if (is_value_word(&in, in.at))
        return 0;
    if (room == 0 || !read_column(&in, in.at++, &e[0]) || !take_word(&in, "in") ||
        !take_sign(&in, "("))
        return 0;
    do {
        if (n == room)
            return 0;
        e[n].column = e[0].column;
        e[n].is_quoted = e[0].is_quoted;
        if (!read_value(&in, in.at++, &e[n++]))
            return 0;
    } while (take_sign(&in, ","));
    e[0].nset = (uint8_t)n;
    return take_sign(&in, ")") && in.at == to ? n : 0;
}

/* What stands between SET and WHERE may change the column: it names it. */
static bool names_column(
    const struct words *w, uint32_t from, uint32_t to, const struct qcache_equal *e)
{
    struct qcache_equal other;
    uint32_t i;

    for (i = from; i < to; i++) {
        if (!is_name(w, i))
            continue;
        if (!read_column(w, i, &other))
            return true; /* nobody knows */
        if (other.column.n == e->column.n &&
            strncasecmp(other.column.p, e->column.p, e->column.n) == 0)
            return true;
    }
    return false;
}

/* Behind WHERE. Columns that are named from `set` on, up to `set_end`, may change. */
static void read_conditions(
    const struct words *w, uint32_t set, uint32_t set_end, struct qcache_row *out)
{
    static const char *const ends[] = {
        "group", "order", "limit", "offset", "having", "fetch", "for", "window", "returning", NULL};
    static const char *const and_word[] = {"and", NULL};
    struct words where = *w;
    uint32_t from = w->at;

    if (has_odd_word(w, w->at))
        return;
    where.n = find_word(w, from, ends);
    if (where.n > from && is_sign(w, where.n - 1, ";"))
        where.n--;
    while (from < where.n && out->n < QCACHE_ROW_MAX) {
        uint32_t to = find_word(&where, from, and_word);

        if (read_condition(&where, from, to, &out->equal[out->n]))
            out->n += names_column(w, set, set_end, &out->equal[out->n]) ? 0 : 1;
        else if (w->reads)
            out->n += read_list(&where, from, to, &out->equal[out->n], QCACHE_ROW_MAX - out->n);
        from = to + 1;
    }
}

static void read_select(struct words *w, struct qcache_row *out)
{
    static const char *const from[] = {"from", NULL};

    w->at = find_word(w, w->at, from);
    if (take_word(w, "from") && take_table(w) && take_alias(w, "where"))
        read_conditions(w, 0, 0, out);
}

static void read_update(struct words *w, struct qcache_row *out)
{
    static const char *const next[] = {"where", "from", NULL};
    uint32_t set;
    uint32_t end;

    if (!take_table(w) || !take_alias(w, "set"))
        return;
    set = w->at;
    end = w->at = find_word(w, w->at, next);
    if (take_word(w, "where"))
        read_conditions(w, set, end, out);
}

static void read_delete(struct words *w, struct qcache_row *out)
{
    if (take_word(w, "from") && take_table(w) && take_alias(w, "where"))
        read_conditions(w, 0, 0, out);
}

/* Columns that are not among those that are found have values that nobody knows. */
static void read_insert(struct words *w, struct qcache_row *out)
{
    uint32_t column;
    uint32_t value;
    uint32_t n = 0;

    if (!take_word(w, "into") || !take_table(w) || !take_sign(w, "("))
        return;
    column = w->at;
    while (is_name(w, column + 2 * n) && is_sign(w, column + 2 * n + 1, ","))
        n++;
    w->at = column + 2 * n + 1;
    if (!is_name(w, column + 2 * n) || !take_sign(w, ")") || !take_word(w, "values") ||
        !take_sign(w, "("))
        return;
    n++;
    for (value = w->at; n > 0; n--, column += 2, value += 2) {
        if (!is_sign(w, value + 1, n == 1 ? ")" : ","))
            break;
        if (out->n < QCACHE_ROW_MAX && read_column(w, column, &out->equal[out->n]) &&
            read_value(w, value, &out->equal[out->n]))
            out->n++;
    }
    if (n > 0 || (value < w->n && !is_word(w, value, "returning") && !is_sign(w, value, ";")))
        out->n = 0;
}

void qcache_row_find(
    struct arena *a, const struct sql_facts *facts, struct slice text, struct qcache_row *out)
{
    struct words w = {.text = text};

    out->n = 0;
    if (facts->status != SQL_OK || facts->nstmts != 1 || facts->stmts[0].ntables != 1 ||
        text.n > TEXT_MAX || sql_tokens(a, text, &w.tok, &w.n) == -1)
        return;
    w.reads = take_word(&w, "select");
    if (w.reads)
        read_select(&w, out);
    else if (take_word(&w, "update"))
        read_update(&w, out);
    else if (take_word(&w, "delete"))
        read_delete(&w, out);
    else if (take_word(&w, "insert"))
        read_insert(&w, out);
}
