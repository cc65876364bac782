/* SPDX-License-Identifier: PostgreSQL
 * qcache_where.c: what conditions say that all hold, word by word: those of the kinds
 *   column = value    column IN (value, ...)    column = column
 * count, also in parentheses of their own; of all others it is said that nothing is known, which is
 * never wrong. Runs in: workers. Pure. */
#include "config.h"

#include <string.h>

#include "qcache_words_int.h"

/* Parentheses in parentheses are looked into so far. */
#define DEPTH_MAX 8

/* With one of these AND may not be what it seems. */
static bool has_odd_word(const struct words *w, uint32_t from, uint32_t to)
{
    static const char *const odd[] = {"or", "between", "case", "union", "intersect", "except",
        "from", "using", "current", "select", "values", "where", NULL};

    return words_find(w, from, to, odd) < to;
}

/* What stands between SET and WHERE may change the column: it names it. */
static bool may_change(const struct words *w, const struct qcache_field *f)
{
    struct words_name other;
    uint32_t i;

    for (i = w->set; i < w->set_end; i++) {
        if (!words_is_name(w, i))
            continue;
        if (!words_name(w, i, &other))
            return true; /* nobody knows */
        if (other.text.n == f->column.n && strncasecmp(other.text.p, f->column.p, f->column.n) == 0)
            return true;
    }
    return false;
}

/* column = value; false: it is something else. */
static bool read_equal(const struct words *w, uint32_t from, uint32_t to, struct qcache_equal *e)
{
    return words_field(w, &from, &e->field) && words_is_sign(w, from, "=") && from + 2 == to &&
           words_value(w, from + 1, e) && !may_change(w, &e->field);
}

/* column = column */
static bool read_same(const struct words *w, uint32_t from, uint32_t to, struct qcache_same *s)
{
    if (!words_field(w, &from, &s->a) || !words_is_sign(w, from, "="))
        return false;
    from++;
    return words_field(w, &from, &s->b) && from == to;
}

/* column IN (value, ...), as `room` entries at most. Returns how many; 0: it is something else. */
static unsigned read_list(
    const struct words *w, uint32_t from, uint32_t to, struct qcache_equal *e, unsigned room)
{
    struct words in = *w;
    unsigned n = 0;

    in.n = to;
    in.at = from;
    if (room == 0 || !words_field(&in, &in.at, &e[0].field) || !words_take(&in, "in") ||
        !words_take_sign(&in, "("))
        return 0;
    do {
        if (n == room)
            return 0;
        e[n].field = e[0].field;
        if (!words_value(&in, in.at++, &e[n++]))
            return 0;
    } while (words_take_sign(&in, ","));
    e[0].nset = (uint8_t)n;
    return words_take_sign(&in, ")") && in.at == to ? n : 0;
}

static void read_one(const struct words *w, uint32_t from, uint32_t to, struct qcache_row *out)
{
    if (out->n < QCACHE_ROW_MAX && read_equal(w, from, to, &out->equal[out->n]))
        out->n++;
    else if (!w->reads)
        return;
    else if (out->nsame < QCACHE_ROW_MAX && read_same(w, from, to, &out->same[out->nsame]))
        out->nsame++;
    else
        out->n += read_list(w, from, to, &out->equal[out->n], QCACHE_ROW_MAX - out->n);
}

static void read_all(
    const struct words *w, uint32_t from, uint32_t to, unsigned depth, struct qcache_row *out)
{
    static const char *const and_word[] = {"and", NULL};
    uint32_t end;

    if (has_odd_word(w, from, to) || depth == DEPTH_MAX)
        return;
    for (; from < to; from = end + 1) {
        end = words_find(w, from, to, and_word);
        if (words_is_group(w, from, end))
            read_all(w, from + 1, end - 1, depth + 1, out);
        else
            read_one(w, from, end, out);
    }
}

void words_conditions(const struct words *w, uint32_t from, uint32_t to, struct qcache_row *out)
{
    read_all(w, from, to, 0, out);
}
