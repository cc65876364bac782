/* SPDX-License-Identifier: PostgreSQL
 * locks.c: numbers that servers pick are the same everywhere when statements that make them run in
 * the same order everywhere: one lock, taken on the main node first. Runs in: workers. Pure. */
#include "config.h"

#include "replicate/locks.h"
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

void repl_lock_sql(struct slice relation, bool has_row_locks, struct buf *sql)
{
    if (!has_row_locks) {
        buf_printf(sql, "LOCK TABLE %.*s IN SHARE ROW EXCLUSIVE MODE", (int)relation.n, relation.p);
        return;
    }
    buf_printf(sql, "SELECT 1 FROM pgpool_catalog.insert_lock WHERE reloid = ");
    repl_put_literal(sql, relation);
    buf_printf(sql, "::pg_catalog.regclass FOR UPDATE");
}

void repl_copy_lock_sql(struct slice relation, struct buf *sql)
{
    buf_printf(sql, "LOCK TABLE %.*s IN ROW EXCLUSIVE MODE", (int)relation.n, relation.p);
}

void repl_lock_row_sql(struct slice relation, struct buf *sql)
{
    buf_printf(sql, "INSERT INTO pgpool_catalog.insert_lock VALUES (");
    repl_put_literal(sql, relation);
    buf_printf(sql, "::pg_catalog.regclass) ON CONFLICT DO NOTHING");
}

const char *repl_has_row_locks_sql(void)
{
    return "SELECT pg_catalog.to_regclass('pgpool_catalog.insert_lock') IS NOT NULL";
}

/* The first argument is a constant that leaves the number to the server; what follows it. */
static bool picks_number(struct slice args, const char *const *constant, struct slice *rest)
{
    size_t n = 0;

    while (args.n > 0 && (args.p[0] == ' ' || args.p[0] == '('))
        args = slice_of(args.p + 1, args.n - 1);
    while (n < args.n && args.p[n] != ',' && args.p[n] != ')')
        n++;
    *rest = slice_of(args.p + n, args.n - n);
    while (n > 0 && args.p[n - 1] == ' ')
        n--;
    for (; *constant != NULL; constant++) {
        if (slice_eq_str(slice_of(args.p, n), *constant))
            return true;
    }
    return false;
}

uint32_t repl_lobj_calls(
    struct slice text, const struct sql_stmt *stmt, struct repl_lobj *out, uint32_t max)
{
    static const char *const zero[] = {"0", "0::oid", "'0'", NULL};
    uint32_t n = 0;

    for (uint32_t i = 0; i < stmt->nfuncs; i++) {
        const struct sql_func *f = &stmt->funcs[i];
        struct repl_lobj c = {f->offset, f->call_len, slice_of(")", 1), "lo_create"};
        struct slice args = slice_of(text.p + f->offset + f->len, f->call_len - f->len);

        if (f->schema.n != 0 && !slice_eq_str(f->schema, "pg_catalog"))
            continue;
        if (slice_eq_str(f->name, "lo_import"))
            return UINT32_MAX;
        if (slice_eq_str(f->name, "lo_create")) {
            if (!picks_number(args, zero, &c.rest))
                continue;
        } else if (slice_eq_str(f->name, "lo_from_bytea")) {
            c.call = "lo_from_bytea";
            if (!picks_number(args, zero, &c.rest))
                continue;
        } else if (!slice_eq_str(f->name, "lo_creat")) {
            continue;
        }
        if (n == max)
            return UINT32_MAX;
        out[n++] = c;
    }
    for (uint32_t i = 1; i < n; i++) { /* calls are noted inside out */
        for (uint32_t k = i; k > 0 && out[k].offset < out[k - 1].offset; k--) {
            struct repl_lobj swap = out[k];

            out[k] = out[k - 1];
            out[k - 1] = swap;
        }
    }
    for (uint32_t i = 1; i < n; i++) {
        if (out[i].offset < out[i - 1].offset + out[i - 1].len)
            return UINT32_MAX;
    }
    return n;
}

void repl_lobj_text(struct slice text, const struct sql_stmt *stmt, const struct repl_lobj *calls,
    uint32_t n, uint32_t first, struct buf *sql)
{
    uint32_t at = stmt->offset;

    for (uint32_t i = 0; i < n; i++) {
        buf_put(sql, text.p + at, calls[i].offset - at);
        buf_printf(sql, "pg_catalog.%s(%u%.*s", calls[i].call, first + i, (int)calls[i].rest.n,
            calls[i].rest.p);
        at = calls[i].offset + calls[i].len;
    }
    buf_put(sql, text.p + at, stmt->offset + stmt->len - at);
}

void repl_lobj_sql(struct slice lock_table, struct buf *sql)
{
    buf_printf(sql,
        "LOCK TABLE %.*s IN SHARE ROW EXCLUSIVE MODE;SELECT GREATEST(pg_catalog.max(oid::int8) + "
        "1, 16384) FROM pg_catalog.pg_largeobject_metadata",
        (int)lock_table.n, lock_table.p);
}

static uint32_t get_u32(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Oid, formats of arguments, arguments with their lengths, format of the result. */
bool repl_lobj_function_call(struct slice body, uint32_t oid, struct buf *out)
{
    uint32_t function = body.n < 4 ? 0 : get_u32(body.p);
    size_t formats = body.n < 6 ? 0 : (size_t)(get_u32(body.p + 2) & 0xFFFF) * 2;
    size_t arg = 4 + 2 + formats + 2;

    if (function != OID_LO_CREAT && function != OID_LO_CREATE)
        return false;
    if (body.n != arg + 4 + 4 + 2 || get_u32(body.p + arg) != 4)
        return false;
    if (function == OID_LO_CREATE && get_u32(body.p + arg + 4) != 0)
        return false; /* the client picks it */
    buf_put_u32(out, OID_LO_CREATE);
    buf_put(out, body.p + 4, arg - 4);
    buf_put_u32(out, 4);
    buf_put_u32(out, oid);
    buf_put(out, body.p + body.n - 2, 2);
    return true;
}
