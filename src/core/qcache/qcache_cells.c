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

/* A name without quotes is folded. */
static bool is_of(const struct qcache_equal *e, const struct qcache_column *c)
{
    size_t i;

    if (c->name_len != e->column.n)
        return false;
    for (i = 0; i < e->column.n; i++) {
        char ch = e->column.p[i];

        if (!e->is_quoted && ch >= 'A' && ch <= 'Z')
            ch = (char)(ch - 'A' + 'a');
        if (ch != c->name[i])
            return false;
    }
    return true;
}

static const struct qcache_column *column_of(
    const struct qcache_judgement *j, const struct qcache_equal *e)
{
    uint16_t i;

    for (i = 0; i < j->ncolumns; i++)
        if (is_of(e, &j->columns[i]))
            return &j->columns[i];
    return NULL;
}

/* The type that the Parse gives to $n; `column`'s where it leaves that to the server. */
static uint32_t param_type(struct slice types, uint32_t n, uint32_t column)
{
    struct wire_reader r;
    uint32_t count;
    uint32_t type = 0;

    wire_reader_init(&r, types);
    count = types.n == 0 ? 0 : wire_get_u16(&r);
    for (; n > 0 && count > 0 && !r.bad; n--, count--)
        type = wire_get_u32(&r);
    return r.bad || n > 0 || type == 0 ? column : type;
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

static bool key_of(const struct qcache_equal *e, const struct qcache_column *c,
    const struct qcache_params *params, uint64_t *key)
{
    struct slice value = e->value;
    uint32_t from = c->type;
    bool is_binary = false;

    if (e->param > 0) {
        if (!param_value(params->values, e->param, &value, &is_binary))
            return false;
        from = param_type(params->types, e->param, c->type);
    } else if (!e->is_string && (c->type == CACHE_TYPE_TEXT || c->type == CACHE_TYPE_VARCHAR)) {
        return false;
    }
    /* Blanks that are too many for varchar(n) are cut off without a word. */
    if (c->type == CACHE_TYPE_VARCHAR && value.n > 0 && value.p[value.n - 1] == ' ')
        return false;
    return cache_value_key(c->type, from, is_binary, value, key) == 0;
}

/* Of one condition; 0: its values are not known. */
static unsigned read_cells(const struct qcache_judgement *j, const struct qcache_equal *e,
    const struct qcache_params *params, cache_cell database, cache_cell *cell)
{
    const struct qcache_column *c = column_of(j, e);
    uint64_t key;
    unsigned i;

    if (c == NULL)
        return 0;
    cell[0] = cache_cell_whole(database, j->columns_oid);
    cell[1] = cache_cell_column(database, j->columns_oid, c->attnum);
    for (i = 0; i < e->nset; i++) {
        if (!key_of(&e[i], c, params, &key))
            return 0;
        cell[2 + i] = cache_cell_value(database, j->columns_oid, c->attnum, key);
    }
    return 2 + i;
}

unsigned qcache_row_reads(const struct qcache_judgement *j, const struct qcache_row *row,
    const struct qcache_params *params, cache_cell database, cache_cell cell[QCACHE_ROW_READS])
{
    unsigned best = row->n; /* the condition with the least values */
    unsigned i;

    if (j->ncolumns == 0 ||
        (!j->is_partitioned && (j->nreads != 1 || j->reads[0] != j->columns_oid)))
        return 0;
    for (i = 0; i < row->n; i += row->equal[i].nset)
        if ((best == row->n || row->equal[i].nset < row->equal[best].nset) &&
            read_cells(j, &row->equal[i], params, database, cell) > 0)
            best = i;
    return best == row->n ? 0 : read_cells(j, &row->equal[best], params, database, cell);
}

/* The value that the rows have in this column, before and after. */
static bool known_key(const struct qcache_column *c, const struct qcache_row *row,
    const struct qcache_params *params, uint64_t *key)
{
    unsigned i;

    for (i = 0; i < row->n; i++)
        if (is_of(&row->equal[i], c))
            return key_of(&row->equal[i], c, params, key);
    return false;
}

unsigned qcache_row_writes(const struct qcache_judgement *j, const struct qcache_row *row,
    const struct qcache_params *params, cache_cell database, cache_cell cell[QCACHE_ROW_WRITES])
{
    bool is_known = false;
    unsigned n = 0;
    uint64_t key;
    uint16_t i;

    if (j->nwrites != 1 || j->writes[0] != j->columns_oid || j->writes_more || j->has_triggers)
        return 0;
    cell[n++] = cache_cell_table(database, j->columns_oid);
    for (i = 0; i < j->ncolumns; i++) {
        const struct qcache_column *c = &j->columns[i];

        if (known_key(c, row, params, &key)) {
            cell[n++] = cache_cell_value(database, j->columns_oid, c->attnum, key);
            is_known = true;
        } else {
            cell[n++] = cache_cell_column(database, j->columns_oid, c->attnum);
        }
    }
    return is_known ? n : 0;
}

cache_cell qcache_cell_text(cache_cell database, struct slice user, struct slice text)
{
    uint64_t hash = hash_bytes(text.p, text.n, hash_bytes(user.p, user.n, 0));

    return cache_cell_value(database, QCACHE_OID_NONE, 0, hash);
}
