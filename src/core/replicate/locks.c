/* SPDX-License-Identifier: PostgreSQL
 * locks.c: numbers that servers pick are the same everywhere when statements that make them run in
 * the same order everywhere: one lock, taken on the main node first. Runs in: workers. Pure. */
#include "config.h"

#include "replicate/locks.h"
#include "replicate/rewrite.h"

#include <string.h>

#include "base/arena.h"

/* The first key of an advisory lock of a sequence, whose oid is the second; documented. */
#define LOCK_CLASS 1886857071

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

uint32_t repl_sequences_to_lock(
    struct slice text, const struct sql_stmt *stmt, bool insert_lock, const struct repl_plan *plan)
{
    bool locks =
        (insert_lock && !says(text, stmt, "NO INSERT LOCK")) || says(text, stmt, "INSERT LOCK");

    return locks ? plan->nsequences : 0;
}

static void put_lock(struct slice sequence, struct buf *sql)
{
    buf_printf(sql,
        "pg_catalog.pg_advisory_xact_lock(%d, "
        "(%.*s)::pg_catalog.regclass::pg_catalog.oid::integer)",
        LOCK_CLASS, (int)sequence.n, sequence.p);
}

void repl_sequence_lock_sql(struct slice sequence, struct buf *sql)
{
    buf_printf(sql,
        "SELECT CASE WHEN pg_catalog.has_sequence_privilege(s, 'USAGE, SELECT') "
        "THEN pg_catalog.pg_sequence_last_value(s) END, "
        "pg_catalog.has_sequence_privilege(s, 'UPDATE') "
        "FROM (SELECT (%.*s)::pg_catalog.regclass AS s) q, ",
        (int)sequence.n, sequence.p);
    put_lock(sequence, sql);
}

static bool is_number(struct slice s)
{
    size_t i = s.n > 1 && s.p[0] == '-' ? 1 : 0;

    while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9')
        i++;
    return s.n > 0 && s.n <= 20 && i == s.n;
}

void repl_number_take(struct arena *a, const struct slice value[2], struct repl_number *number)
{
    number->last = slice_of(NULL, 0);
    number->is_told = true;
    number->may_set = value[1].n == 1 && value[1].p[0] == 't';
    if (value[0].p != NULL && is_number(value[0]))
        number->last = slice_of(arena_strndup(a, value[0].p, value[0].n), value[0].n);
}

/* Who may only use a sequence, as by GRANT USAGE, takes from it what it lacks. */
static void put_steps(const struct repl_number *number, struct buf *sql)
{
    const struct slice *s = &number->sequence;

    buf_printf(sql,
        "(SELECT pg_catalog.max(pg_catalog.nextval(s.seqrelid::pg_catalog.regclass)) "
        "FROM pg_catalog.pg_sequence s, pg_catalog.generate_series(1, (%.*s - coalesce("
        "pg_catalog.pg_sequence_last_value(s.seqrelid::pg_catalog.regclass), "
        "s.seqstart - s.seqincrement)) / s.seqincrement) "
        "WHERE s.seqrelid = (%.*s)::pg_catalog.regclass)",
        (int)number->last.n, number->last.p, (int)s->n, s->p);
}

/* Never back: what takes numbers without the lock, as a function does, may have taken them since
 * the main node was asked, and they would be given twice. */
static void put_set(const struct repl_number *number, struct buf *sql)
{
    struct slice s = number->sequence;
    struct slice last = number->last;

    buf_printf(sql,
        "(SELECT CASE WHEN v IS NULL OR v <> %.*s AND (v < %.*s) = "
        "((pg_catalog.pg_sequence_parameters((%.*s)::pg_catalog.regclass)).increment > 0) "
        "THEN pg_catalog.setval((%.*s)::pg_catalog.regclass, %.*s) END "
        "FROM pg_catalog.pg_sequence_last_value((%.*s)::pg_catalog.regclass) v)",
        (int)last.n, last.p, (int)last.n, last.p, (int)s.n, s.p, (int)s.n, s.p, (int)last.n, last.p,
        (int)s.n, s.p);
}

/* Under the lock of that node, which who was cut short may still hold there. */
void repl_numbers_sql(const struct repl_number *numbers, uint32_t n, struct buf *sql)
{
    const char *before = "SELECT ";

    for (uint32_t i = 0; i < n; i++) {
        const struct repl_number *number = &numbers[i];

        if (number->last.p == NULL)
            continue;
        buf_printf(sql, "%s", before);
        before = ", ";
        if (!number->may_set)
            put_steps(number, sql);
        else
            put_set(number, sql);
    }
    before = " FROM ";
    for (uint32_t i = 0; i < n; i++) {
        if (numbers[i].last.p == NULL)
            continue;
        buf_printf(sql, "%s", before);
        put_lock(numbers[i].sequence, sql);
        buf_printf(sql, " l%u", i);
        before = ", ";
    }
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
