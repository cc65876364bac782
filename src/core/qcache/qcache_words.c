/* SPDX-License-Identifier: PostgreSQL
 * qcache_words.c: the words of a statement. Runs in: workers. Pure. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "qcache_words_int.h"

static struct slice text_at(const struct words *w, uint32_t i)
{
    return i < w->n ? slice_of(w->text.p + w->tok[i].offset, w->tok[i].len) : slice_of("", 0);
}

bool words_is(const struct words *w, uint32_t i, const char *word)
{
    return i < w->n && w->tok[i].kind == SQL_TOKEN_WORD && slice_ieq_str(text_at(w, i), word);
}

bool words_is_sign(const struct words *w, uint32_t i, const char *sign)
{
    return i < w->n && w->tok[i].kind == SQL_TOKEN_SIGN && slice_eq_str(text_at(w, i), sign);
}

bool words_is_any(const struct words *w, uint32_t i, const char *const *list)
{
    for (; *list != NULL; list++)
        if (words_is(w, i, *list))
            return true;
    return false;
}

bool words_is_name(const struct words *w, uint32_t i)
{
    return i < w->n && (w->tok[i].kind == SQL_TOKEN_WORD || w->tok[i].kind == SQL_TOKEN_NAME);
}

bool words_take(struct words *w, const char *word)
{
    if (!words_is(w, w->at, word))
        return false;
    w->at++;
    return true;
}

bool words_take_sign(struct words *w, const char *sign)
{
    if (!words_is_sign(w, w->at, sign))
        return false;
    w->at++;
    return true;
}

bool words_take_table(struct words *w)
{
    if (!words_is_name(w, w->at))
        return false;
    w->at++;
    while (words_is_sign(w, w->at, ".") && words_is_name(w, w->at + 1))
        w->at += 2;
    return true;
}

/* How much deeper in parentheses we are behind it. */
static int depth_at(const struct words *w, uint32_t i)
{
    if (words_is_sign(w, i, "(") || words_is_sign(w, i, "["))
        return 1;
    return words_is_sign(w, i, ")") || words_is_sign(w, i, "]") ? -1 : 0;
}

uint32_t words_find(const struct words *w, uint32_t from, uint32_t to, const char *const *list)
{
    int depth = 0;
    uint32_t i;

    for (i = from; i < to; i++) {
        depth += depth_at(w, i);
        if (depth == 0 && words_is_any(w, i, list))
            return i;
    }
    return to;
}

uint32_t words_find_comma(const struct words *w, uint32_t from, uint32_t to)
{
    int depth = 0;
    uint32_t i;

    for (i = from; i < to; i++) {
        depth += depth_at(w, i);
        if (depth == 0 && words_is_sign(w, i, ","))
            return i;
    }
    return to;
}

bool words_is_group(const struct words *w, uint32_t from, uint32_t to)
{
    int depth = 0;
    uint32_t i;

    if (to - from < 2 || !words_is_sign(w, from, "("))
        return false;
    for (i = from; i < to; i++) {
        depth += depth_at(w, i);
        if (depth == 0)
            return i + 1 == to;
    }
    return false;
}

bool words_name(const struct words *w, uint32_t i, struct words_name *out)
{
    struct slice s = text_at(w, i);
    size_t k;

    if (!words_is_name(w, i))
        return false;
    out->is_quoted = w->tok[i].kind == SQL_TOKEN_NAME;
    if (out->is_quoted) {
        if (s.n < 2 || s.p[0] != '"' || memchr(s.p + 1, '"', s.n - 2) != NULL)
            return false;
        s = slice_of(s.p + 1, s.n - 2);
    }
    for (k = 0; k < s.n; k++)
        if ((unsigned char)s.p[k] >= 0x80)
            return false;
    out->text = s;
    return s.n > 0 && s.n < 64;
}

static char letter_of(const struct words_name *a, size_t i)
{
    char ch = a->text.p[i];

    return !a->is_quoted && ch >= 'A' && ch <= 'Z' ? (char)(ch - 'A' + 'a') : ch;
}

bool words_same_name(const struct words_name *a, const struct words_name *b)
{
    size_t i;

    if (a->text.n != b->text.n)
        return false;
    for (i = 0; i < a->text.n; i++)
        if (letter_of(a, i) != letter_of(b, i))
            return false;
    return true;
}

bool words_name_is(const struct words_name *a, struct slice name)
{
    const struct words_name b = {name, true};

    return words_same_name(a, &b);
}

/* Words that are values, not names of columns. */
static bool is_value_word(const struct words *w, uint32_t i)
{
    static const char *const values[] = {"current_catalog", "current_date", "current_role",
        "current_schema", "current_time", "current_timestamp", "current_user", "default", "false",
        "localtime", "localtimestamp", "null", "session_user", "system_user", "true", "user", NULL};

    return words_is_any(w, i, values);
}

/* The table that a column's name is of. Where there is a single table all names are its own. */
static bool table_called(const struct words *w, uint32_t i, uint8_t *table)
{
    struct words_name name;

    *table = 0;
    if (w->nnames <= 1)
        return true;
    if (!words_name(w, i, &name))
        return false;
    for (; *table < w->nnames; ++*table)
        if (words_same_name(&name, &w->name[*table]))
            return true;
    return false;
}

bool words_field(const struct words *w, uint32_t *at, struct qcache_field *out)
{
    struct words_name name;

    out->table = w->nnames <= 1 ? 0 : QCACHE_ROW_ANY;
    if (words_is_name(w, *at) && words_is_sign(w, *at + 1, ".")) {
        if (!table_called(w, *at, &out->table))
            return false;
        *at += 2;
    } else if (is_value_word(w, *at)) {
        return false;
    }
    if (!words_name(w, (*at)++, &name))
        return false;
    out->column = name.text;
    out->is_quoted = name.is_quoted;
    return true;
}

bool words_value(const struct words *w, uint32_t i, struct qcache_equal *e)
{
    struct slice s = text_at(w, i);
    size_t k;

    e->param = 0;
    e->nplaces = 0;
    e->nset = 1;
    e->is_string = false;
    e->value = s;
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
        return true;
    case SQL_TOKEN_PARAM:
        for (k = 1; k < s.n && isdigit((unsigned char)s.p[k]) && e->param < 65536; k++)
            e->param = e->param * 10 + (uint32_t)(s.p[k] - '0');
        return k == s.n && e->param > 0 && e->param < 65536;
    default:
        return false;
    }
}
