/* SPDX-License-Identifier: PostgreSQL
 * inval_map.c: the tables of a database by name, and which cells a change of their rows moves.
 * Runs in: invalidator. Pure. What is not known for sure moves more: the column instead of a value,
 * the table instead of a column, the database where a table is not known. */
#include "config.h"

#include "inval_map.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/mem.h"
#include "cache/cache_value.h"

struct map_column {
    struct slice name;
    uint32_t type;
    int16_t attnum;
    bool in_identity;
    bool is_told;
};

struct map_table;

/* A table above, however far. */
struct map_above {
    struct map_above *next;
    struct map_table *table;
    int16_t *attnum; /* by number of the lower one's column; 0: it has none such */
};

struct map_table {
    struct hash_node by_name;
    struct hash_node by_oid;
    struct slice name;
    uint32_t oid;
    char identity;
    uint32_t ncolumns;
    uint32_t room;
    struct map_column *column;
    struct map_above *above;
};

/* What a row says of one column. */
enum known { UNKNOWN, IS_NULL, IS_KEY };
struct map_value {
    enum known known;
    uint64_t key;
};

struct inval_map {
    cache_cell database;
    struct arena *arena;
    struct hash_table by_name;
    struct hash_table by_oid;
    struct map_table *last;
    uint32_t nvalues; /* room in the two below */
    struct map_value *old_value;
    struct map_value *new_value;
    struct buf scratch;
};

/* --- tables --- */

struct inval_map *inval_map_new(cache_cell database)
{
    struct inval_map *m = mem_alloc_zero(sizeof *m);

    m->database = database;
    m->arena = arena_new("tables", 0);
    hash_table_init(&m->by_name);
    hash_table_init(&m->by_oid);
    return m;
}

void inval_map_free(struct inval_map **mp)
{
    struct inval_map *m = *mp;

    if (m == NULL)
        return;
    hash_table_fini(&m->by_name);
    hash_table_fini(&m->by_oid);
    arena_free(&m->arena);
    mem_free(m->old_value);
    mem_free(m->new_value);
    buf_free(&m->scratch);
    mem_free(m);
    *mp = NULL;
}

static uint64_t name_hash(struct slice name)
{
    return hash_bytes(name.p, name.n, 0);
}

static int has_name(const struct hash_node *node, const void *key)
{
    const struct slice *name = key;

    return slice_eq(LIST_ENTRY((struct hash_node *)node, struct map_table, by_name)->name, *name);
}

static int has_oid(const struct hash_node *node, const void *key)
{
    const uint32_t *oid = key;

    return LIST_ENTRY((struct hash_node *)node, struct map_table, by_oid)->oid == *oid;
}

static struct map_table *find_name(const struct inval_map *m, struct slice name)
{
    struct hash_node *node = hash_table_find(&m->by_name, name_hash(name), has_name, &name);

    return node == NULL ? NULL : LIST_ENTRY(node, struct map_table, by_name);
}

static struct map_table *find_oid(const struct inval_map *m, uint32_t oid)
{
    struct hash_node *node = hash_table_find(&m->by_oid, hash_pair(oid, 1), has_oid, &oid);

    return node == NULL ? NULL : LIST_ENTRY(node, struct map_table, by_oid);
}

static struct slice keep(struct inval_map *m, struct slice s)
{
    return slice_of(arena_strndup(m->arena, s.p, s.n), s.n);
}

void inval_map_add_table(
    struct inval_map *m, uint32_t oid, struct slice name, char replica_identity)
{
    struct map_table *t = arena_alloc_zero(m->arena, sizeof *t);

    t->oid = oid;
    t->name = keep(m, name);
    t->identity = replica_identity;
    hash_table_add(&m->by_name, &t->by_name, name_hash(name));
    hash_table_add(&m->by_oid, &t->by_oid, hash_pair(oid, 1));
    m->last = t;
}

void inval_map_add_column(struct inval_map *m, int attnum, uint32_t type, struct slice name,
    bool in_identity, bool is_told)
{
    struct map_table *t = m->last;
    struct map_column *more;

    if (t->ncolumns == t->room) {
        t->room = t->room == 0 ? 4 : t->room * 2;
        more = arena_alloc(m->arena, t->room * sizeof more[0]);
        if (t->ncolumns > 0)
            memcpy(more, t->column, t->ncolumns * sizeof more[0]);
        t->column = more;
    }
    t->column[t->ncolumns++] = (struct map_column){.name = keep(m, name),
        .type = type,
        .attnum = (int16_t)attnum,
        .in_identity = in_identity,
        .is_told = is_told};
    if (t->ncolumns > m->nvalues) {
        m->nvalues = t->ncolumns * 2;
        m->old_value = mem_resize(m->old_value, m->nvalues * sizeof m->old_value[0]);
        m->new_value = mem_resize(m->new_value, m->nvalues * sizeof m->new_value[0]);
    }
}

/* --- inheritance --- */

static int16_t attnum_of(const struct map_table *t, const struct map_column *like)
{
    uint32_t i;

    for (i = 0; i < t->ncolumns; i++)
        if (t->column[i].type == like->type && slice_eq(t->column[i].name, like->name))
            return t->column[i].attnum;
    return 0;
}

void inval_map_add_above(struct inval_map *m, uint32_t child, uint32_t above)
{
    struct map_table *below = find_oid(m, child);
    struct map_table *table = find_oid(m, above);
    struct map_above *a;
    uint32_t i;

    if (below == NULL || table == NULL)
        return;
    a = arena_alloc_zero(m->arena, sizeof *a);
    a->table = table;
    a->attnum = arena_alloc_zero(m->arena, (below->ncolumns + 1) * sizeof a->attnum[0]);
    for (i = 0; i < below->ncolumns; i++)
        a->attnum[i] = attnum_of(table, &below->column[i]);
    a->next = below->above;
    below->above = a;
}

/* --- rows --- */

struct sink {
    struct inval_map *m;
    inval_cell_fn *put;
    void *ctx;
};

static const char *type_text(uint32_t type)
{
    switch (type) {
    case CACHE_TYPE_BOOL:
        return "boolean";
    case CACHE_TYPE_INT8:
        return "bigint";
    case CACHE_TYPE_INT2:
        return "smallint";
    case CACHE_TYPE_INT4:
        return "integer";
    case CACHE_TYPE_TEXT:
        return "text";
    case CACHE_TYPE_VARCHAR:
        return "character varying";
    case CACHE_TYPE_DATE:
        return "date";
    default:
        return "uuid";
    }
}

static struct map_value value_of(
    struct inval_map *m, const struct map_column *column, const struct change_column *told)
{
    struct map_value v = {.known = UNKNOWN};
    struct slice value = told->value;

    if (told->is_null)
        return (struct map_value){.known = IS_NULL};
    if (told->is_unchanged)
        return v;
    if (told->is_quoted && value.n > 0 && memchr(value.p, '\'', value.n) != NULL) {
        buf_clear(&m->scratch);
        value = slice_of(buf_reserve(&m->scratch, value.n), 0);
        value.n = change_unquote(told->value, m->scratch.data);
    }
    if (cache_value_key(column->type, column->type, false, value, &v.key) == 0)
        v.known = IS_KEY;
    return v;
}

/* Fills `out` by column from what a row tells; who is not told is `absent`. False: the row is not
 * the table's, as far as the map knows it. Columns come in the order of their numbers. */
static bool read_row(struct inval_map *m, const struct map_table *t, struct slice row,
    enum known absent, struct map_value *out)
{
    struct change_column told;
    enum change_next next;
    uint32_t at = 0;
    uint32_t i;
    uint32_t k;

    for (i = 0; i < t->ncolumns; i++)
        out[i] = (struct map_value){.known = absent};
    while ((next = change_next_column(&row, &told)) == CHANGE_COLUMN) {
        for (k = 0; k < t->ncolumns; k++) {
            i = (at + k) % t->ncolumns;
            if (slice_eq(t->column[i].name, told.name))
                break;
        }
        if (k == t->ncolumns)
            continue;
        if (!slice_eq_str(told.type, type_text(t->column[i].type)))
            return false;
        out[i] = value_of(m, &t->column[i], &told);
        at = i + 1;
    }
    return next == CHANGE_END;
}

/* Puts the cells of a table and all above it: any write to it, and with `whole` one of nobody knows
 * what. */
static void put_table(const struct sink *s, const struct map_table *t, bool whole)
{
    const struct map_above *a;

    s->put(s->ctx, cache_cell_table(s->m->database, t->oid), true);
    if (whole)
        s->put(s->ctx, cache_cell_whole(s->m->database, t->oid), false);
    for (a = t->above; a != NULL; a = a->next) {
        s->put(s->ctx, cache_cell_table(s->m->database, a->table->oid), true);
        if (whole)
            s->put(s->ctx, cache_cell_whole(s->m->database, a->table->oid), false);
    }
}

static void put_column(const struct sink *s, const struct map_table *t, uint32_t i)
{
    const struct map_above *a;

    s->put(s->ctx, cache_cell_column(s->m->database, t->oid, t->column[i].attnum), false);
    for (a = t->above; a != NULL; a = a->next)
        if (a->attnum[i] != 0)
            s->put(s->ctx, cache_cell_column(s->m->database, a->table->oid, a->attnum[i]), false);
}

static void put_value(const struct sink *s, const struct map_table *t, uint32_t i, uint64_t key)
{
    const struct map_above *a;

    s->put(s->ctx, cache_cell_value(s->m->database, t->oid, t->column[i].attnum, key), false);
    for (a = t->above; a != NULL; a = a->next)
        if (a->attnum[i] != 0)
            s->put(
                s->ctx, cache_cell_value(s->m->database, a->table->oid, a->attnum[i], key), false);
}

/* A value that is not known, old or new, moves its column, and with it all its values. */
static void put_columns(const struct sink *s, const struct map_table *t, bool has_old, bool has_new)
{
    const struct map_value *old_value = s->m->old_value;
    const struct map_value *new_value = s->m->new_value;
    uint32_t i;

    for (i = 0; i < t->ncolumns; i++) {
        if (!t->column[i].is_told || (has_old && old_value[i].known == UNKNOWN) ||
            (has_new && new_value[i].known == UNKNOWN)) {
            put_column(s, t, i);
            continue;
        }
        if (has_old && old_value[i].known == IS_KEY)
            put_value(s, t, i, old_value[i].key);
        if (has_new && new_value[i].known == IS_KEY &&
            !(has_old && old_value[i].known == IS_KEY && old_value[i].key == new_value[i].key))
            put_value(s, t, i, new_value[i].key);
    }
}

/* An update that tells no old row has left the identity as it was. Of an identity that is the whole
 * row the stream leaves out what was null. */
static bool read_old(struct inval_map *m, const struct map_table *t, const struct change *c)
{
    bool has_key = t->identity == 'd' || t->identity == 'i';
    uint32_t i;

    if (c->has_old)
        return read_row(m, t, c->old_row, t->identity == 'f' ? IS_NULL : UNKNOWN, m->old_value);
    if (t->identity == 'f' || c->kind == CHANGE_DELETE)
        return false;
    for (i = 0; i < t->ncolumns; i++)
        m->old_value[i] = has_key && t->column[i].in_identity
                              ? m->new_value[i]
                              : (struct map_value){.known = UNKNOWN};
    return true;
}

static bool put_row(const struct sink *s, const struct map_table *t, const struct change *c)
{
    bool has_old = c->kind != CHANGE_INSERT;
    bool has_new = c->kind != CHANGE_DELETE;

    if (has_new && (!c->has_new || !read_row(s->m, t, c->new_row, UNKNOWN, s->m->new_value)))
        return false;
    if (has_old && !read_old(s->m, t, c))
        return false;
    put_table(s, t, false);
    put_columns(s, t, has_old, has_new);
    return true;
}

static enum inval_effect put_truncated(const struct sink *s, struct slice tables)
{
    struct slice name;
    struct map_table *t;

    while (change_next_table(&tables, &name)) {
        t = find_name(s->m, name);
        if (t == NULL) {
            s->put(s->ctx, s->m->database, false);
            return INVAL_DATABASE;
        }
        put_table(s, t, true);
    }
    return INVAL_TABLE;
}

enum inval_effect inval_map_change(
    struct inval_map *m, const struct change *change, bool by_row, inval_cell_fn *put, void *ctx)
{
    struct sink s = {m, put, ctx};
    struct map_table *t;

    switch (change->kind) {
    case CHANGE_TRUNCATE:
        return put_truncated(&s, change->tables);
    case CHANGE_INSERT:
    case CHANGE_UPDATE:
    case CHANGE_DELETE:
        t = find_name(m, change->tables);
        if (t == NULL)
            break;
        if (by_row && put_row(&s, t, change))
            return INVAL_ROW;
        put_table(&s, t, true);
        return INVAL_TABLE;
    case CHANGE_BAD:
        break;
    default:
        return INVAL_NONE;
    }
    put(ctx, m->database, false);
    return INVAL_DATABASE;
}
