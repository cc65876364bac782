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

/* Sessions that have said the same, from the same beginning, share what the catalogue says. */
static void names_mean(struct native *n, struct slice said)
{
    n->salt = hash_bytes(said.p, said.n, n->salt) | 1;
    n->names = 0;
    forget_next(n);
}

static void names_are_own(struct native *n)
{
    uint64_t own = session_next_choice(n->ss->shared);

    names_mean(n, slice_of((const char *)&own, sizeof own));
}

void native_names_begin(struct native *n)
{
    static const char *const telling[] = {"search_path", "role", "options"};

    for (unsigned i = 0; i < sizeof telling / sizeof telling[0]; i++) {
        struct slice value = paramset_get(&n->params, slice_of_str(telling[i]));

        if (value.p == NULL)
            continue;
        names_mean(n, slice_of_str(telling[i]));
        names_mean(n, value);
    }
}

/* What a transaction says may be undone with it, but for what ends with it in any case. */
static void note_said(struct native *n, struct slice text, const struct sql_stmt *s)
{
    bool is_inside =
        n->wrapped || (n->unbegun >> n->main & 1) != 0 || n->leg[n->main].link->tx_status != 'I';
    bool is_set = s->kind == SQL_SET || s->kind == SQL_RESET || s->kind == SQL_OTHER;
    bool is_local = is_inside && s->kind == SQL_SET &&
                    (s->set.scope == SQL_SET_LOCAL || s->set.scope == SQL_SET_TRANSACTION ||
                        s->set.scope == SQL_SET_CONSTRAINTS);

    if (is_local && n->told.names < NAMES_LOCAL) {
        n->told.salt = n->salt;
        n->told.names = NAMES_LOCAL;
    } else if (!is_local) {
        n->told.names =
            is_set && !is_inside && n->told.names < NAMES_LOCAL ? NAMES_SAID : NAMES_OWN;
    }
    if (is_set)
        names_mean(n, slice_of(text.p + s->offset, s->len));
    else
        names_are_own(n);
}

static void names_end(struct native *n)
{
    if (n->told.names == NAMES_OWN || (n->told.names != NAMES_SAME && n->ex.failing)) {
        n->told.names = NAMES_OWN;
        names_are_own(n);
        return;
    }
    if (n->told.names == NAMES_LOCAL) {
        n->salt = n->told.salt;
        n->names = 0;
        forget_next(n);
    }
    n->told.names = NAMES_SAME;
}

void native_note_failed(struct native *n, enum sql_tx_op op)
{
    n->gate.has = 0; /* asked for once more when it goes on behind ROLLBACK TO */
    if (op == SQL_TX_ROLLBACK_TO)
        native_note_unseen(n);
    else if (op == SQL_TX_COMMIT || op == SQL_TX_ROLLBACK)
        names_end(n);
}

void native_note_unseen(struct native *n)
{
    n->told.names = NAMES_OWN;
    names_are_own(n);
}

static void tell(struct native *n)
{
    known_ddl(n->ss->known);
    forget_next(n);
}

void native_note_schema(struct native *n, struct slice text, const struct sql_stmt *s)
{
    if (s == NULL) {
        native_note_unseen(n);
    } else {
        if (s->tx.isolation != SQL_ISO_UNSET)
            n->told.level = s->tx.isolation;
        if (s->tx.op == SQL_TX_COMMIT || s->tx.op == SQL_TX_ROLLBACK)
            names_end(n);
        else if (repl_changes_names(s))
            note_said(n, text, s);
        else if ((s->flags & SQL_F_TEMP) != 0)
            native_note_unseen(n);
        if (!route_changes_schema(s))
            return;
    }
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
    native_tell_schema(n);
    names_end(n);
    n->told = (struct native_told){.level = SQL_ISO_UNSET};
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

void native_note(struct native *n, struct slice text, const struct sql_stmt *s)
{
    n->has_state = n->has_state || repl_leaves_state(s);
    native_note_schema(n, text, s);
    if (n->place.sets)
        native_note_unseen(n);
    if (s->kind == SQL_DEALLOCATE || s->verb == SQL_VERB_DISCARD)
        n->ex.forgets = s;
    if (s->kind == SQL_COMMIT || s->tx.op == SQL_TX_COMMIT)
        n->ex.is_commit = true;
    if (s->tx.op == SQL_TX_COMMIT || s->tx.op == SQL_TX_ROLLBACK)
        n->gate.has = 0; /* also AND CHAIN */
}
