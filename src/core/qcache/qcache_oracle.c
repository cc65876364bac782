/* SPDX-License-Identifier: PostgreSQL
 * qcache_oracle.c: the question to the catalogue about the names of a statement. Runs in: workers.
 * Pure.
 *
 * Rows of the answer: kind, number of the name, a, b, name.
 *   r  a relation that is read for table `number`: its views', its policies' and its heirs' count;
 *      a: its OID, b: ROW_*, name: with its schema
 *   w  a relation whose rows change when those of table `number` do: partitions, those they belong
 *      to, heirs, what foreign keys cascade to, what a view is of; a: its OID
 *   x  table `number` does more when it is written than `w` says: triggers, rules, defaults
 *   f  a function that call `number` may mean; a: FUNC_*, name: without its schema
 *   g  one that is not immutable and stands in a view or policy that is read; as f
 *   k  a column whose values tell rows of table `number` apart; a: the table's OID, b: its type +
 *      its number * 2^32 + COLUMN_TRIGGERS when a write may change other rows of the table, too: it
 *      has triggers, or refers to itself; + COLUMN_PARTITIONED; name: its own
 *   d  the database; a: DB_*
 *
 * Everything is qualified, and no literal has a backslash in it: no setting of a client but
 * search_path changes what it means. Views and policies are looked through by the text of their
 * trees, as in route_oracle.c. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "qcache_int.h"

#define EQ      " OPERATOR(pg_catalog.=) "
#define NE      " OPERATOR(pg_catalog.<>) "
#define GE      " OPERATOR(pg_catalog.>=) "
#define OR_BIT  " OPERATOR(pg_catalog.|) "
#define CH(c)   "CAST('" c "' AS pg_catalog.\"char\")"
#define OID(x)  "CAST(" x " AS pg_catalog.oid)"
#define TEXT(x) "CAST(" x " AS pg_catalog.text)"
#define INT8(x) "CAST(" x " AS pg_catalog.int8)"
/* What initdb made has lower numbers. */
#define IS_OF_USER(x) x GE OID("16384")
#define IS_OF_EXTENSION(class, x)                                                                  \
    "EXISTS (SELECT FROM pg_catalog.pg_depend e WHERE e.classid" EQ                                \
    "CAST('pg_catalog." class "' AS pg_catalog.regclass) AND e.objid" EQ x                         \
                              " AND e.deptype" EQ CH("e") ")"

static void put_str(struct buf *out, const char *s)
{
    buf_put(out, s, strlen(s));
}

/* $q0$name$q0$, with a tag that the name does not hold. */
static void put_literal(struct buf *out, struct slice s)
{
    char tag[16];
    unsigned k = 0;

    do
        snprintf(tag, sizeof tag, "$q%u", k++);
    while (s.n > 0 && memmem(s.p, s.n, tag, strlen(tag)) != NULL);
    buf_printf(out, "%s$%.*s%s$", tag, (int)s.n, s.n == 0 ? "" : s.p, tag);
}

/* --- the question as bytes --- */

static void put_name(struct buf *out, struct slice s)
{
    buf_put(out, s.p, s.n);
    buf_put_byte(out, '\0');
}

static int add_table(struct buf *out, const struct sql_table *t, unsigned *n)
{
    const uint32_t named = SQL_TABLE_TARGET | SQL_TABLE_DDL;

    if (++*n > QCACHE_MAX_NAMES)
        return -1;
    buf_put_byte(out, (t->flags & SQL_TABLE_CREATED) != 0 ? QCACHE_ASK_CREATED
                      : (t->flags & named) != 0           ? QCACHE_ASK_WRITTEN
                                                          : QCACHE_ASK_READ);
    put_name(out, t->schema);
    put_name(out, t->name);
    return 0;
}

static int add_function(struct buf *out, const struct sql_func *f, unsigned *n)
{
    if (++*n > QCACHE_MAX_NAMES)
        return -1;
    buf_put_byte(out, QCACHE_ASK_FUNCTION);
    buf_put_u16(out, (f->flags & SQL_FUNC_FIELD) != 0 ? QCACHE_ASK_FIELD | 1
                     : f->nargs > INT16_MAX           ? INT16_MAX
                                                      : (uint16_t)f->nargs);
    put_name(out, f->schema);
    put_name(out, f->name);
    return 0;
}

int qcache_question(const struct sql_facts *facts, struct buf *out)
{
    unsigned n = 0;
    uint32_t i;
    uint32_t j;

    for (i = 0; i < facts->nstmts; i++) {
        const struct sql_stmt *s = &facts->stmts[i];

        for (j = 0; j < s->ntables; j++)
            if (add_table(out, &s->tables[j], &n) == -1)
                return -1;
        for (j = 0; j < s->nfuncs; j++)
            if (add_function(out, &s->funcs[j], &n) == -1)
                return -1;
    }
    return 0;
}

static struct slice take_name(const char **p)
{
    struct slice s = slice_of_str(*p);

    *p += s.n + 1;
    return s;
}

bool qcache_question_next(struct slice question, const char **at, struct qcache_name *out)
{
    if (*at == NULL)
        *at = question.p;
    if (*at >= question.p + question.n)
        return false;
    out->kind = *(*at)++;
    out->nargs = 0;
    out->is_field = false;
    if (out->kind == QCACHE_ASK_FUNCTION) {
        out->nargs = (unsigned)((unsigned char)(*at)[0] << 8 | (unsigned char)(*at)[1]);
        out->is_field = (out->nargs & QCACHE_ASK_FIELD) != 0;
        out->nargs &= ~QCACHE_ASK_FIELD;
        *at += 2;
    }
    out->schema = take_name(at);
    out->name = take_name(at);
    return true;
}

/* --- and as SQL --- */

static void put_tables(struct slice question, struct buf *out)
{
    const char *at = NULL;
    struct qcache_name n;
    int i = 0;

    put_str(out, "WITH RECURSIVE q(i, w, s, n) AS (VALUES (-1, false, " TEXT(
                     "''") ", CAST('' AS pg_catalog.name))");
    while (qcache_question_next(question, &at, &n)) {
        if (n.kind == QCACHE_ASK_FUNCTION)
            continue;
        buf_printf(out, ", (%d, %s, ", i++, n.kind != QCACHE_ASK_READ ? "true" : "false");
        put_literal(out, n.schema);
        put_str(out, ", ");
        put_literal(out, n.name);
        put_str(out, ")");
    }
    put_str(out, "), ");
}

static void put_functions(struct slice question, struct buf *out)
{
    const char *at = NULL;
    struct qcache_name n;
    int i = 0;

    put_str(out, "fq(i, s, n, a) AS (VALUES (-1, " TEXT("''") ", CAST('' AS pg_catalog.name), 0)");
    while (qcache_question_next(question, &at, &n)) {
        if (n.kind != QCACHE_ASK_FUNCTION)
            continue;
        buf_printf(out, ", (%d, ", i++);
        put_literal(out, n.schema);
        put_str(out, ", ");
        put_literal(out, n.name);
        buf_printf(out, ", %u)", n.nargs);
    }
    put_str(out, "), ");
}

#define TREE_OF_C                                                                                  \
    "pg_catalog.concat((SELECT pg_catalog.string_agg(" TEXT(                                       \
        "r.ev_action") ", '') "                                                                    \
                       "FROM pg_catalog.pg_rewrite r WHERE r.ev_class" EQ                          \
                       "c.oid AND c.relkind" EQ CH(                                                \
                           "v") "), "                                                              \
                                "(SELECT pg_catalog.string_agg(" TEXT(                             \
                                    "k.polqual") ", '') "                                          \
                                                 "FROM pg_catalog.pg_policy k WHERE k.polrelid" EQ \
                                                 "c.oid AND c.relrowsecurity AND k.polcmd" EQ      \
                                                 "ANY (ARRAY[" CH("r") ", " CH("*") "])))"
#define C_HAS_TREE     "(c.relkind" EQ CH("v") " OR c.relrowsecurity)"
#define FOUND(t, what) "pg_catalog.regexp_matches(" t ", ':" what " ([0-9]+)', 'g') m(x)"

static const char relations_sql[] =
    "rel(i, w, oid) AS ("
    "SELECT q.i, q.w, c.oid FROM q JOIN pg_catalog.pg_class c ON c.relname" EQ "q.n "
    "WHERE q.s" EQ "'' AND pg_catalog.pg_table_is_visible(c.oid) UNION ALL "
    "SELECT q.i, q.w, c.oid FROM q JOIN pg_catalog.pg_namespace s ON s.nspname" EQ
    "CAST(q.s AS pg_catalog.name) OR (q.s" EQ "'pg_temp' AND s.oid" EQ
    "pg_catalog.pg_my_temp_schema()) JOIN pg_catalog.pg_class c ON c.relname" EQ
    "q.n AND c.relnamespace" EQ "s.oid WHERE q.s" NE "''), "
    "tree(i, oid, t) AS ("
    "SELECT rel.i, c.oid, " TREE_OF_C " FROM rel JOIN pg_catalog.pg_class c ON c.oid" EQ
    "rel.oid AND " C_HAS_TREE " UNION "
    "SELECT tree.i, c.oid, " TREE_OF_C
    " FROM tree, LATERAL " FOUND("tree.t", "relid") " JOIN pg_catalog.pg_class c ON c.oid" EQ OID(
        "m.x[1]") " AND " C_HAS_TREE "), "
                  "reads(i, oid) AS (SELECT i, oid FROM rel UNION "
                  "SELECT tree.i, " OID("m.x[1]") " FROM tree, LATERAL " FOUND("tree.t",
                      "relid") "), "
                               "down(i, oid) AS (SELECT i, oid FROM reads UNION "
                               "SELECT down.i, h.inhrelid FROM down JOIN pg_catalog.pg_inherits h "
                               "ON h.inhparent" EQ "down.oid), "
                               "wr(i, oid) AS (SELECT i, oid FROM rel WHERE w UNION "
                               "SELECT wr.i, x.oid FROM wr, LATERAL ("
                               "SELECT h.inhrelid FROM pg_catalog.pg_inherits h WHERE "
                               "h.inhparent" EQ "wr.oid UNION ALL "
                               "SELECT h.inhparent FROM pg_catalog.pg_inherits h WHERE "
                               "h.inhrelid" EQ "wr.oid UNION ALL "
                               "SELECT k.conrelid FROM pg_catalog.pg_constraint k WHERE "
                               "k.confrelid" EQ "wr.oid AND k.contype" EQ
                                   CH("f") " AND (k.confdeltype" EQ "ANY (ARRAY[" CH("c") ", " CH("n") ", " CH(
                                       "d") "]) OR k.confupdtype" EQ
                                            "ANY (ARRAY[" CH("c") ", " CH("n") ", " CH(
                                                "d") "])) UNION ALL "
                                                     "SELECT " OID(
                                                         "m.x[1]") " FROM pg_catalog.pg_rewrite r "
                                                                   "JOIN pg_catalog.pg_class c ON "
                                                                   "c.oid" EQ
                                                                   "r.ev_class AND c.relkind" EQ
                                                                       CH("v") ", LATERAL " FOUND(
                                                                           TEXT("r.ev_action"),
                                                                           "relid") " WHERE "
                                                                                    "r.ev_class" EQ
                                                                                    "wr.oid"
                                                                                    ") x(oid) "
                                                                                    "WHERE x.oid" NE
                                                                                        OID("0") ")"
                                                                                                 ","
                                                                                                 " ";

/* Types of the columns of what is read, and those that types of users are made of. */
static const char types_sql[] =
    "ty(oid, t) AS ("
    "SELECT r.oid, a.atttypid FROM (SELECT DISTINCT oid FROM reads) r JOIN pg_catalog.pg_attribute "
    "a ON a.attrelid OPERATOR(pg_catalog.=) r.oid AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT "
    "a.attisdropped UNION SELECT ty.oid, x.t FROM ty JOIN pg_catalog.pg_type y ON y.oid "
    "OPERATOR(pg_catalog.=) ty.t AND y.oid OPERATOR(pg_catalog.>=) CAST('16384' AS pg_catalog.oid)"
    ", LATERAL (SELECT y.typelem UNION ALL SELECT y.typbasetype UNION ALL SELECT a.atttypid FROM "
    "pg_catalog.pg_attribute a WHERE a.attrelid OPERATOR(pg_catalog.=) y.typrelid AND a.attnum "
    "OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped) x(t)), ";

#define AS_TEXT(...)   #__VA_ARGS__
#define LIST_TEXT(...) AS_TEXT(__VA_ARGS__)

/* In a tree: a value of such a type, or a column of the system's that moves by itself. */
#define TREE_MOVES                                                                                 \
    "t OPERATOR(pg_catalog.~) pg_catalog.concat('type (', pg_catalog.replace('" LIST_TEXT(         \
        QCACHE_MOVING_TYPES) "', ', ', '|'), ') |:varattno -[1345] ')"
#define DOWN_MOVES                                                                                 \
    "CASE WHEN down.oid" EQ "ANY (ARRAY(SELECT ty.oid FROM ty WHERE CAST(ty.t AS "                 \
    "pg_catalog.int8)" EQ "ANY (ARRAY[" LIST_TEXT(QCACHE_MOVING_TYPES) "]))) THEN 128 ELSE 0 END"

/* Functions that a call may mean, and those that stand in trees; an aggregate is as volatile as
 * what it calls for each row. */
static const char functions_sql[] =
    "func(i, f) AS ("
    "SELECT fq.i, p.oid FROM fq JOIN pg_catalog.pg_proc p ON p.proname" EQ "fq.n "
    "LEFT JOIN pg_catalog.pg_aggregate g ON g.aggfnoid" EQ "p.oid "
    "WHERE CASE WHEN fq.s" EQ "'' THEN pg_catalog.pg_function_is_visible(p.oid) "
    "ELSE EXISTS (SELECT FROM pg_catalog.pg_namespace s WHERE s.oid" EQ
    "p.pronamespace AND s.nspname" EQ "CAST(fq.s AS pg_catalog.name)) END "
    "AND (fq.a OPERATOR(pg_catalog.<=) p.pronargs OR p.provariadic" NE OID(
        "0") ") "
             "AND (fq.a" GE "(p.pronargs OPERATOR(pg_catalog.-) p.pronargdefaults) "
             "OR (p.provariadic" NE OID(
                 "0") " AND fq.a" GE "(p.pronargs OPERATOR(pg_catalog.-) "
                      "p.pronargdefaults OPERATOR(pg_catalog.-) 1)) OR g.aggkind" NE CH(
                          "n") ")), "
                               "treefn(i, f) AS ("
                               "SELECT tree.i, " OID("m.x[1]") " FROM tree, LATERAL " FOUND(
                                   "tree.t",
                                   "(?:funcid|aggfnoid|winfnoid)") " UNION SELECT tree.i, " OID("o."
                                                                                                "op"
                                                                                                "rc"
                                                                                                "od"
                                                                                                "e") " FROM tree, LATERAL " FOUND("tree.t",
                                   "opno") " JOIN pg_catalog.pg_operator o ON o.oid" EQ
                                   OID("m.x[1]") "), "
                                                 "vol(kind, i, name, a) AS ("
                                                 "SELECT u.kind, u.i, " TEXT(
                                                     "p.proname") ", CASE WHEN " CH("v") EQ
    "ANY (ARRAY[p.provolatile, t.provolatile, l.provolatile]) THEN CASE WHEN " IS_OF_USER(
        "p.oid") " THEN 5 ELSE 1 END WHEN " CH("s") EQ
    "ANY (ARRAY[p.provolatile, t.provolatile, l.provolatile]) THEN CASE WHEN " IS_OF_USER(
        "p.oid") " THEN 6 ELSE 2 END ELSE 0 END "
                 "FROM (SELECT 'f', i, f FROM func UNION ALL SELECT 'g', i, f FROM treefn) u(kind, "
                 "i, f) "
                 "JOIN pg_catalog.pg_proc p ON p.oid" EQ "u.f "
                 "LEFT JOIN pg_catalog.pg_aggregate g ON g.aggfnoid" EQ "p.oid "
                 "LEFT JOIN pg_catalog.pg_proc t ON t.oid" EQ "g.aggtransfn "
                 "LEFT JOIN pg_catalog.pg_proc l ON l.oid" EQ "g.aggfinalfn), ";

/* A trigger's function that changes nothing but the row at hand, as far as its text tells: it has
 * no word of a statement in it, and calls little. */
static const char triggers_sql[] =
    "more(i) AS ("
    "SELECT wr.i FROM wr JOIN pg_catalog.pg_trigger t ON t.tgrelid" EQ
    "wr.oid AND NOT t.tgisinternal AND t.tgenabled" NE CH(
        "D") " JOIN pg_catalog.pg_proc p ON p.oid" EQ
             "t.tgfoid JOIN pg_catalog.pg_language l ON l.oid" EQ
             "p.prolang WHERE NOT (p.oid OPERATOR(pg_catalog.<) " OID(
                 "16384") ") AND NOT (l.lanname" EQ "CAST('plpgsql' AS pg_catalog.name) AND NOT "
                          "p.prosrc OPERATOR(pg_catalog.~*) "
                          "'[[:<:]](insert|update|delete|merge|truncate|copy|perform|call|execute|"
                          "select|create|alter|"
                          "drop|refresh|with|open|fetch|return[[:space:]]+query|for)[[:>:]]' AND "
                          "NOT EXISTS (SELECT FROM "
                          "pg_catalog.regexp_matches(p.prosrc, "
                          "'([^] !#%-,/:-@[^`{-~[:space:]-]+)[[:space:]]*[(]', 'g') m(x) WHERE "
                          "pg_catalog.lower(m.x[1])" NE
                          "ALL (ARRAY['now', 'clock_timestamp', 'coalesce', 'lower', "
                          "'upper', 'btrim', 'trim', 'to_tsvector', 'setweight', "
                          "'gen_random_uuid', 'md5', 'nextval', "
                          "'length', 'greatest', 'least', 'nullif', 'date_trunc', 'round', 'if', "
                          "'and', 'or', 'not']))) "
                          "UNION ALL SELECT wr.i FROM wr JOIN pg_catalog.pg_rewrite r ON "
                          "r.ev_class" EQ "wr.oid AND r.ev_type" NE CH(
                              "1") " UNION ALL SELECT wr.i FROM wr JOIN pg_catalog.pg_attrdef a ON "
                                   "a.adrelid" EQ "wr.oid, LATERAL " FOUND(TEXT("a.adbin"),
                                       "funcid") " JOIN pg_catalog.pg_proc p ON p.oid" EQ
                                       OID("m.x[1]") " WHERE p.provolatile" EQ
                                           CH("v") " AND " IS_OF_USER(
                                               "p.oid") " AND NOT " IS_OF_EXTENSION("pg_proc",
                                               "p.oid") ") ";

#define RELKIND_IS(k, bit) "CASE WHEN c.relkind" EQ CH(k) " THEN " bit " ELSE 0 END"

static const char rows_sql[] = "SELECT 'r' AS kind, down.i, " INT8(
    "down.oid") " AS a, "
                "CASE WHEN s.nspname" EQ "ANY (ARRAY[CAST('pg_catalog' AS pg_catalog.name), "
                "CAST('information_schema' AS pg_catalog.name), CAST('pg_toast' AS "
                "pg_catalog.name)]) "
                "THEN 1 ELSE 0 END" OR_BIT
                "CASE WHEN c.relpersistence" EQ CH("t") " THEN 2 WHEN c.relpersistence" EQ CH(
                    "u") " THEN 4 ELSE 0 END" OR_BIT RELKIND_IS("f", "8")
                    OR_BIT RELKIND_IS("S", "16") OR_BIT RELKIND_IS("v", "32") OR_BIT
    "CASE WHEN EXISTS (SELECT FROM rel WHERE rel.i" EQ "down.i AND rel.oid" EQ
    "down.oid) THEN 64 ELSE 0 END" OR_BIT DOWN_MOVES " AS b, "
    "pg_catalog.concat(s.nspname, '.', c.relname) AS name "
    "FROM down JOIN pg_catalog.pg_class c ON c.oid" EQ
    "down.oid JOIN pg_catalog.pg_namespace s ON s.oid" EQ "c.relnamespace UNION ALL "
    "SELECT 'w', i, " INT8(
        "oid") ", 0, '' FROM wr UNION ALL "
               "SELECT 'x', i, 0, 0, '' FROM more UNION ALL "
               "SELECT kind, i, a, 0, name FROM vol WHERE kind" EQ "'f' OR a" NE "0 UNION ALL "
               "SELECT 'g', i, 1, 0, 'time' FROM tree WHERE t OPERATOR(pg_catalog.~) "
               "'SQLVALUEFUNCTION (?!:op (9|1[0-2]) )|TABLESAMPLECLAUSE|COERCEVIAIO.*:resulttype "
               "(1082|1083|1114|1184|1266) ' OR " TREE_MOVES " "
               "UNION ALL SELECT 'd', 0, "
               "CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p "
               "ON "
               "p.oid" EQ "o.oprcode WHERE p.provolatile" NE CH("i") " AND " IS_OF_USER(
                   "p.oid") " AND NOT " IS_OF_EXTENSION("pg_proc",
                   "p.oid") ") THEN 1 ELSE 0 END" OR_BIT
                            "CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_cast k JOIN "
                            "pg_catalog.pg_proc p ON p.oid" EQ
                            "k.castfunc WHERE p.provolatile" NE CH("i") " AND " IS_OF_USER(
                                "p.oid") " AND NOT " IS_OF_EXTENSION("pg_proc",
                                "p.oid") ") THEN 1 ELSE 0 END" OR_BIT
                                         "CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_proc p JOIN "
                                         "pg_catalog.pg_type y ON y.oid" EQ
                                         "p.proargtypes[0] WHERE p.pronargs" GE
                                         "1 AND (p.pronargs OPERATOR(pg_catalog.-) "
                                         "p.pronargdefaults) OPERATOR(pg_catalog.<=) "
                                         "1 AND p.provolatile" NE CH("i") " AND y.typtype" EQ
                                             CH("c") " AND " IS_OF_USER(
                                                 "p.oid") ") THEN 1 ELSE 0 END" OR_BIT "CASE WHEN "
                                                          "pg_catalog.current_setting('default_"
                                                          "transaction_isolation')" EQ
                                                          "ANY (ARRAY['read committed', 'read "
                                                          "uncommitted']) THEN 0 ELSE 2 END, 0, ''";

/* What is written OPERATOR(...) binds from left to right, whatever it is. Types as cache_value.h
 * has them, collations that are deterministic whatever the version of the server (none, the
 * database's, "C", "POSIX"). Nothing is computed from other columns, and "=" is the server's own.
 */
static const char columns_sql[] =
    " UNION ALL SELECT 'k', rel.i, CAST(rel.oid AS pg_catalog.int8), "
    "CAST(a.atttypid AS pg_catalog.int8) OPERATOR(pg_catalog.+) (CAST(a.attnum AS pg_catalog.int8) "
    "OPERATOR(pg_catalog.*) 4294967296) OPERATOR(pg_catalog.+) CASE WHEN EXISTS (SELECT FROM "
    "pg_catalog.pg_trigger t WHERE t.tgrelid OPERATOR(pg_catalog.=) rel.oid AND NOT t.tgisinternal "
    "AND t.tgenabled OPERATOR(pg_catalog.<>) CAST('D' AS pg_catalog.\"char\")) OR EXISTS (SELECT "
    "FROM pg_catalog.pg_constraint k WHERE k.confrelid OPERATOR(pg_catalog.=) rel.oid AND "
    "k.conrelid OPERATOR(pg_catalog.=) rel.oid AND k.contype OPERATOR(pg_catalog.=) "
    "CAST('f' AS pg_catalog.\"char\")) THEN 281474976710656 ELSE 0 END "
    "OPERATOR(pg_catalog.+) CASE WHEN c.relkind OPERATOR(pg_catalog.=) "
    "CAST('p' AS pg_catalog.\"char\") THEN 562949953421312 ELSE 0 END, "
    "CAST(a.attname AS pg_catalog.text) FROM rel JOIN "
    "pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) rel.oid AND c.relkind "
    "OPERATOR(pg_catalog.=) ANY (ARRAY[CAST('r' AS pg_catalog.\"char\"), "
    "CAST('p' AS pg_catalog.\"char\")]) AND NOT c.relrowsecurity JOIN "
    "pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) rel.oid AND a.attnum "
    "OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped WHERE CAST(a.atttypid AS pg_catalog.int8) "
    "OPERATOR(pg_catalog.=) ANY (ARRAY[16, 20, 21, 23, 25, 1043, 1082, 2950]) AND "
    "CAST(a.attcollation AS pg_catalog.int8) OPERATOR(pg_catalog.=) ANY (ARRAY[0, 100, 950, 951]) "
    "AND NOT EXISTS (SELECT FROM pg_catalog.pg_attrdef d WHERE d.adrelid OPERATOR(pg_catalog.=) "
    "rel.oid AND d.adnum OPERATOR(pg_catalog.=) a.attnum AND "
    "pg_catalog.strpos(CAST(d.adbin AS pg_catalog.text), '{VAR ') OPERATOR(pg_catalog.>) 0) AND "
    "NOT EXISTS (SELECT FROM pg_catalog.pg_operator o WHERE o.oprname OPERATOR(pg_catalog.=) "
    "CAST('=' AS pg_catalog.name) AND o.oprleft OPERATOR(pg_catalog.=) a.atttypid AND o.oid "
    "OPERATOR(pg_catalog.>=) CAST('16384' AS pg_catalog.oid))";

unsigned qcache_question_tables(struct slice question)
{
    const char *at = NULL;
    struct qcache_name n;
    unsigned tables = 0;

    while (qcache_question_next(question, &at, &n))
        tables += n.kind != QCACHE_ASK_FUNCTION;
    return tables;
}

/* Rows are told apart of what one statement writes alone, or of all that is read. */
static bool asks_columns(struct slice question)
{
    const char *at = NULL;
    struct qcache_name n;
    unsigned tables = 0;
    unsigned written = 0;

    while (qcache_question_next(question, &at, &n)) {
        tables += n.kind != QCACHE_ASK_FUNCTION;
        written += n.kind == QCACHE_ASK_WRITTEN || n.kind == QCACHE_ASK_CREATED;
    }
    return tables == 1 || (tables <= QCACHE_ROW_TABLES && written == 0);
}

void qcache_question_sql(struct slice question, struct buf *out)
{
    put_tables(question, out);
    put_functions(question, out);
    put_str(out, relations_sql);
    put_str(out, types_sql);
    put_str(out, functions_sql);
    put_str(out, triggers_sql);
    put_str(out, rows_sql);
    if (asks_columns(question))
        put_str(out, columns_sql);
}
