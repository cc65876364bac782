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

/* A view that can be updated takes the defaults of its table's columns where it has none of its
 * own. Which column it is stands in the view's rule (resorigtbl, resorigcol); where that cannot be
 * told, the table's columns count as those that the view does not show. */
#define C          "pg_catalog."
#define OP(op)     " OPERATOR(pg_catalog." op ") "
#define REG(name)  "'pg_catalog." name "'::pg_catalog.regclass"
#define RULE_OF(x) C "pg_rewrite r ON r.ev_class" OP("=") x " AND r.rulename" OP("=") "'_RETURN'"
#define ORIGIN                                                                                     \
    "':resno ([0-9]+) :resname [^:]+ :ressortgroupref [0-9]+ :resorigtbl ([0-9]+) "                \
    ":resorigcol ([0-9]+)'"

/* Whether the user may lock it against writers. Of a view PostgreSQL locks the tables, too, as its
 * owner; none that is the system's is to be. NULL: nobody else writes to it (a temporary table), or
 * in a way that has a lock of its own (a materialized view). */
#define MAY_LOCK "'UPDATE, DELETE, TRUNCATE')"
#define CAN_LOCK                                                                                                                        \
    "(SELECT CASE WHEN k.oid" OP("<") "16384 OR k.relkind" OP("=") "'m' OR k.relpersistence" OP("=") "'t' THEN NULL ELSE k.relkind" OP( \
        "=") "ANY ('{r,p,v}'::" C "\"char\"[]) AND " C "has_table_privilege(k.oid, " MAY_LOCK                                           \
             " AND NOT EXISTS (SELECT 1 FROM b JOIN " C                                                                                 \
             "pg_class u ON u.oid" OP("=") "b.oid WHERE u.relkind" OP(                                                                  \
                 "=") "ANY ('{r,p,v}'::" C                                                                                              \
                      "\"char\"[]) AND (u.oid" OP(                                                                                      \
                          "<") "16384 OR NOT " C                                                                                        \
                               "has_table_privilege(k.relowner, u.oid, " MAY_LOCK ")) END FROM " C                                      \
                               "pg_class k WHERE k.oid" OP("=") "t.oid)"

/* v: the columns and what they show, step by step; o: where the default of each is; b: what a view
 * stands on; c: all columns that are asked for, those that the view does not show last. */
static const char columns_sql[] =
    "v(att, depth, rel, col) AS (SELECT a.attnum, 0, a.attrelid, a.attnum FROM " C
    "pg_attribute a, t WHERE a.attrelid" OP("=") "t.oid AND a.attnum" OP(
        ">") "0 AND NOT a.attisdropped UNION ALL SELECT v.att, "
             "v.depth" OP("+") "1, x.rel, x.col FROM v "
                               "JOIN " RULE_OF("v.rel") " CROSS "
                                                        "JOIN "
                                                        "LATERAL "
                                                        "(SELECT"
                                                        " " C "min(m[2]"
                                                        ")::" C "oid AS "
                                                        "rel, " C "min(m[3]"
                                                        ")::" C "int2 AS "
                                                        "col "
                                                        "FROM " C "regexp_"
                                                        "matches("
                                                        "r.ev_"
                                                        "action:"
                                                        ":" C "text,"
                                                        " " ORIGIN ", 'g') "
                                                        "AS m "
                                                        "WHERE "
                                                        "m[1]" OP("=") "v.col::" C "text HAVING " C "count(*)" OP("=") "1 AND " C "min(m[2])" OP("<>") "'0') x), "
                                                                                                                                                       "o AS (SELECT DISTINCT ON (v.att) v.att, v.rel, v.col FROM v LEFT JOIN " C "pg_attrdef d ON d.adrelid" OP("=") "v.rel AND d.adnum" OP("=") "v.col ORDER BY v.att, d.oid IS NULL, CASE WHEN d.oid IS NULL THEN 0" OP("-") "v.depth ELSE v.depth END), "
                                                                                                                                                                                                                                                                                                                                                                                "b(oid) AS (SELECT r.ev_class FROM t JOIN " RULE_OF(
                                                                                                                                                                                                                                                                                                                                                                                    "t.oid") " UNION SELECT p.refobjid FROM b "
                                                                                                                                                                                                                                                                                                                                                                                             "JOIN " RULE_OF("b.oid") " JOIN " C
                                                                                                                                                                                                                                                                                                                                                                                                                      "pg_depend p ON p.classid" OP("=") REG("pg_rewrite") " AND p.objid" OP("=") "r.oid AND p.refclassid" OP(
                                                                                                                                                                                                                                                                                                                                                                                                                          "=")
                                                                                                                                                                                                                                                                                                                                                                                                                          REG("pg_class") "), "
                                                                                                                                                                                                                                                                                                                                                                                                                                          "c AS (SELECT o.att, o.rel, o.col FROM o UNION ALL SELECT NULL, a.attrelid, a.attnum FROM b, t, " C "pg_attribute a WHERE a.attrelid" OP("=") "b.oid AND b.oid" OP("<>") "t.oid AND a.attnum" OP(">") "0 AND NOT a.attisdropped AND NOT EXISTS (SELECT 1 FROM v WHERE v.rel" OP(
                                                                                                                                                                                                                                                                                                                                                                                                                                              "=") "a.attrelid AND v.col" OP("=") "a.attnum)) "
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  "SELECT CASE WHEN c.att IS NULL THEN '' ELSE n.attname END, " C "format_type(a.atttypid, a.atttypmod), coalesce(" C "pg_get_expr(d.adbin, d.adrelid), (SELECT " C "pg_get_expr(y.typdefaultbin, 0) FROM " C "pg_type y WHERE y.oid" OP(
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                      "=") "a.atttypid)), a.attgenerated" OP("<>") "'', a.attidentity" OP("<>") "'' OR EXISTS (SELECT 1 FROM " C "pg_depend p LEFT JOIN " C "pg_proc f ON f.oid" OP("=") "p.refobjid AND p.refclassid" OP("=") REG("pg_proc") " LEFT JOIN " C "pg_class s ON s.oid" OP("=") "p.refobjid AND p.refclassid" OP("=")
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                      REG("pg_class") " AND s.relkind" OP("=") "'S' WHERE p.classid" OP("=") REG("pg_attrdef") " AND p.objid" OP("=") "d.oid AND (f.provolatile" OP(
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                          "=") "'v' AND f.proname" OP("!~") "'^(uuid_generate|gen_random)' OR s.oid IS NOT NULL)), EXISTS (SELECT 1 FROM b), " CAN_LOCK
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            " FROM t CROSS "
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            "JOIN c JOIN " C
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            "pg_attribute a ON a.attrelid" OP(
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                "=") "c.rel AND a.attnum" OP("=") "c.col LEFT JOIN " C "pg_attribute n ON n.attrelid" OP("=") "t.oid AND n.attnum" OP("=") "c.att LEFT JOIN " C "pg_attrdef d ON d.adrelid" OP("=") "a.attrelid AND d.adnum" OP("=") "a.attnum ORDER BY c.att NULLS LAST, c.rel, c.col";

void repl_table_sql(struct slice relation, struct buf *sql)
{
    buf_printf(sql, "WITH RECURSIVE t(oid) AS (SELECT " C "to_regclass(");
    repl_put_literal(sql, relation);
    buf_printf(sql, ")::" C "oid), %s", columns_sql);
}

void repl_table_row(
    const struct slice *values, struct repl_column *columns, struct repl_table *table)
{
    struct repl_column *column = &columns[table->ncolumns + table->nhidden];

    if (values[0].n > 0)
        table->ncolumns++;
    else
        table->nhidden++;
    table->is_view = slice_eq_str(values[5], "t");
    table->can_lock = slice_eq_str(values[6], "t");
    table->is_shared = values[6].p != NULL;
    column->name = values[0];
    column->type = values[1];
    column->def = values[2].p == NULL ? slice_of("", 0) : values[2];
    column->is_generated = slice_eq_str(values[3], "t");
    column->is_sequence = slice_eq_str(values[4], "t");
}
