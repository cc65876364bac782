/* SPDX-License-Identifier: PostgreSQL
 * qcache_cells.c: the cells of a statement that has to do with single rows. Runs in: workers. Pure.
 * Who reads by a column and who writes by another meet in the column's cell: a write that does not
 * know the value of a column moves all of it. */
#include "config.h"

#include <string.h>

#include "base/hash.h"
#include "cache/cache_value.h"
#include "qcache/qcache_row.h"
#include "wire/reader.h"

#include "qcache_words_int.h"

static bool is_of(const struct qcache_field *f, const struct qcache_column *c)
{
    const struct words_name name = {f->column, f->is_quoted};

    return (f->table == QCACHE_ROW_ANY || f->table == c->table) &&
           words_name_is(&name, slice_of(c->name, c->name_len));
}

/* NULL: it has no cells. Of which table a name is that does not say it, is known when one of them
 * alone has such a column. */
static const struct qcache_column *column_of(
    const struct qcache_judgement *j, const struct qcache_field *f)
{
    const struct qcache_column *found = NULL;
    uint16_t i;

    for (i = 0; i < j->ncolumns; i++) {
        if (!is_of(f, &j->columns[i]))
            continue;
        if (found != NULL)
            return NULL;
        found = &j->columns[i];
    }
    return found;
}

/* The type that the Parse gives to $n; 0 where it leaves that to the server. */
static uint32_t param_type(struct slice types, uint32_t n)
{
    struct wire_reader r;
    uint32_t count;
    uint32_t type = 0;

    wire_reader_init(&r, types);
    count = types.n == 0 ? 0 : wire_get_u16(&r);
    for (; n > 0 && count > 0 && !r.bad; n--, count--)
        type = wire_get_u32(&r);
    return r.bad || n > 0 ? 0 : type;
}

/* $n of a Bind. False: there is none, or it is null. */
static bool param_value(struct slice values, uint32_t n, struct slice *value, bool *is_binary)
{
    struct wire_reader r;
    bool is_null = true;
    uint16_t nformats;
    uint16_t format = 0;
    uint16_t count;
    uint16_t i;

    wire_reader_init(&r, values);
    nformats = wire_get_u16(&r);
    for (i = 0; i < nformats && !r.bad; i++) {
        uint16_t f = wire_get_u16(&r);

        if (nformats == 1 || i + 1U == n)
            format = f;
    }
    count = wire_get_u16(&r);
    if (r.bad || n > count)
        return false;
    for (; n > 0 && !r.bad; n--)
        *value = wire_get_value(&r, &is_null);
    *is_binary = format == 1;
    return !r.bad && !is_null && format <= 1;
}

/* A parameter whose type the Parse leaves open has that of the first place where it stands: char(n)
 * cuts blanks off, name and "char" more than that, and binary values are other ones. It is the
 * column's where it stands beside such columns alone. */
static bool is_of_column(const struct qcache_judgement *j, const struct qcache_row *row,
    const struct qcache_equal *e, const struct qcache_column *c)
{
    uint32_t n = 0;
    unsigned i;

    for (i = 0; i < row->n; i++) {
        const struct qcache_column *other =
            row->equal[i].param == e->param ? column_of(j, &row->equal[i].field) : NULL;

        n += other != NULL && other->type == c->type;
    }
    return n >= e->nplaces;
}

static bool key_of(const struct qcache_judgement *j, const struct qcache_row *row,
    const struct qcache_equal *e, const struct qcache_column *c, const struct qcache_params *params,
    uint64_t *key)
{
    struct slice value = e->value;
    uint32_t from = c->type;
    bool is_binary = false;

    if (e->param > 0) {
        if (!param_value(params->values, e->param, &value, &is_binary))
            return false;
        from = param_type(params->types, e->param);
        if (from == 0 && !is_of_column(j, row, e, c))
            return false;
        from = from == 0 ? c->type : from;
    } else if (!e->is_string && (c->type == CACHE_TYPE_TEXT || c->type == CACHE_TYPE_VARCHAR)) {
        return false;
    }
    /* Blanks that are too many for varchar(n) are cut off without a word. */
    if (c->type == CACHE_TYPE_VARCHAR && value.n > 0 && value.p[value.n - 1] == ' ')
        return false;
    return cache_value_key(c->type, from, is_binary, value, key) == 0;
}

/* What is equal has one key in columns of these types, and "=" of them is the server's own. */
static bool are_alike(uint32_t a, uint32_t b)
{
    bool is_text = a == CACHE_TYPE_TEXT || a == CACHE_TYPE_VARCHAR;
    bool is_int = a == CACHE_TYPE_INT2 || a == CACHE_TYPE_INT4 || a == CACHE_TYPE_INT8;

    return a == b || (is_text && (b == CACHE_TYPE_TEXT || b == CACHE_TYPE_VARCHAR)) ||
           (is_int && (b == CACHE_TYPE_INT2 || b == CACHE_TYPE_INT4 || b == CACHE_TYPE_INT8));
}

/* A read, on its way to cells. */
struct reads {
    const struct qcache_judgement *j;
    const struct qcache_row *row;
    const struct qcache_params *params;
    cache_cell database;
    cache_cell *cell;
    unsigned n;
};

/* The columns that a condition speaks of: its own, and those that are equal to it. */
struct alike {
    const struct qcache_column *column[QCACHE_ROW_MAX + 1];
    unsigned n;
};

static bool is_among(const struct alike *a, const struct qcache_column *c)
{
    unsigned i;

    for (i = 0; i < a->n; i++)
        if (a->column[i] == c)
            return true;
    return false;
}

static void find_alike(const struct reads *r, const struct qcache_column *first, struct alike *out)
{
    unsigned before;
    unsigned i;

    out->column[0] = first;
    out->n = 1;
    do {
        before = out->n;
        for (i = 0; i < r->row->nsame; i++) {
            const struct qcache_column *a = column_of(r->j, &r->row->same[i].a);
            const struct qcache_column *b = column_of(r->j, &r->row->same[i].b);

            if (a == NULL || b == NULL || !are_alike(a->type, b->type) ||
                is_among(out, a) == is_among(out, b))
                continue;
            out->column[out->n++] = is_among(out, a) ? b : a;
        }
    } while (out->n > before);
}

/* The column of table `t` of which a condition on `said` tells the values; NULL: it says nothing of
 * the table. */
static const struct qcache_column *like_in_table(
    const struct reads *r, const struct qcache_column *said, unsigned t)
{
    struct alike like;
    unsigned i;

    find_alike(r, said, &like);
    for (i = 0; i < like.n; i++)
        if (like.column[i]->table == t)
            return like.column[i];
    return NULL;
}

/* Cells of table `t`, by this condition. False: its values are not known, or there is no room. */
static bool add_cells(struct reads *r, const struct qcache_equal *e, unsigned t)
{
    const struct qcache_column *said = column_of(r->j, &e->field);
    const struct qcache_column *c = said == NULL ? NULL : like_in_table(r, said, t);
    uint32_t oid = r->j->named[t].oid;
    uint64_t key;
    unsigned i;

    if (c == NULL || r->n + 2U + e->nset > QCACHE_ROW_READS)
        return false;
    r->cell[r->n++] = cache_cell_whole(r->database, oid);
    r->cell[r->n++] = cache_cell_column(r->database, oid, c->attnum);
    for (i = 0; i < e->nset; i++) {
        if (!key_of(r->j, r->row, &e[i], said, r->params, &key))
            return false;
        r->cell[r->n++] = cache_cell_value(r->database, oid, c->attnum, key);
    }
    return true;
}

/* Adds a table, by the condition with the least values. False: all of the table is read. */
static bool add_table(struct reads *r, unsigned t)
{
    const struct qcache_equal *best = NULL;
    unsigned before = r->n;
    unsigned i;

    for (i = 0; i < r->row->n; i += r->row->equal[i].nset) {
        const struct qcache_equal *e = &r->row->equal[i];

        if ((best == NULL || e->nset < best->nset) && add_cells(r, e, t))
            best = e;
        r->n = before;
    }
    return best != NULL && add_cells(r, best, t);
}

unsigned qcache_row_reads(const struct qcache_judgement *j, const struct qcache_row *row,
    const struct qcache_params *params, cache_cell database, cache_cell cell[QCACHE_ROW_READS])
{
    struct reads r = {j, row, params, database, cell, 0};
    unsigned t;

    if (j->nnamed == 0 || j->nnamed != row->ntables)
        return 0;
    for (t = 0; t < j->nnamed; t++)
        if (j->named[t].has_heirs || !add_table(&r, t))
            return 0;
    return r.n;
}

/* The value that the rows have in this column, before and after. */
static bool known_key(const struct qcache_judgement *j, const struct qcache_column *c,
    const struct qcache_row *row, const struct qcache_params *params, uint64_t *key)
{
    unsigned i;

    for (i = 0; i < row->n; i++)
        if (is_of(&row->equal[i].field, c))
            return key_of(j, row, &row->equal[i], c, params, key);
    return false;
}

unsigned qcache_row_writes(const struct qcache_judgement *j, const struct qcache_row *row,
    const struct qcache_params *params, cache_cell database, cache_cell cell[QCACHE_ROW_WRITES])
{
    uint32_t oid = j->named[0].oid;
    bool is_known = false;
    unsigned n = 0;
    uint64_t key;
    uint16_t i;

    if (j->nnamed != 1 || j->nwrites != 1 || j->writes[0] != oid || j->writes_more ||
        j->named[0].has_triggers)
        return 0;
    cell[n++] = cache_cell_table(database, oid);
    for (i = 0; i < j->ncolumns; i++) {
        const struct qcache_column *c = &j->columns[i];

        if (known_key(j, c, row, params, &key)) {
            cell[n++] = cache_cell_value(database, oid, c->attnum, key);
            is_known = true;
        } else {
            cell[n++] = cache_cell_column(database, oid, c->attnum);
        }
    }
    return is_known ? n : 0;
}

cache_cell qcache_cell_text(cache_cell database, struct slice user, struct slice text)
{
    uint64_t hash = hash_bytes(text.p, text.n, hash_bytes(user.p, user.n, 0));

    return cache_cell_value(database, QCACHE_OID_NONE, 0, hash);
}
