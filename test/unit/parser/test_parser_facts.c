/* SPDX-License-Identifier: PostgreSQL
 * test_parser_facts.c: relations, calls, flags and offsets of statements. */
#include "config.h"

#include <stdlib.h>

#include "parser_util.h"
#include "run_suite.h"

/* Relations in the order they were met, "schema.name" parted by blanks; ! marks a target. */
static const char *tables(const char *text)
{
    const struct sql_stmt *s = one(text);
    char *all = arena_strdup(arena, "");

    for (uint32_t i = 0; i < s->ntables; i++) {
        const struct sql_table *t = &s->tables[i];
        all = arena_printf(arena, "%s%s%s%.*s%s%.*s%s%.*s", all, i > 0 ? " " : "",
            t->flags & SQL_TABLE_TARGET ? "!" : "", (int)t->catalog.n, t->catalog.p,
            t->catalog.n ? "." : "", (int)t->schema.n, t->schema.p, t->schema.n ? "." : "",
            (int)t->name.n, t->name.p);
    }
    return all;
}

/* Calls as "schema.name/arguments". */
static const char *funcs(const char *text)
{
    const struct sql_stmt *s = one(text);
    char *all = arena_strdup(arena, "");

    for (uint32_t i = 0; i < s->nfuncs; i++) {
        const struct sql_func *f = &s->funcs[i];
        all = arena_printf(arena, "%s%s%.*s%s%.*s/%u", all, i > 0 ? " " : "", (int)f->schema.n,
            f->schema.p, f->schema.n ? "." : "", (int)f->name.n, f->name.p, f->nargs);
    }
    return all;
}

static bool flag(const char *text, uint32_t f)
{
    return (one(text)->flags & f) != 0;
}

START_TEST(finds_relations)
{
    ck_assert_str_eq(
        tables("SELECT * FROM a, b.C d JOIN \"X\"\"y\".z ON true, e.f.g"), "a b.c X\"y.z e.f.g");
    ck_assert_str_eq(tables("INSERT INTO t SELECT * FROM (TABLE u) x"), "!t u");
    ck_assert_str_eq(tables("UPDATE ONLY t SET a = (SELECT 1 FROM u) FROM v"), "!t u v");
    ck_assert_str_eq(tables("MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE"), "!t s");
    ck_assert_str_eq(tables("SELECT 1 INTO n FROM o FOR UPDATE OF o"), "n o");
    ck_assert_str_eq(tables("COPY t (a) FROM STDIN"), "!t");
    ck_assert_str_eq(tables("TRUNCATE a, ONLY b"), "!a !b");
    ck_assert_str_eq(tables("DROP TABLE a"), "");
    ck_assert_str_eq(tables("CREATE TABLE a (x int REFERENCES b, LIKE c) INHERITS (d)"), "b c d a");
    ck_assert_str_eq(tables("SELECT U&\"d\\0061t\" FROM U&\"d!0061t\" UESCAPE '!'"), "dat");
    ck_assert_str_eq(
        tables("SELECT 1 FROM System_User u JOIN t ON u.a = system_user"), "system_user t");
    ck_assert_str_eq(
        tables("SELECT system_user, a.b FROM s.system_user a, user, f()"), "s.system_user");
}
END_TEST

START_TEST(ctes_hide_relations_in_their_scope)
{
    ck_assert_str_eq(tables("WITH t AS (SELECT * FROM t) SELECT * FROM t, u"), "t u");
    ck_assert_str_eq(tables("WITH RECURSIVE t AS (SELECT * FROM t, u) SELECT * FROM t"), "u");
    ck_assert_str_eq(tables("WITH a AS (SELECT 1 FROM b), b AS (SELECT 1 FROM a) TABLE b"), "b");
    ck_assert_str_eq(
        tables("WITH RECURSIVE a AS (SELECT 1 FROM b), b AS (SELECT 1 FROM a) TABLE b"), "");
    ck_assert_str_eq(tables("WITH t AS (SELECT 1) DELETE FROM t USING t x"), "!t");
    ck_assert_str_eq(tables("WITH t AS (SELECT 1) SELECT * FROM s.t"), "s.t");
    ck_assert_str_eq(tables("SELECT (WITH t AS (SELECT 1) SELECT 1 FROM t) FROM t"), "t");
    ck_assert_str_eq(tables("(WITH t AS (SELECT 1) TABLE t) UNION TABLE t"), "t");
    ck_assert_str_eq(tables("WITH t AS (SELECT 1) SELECT 1 FROM (SELECT 1 FROM t) x"), "");
    ck_assert_str_eq(
        tables("INSERT INTO x WITH t AS (SELECT 1) TABLE t RETURNING (SELECT 1 FROM t)"), "!x t");
    ck_assert_str_eq(tables("CREATE RECURSIVE VIEW v (a) AS SELECT 1 FROM v, w"), "w v");
}
END_TEST

START_TEST(many_ctes_are_the_same)
{
    char *text = arena_strdup(arena, "WITH c0 AS (SELECT 1 FROM c1)");

    for (int i = 1; i < 40; i++)
        text = arena_printf(arena, "%s, c%d AS (SELECT 1 FROM c%d, c%d)", text, i, i - 1, i + 1);
    text = arena_printf(arena, "%s, c7 AS (TABLE c40) SELECT * FROM c0, c7, c39, c40", text);
    /* Each sees those before it only; c1 ... c40 are met before they exist. */
    const struct sql_stmt *s = one(text);

    ck_assert_uint_eq(s->ntables, 42);
    ck_assert_str_eq(str(s->tables[0].name), "c1");
    ck_assert_str_eq(str(s->tables[1].name), "c2");
    ck_assert_str_eq(str(s->tables[39].name), "c40");
    ck_assert_str_eq(str(s->tables[41].name), "c40");
}
END_TEST

/* Half a character that looks like a capital letter must not become another table's name. */
START_TEST(names_of_other_encodings_are_not_guessed)
{
    ck_assert_int_eq(parse("UPDATE \x83\x5a\x83\x62\x83\x67 SET a = 1").status, SQL_SYNTAX);
    ck_assert_int_eq(parse("SELECT \x83\x5a() FROM t").status, SQL_SYNTAX);
    ck_assert_str_eq(tables("TABLE \"\x83\x5a\""), "\x83\x5a");
    ck_assert_str_eq(tables("TABLE \x83\x67"), "\x83\x67");
    ck_assert_str_eq(tables("TABLE \xc3\x89T"), "\xc3\x89t");
}
END_TEST

START_TEST(finds_calls)
{
    ck_assert_str_eq(
        funcs("SELECT a(), b.c(1, x => 2), count(*), d(VARIADIC e)"), "a/0 b.c/2 count/0 d/1");
    ck_assert_str_eq(funcs("SELECT extract(day FROM x), trim(y), coalesce(z), cast(a AS b)"), "");
    ck_assert_str_eq(funcs("SELECT substring(a, 1, 2), substring(a FROM 1)"), "substring/3");
    ck_assert_str_eq(
        funcs("SELECT * FROM f(g(1)) WITH ORDINALITY, ROWS FROM (h())"), "g/1 f/1 h/0");
    ck_assert_str_eq(funcs("CALL p(q(1), 2)"), "q/1 p/2");
    ck_assert_str_eq(funcs("CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'x'"), "");
    ck_assert_str_eq(funcs("CREATE INDEX ON t (lower(a))"), "lower/1");
    /* Not written as calls. */
    ck_assert_str_eq(
        funcs("SELECT (a).b, (a).c[1].d, e[2].f, (g).*, h.i, h[1]"), "b/1 c/1 d/1 f/1");
    ck_assert_str_eq(funcs("SELECT $1.a, (SELECT 1).b, (VALUES (1))[1].c"), "a/1 b/1 c/1");
    ck_assert_str_eq(funcs("SELECT x.a, s.x.b, t.c FROM t, f(1) x"), "f/1 a/1");
    ck_assert_str_eq(funcs("SELECT X.a, f.b FROM LATERAL f() AS x(y)"), "f/0 a/1");
    ck_assert_str_eq(funcs("SELECT f.a, x.b FROM s.f()"), "s.f/0 a/1");
    ck_assert_str_eq(funcs("SELECT int4.a FROM cast(b AS int4)"), "a/1");
    ck_assert_str_eq(
        funcs("SELECT x.a, \"F\".b FROM ROWS FROM (f()) x, \"F\"()"), "f/0 F/0 a/1 b/1");
    ck_assert_uint_eq(parse("SELECT x.a FROM f() x; SELECT x.a").stmts[1].nfuncs, 0);
    ck_assert_str_eq(funcs("SELECT TREAT(a AS b.c), TREAT(d AS SETOF e)"), "c/1 e/1");
    ck_assert_str_eq(funcs("UPDATE t SET a.b = (c).d RETURNING e.f"), "d/1");
    ck_assert(one("SELECT (a).b")->funcs[0].flags & SQL_FUNC_FIELD);
}
END_TEST

/* Calls in 15, syntax later: what 15 takes is read as 15 reads it, what it refuses as later ones
 * do. */
START_TEST(calls_that_became_syntax)
{
    static const char *const newer[] = {
        "MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE RETURNING merge_action(), f()",
        "MERGE INTO t USING s ON true WHEN NOT MATCHED BY SOURCE AND merge_action() = f() THEN "
        "DELETE",
        "MERGE INTO t USING s ON true WHEN NOT MATCHED BY TARGET AND merge_action() = f() THEN DO "
        "NOTHING",
        "SELECT json_array(1), f() FROM (SELECT 1)",
        "SELECT json_array(json_array(1 RETURNING text)), f()",
        "SELECT json_array(SELECT 1), json_array(2), f()",
        "SELECT json_scalar(1) IS JSON, f()",
        "SELECT json_exists(a, '$') IS NOT JSON ARRAY, f()",
        "SELECT json_value(a, '$'), f() FROM JSON_TABLE(b, '$' COLUMNS (c int))",
        "SELECT json_query(a, '$'), json_object('a': 1), f()",
        "SELECT json_arrayagg(a), json_objectagg('a': 1), f()",
        "SELECT json_serialize(a), json('1' WITH UNIQUE), json(b), f()",
        "UPDATE t SET a = json_scalar(f()) RETURNING WITH (OLD AS o) o.a",
    };

    ck_assert_str_eq(funcs("SELECT json_array(1, 2), json_scalar(3), json_value(a, b)"),
        "json_array/2 json_scalar/1 json_value/2");
    ck_assert_str_eq(funcs("SELECT merge_action()"), "merge_action/0");
    ck_assert_str_eq(
        funcs("SELECT json_object('a', 1), json(b) FROM (SELECT 1) AS x"), "json_object/2 json/1");
    ck_assert_str_eq(funcs("SELECT json_object('{a,1}') FROM (SELECT 1)"), "json_object/1");
    ck_assert_str_eq(funcs("SELECT \"json_array\"(1) FROM (SELECT 1)"), "json_array/1");
    for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++)
        ck_assert_msg(strcmp(funcs(newer[i]), "f/0") == 0, "%s: %s", newer[i], funcs(newer[i]));
    ck_assert_uint_eq(parse("SELECT json_scalar(1); SELECT 1 IS JSON").stmts[0].nfuncs, 1);
    ck_assert_uint_eq(parse("SELECT 1 IS JSON; SELECT json_scalar(1)").stmts[1].nfuncs, 1);
    ck_assert(one("CALL p(q(1))")->funcs[1].flags & SQL_FUNC_CALL);
    ck_assert(one("SELECT f(DISTINCT a)")->funcs[0].flags & SQL_FUNC_DISTINCT);
}
END_TEST

START_TEST(tells_reads_from_writes)
{
    static const char *const reads[] = {"SELECT 1", "TABLE t", "VALUES (1)", "SHOW all",
        "EXPLAIN DELETE FROM t", "EXPLAIN (ANALYZE off) DELETE FROM t", "EXPLAIN ANALYZE SELECT 1",
        "COPY t TO STDOUT", "COPY (SELECT 1) TO STDOUT", "WITH a AS (SELECT 1) TABLE a",
        "SELECT 1 FOR READ ONLY"};
    static const char *const writes[] = {"SELECT 1 INTO t", "SELECT 1 FROM t FOR SHARE",
        "SELECT * FROM (SELECT 1 FROM t FOR UPDATE) x",
        "WITH a AS (DELETE FROM t RETURNING *) TABLE a", "EXPLAIN ANALYZE DELETE FROM t",
        "EXPLAIN (ANALYZE) INSERT INTO t VALUES (1)", "EXPLAIN (ANALYZE 'maybe') DELETE FROM t",
        "EXPLAIN ANALYZE SELECT 1 FOR UPDATE", "COPY t TO 'file'", "COPY t FROM STDIN",
        "COPY (DELETE FROM t RETURNING 1) TO STDOUT", "BEGIN", "SET a = 1", "FETCH c",
        "DECLARE c CURSOR FOR SELECT 1", "PREPARE p AS SELECT 1", "EXECUTE p", "VACUUM",
        "EXPLAIN ANALYZE EXECUTE p", "COPY t TO PROGRAM 'x'", "CREATE VIEW v AS SELECT 1",
        "EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1"};

    for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++)
        ck_assert_msg(flag(reads[i], SQL_F_READ_ONLY), "%s", reads[i]);
    for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++)
        ck_assert_msg(!flag(writes[i], SQL_F_READ_ONLY), "%s", writes[i]);
}
END_TEST

START_TEST(notes_flags)
{
    ck_assert(flag("SELECT 1 FROM (TABLE t FOR KEY SHARE NOWAIT) x", SQL_F_LOCKING));
    ck_assert(flag("SELECT 1 FROM t FOR UPDATE NOWAIT", SQL_F_NOWAIT));
    ck_assert(flag("CREATE TEMP TABLE t (a int)", SQL_F_TEMP));
    ck_assert(flag("SELECT 1 INTO TEMP t", SQL_F_TEMP));
    ck_assert(flag("CREATE TABLE pg_temp.t (a int)", SQL_F_TEMP));
    ck_assert(!flag("SELECT * FROM pg_temp.t", SQL_F_TEMP));
    ck_assert(flag("CREATE UNLOGGED TABLE t (a int)", SQL_F_UNLOGGED));
    ck_assert(one("CREATE TEMP VIEW v AS SELECT 1")->tables[0].flags & SQL_TABLE_TEMP);
    ck_assert(flag("CREATE INDEX CONCURRENTLY i ON t (a)", SQL_F_CONCURRENTLY));
    ck_assert(flag("INSERT INTO t VALUES (1, DEFAULT) RETURNING a", SQL_F_RETURNING));
    ck_assert(flag("INSERT INTO t VALUES (1, DEFAULT)", SQL_F_DEFAULTS));
    ck_assert(flag("INSERT INTO t VALUES (1)", SQL_F_INSERT_VALUES));
    ck_assert(!flag("INSERT INTO t SELECT 1", SQL_F_INSERT_VALUES));
    ck_assert(flag("COPY t FROM STDIN", SQL_F_COPY_STDIO));
    ck_assert(flag("COPY t FROM PROGRAM 'x'", SQL_F_COPY_PROGRAM));
    ck_assert_uint_eq(one("SELECT $2, $17, $3")->max_param, 17);
}
END_TEST

START_TEST(offsets_point_at_the_text)
{
    const char *text = "SELECT now ( ), \"A\" . b(1), CURRENT_TIME (2) FROM \"S\" . t x, 'a' 'b'";
    const char *good = "/*hint*/ SELECT now ( ), \"A\" . b(1.5), CURRENT_TIME (2) FROM \"S\" . t";
    const struct sql_stmt *s;

    ck_assert_int_eq(parse(text).status, SQL_SYNTAX);
    s = one(good);
    ck_assert_uint_eq(s->offset, 9);
    ck_assert_uint_eq(s->len, strlen(good) - 9);
    ck_assert_str_eq(arena_strndup(arena, good + s->hint.offset, s->hint.len), "/*hint*/");
    ck_assert_str_eq(
        arena_strndup(arena, good + s->tables[0].offset, s->tables[0].len), "\"S\" . t");
    ck_assert_str_eq(arena_strndup(arena, good + s->funcs[1].offset, s->funcs[1].len), "\"A\" . b");
    ck_assert_str_eq(
        arena_strndup(arena, good + s->funcs[1].offset, s->funcs[1].call_len), "\"A\" . b(1.5)");
    ck_assert_uint_eq(s->ntimes, 2);
    ck_assert_int_eq(s->times[0].kind, SQL_TIME_NOW);
    ck_assert_str_eq(
        arena_strndup(arena, good + s->times[0].span.offset, s->times[0].span.len), "now ( )");
    ck_assert_int_eq(s->times[1].kind, SQL_TIME_TIME);
    ck_assert_str_eq(arena_strndup(arena, good + s->times[1].span.offset, s->times[1].span.len),
        "CURRENT_TIME (2)");
    ck_assert_uint_eq(s->nliterals, 2);
    ck_assert_int_eq(s->literals[0].kind, SQL_LIT_NUMERIC);
    ck_assert_str_eq(
        arena_strndup(arena, good + s->literals[0].span.offset, s->literals[0].span.len), "1.5");
}
END_TEST

START_TEST(statements_stand_on_their_own)
{
    const char *text = " ;BEGIN; /*h*/SELECT a($3) FROM t FOR UPDATE ;; SELECT 'x;' , 2;--end";
    struct sql_facts f = parse(text);

    ck_assert_uint_eq(f.nstmts, 3);
    ck_assert_int_eq(f.stmts[0].kind, SQL_BEGIN);
    ck_assert_uint_eq(f.stmts[1].max_param, 3);
    ck_assert_uint_eq(f.stmts[1].hint.len, 5);
    ck_assert_uint_eq(f.stmts[1].ntables, 1);
    ck_assert_int_eq(f.stmts[2].kind, SQL_SELECT);
    ck_assert(f.stmts[2].flags & SQL_F_READ_ONLY);
    ck_assert_uint_eq(f.stmts[2].ntables + f.stmts[2].nfuncs + f.stmts[2].max_param, 0);
    ck_assert_uint_eq(f.stmts[2].hint.len, 0);
    ck_assert_str_eq(
        arena_strndup(arena, text + f.stmts[2].offset, f.stmts[2].len), "SELECT 'x;' , 2");
    /* Words that are looked behind do not make a hint of the comment there. */
    f = parse("WITH /*no hint*/ a AS (SELECT 1) SELECT * FROM a;"
              "/*hint*/ WITH /*no hint*/ a AS (SELECT 1) TABLE a");
    ck_assert_uint_eq(f.stmts[0].hint.len, 0);
    ck_assert_uint_eq(f.stmts[1].hint.len, 8);
    ck_assert_uint_eq(parse("").nstmts, 0);
    ck_assert_int_eq(parse(" -- nothing").status, SQL_OK);
    ck_assert_int_eq(parse("SELECT 1; SELEC 2").status, SQL_SYNTAX);
}
END_TEST

START_TEST(names_are_cut_and_folded)
{
    const struct sql_stmt *s =
        one("SELECT * FROM "
            "ABCDEFGHIJABCDEFGHIJABCDEFGHIJABCDEFGHIJABCDEFGHIJABCDEFGHIJXYZ9, "
            "\"abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijxy\xc3\xa4\"");

    ck_assert_uint_eq(s->tables[0].name.n, 63);
    ck_assert(memcmp(s->tables[0].name.p + 58, "ijxyz", 5) == 0);
    ck_assert_uint_eq(s->tables[1].name.n, 62);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("parser_facts");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, finds_relations);
    tcase_add_test(tc, ctes_hide_relations_in_their_scope);
    tcase_add_test(tc, many_ctes_are_the_same);
    tcase_add_test(tc, names_of_other_encodings_are_not_guessed);
    tcase_add_test(tc, finds_calls);
    tcase_add_test(tc, calls_that_became_syntax);
    tcase_add_test(tc, tells_reads_from_writes);
    tcase_add_test(tc, notes_flags);
    tcase_add_test(tc, offsets_point_at_the_text);
    tcase_add_test(tc, statements_stand_on_their_own);
    tcase_add_test(tc, names_are_cut_and_folded);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
