/* SPDX-License-Identifier: PostgreSQL
 * reads.c: a write that chooses its rows by what it reads chooses the same ones everywhere when
 * nobody writes to the tables meanwhile, on the main node first, then on each of the others.
 * Runs in: workers. Pure. Why it is that lock: doc/internals/decisions/0031. */
#include "config.h"

#include "replicate/reads.h"

#include "base/arena.h"

static bool writes(const struct sql_stmt *s)
{
    switch (s->kind) {
    case SQL_INSERT:
    case SQL_UPDATE:
    case SQL_DELETE:
    case SQL_MERGE:
        return true;
    case SQL_SELECT:
    case SQL_VALUES:
        return (s->flags & (SQL_F_DML_IN_CTE | SQL_F_INTO)) != 0;
    case SQL_EXPLAIN:
        return (s->flags & SQL_F_ANALYZE) != 0 &&
               (s->inner != SQL_SELECT || (s->flags & SQL_F_DML_IN_CTE) != 0);
    case SQL_DDL:
        return s->verb == SQL_VERB_CREATE_AS;
    default:
        return false;
    }
}

static bool is_read(const struct sql_table *t)
{
    return (t->flags & (SQL_TABLE_TARGET | SQL_TABLE_CREATED | SQL_TABLE_DDL)) == 0 &&
           !slice_eq_str(t->schema, "pg_catalog") && !slice_eq_str(t->schema, "information_schema");
}

const struct sql_table *repl_reads_next(const struct sql_stmt *stmt, uint32_t *at)
{
    while (writes(stmt) && *at < stmt->ntables) {
        const struct sql_table *t = &stmt->tables[(*at)++];
        uint32_t i = 0;

        if (!is_read(t))
            continue;
        while (&stmt->tables[i] != t &&
               !(is_read(&stmt->tables[i]) && slice_eq(stmt->tables[i].name, t->name) &&
                   slice_eq(stmt->tables[i].schema, t->schema)))
            i++;
        if (&stmt->tables[i] == t)
            return t;
    }
    return NULL;
}

/* With a schema or without: who locks too much waits, who locks too little meets a deadlock. */
bool repl_reads_target(const struct sql_stmt *stmt, const struct sql_table *table)
{
    for (uint32_t i = 0; i < stmt->ntables; i++) {
        if ((stmt->tables[i].flags & SQL_TABLE_TARGET) != 0 &&
            slice_eq(stmt->tables[i].name, table->name))
            return true;
    }
    return false;
}

/* Tables, as LOCK has them. */
static void put_table(struct buf *sql, const struct sql_table *t)
{
    buf_printf(sql, "%s", sql->len == 0 ? "LOCK TABLE " : ", ");
    repl_table_name(t, sql);
}

static void keep_lock(struct arena *a, struct buf *sql, const char *mode, struct repl_plan *plan)
{
    if (sql->len > 0) {
        buf_printf(sql, " IN %s MODE", mode);
        plan->locks[plan->nlocks++] = slice_of(arena_strndup(a, sql->data, sql->len), sql->len);
    }
    buf_free(sql);
}

static void name_it(struct arena *a, const struct sql_table *t, struct repl_plan *plan)
{
    if (plan->differs.n == 0)
        plan->differs = slice_of_str(arena_printf(a, "reading %.*s", (int)t->name.n, t->name.p));
}

/* Alone: also against who chooses from it in the same way, as both would write to it then and wait
 * for each other; what a view stands on may be what is written to. */
enum repl_verdict repl_reads_plan(struct arena *a, const struct sql_stmt *stmt,
    const struct repl_catalog *catalog, enum repl_reads_rule rule, struct repl_plan *plan)
{
    struct buf alone = {0};
    struct buf share = {0};
    const struct sql_table *t;
    uint32_t at = 0;

    plan->nlocks = 0;
    while (rule != REPL_READS_SAME && (t = repl_reads_next(stmt, &at)) != NULL) {
        const struct repl_table *known = catalog->find(catalog->ctx, t);
        bool is_own = repl_reads_target(stmt, t);

        if (known == NULL) {
            buf_free(&alone);
            buf_free(&share);
            plan->table = t;
            return REPL_ASK;
        }
        if (!known->is_shared)
            continue;
        if (rule == REPL_READS_NAMED || !known->can_lock ||
            (rule == REPL_READS_TARGET && !is_own && !known->is_view))
            name_it(a, t, plan);
        else
            put_table(plan->skips_locked || is_own || known->is_view ? &alone : &share, t);
    }
    if (rule == REPL_READS_SAME && plan->skips_locked && plan->differs.n == 0)
        plan->differs = slice_of_str("SKIP LOCKED"); /* row locks are each node's own */
    keep_lock(a, &alone, plan->skips_locked ? "EXCLUSIVE" : "SHARE ROW EXCLUSIVE", plan);
    keep_lock(a, &share, "SHARE", plan);
    return plan->verdict;
}
