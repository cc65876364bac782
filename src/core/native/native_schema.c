/* SPDX-License-Identifier: PostgreSQL
 * native_schema.c: what a session of native replication knows of tables, and whether it still
 * holds. Runs in: workers.
 *
 * A statement is rewritten by the columns and defaults that its table has. Facts are forgotten when
 * anybody changes the schema through us: told when he does it, and once more in front of his
 * COMMIT. A statement that waits for his lock runs on a table that it was not planned for; so when
 * somebody has changed something meanwhile, the main node is asked again. What it says then holds
 * until the transaction is over, for the statement has locked the table. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/mem.h"
#include "replicate/nature.h"

#include "native_int.h"

void native_forget_tables(struct native *n)
{
    struct list *node;

    while ((node = list_first(&n->tables)) != NULL) {
        struct native_table *t = LIST_ENTRY(node, struct native_table, node);
        struct arena *a = t->arena;

        list_remove(node);
        arena_free(&a);
    }
    n->ntables = 0;
}

struct native_table *native_table_find(struct native *n, struct slice name)
{
    struct list *node;

    LIST_FOREACH(node, &n->tables)
    {
        struct native_table *t = LIST_ENTRY(node, struct native_table, node);

        if (slice_eq_str(name, t->name))
            return t;
    }
    return NULL;
}

void native_follow_schema(struct native *n)
{
    uint64_t now = known_change(n->ss->known);
    struct list *node;

    if (now != n->changes) {
        native_forget_tables(n);
        n->values = NULL; /* they were asked for by another plan */
    }
    n->changes = now;
    LIST_FOREACH(node, &n->tables)
    {
        LIST_ENTRY(node, struct native_table, node)->is_used = false;
    }
}

/* The plan at hand stands on what is known: that is forgotten when the next one begins. */
static void forget_next(struct native *n)
{
    n->changes = UINT64_MAX;
}

static void names_mean_others(struct native *n)
{
    n->salt = hash_bytes(&n->salt, sizeof n->salt, 1) + 1;
    n->names = 0;
    forget_next(n);
}

static void tell(struct native *n)
{
    known_ddl(n->ss->known);
    forget_next(n);
}

void native_note_schema(struct native *n, const struct sql_stmt *s)
{
    if (s->tx.isolation != SQL_ISO_UNSET)
        n->told.level = s->tx.isolation;
    if (repl_changes_names(s)) {
        names_mean_others(n);
        n->told.names = true;
    }
    if (!route_changes_schema(s))
        return;
    n->told.schema = true;
    tell(n);
}

void native_tell_schema(struct native *n)
{
    if (n->told.schema)
        tell(n);
}

void native_settle_schema(struct native *n)
{
    if (n->told.schema)
        tell(n);
    if (n->told.names)
        names_mean_others(n);
    n->told.level = SQL_ISO_UNSET;
    n->told.schema = false;
    n->told.names = false;
}

/* ---- whether it still holds ---- */

static struct native_table *used_table(struct native *n)
{
    struct list *node;

    LIST_FOREACH(node, &n->tables)
    {
        struct native_table *t = LIST_ENTRY(node, struct native_table, node);

        if (t->is_used)
            return t;
    }
    return NULL;
}

static void keep(struct native *n, const struct native_leg *leg)
{
    n->kept = (struct native_kept){.out = n->out,
        .ops = n->ops,
        .kind = leg->kind,
        .has_tuples = leg->has_tuples,
        .ntuples = leg->ntuples,
        .rows = leg->rows};
    memset(&n->out, 0, sizeof n->out);
    memset(&n->ops, 0, sizeof n->ops);
}

static void take_back(struct native *n, struct native_leg *leg)
{
    buf_free(&n->out);
    buf_free(&n->ops);
    n->out = n->kept.out;
    n->ops = n->kept.ops;
    leg->kind = n->kept.kind;
    leg->has_tuples = n->kept.has_tuples;
    leg->ntuples = n->kept.ntuples;
    leg->rows = n->kept.rows;
    memset(&n->kept, 0, sizeof n->kept);
}

bool native_table_to_verify(struct native *n, struct buf *sql)
{
    const struct native_table *t = used_table(n);

    if (t == NULL || n->changes == known_change(n->ss->known))
        return false;
    keep(n, &n->leg[n->main]);
    repl_table_sql(slice_of_str(t->name), sql);
    return true;
}

bool native_tables_are_same(struct native *n)
{
    struct native_leg *leg = &n->leg[n->main];
    struct native_table *t = used_table(n);
    bool are = leg->kind != 'E' && t->digest == hash_bytes(n->rows.data, n->rows.len, 0);

    take_back(n, leg);
    t->is_used = false;
    return are;
}
