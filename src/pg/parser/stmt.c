/* SPDX-License-Identifier: PostgreSQL
 * stmt.c: scopes of CTEs, and what the facts of one statement add up to.
 * Runs in: workers. A CTE hides relations of its name in a range of the text: from the end of its
 * body (of the WITH, when recursive) to the end of the statement that has the WITH. Ranges of one
 * name are nested or apart, so that their union is a sorted list; whether a relation is a CTE is
 * then a question of its offset alone, answered at the end of the statement in linear time. */
#include "config.h"

#include "base/arena.h"
#include "base/hash.h"
#include "sqlp_int.h"

#include <string.h>
#include <strings.h>

#define FEW_CTES 16

/* Notes a CTE; `cte` is its name, with the end of its body. `before` is the one before it in the
 * list, -1 for none; list->n becomes the number of this one. */
void sqlp_cte(struct sqlp *st, struct sql_tok *list, const struct sql_tok *cte, int32_t before)
{
    struct sqlp_cte *c = sqlp_push(st, &st->ctes, sizeof(*c));

    if (c == NULL)
        return;
    c->name = sqlp_fold(st, cte);
    c->from = cte->end;
    c->next = before;
    list->n = st->ctes.count - 1;
}

/* The statement that has this WITH ends here. A value without text is a WITH that is not there. */
void sqlp_close_with(struct sqlp *st, const struct sql_tok *with)
{
    struct sqlp_cte *ctes = st->ctes.items;

    if (with->p == NULL || st->no_memory)
        return;
    for (int32_t i = (int32_t)with->n; i >= 0; i = ctes[i].next) {
        ctes[i].to = st->last_off + 1;
        if (with->flags)
            ctes[i].from = with->off;
    }
}

/* CREATE RECURSIVE VIEW: the view's name is a CTE inside its query, up to the present token. */
void sqlp_recursive_view(struct sqlp *st, const struct sql_tok *name, uint32_t from)
{
    struct sqlp_cte *c = sqlp_push(st, &st->ctes, sizeof(*c));

    if (c == NULL)
        return;
    c->name = sqlp_fold(st, name);
    c->from = from;
    c->to = st->last_off + 1;
    c->next = -1;
}

/* Only a name without schema that is read can be a CTE. */
static bool may_be_cte(const struct sql_table *t)
{
    return t->schema.n == 0 && (t->flags & ~SQL_TABLE_ONLY) == 0;
}

static bool in_few(const struct sqlp_cte *ctes, uint32_t n, const struct sql_table *t)
{
    for (uint32_t i = 0; i < n; i++) {
        if (t->offset >= ctes[i].from && t->offset < ctes[i].to && slice_eq(t->name, ctes[i].name))
            return true;
    }
    return false;
}

/* Many CTEs: per name a sorted list of ranges apart from each other. */
struct scope_name {
    struct slice name;
    uint32_t count; /* CTEs of that name */
    uint32_t first; /* place of its ranges */
    uint32_t used;  /* ranges left of them */
};

struct scopes {
    struct scope_name *slots;
    uint32_t mask;
    struct sqlp_cte *ranges;
};

static struct scope_name *find_name(const struct scopes *s, struct slice name)
{
    uint32_t i = (uint32_t)hash_bytes(name.p, name.n, 0) & s->mask;

    while (s->slots[i].count != 0 && !slice_eq(s->slots[i].name, name))
        i = (i + 1) & s->mask;
    return &s->slots[i];
}

/* Adds a range behind those of its name: inside the last one it adds nothing; around the last ones
 * it replaces them. */
static void add_range(struct scopes *s, struct scope_name *n, const struct sqlp_cte *c)
{
    struct sqlp_cte *ranges = s->ranges + n->first;

    if (n->used > 0 && c->from >= ranges[n->used - 1].from && c->to <= ranges[n->used - 1].to)
        return;
    while (n->used > 0 && ranges[n->used - 1].from >= c->from)
        n->used--;
    ranges[n->used++] = *c;
}

static int build_scopes(struct sqlp *st, struct scopes *s, const struct sqlp_cte *ctes, uint32_t n)
{
    uint32_t size = 64;
    uint32_t place = 0;

    while (size < n * 2)
        size *= 2;
    s->mask = size - 1;
    s->slots = arena_alloc_zero(st->arena, size * sizeof(*s->slots));
    s->ranges = arena_alloc(st->arena, n * sizeof(*s->ranges));
    if (s->slots == NULL || s->ranges == NULL) {
        st->no_memory = true;
        return -1;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct scope_name *name = find_name(s, ctes[i].name);
        name->name = ctes[i].name;
        name->count++;
    }
    for (uint32_t i = 0; i < size; i++) {
        s->slots[i].first = place;
        place += s->slots[i].count;
    }
    for (uint32_t i = 0; i < n; i++)
        add_range(s, find_name(s, ctes[i].name), &ctes[i]);
    return 0;
}

static bool in_scopes(const struct scopes *s, const struct sql_table *t)
{
    const struct scope_name *n = find_name(s, t->name);
    const struct sqlp_cte *ranges = s->ranges + n->first;
    uint32_t low = 0;
    uint32_t high = n->used;

    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (ranges[mid].from <= t->offset)
            low = mid + 1;
        else
            high = mid;
    }
    return low > 0 && t->offset < ranges[low - 1].to;
}

/* Drops the names of CTEs from the statement's relations. */
static void resolve_ctes(struct sqlp *st)
{
    const struct sqlp_cte *ctes;
    uint32_t n = st->ctes.count - st->first_cte;
    struct sql_table *tables = st->tables.items;
    uint32_t kept = st->first_table;
    struct scopes scopes;

    if (n == 0 || st->no_memory)
        return;
    ctes = (const struct sqlp_cte *)st->ctes.items + st->first_cte;
    if (n > FEW_CTES && build_scopes(st, &scopes, ctes, n) == -1)
        return;
    for (uint32_t i = st->first_table; i < st->tables.count; i++) {
        bool hidden = false;
        if (may_be_cte(&tables[i]))
            hidden = n > FEW_CTES ? in_scopes(&scopes, &tables[i]) : in_few(ctes, n, &tables[i]);
        if (!hidden)
            tables[kept++] = tables[i];
    }
    st->tables.count = kept;
}

static bool is_read_only(const struct sql_stmt *s)
{
    const uint32_t writes = SQL_F_INTO | SQL_F_LOCKING | SQL_F_DML_IN_CTE;
    bool inner_reads =
        (s->inner == SQL_SELECT || s->inner == SQL_VALUES) && (s->flags & writes) == 0;

    switch (s->kind) {
    case SQL_SELECT:
    case SQL_VALUES:
        return (s->flags & writes) == 0;
    case SQL_SHOW:
        return true;
    case SQL_EXPLAIN:
        return !(s->flags & SQL_F_ANALYZE) || inner_reads;
    case SQL_COPY_TO:
        return (s->flags & SQL_F_COPY_STDIO) && (!(s->flags & SQL_F_COPY_QUERY) || inner_reads);
    default:
        return false;
    }
}

/* What later releases have as syntax was a call up to PostgreSQL 15, and only there: a statement
 * that 15 refuses has no such calls. */
static void resolve_old_calls(struct sqlp *st)
{
    struct sql_func *funcs = st->funcs.items;
    uint32_t kept = st->first_func;

    for (uint32_t i = st->first_func; i < st->funcs.count; i++) {
        if (st->newer && (funcs[i].flags & FUNC_OLD))
            continue;
        funcs[kept] = funcs[i];
        funcs[kept++].flags &= ~FUNC_OLD;
    }
    st->funcs.count = kept;
}

/* Case does not count: whether the function was quoted is not known any more. */
static bool is_from_func(struct sqlp *st, const struct sql_tok *of)
{
    struct slice name;
    uint32_t i;

    if (st->nfrom_funcs == 0 || st->nfrom_funcs == FROM_FUNCS_ANY)
        return st->nfrom_funcs != 0;
    name = sqlp_fold(st, of);
    for (i = 0; i < st->nfrom_funcs; i++)
        if (st->from_func[i].n == name.n && strncasecmp(st->from_func[i].p, name.p, name.n) == 0)
            return true;
    return false;
}

/* The value of a function in FROM is no row, mostly: what is said of it may be a call. */
static void resolve_columns(struct sqlp *st)
{
    const struct sqlp_column *c = st->columns.items;

    for (uint32_t i = st->first_column; i < st->columns.count; i++)
        if (is_from_func(st, &c[i].of))
            sqlp_field(st, &c[i].name);
    st->first_column = st->columns.count;
    st->nfrom_funcs = 0;
}

/* The part of a vector that belongs to the present statement. */
static const void *own_items(const struct sqlp_vec *v, uint32_t first, size_t size, uint32_t *count)
{
    *count = v->count - first;
    return *count == 0 ? NULL : (const char *)v->items + first * size;
}

/* Puts the finished statement away and makes ready for the next one. */
void sqlp_end_stmt(struct sqlp *st)
{
    struct sql_stmt *s = sqlp_push(st, &st->stmts, sizeof(*s));

    if (s == NULL)
        return;
    resolve_ctes(st);
    resolve_columns(st);
    if (st->saw_new_word)
        resolve_old_calls(st);
    *s = st->cur;
    s->len = st->stmt_end - s->offset;
    if (s->body.offset != 0 && s->body.len == 0)
        s->body.len = st->stmt_end - s->body.offset;
    s->tables = own_items(&st->tables, st->first_table, sizeof(*s->tables), &s->ntables);
    s->funcs = own_items(&st->funcs, st->first_func, sizeof(*s->funcs), &s->nfuncs);
    s->times = own_items(&st->times, st->first_time, sizeof(*s->times), &s->ntimes);
    s->literals = own_items(&st->literals, st->first_literal, sizeof(*s->literals), &s->nliterals);
    if (is_read_only(s))
        s->flags |= SQL_F_READ_ONLY;
    st->first_table = st->tables.count;
    st->first_func = st->funcs.count;
    st->first_time = st->times.count;
    st->first_literal = st->literals.count;
    st->first_cte = st->ctes.count;
    st->cur = (struct sql_stmt){0};
    st->in_stmt = false;
    st->newer = false;
}
