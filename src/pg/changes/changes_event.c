/* SPDX-License-Identifier: PostgreSQL
 * changes_event.c: the text of the plug-in test_decoding.
 * Runs in: the invalidator. Pure. Names are quoted as quote_ident() does it and values as literals
 * with standard_conforming_strings, so all of it can be told apart whatever names and values are.
 */
#include "config.h"

#include "changes/changes.h"

#include <string.h>

/* --- words --- */

static bool starts_with(struct slice s, const char *word)
{
    size_t n = strlen(word);

    return s.n >= n && memcmp(s.p, word, n) == 0;
}

static void skip(struct slice *s, size_t n)
{
    s->p += n;
    s->n -= n;
}

static bool take(struct slice *s, const char *word)
{
    if (!starts_with(*s, word))
        return false;
    skip(s, strlen(word));
    return true;
}

/* Bytes up to and with the end of what is quoted by `quote` at the front; 0: it does not end. */
static size_t quoted_bytes(struct slice s, char quote)
{
    size_t i;

    for (i = 1; i < s.n; i++) {
        if (s.p[i] != quote)
            continue;
        if (i + 1 == s.n || s.p[i + 1] != quote)
            return i + 1;
        i++;
    }
    return 0;
}

/* Bytes of the name at the front, 0: there is none. What stands without quotes has no byte that
 * means something here. */
static size_t name_bytes(struct slice s)
{
    size_t i;

    if (s.n > 0 && s.p[0] == '"')
        return quoted_bytes(s, '"');
    for (i = 0; i < s.n && strchr(" .,:[]()'\"", s.p[i]) == NULL; i++)
        ;
    return i;
}

/* --- tables --- */

static size_t table_bytes(struct slice s)
{
    size_t n = name_bytes(s);
    size_t more;

    if (n == 0 || n == s.n || s.p[n] != '.')
        return n;
    more = name_bytes(slice_of(s.p + n + 1, s.n - n - 1));
    return more == 0 ? 0 : n + 1 + more;
}

bool change_next_table(struct slice *tables, struct slice *name)
{
    size_t n = table_bytes(*tables);

    if (n == 0)
        return false;
    *name = slice_of(tables->p, n);
    skip(tables, n);
    if (tables->n > 0 && !take(tables, ", "))
        tables->n = 0;
    return true;
}

/* Takes the list of tables and the colon behind it. */
static bool take_tables(struct slice *s, struct slice *tables)
{
    const char *from = s->p;
    size_t n;

    do {
        n = table_bytes(*s);
        if (n == 0)
            return false;
        skip(s, n);
    } while (take(s, ", "));
    *tables = slice_of(from, (size_t)(s->p - from));
    return take(s, ": ");
}

/* --- columns --- */

/* Bytes of the type before its closing bracket, which a colon follows; a name in quotes may have
 * anything in it. 0: it does not end. */
static size_t type_bytes(struct slice s)
{
    size_t i = 0;
    size_t n;

    while (i + 1 < s.n) {
        if (s.p[i] == '"') {
            n = quoted_bytes(slice_of(s.p + i, s.n - i), '"');
            if (n == 0)
                return 0;
            i += n;
        } else if (s.p[i] == ']' && s.p[i + 1] == ':') {
            return i;
        } else {
            i++;
        }
    }
    return 0;
}

static bool take_value(struct slice *s, struct change_column *out)
{
    const char *space;
    size_t n;

    (void)take(s, "B"); /* B'101' */
    if (s->n > 0 && s->p[0] == '\'') {
        n = quoted_bytes(*s, '\'');
        if (n == 0)
            return false;
        out->is_quoted = true;
        out->value = slice_of(s->p + 1, n - 2);
        skip(s, n);
        return true;
    }
    space = s->n == 0 ? NULL : memchr(s->p, ' ', s->n);
    n = space == NULL ? s->n : (size_t)(space - s->p);
    out->value = slice_of(s->p, n);
    out->is_null = slice_eq_str(out->value, "null");
    out->is_unchanged = slice_eq_str(out->value, "unchanged-toast-datum");
    skip(s, n);
    return n > 0;
}

enum change_next change_next_column(struct slice *row, struct change_column *out)
{
    size_t n;

    *out = (struct change_column){.is_null = false};
    if (row->n == 0)
        return CHANGE_END;
    if (!take(row, " "))
        return CHANGE_BROKEN;
    n = name_bytes(*row);
    out->name = slice_of(row->p, n);
    skip(row, n);
    if (n == 0 || !take(row, "["))
        return CHANGE_BROKEN;
    n = type_bytes(*row);
    out->type = slice_of(row->p, n);
    skip(row, n);
    if (n == 0 || !take(row, "]:") || !take_value(row, out))
        return CHANGE_BROKEN;
    return row->n == 0 || row->p[0] == ' ' ? CHANGE_COLUMN : CHANGE_BROKEN;
}

size_t change_unquote(struct slice value, char *out)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < value.n; i++) {
        out[n++] = value.p[i];
        if (value.p[i] == '\'' && i + 1 < value.n && value.p[i + 1] == '\'')
            i++;
    }
    return n;
}

/* --- events --- */

static bool read_number(struct slice *s, uint32_t *out)
{
    uint64_t n = 0;
    size_t i;

    for (i = 0; i < s->n && s->p[i] >= '0' && s->p[i] <= '9' && n <= UINT32_MAX; i++)
        n = n * 10 + (uint64_t)(s->p[i] - '0');
    skip(s, i);
    *out = (uint32_t)n;
    return i > 0 && n <= UINT32_MAX;
}

/* Digits as `mould` has them, where 0 stands for any; up to six numbers, one for each run of them.
 */
static bool read_mould(struct slice *s, const char *mould, int number[6])
{
    size_t n = strlen(mould);
    int at = -1;
    size_t i;

    if (s->n < n)
        return false;
    for (i = 0; i < n; i++) {
        bool is_digit = s->p[i] >= '0' && s->p[i] <= '9';

        if (mould[i] != '0' ? s->p[i] != mould[i] : !is_digit)
            return false;
        if (mould[i] != '0')
            continue;
        if (i == 0 || mould[i - 1] != '0')
            number[++at] = 0;
        number[at] = number[at] * 10 + (s->p[i] - '0');
    }
    skip(s, n);
    return true;
}

/* Since 1970, by the calendar that begins its years in March. */
static int64_t days_of(int year, int month, int day)
{
    int64_t y = month < 3 ? year - 1 : year;

    return y * 365 + y / 4 - y / 100 + y / 400 + ((month + 9) % 12 * 306 + 5) / 10 + day - 1 -
           719468;
}

/* " (at 2026-11-24 00:10:28.991001+00)", the fraction with as many digits as it needs. */
static int64_t read_time(struct slice s)
{
    int t[6];
    int64_t us = 0;
    int64_t digit = 100000;

    if (!read_mould(&s, " (at 0000-00-00 00:00:00", t))
        return 0;
    if (take(&s, "."))
        for (; s.n > 0 && s.p[0] >= '0' && s.p[0] <= '9'; skip(&s, 1), digit /= 10)
            us += (s.p[0] - '0') * digit;
    if (!slice_eq_str(s, "+00)"))
        return 0;
    return us + ((days_of(t[0], t[1], t[2]) * 24 + t[3]) * 3600 + t[4] * 60 + t[5]) * 1000000;
}

static enum change_kind read_end(struct slice s, enum change_kind kind, struct change *out)
{
    if (!read_number(&s, &out->xid) || (s.n > 0 && s.p[0] != ' '))
        return CHANGE_BAD;
    out->commit_us = read_time(s);
    return kind;
}

/* Where the columns of the old row end: at a word that is no column, for those go on with a
 * bracket. */
static bool split_update(struct slice s, struct change *out)
{
    struct slice rest = s;
    struct change_column column;

    while (!starts_with(rest, " new-tuple:"))
        if (change_next_column(&rest, &column) != CHANGE_COLUMN)
            return false;
    out->has_old = true;
    out->old_row = slice_of(s.p, (size_t)(rest.p - s.p));
    skip(&rest, strlen(" new-tuple:"));
    out->has_new = true;
    out->new_row = rest;
    return true;
}

static enum change_kind read_rows(struct slice s, struct change *out)
{
    bool is_empty;
    struct slice *row;

    if (take(&s, "TRUNCATE:"))
        return CHANGE_TRUNCATE;
    if (starts_with(s, "UPDATE: old-key:")) {
        skip(&s, strlen("UPDATE: old-key:"));
        return split_update(s, out) ? CHANGE_UPDATE : CHANGE_BAD;
    }
    out->kind = take(&s, "INSERT:")   ? CHANGE_INSERT
                : take(&s, "UPDATE:") ? CHANGE_UPDATE
                : take(&s, "DELETE:") ? CHANGE_DELETE
                                      : CHANGE_BAD;
    is_empty = slice_eq_str(s, " (no-tuple-data)");
    row = out->kind == CHANGE_DELETE ? &out->old_row : &out->new_row;
    *row = is_empty ? slice_of(s.p, 0) : s;
    out->has_old = out->kind == CHANGE_DELETE && !is_empty;
    out->has_new = out->kind != CHANGE_DELETE && !is_empty;
    return out->kind;
}

void change_read(struct slice text, struct change *out)
{
    *out = (struct change){.kind = CHANGE_BAD};
    if (take(&text, "BEGIN "))
        out->kind = read_end(text, CHANGE_BEGIN, out);
    else if (take(&text, "COMMIT "))
        out->kind = read_end(text, CHANGE_COMMIT, out);
    else if (take(&text, "table "))
        out->kind = take_tables(&text, &out->tables) ? read_rows(text, out) : CHANGE_BAD;
    else if (starts_with(text, "message: "))
        out->kind = CHANGE_MESSAGE;
}
