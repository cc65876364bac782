/* SPDX-License-Identifier: PostgreSQL
 * rewrite_table.c: what the rewriting has to know of a table, as a question to the catalogue.
 * Runs in: workers. */
#include "config.h"

#include "rewrite_int.h"

void repl_table_name(const struct sql_table *table, struct buf *out)
{
    if (table->schema.n > 0) {
        repl_put_name(out, table->schema);
        buf_put_byte(out, '.');
    }
    repl_put_name(out, table->name);
}

void repl_table_sql(struct slice relation, struct buf *sql)
{
    buf_printf(sql,
        "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), "
        "coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), (SELECT "
        "pg_catalog.pg_get_expr(t.typdefaultbin, 0) FROM pg_catalog.pg_type t WHERE t.oid "
        "OPERATOR(pg_catalog.=) a.atttypid)), a.attgenerated OPERATOR(pg_catalog.<>) '', "
        "a.attidentity OPERATOR(pg_catalog.<>) '' OR EXISTS (SELECT 1 FROM pg_catalog.pg_depend p "
        "LEFT JOIN pg_catalog.pg_proc f ON f.oid OPERATOR(pg_catalog.=) p.refobjid AND "
        "p.refclassid "
        "OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass LEFT JOIN "
        "pg_catalog.pg_class s ON s.oid OPERATOR(pg_catalog.=) p.refobjid AND p.refclassid "
        "OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND s.relkind "
        "OPERATOR(pg_catalog.=) 'S' WHERE p.classid OPERATOR(pg_catalog.=) "
        "'pg_catalog.pg_attrdef'::pg_catalog.regclass AND p.objid OPERATOR(pg_catalog.=) d.oid AND "
        "(f.provolatile OPERATOR(pg_catalog.=) 'v' AND f.proname OPERATOR(pg_catalog.!~) "
        "'^(uuid_generate|gen_random)' OR s.oid IS NOT NULL)) FROM "
        "pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid "
        "OPERATOR(pg_catalog.=) a.attrelid AND d.adnum OPERATOR(pg_catalog.=) a.attnum WHERE "
        "a.attrelid OPERATOR(pg_catalog.=) pg_catalog.to_regclass(");
    repl_put_literal(sql, relation);
    buf_printf(sql, ") AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped ORDER BY "
                    "a.attnum");
}

void repl_table_row(const struct slice *values, struct repl_column *column)
{
    column->name = values[0];
    column->type = values[1];
    column->def = values[2].p == NULL ? slice_of("", 0) : values[2];
    column->is_generated = slice_eq_str(values[3], "t");
    column->is_sequence = slice_eq_str(values[4], "t");
}
