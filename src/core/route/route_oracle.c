/* SPDX-License-Identifier: PostgreSQL
 * route_oracle.c: the questions about the catalogue as one SELECT. Runs in: workers.
 *
 * Everything in it is qualified, so that no search_path of a client can put other functions or
 * operators in its place; names travel as dollar-quoted literals, which mean the same whatever
 * standard_conforming_strings is. Relations are found by pg_class itself: to_regclass would fail
 * for schemas that the user may not use.
 *
 * Views are looked through by the text of their rules' trees, in which every function, operator and
 * relation stands with its oid: pg_depend does not list what is built in, random() and nextval()
 * among them. The same for policies of row-level security and defaults of arguments. */
#include "config.h"

#include "route/route_oracle.h"

#include <inttypes.h>

/* Shorter names for what is written often. Only built-in types, operators and functions. */
#define EQ     " OPERATOR(pg_catalog.=) "
#define OR_BIT " OPERATOR(pg_catalog.|) "

static bool contains(struct slice s, const char *tag)
{
    size_t n = strlen(tag);
    size_t i;

    for (i = 0; i + n <= s.n; i++)
        if (memcmp(s.p + i, tag, n) == 0)
            return true;
    return false;
}

/* $q0$name$q0$, with a tag that the name does not hold. */
static void put_literal(struct buf *out, struct slice s)
{
    char tag[16];
    unsigned k = 0;
    unsigned digits;

    do {
        unsigned v = k++;
        memcpy(tag, "$q", 2);
        digits = 2;
        do {
            tag[digits++] = (char)('0' + v % 10);
            v /= 10;
        } while (v != 0 && digits < sizeof tag - 1);
        tag[digits] = '\0';
    } while (contains(s, tag));
    buf_put(out, tag, digits);
    buf_put_byte(out, '$');
    buf_put(out, s.p, s.n);
    buf_put(out, tag, digits);
    buf_put_byte(out, '$');
}

static void put_str(struct buf *out, const char *s)
{
    buf_put(out, s, strlen(s));
}

/* The rows of the questions: index, kind, schema, name, number of arguments. */
static void put_questions(const struct route_question *q, unsigned n, struct buf *out)
{
    unsigned i;

    put_str(out, "WITH RECURSIVE q(i, kind, s, n, a) AS (VALUES ");
    for (i = 0; i < n; i++) {
        buf_printf(out, "%s(%u, %d, CAST(", i == 0 ? "" : ", ", i, (int)q[i].kind);
        put_literal(out, q[i].schema);
        put_str(out, " AS pg_catalog.text), CAST(");
        put_literal(out, q[i].name);
        buf_printf(out, " AS pg_catalog.name), %" PRIu32 ")",
            q[i].nargs > INT16_MAX ? (uint32_t)INT16_MAX : q[i].nargs);
    }
    put_str(out, "), ");
}

/* A server may compile what it thinks to be dear, which takes it longer than all of this: each step
 * has to look small to its planner whatever the catalogue holds, hence one row per relation here,
 * and partitions from the odd ones upwards. */

/* Relations with something to be done when they are read, and that: a view's query, the conditions
 * of row-level security. Who is not bound by these is taken for one who is. */
#define TREE_OF_C                                                                                  \
    "pg_catalog.concat((SELECT pg_catalog.string_agg(CAST(r.ev_action AS pg_catalog.text), '') "   \
    "FROM pg_catalog.pg_rewrite r WHERE r.ev_class" EQ "c.oid AND c.relkind" EQ                    \
    "CAST('v' AS pg_catalog.\"char\")), "                                                          \
    "(SELECT pg_catalog.string_agg(CAST(k.polqual AS pg_catalog.text), '') "                       \
    "FROM pg_catalog.pg_policy k WHERE k.polrelid" EQ "c.oid AND c.relrowsecurity AND k.polcmd" EQ \
    "ANY (ARRAY[CAST('r' AS pg_catalog.\"char\"), CAST('*' AS pg_catalog.\"char\")])))"
#define C_HAS_TREE "(c.relkind" EQ "CAST('v' AS pg_catalog.\"char\") OR c.relrowsecurity)"

/* Relations of the questions, and all that their views and policies read, at any depth. */
static const char relations_sql[] =
    "rel(i, oid) AS ("
    "SELECT q.i, c.oid FROM q JOIN pg_catalog.pg_class c ON c.relname" EQ "q.n "
    "WHERE q.kind" EQ "ANY (ARRAY[1, 3]) AND q.s" EQ "'' AND pg_catalog.pg_table_is_visible(c.oid) "
    "UNION ALL "
    "SELECT q.i, c.oid FROM q JOIN pg_catalog.pg_namespace s ON s.nspname" EQ
    "CAST(q.s AS pg_catalog.name) OR (q.s" EQ "'pg_temp' AND s.oid" EQ
    "pg_catalog.pg_my_temp_schema()) "
    "JOIN pg_catalog.pg_class c ON c.relname" EQ "q.n AND c.relnamespace" EQ "s.oid "
    "WHERE q.kind" EQ "ANY (ARRAY[1, 3]) AND q.s OPERATOR(pg_catalog.<>) ''"
    "), "
    "tree(i, t) AS ("
    "SELECT rel.i, " TREE_OF_C " FROM rel JOIN pg_catalog.pg_class c ON c.oid" EQ
    "rel.oid AND " C_HAS_TREE " UNION "
    "SELECT tree.i, " TREE_OF_C " FROM tree, LATERAL "
    "pg_catalog.regexp_matches(tree.t, ':relid ([0-9]+)', 'g') m(x) "
    "JOIN pg_catalog.pg_class c ON c.oid" EQ "CAST(m.x[1] AS pg_catalog.oid) AND " C_HAS_TREE "), "
    "reads(i, oid) AS ("
    "SELECT i, oid FROM rel UNION "
    "SELECT tree.i, CAST(m.x[1] AS pg_catalog.oid) FROM tree, LATERAL "
    "pg_catalog.regexp_matches(tree.t, ':relid ([0-9]+)', 'g') m(x)"
    "), "
    /* Whose partitions or other heirs are temporary or unlogged. */
    "parts(oid, bit) AS ("
    "SELECT h.inhparent, CASE WHEN c.relpersistence" EQ
    "CAST('t' AS pg_catalog.\"char\") THEN 2 ELSE 4 END FROM pg_catalog.pg_class c "
    "JOIN pg_catalog.pg_inherits h ON h.inhrelid" EQ "c.oid "
    "WHERE c.relpersistence OPERATOR(pg_catalog.<>) CAST('p' AS pg_catalog.\"char\") "
    "UNION "
    "SELECT h.inhparent, parts.bit FROM parts JOIN pg_catalog.pg_inherits h ON h.inhrelid" EQ
    "parts.oid"
    "), ";

/* Domains in views: their checks are trees, too; base types may be domains again. */
static const char domains_sql[] =
    "dom(i, oid) AS ("
    "SELECT tree.i, t.oid FROM tree, LATERAL "
    "pg_catalog.regexp_matches(tree.t, ':resulttype ([0-9]+)', 'g') m(x) "
    "JOIN pg_catalog.pg_type t ON t.oid" EQ "CAST(m.x[1] AS pg_catalog.oid) "
    "WHERE t.typtype" EQ "CAST('d' AS pg_catalog.\"char\") "
    "UNION "
    "SELECT dom.i, t.typbasetype FROM dom JOIN pg_catalog.pg_type t ON t.oid" EQ "dom.oid "
    "WHERE t.typtype" EQ "CAST('d' AS pg_catalog.\"char\")"
    "), "
    "code(i, t) AS ("
    "SELECT i, t FROM tree UNION ALL "
    "SELECT dom.i, CAST(k.conbin AS pg_catalog.text) FROM dom "
    "JOIN pg_catalog.pg_constraint k ON k.contypid" EQ "dom.oid"
    "), "
    "called(i, f) AS ("
    "SELECT code.i, CAST(m.x[1] AS pg_catalog.oid) FROM code, LATERAL "
    "pg_catalog.regexp_matches(code.t, ':(?:funcid|aggfnoid|winfnoid) ([0-9]+)', 'g') m(x) "
    "UNION "
    "SELECT code.i, CAST(o.oprcode AS pg_catalog.oid) FROM code, LATERAL "
    "pg_catalog.regexp_matches(code.t, ':opno ([0-9]+)', 'g') m(x) "
    "JOIN pg_catalog.pg_operator o ON o.oid" EQ "CAST(m.x[1] AS pg_catalog.oid)"
    "), ";

/* Names that call volatile functions where no call is written: types with such casts and checks,
 * and functions of rows. Few databases have any. */
static const char words_sql[] =
    "odd_type(oid) AS ("
    "SELECT k.contypid FROM pg_catalog.pg_constraint k, LATERAL "
    "(SELECT CAST(m.x[1] AS pg_catalog.oid) FROM pg_catalog.regexp_matches("
    "CAST(k.conbin AS pg_catalog.text), ':funcid ([0-9]+)', 'g') m(x) "
    "UNION ALL SELECT CAST(o.oprcode AS pg_catalog.oid) FROM pg_catalog.regexp_matches("
    "CAST(k.conbin AS pg_catalog.text), ':opno ([0-9]+)', 'g') m(x) "
    "JOIN pg_catalog.pg_operator o ON o.oid" EQ "CAST(m.x[1] AS pg_catalog.oid)) f(oid) "
    "JOIN pg_catalog.pg_proc p ON p.oid" EQ "f.oid WHERE k.contypid OPERATOR(pg_catalog.<>) "
    "CAST(0 AS pg_catalog.oid) AND p.provolatile" EQ "CAST('v' AS pg_catalog.\"char\") "
    "UNION SELECT k.casttarget FROM pg_catalog.pg_cast k JOIN pg_catalog.pg_proc p "
    "ON p.oid" EQ "k.castfunc WHERE p.provolatile" EQ "CAST('v' AS pg_catalog.\"char\")"
    "), "
    "odd_domain(oid) AS ("
    "SELECT oid FROM odd_type UNION SELECT t.oid FROM odd_domain JOIN pg_catalog.pg_type t "
    "ON t.typbasetype" EQ "odd_domain.oid AND t.typtype" EQ "CAST('d' AS pg_catalog.\"char\")"
    "), "
    "word(name) AS ("
    "SELECT t.typname FROM odd_domain JOIN pg_catalog.pg_type t ON t.oid" EQ "odd_domain.oid "
    "UNION SELECT p.proname FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_type t ON t.oid" EQ
    "p.proargtypes[0] WHERE p.provolatile" EQ "CAST('v' AS pg_catalog.\"char\") AND p.pronargs "
    "OPERATOR(pg_catalog.>=) 1 AND (p.pronargs OPERATOR(pg_catalog.-) p.pronargdefaults) "
    "OPERATOR(pg_catalog.<=) 1 AND (t.typtype" EQ "CAST('c' AS pg_catalog.\"char\") OR t.typname" EQ
    "ANY (CAST(ARRAY['record', 'any', 'anyelement', 'anynonarray', 'anycompatible', "
    "'anycompatiblenonarray'] AS pg_catalog.name[])))"
    "), ";

/* Functions that a question may mean: every overload that takes so many arguments. Aggregates over
 * ordered sets count differently, and any number up to theirs does for them. */
static const char functions_sql[] =
    "func(i, f, d) AS ("
    "SELECT q.i, p.oid, q.a OPERATOR(pg_catalog.<) p.pronargs FROM q JOIN pg_catalog.pg_proc p ON "
    "p.proname" EQ "q.n "
    "LEFT JOIN pg_catalog.pg_aggregate g ON g.aggfnoid" EQ "p.oid "
    "WHERE q.kind" EQ "0 AND CASE WHEN q.s" EQ "'' THEN pg_catalog.pg_function_is_visible(p.oid) "
    "ELSE EXISTS (SELECT FROM pg_catalog.pg_namespace s WHERE s.oid" EQ
    "p.pronamespace AND s.nspname" EQ "CAST(q.s AS pg_catalog.name)) END "
    "AND (q.a OPERATOR(pg_catalog.<=) p.pronargs OR p.provariadic OPERATOR(pg_catalog.<>) "
    "CAST(0 AS pg_catalog.oid)) "
    "AND (q.a OPERATOR(pg_catalog.>=) (p.pronargs OPERATOR(pg_catalog.-) p.pronargdefaults) "
    "OR (p.provariadic OPERATOR(pg_catalog.<>) CAST(0 AS pg_catalog.oid) AND q.a "
    "OPERATOR(pg_catalog.>=) (p.pronargs OPERATOR(pg_catalog.-) p.pronargdefaults "
    "OPERATOR(pg_catalog.-) 1)) "
    "OR g.aggkind OPERATOR(pg_catalog.<>) CAST('n' AS pg_catalog.\"char\"))"
    "), "
    "oper(i, f) AS ("
    "SELECT q.i, CAST(o.oprcode AS pg_catalog.oid) FROM q JOIN pg_catalog.pg_operator o "
    "ON o.oprname" EQ "q.n WHERE q.kind" EQ "2"
    "), "
    /* Functions that defaults of their arguments call are used, too. */
    "used(i, f) AS ("
    "SELECT i, f FROM func UNION ALL SELECT i, f FROM oper UNION ALL SELECT i, f FROM called "
    "UNION ALL "
    "SELECT u.i, x.f FROM (SELECT i, f FROM func WHERE d UNION ALL SELECT i, f FROM called) u "
    "JOIN pg_catalog.pg_proc p ON p.oid" EQ "u.f AND p.proargdefaults IS NOT NULL, LATERAL ("
    "SELECT CAST(m.x[1] AS pg_catalog.oid) FROM pg_catalog.regexp_matches("
    "CAST(p.proargdefaults AS pg_catalog.text), ':funcid ([0-9]+)', 'g') m(x) "
    "UNION ALL "
    "SELECT CAST(o.oprcode AS pg_catalog.oid) FROM pg_catalog.regexp_matches("
    "CAST(p.proargdefaults AS pg_catalog.text), ':opno ([0-9]+)', 'g') m(x) "
    "JOIN pg_catalog.pg_operator o ON o.oid" EQ "CAST(m.x[1] AS pg_catalog.oid)) x(f)"
    "), "
    /* An aggregate is as volatile as what it calls for each row; FOR UPDATE in a view is a write.
     */
    "vol(i) AS ("
    "SELECT DISTINCT u.i FROM used u "
    "JOIN pg_catalog.pg_proc p ON p.oid" EQ "u.f "
    "LEFT JOIN pg_catalog.pg_aggregate g ON g.aggfnoid" EQ "p.oid "
    "WHERE p.provolatile" EQ
    "CAST('v' AS pg_catalog.\"char\") OR EXISTS (SELECT FROM pg_catalog.pg_proc t "
    "WHERE t.oid" EQ "ANY (ARRAY[CAST(g.aggtransfn AS pg_catalog.oid), "
    "CAST(g.aggfinalfn AS pg_catalog.oid), CAST(g.aggmtransfn AS pg_catalog.oid)]) "
    "AND t.provolatile" EQ "CAST('v' AS pg_catalog.\"char\")) "
    "UNION SELECT i FROM tree WHERE t OPERATOR(pg_catalog.~) '{ROWMARKCLAUSE'"
    "), ";

/* Volatile functions that leave nothing behind in their session but rows, as far as their text
 * tells: nothing in it sets, makes or calls what may, and nothing is made up at run time. A SET of
 * UPDATE is none of these. In C nothing can be seen, but of two extensions it is known. */
static const char setters_sql[] =
    "sets(i) AS ("
    "SELECT u.i FROM used u JOIN pg_catalog.pg_proc p ON p.oid" EQ "u.f "
    "JOIN pg_catalog.pg_language l ON l.oid" EQ "p.prolang, "
    "LATERAL (SELECT pg_catalog.lower(p.prosrc)) b(t) "
    "WHERE (p.provolatile" EQ "CAST('v' AS pg_catalog.\"char\") OR p.prokind" EQ
    "CAST('a' AS pg_catalog.\"char\")) "
    "AND NOT (p.pronamespace" EQ "CAST(11 AS pg_catalog.oid) AND p.proname" EQ
    "ANY (CAST(ARRAY['nextval', 'random', 'clock_timestamp', 'timeofday', 'gen_random_uuid'] AS "
    "pg_catalog.name[]))) "
    "AND NOT (l.lanname" EQ "CAST('c' AS pg_catalog.name) AND EXISTS ("
    "SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid" EQ "d.refobjid "
    "WHERE d.objid" EQ "p.oid AND d.classid" EQ "CAST(1255 AS pg_catalog.oid) AND d.refclassid" EQ
    "CAST(3079 AS pg_catalog.oid) AND d.deptype" EQ "CAST('e' AS pg_catalog.\"char\") "
    "AND e.extname" EQ "ANY (CAST(ARRAY['uuid-ossp', 'pgcrypto'] AS pg_catalog.name[])))) "
    "AND NOT (l.lanname" EQ "ANY (CAST(ARRAY['sql', 'plpgsql'] AS pg_catalog.name[])) "
    "AND b.t OPERATOR(pg_catalog.<>) '' "
    "AND pg_catalog.regexp_replace(pg_catalog.regexp_replace(b.t, "
    "$r$\\mfor\\s+(no\\s+key\\s+)?update\\M$r$, ' ', 'g'), "
    "$r$\\mupdate\\s+(?!(then|loop|begin|else|or|and)\\M)((only\\s+)?[a-z0-9_.\"]+\\s+"
    "((as\\s+)?[a-z0-9_\"]+\\s+)?)?set\\M$r$, ' ', 'g') OPERATOR(pg_catalog.!~) "
    "$r$\\m(set|reset|set_config|setseed|execute|load|discard|listen|unlisten|prepare|hold|"
    "language|"
    "lock|create|alter|drop|import|copy|temp|temporary|pg_temp\\w*|pg_(try_)?advisory\\w*|"
    "\\w+_to_xml\\w*|ts_stat|ts_rewrite)\\M|u&$r$ "
    "AND NOT EXISTS (SELECT FROM pg_catalog.pg_proc x WHERE x.pronamespace "
    "OPERATOR(pg_catalog.<>) CAST(11 AS pg_catalog.oid) AND x.oid OPERATOR(pg_catalog.<>) p.oid "
    "AND x.provolatile" EQ "CAST('v' AS pg_catalog.\"char\") AND "
    "pg_catalog.strpos(b.t, pg_catalog.lower(CAST(x.proname AS pg_catalog.text))) "
    "OPERATOR(pg_catalog.>) 0))"
    ") ";

/* What a relation is; another session's temporary table of that name counts when no schema is
 * given, as the answer is shared by sessions. */
static const char relation_bits_sql[] =
    "SELECT COALESCE(pg_catalog.bit_or("
    "CASE WHEN s.nspname" EQ "ANY (ARRAY[CAST('pg_catalog' AS pg_catalog.name), "
    "CAST('information_schema' AS pg_catalog.name), CAST('pg_toast' AS pg_catalog.name)]) "
    "THEN 1 ELSE 0 END" OR_BIT "CASE WHEN c.relpersistence" EQ
    "CAST('t' AS pg_catalog.\"char\") THEN 2 "
    "WHEN c.relpersistence" EQ "CAST('u' AS pg_catalog.\"char\") THEN 4 ELSE 0 END" OR_BIT
    "CASE WHEN c.relkind" EQ "CAST('S' AS pg_catalog.\"char\") THEN 32 ELSE 0 END" OR_BIT
    "COALESCE((SELECT pg_catalog.bit_or(parts.bit) FROM parts WHERE parts.oid" EQ "r.oid), 0)), "
    "16)" OR_BIT "CASE WHEN q.i" EQ "ANY (SELECT i FROM vol) THEN 8 ELSE 0 END" OR_BIT
    "CASE WHEN q.s" EQ "'' AND EXISTS (SELECT FROM pg_catalog.pg_class x WHERE x.relname" EQ
    "q.n AND x.relpersistence" EQ "CAST('t' AS pg_catalog.\"char\")) THEN 2 ELSE 0 END "
    "FROM reads r JOIN pg_catalog.pg_class c ON c.oid" EQ "r.oid "
    "JOIN pg_catalog.pg_namespace s ON s.oid" EQ "c.relnamespace WHERE r.i" EQ "q.i";

static const char database_bits_sql[] =
    "SELECT CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p "
    "ON p.oid" EQ "o.oprcode WHERE p.provolatile" EQ
    "CAST('v' AS pg_catalog.\"char\")) THEN 1 ELSE 0 END" OR_BIT
    "CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_proc u WHERE u.provolatile" EQ
    "CAST('v' AS pg_catalog.\"char\") AND u.pronamespace OPERATOR(pg_catalog.<>) "
    "CAST(11 AS pg_catalog.oid) AND EXISTS (SELECT FROM pg_catalog.pg_proc b WHERE b.proname" EQ
    "u.proname AND b.pronamespace" EQ "CAST(11 AS pg_catalog.oid))) THEN 2 ELSE 0 END" OR_BIT
    "COALESCE((SELECT CASE WHEN d.reset_val" EQ "'serializable' THEN 4 WHEN d.reset_val" EQ
    "'repeatable read' THEN 8 ELSE 0 END FROM pg_catalog.pg_settings d WHERE d.name" EQ
    "'default_transaction_isolation'), 0)" OR_BIT
    "CASE WHEN EXISTS (SELECT FROM word) THEN 16 ELSE 0 END";

/* What looks like a call is syntax, from 16 on: there is no function of that name. */
static const char syntax_sql[] =
    "q.kind" EQ "0 AND q.s" EQ "'' AND CAST(pg_catalog.current_setting('server_version_num') AS "
    "pg_catalog.int4) OPERATOR(pg_catalog.>=) 160000 AND q.n" EQ
    "ANY (CAST(ARRAY['json', 'json_array', 'json_arrayagg', 'json_exists', 'json_object', "
    "'json_objectagg', 'json_query', 'json_scalar', 'json_serialize', 'json_value'] AS "
    "pg_catalog.name[]))";

void route_oracle_sql(const struct route_question *q, unsigned n, struct buf *out)
{
    put_questions(q, n, out);
    put_str(out, relations_sql);
    put_str(out, domains_sql);
    put_str(out, words_sql);
    put_str(out, functions_sql);
    put_str(out, setters_sql);
    put_str(out, "SELECT q.i AS index, CASE WHEN q.kind" EQ "1 THEN CAST((");
    put_str(out, relation_bits_sql);
    put_str(out, ") AS pg_catalog.int8) WHEN q.kind" EQ
                 "3 THEN COALESCE((SELECT CAST(pg_catalog.min(rel.oid) "
                 "AS pg_catalog.int8) FROM rel WHERE rel.i" EQ "q.i), CAST(0 AS pg_catalog.int8)) "
                 "WHEN q.kind" EQ "4 THEN CAST((");
    put_str(out, database_bits_sql);
    put_str(out,
        ") AS pg_catalog.int8) WHEN q.kind" EQ
        "5 THEN CAST(CASE WHEN EXISTS (SELECT FROM word WHERE pg_catalog.lower("
        "CAST(word.name AS pg_catalog.text))" EQ "pg_catalog.lower("
        "CAST(q.n AS pg_catalog.text))) THEN 1 ELSE 0 END AS pg_catalog.int8) ELSE CAST(CASE WHEN "
        "q.i" EQ "ANY (SELECT i FROM vol) THEN CASE WHEN q.i" EQ
        "ANY (SELECT i FROM sets) THEN 5 ELSE 1 END ELSE 0 END" OR_BIT "CASE WHEN q.i" EQ
        "ANY (SELECT i FROM func) OR q.i" EQ "ANY (SELECT i FROM oper) OR (");
    put_str(out, syntax_sql);
    put_str(out, ") THEN 0 ELSE 2 END AS pg_catalog.int8) END AS bits FROM q");
}

static int parse_number(struct slice s, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;
    size_t i;

    if (s.n == 0 || s.n > 10)
        return -1;
    for (i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return -1;
        v = v * 10 + (uint64_t)(s.p[i] - '0');
    }
    if (v > max)
        return -1;
    *out = v;
    return 0;
}

int route_oracle_parse_row(
    struct slice index, struct slice bits, unsigned n, unsigned *index_r, uint32_t *bits_r)
{
    uint64_t i;
    uint64_t b;

    if (n == 0 || parse_number(index, n - 1, &i) == -1 || parse_number(bits, UINT32_MAX, &b) == -1)
        return -1;
    *index_r = (unsigned)i;
    *bits_r = (uint32_t)b;
    return 0;
}

bool route_views_read(const struct sql_stmt *s,
    int (*lookup)(void *ctx, const struct route_question *q, uint32_t *bits), void *ctx,
    struct route_decision *missing)
{
    uint32_t bits;
    uint32_t i;

    for (i = 0; i < s->ntables; i++) {
        struct route_question q = {
            .kind = ROUTE_Q_RELATION, .schema = s->tables[i].schema, .name = s->tables[i].name};

        if (lookup != NULL && lookup(ctx, &q, &bits) == 0) {
            if ((bits & ROUTE_REL_VOLATILE) != 0)
                return false;
        } else if (missing->nquestions == ROUTE_MAX_QUESTIONS) {
            return false;
        } else {
            missing->question[missing->nquestions++] = q;
        }
    }
    return true;
}
