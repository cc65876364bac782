/* SPDX-License-Identifier: PostgreSQL
 * locks.c: numbers that servers pick are the same everywhere when statements that make them run in
 * the same order everywhere: one lock, taken on the main node first. Runs in: workers. Pure. */
#include "config.h"

#include "replicate/locks.h"
#include "replicate/numbers.h"
#include "replicate/rewrite.h"

#include <string.h>

/* Oids of PostgreSQL's own functions, which never change. */
#define OID_LO_CREAT  957u
#define OID_LO_CREATE 715u

const struct sql_table *repl_insert_target(const struct sql_stmt *stmt)
{
    enum sql_kind kind = stmt->kind == SQL_EXPLAIN ? stmt->inner : stmt->kind;

    if (kind != SQL_INSERT && kind != SQL_COPY_FROM && (stmt->flags & SQL_F_DML_IN_CTE) == 0)
        return NULL;
    for (uint32_t i = 0; i < stmt->ntables; i++) {
        if ((stmt->tables[i].flags & SQL_TABLE_TARGET) != 0)
            return &stmt->tables[i];
    }
    return NULL;
}

static bool says(struct slice text, const struct sql_stmt *stmt, const char *word)
{
    struct slice hint = slice_of(text.p + stmt->hint.offset, stmt->hint.len);

    if (hint.n < 4 || memcmp(hint.p, "/*", 2) != 0)
        return false;
    hint = slice_of(hint.p + 2, hint.n - 4);
    while (hint.n > 0 && hint.p[0] == ' ')
        hint = slice_of(hint.p + 1, hint.n - 1);
    while (hint.n > 0 && hint.p[hint.n - 1] == ' ')
        hint.n--;
    return slice_ieq_str(hint, word);
}

bool repl_must_lock(struct slice text, const struct sql_stmt *stmt, bool insert_lock, bool serial)
{
    if (repl_insert_target(stmt) == NULL || says(text, stmt, "NO INSERT LOCK"))
        return false;
    return (insert_lock && serial) || says(text, stmt, "INSERT LOCK");
}

static uint32_t sequences_to_lock(
    struct slice text, const struct sql_stmt *stmt, bool insert_lock, const struct repl_plan *plan)
{
    bool locks =
        (insert_lock && !says(text, stmt, "NO INSERT LOCK")) || says(text, stmt, "INSERT LOCK");

    return locks ? plan->nsequences : 0;
}

static bool has_insert_lock(struct slice text, const struct sql_stmt *stmt,
    const struct repl_plan *plan, const struct repl_lock_rules *rules)
{
    return repl_must_lock(text, stmt, rules->insert_lock, plan->serial != NULL) &&
           !plan->serial_is_free;
}

static bool put_table_lock(struct slice text, const struct sql_stmt *stmt,
    const struct repl_plan *plan, const struct repl_lock_rules *rules, struct buf *sql)
{
    const struct sql_table *t = plan->serial == NULL ? repl_insert_target(stmt) : plan->serial;

    if (has_insert_lock(text, stmt, plan, rules))
        repl_lock_sql(slice_of(text.p + t->offset, t->len),
            rules->has_row_locks && !plan->serial_is_view, sql); /* a view's is its tables' */
    else if (stmt->kind == SQL_COPY_FROM && repl_insert_target(stmt) != NULL)
        repl_copy_lock_sql(slice_of(text.p + t->offset, t->len), sql);
    else
        return false;
    return true;
}

bool repl_lock_at(struct slice text, const struct sql_stmt *stmt, const struct repl_plan *plan,
    const struct repl_lock_rules *rules, uint32_t i, struct slice *sequence, struct buf *sql)
{
    uint32_t nsequences =
        stmt == NULL ? 0 : sequences_to_lock(text, stmt, rules->insert_lock, plan);
    uint32_t before = sql->len;

    if (i < nsequences) {
        *sequence = plan->sequences[i];
        repl_sequence_lock_sql(*sequence, sql);
        return true;
    }
    i -= nsequences;
    if (plan->makes_lobj && rules->lobj_lock_table[0] != '\0' && i-- == 0) {
        repl_lobj_lock_sql(slice_of_str(rules->lobj_lock_table), sql);
        return true;
    }
    if (stmt != NULL && put_table_lock(text, stmt, plan, rules, sql)) {
        if (i-- == 0)
            return true;
        sql->len = before;
    }
    if (stmt == NULL || i >= plan->nlocks)
        return false;
    buf_put(sql, plan->locks[i].p, plan->locks[i].n);
    return true;
}

/* One statement: the row is made, or the one that somebody else makes or has made is locked. It is
 * never changed, so that a transaction of an older snapshot gets its lock, too. */
void repl_lock_sql(struct slice relation, bool has_row_locks, struct buf *sql)
{
    if (!has_row_locks) {
        buf_printf(sql, "LOCK TABLE %.*s IN SHARE ROW EXCLUSIVE MODE", (int)relation.n, relation.p);
        return;
    }
    buf_printf(sql, "INSERT INTO pgpool_catalog.insert_lock (reloid) VALUES (");
    repl_put_literal(sql, relation);
    buf_printf(sql,
        "::pg_catalog.regclass) ON CONFLICT (reloid) DO UPDATE SET reloid = excluded.reloid "
        "WHERE false");
}

void repl_copy_lock_sql(struct slice relation, struct buf *sql)
{
    buf_printf(sql, "LOCK TABLE %.*s IN ROW EXCLUSIVE MODE", (int)relation.n, relation.p);
}

const struct sql_table *repl_row_locks(void)
{
    static const struct sql_table table = {
        .schema = {"pgpool_catalog", 14}, .name = {"insert_lock", 11}};

    return &table;
}

void repl_lobj_lock_sql(struct slice lock_table, struct buf *sql)
{
    buf_printf(sql, "LOCK TABLE %.*s IN SHARE ROW EXCLUSIVE MODE", (int)lock_table.n, lock_table.p);
}

static uint32_t get_u32(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static bool makes_lobj(struct slice body, size_t *arg)
{
    uint32_t function = body.n < 4 ? 0 : get_u32(body.p);
    size_t formats = body.n < 6 ? 0 : (size_t)(get_u32(body.p + 2) & 0xFFFF) * 2;

    *arg = 4 + 2 + formats + 2;
    if (function != OID_LO_CREAT && function != OID_LO_CREATE)
        return false;
    if (body.n != *arg + 4 + 4 + 2 || get_u32(body.p + *arg) != 4)
        return false;
    return function == OID_LO_CREAT || get_u32(body.p + *arg + 4) == 0;
}

bool repl_lobj_is_made(struct slice body)
{
    size_t arg;

    return makes_lobj(body, &arg);
}

/* Oid, formats of arguments, arguments with their lengths, format of the result. */
bool repl_lobj_function_call(struct slice body, uint32_t oid, struct buf *out)
{
    size_t arg;

    if (!makes_lobj(body, &arg))
        return false;
    buf_put_u32(out, OID_LO_CREATE);
    buf_put(out, body.p + 4, arg - 4);
    buf_put_u32(out, 4);
    buf_put_u32(out, oid);
    buf_put(out, body.p + body.n - 2, 2);
    return true;
}

bool repl_is_lobj_function(struct slice body)
{
    static const uint16_t oid[] = {
        OID_LO_CREATE, 952, 953, 954, 955, 956, OID_LO_CREAT, 958, 964, 1004, 3170, 3171, 3172};
    uint32_t function = body.n < 4 ? 0 : get_u32(body.p);

    for (unsigned i = 0; i < sizeof oid / sizeof oid[0]; i++) {
        if (oid[i] == function)
            return true;
    }
    return false;
}
