/* SPDX-License-Identifier: PostgreSQL
 * test_parser_limits.c: deep, long and broken texts; what is accepted and what is not. */
#include "config.h"

#include <stdlib.h>

#include "base/mem.h"
#include "parser_util.h"
#include "run_suite.h"

/* head, then `n` times `part`, then tail, then `n` times `close`. */
static struct slice repeat(
    const char *head, const char *part, size_t n, const char *tail, const char *close)
{
    size_t part_len = strlen(part);
    size_t close_len = strlen(close);
    char *text = arena_alloc(arena, strlen(head) + strlen(tail) + n * (part_len + close_len) + 1);
    char *at = text;

    at = mempcpy(at, head, strlen(head));
    for (size_t i = 0; i < n; i++)
        at = mempcpy(at, part, part_len);
    at = mempcpy(at, tail, strlen(tail));
    for (size_t i = 0; i < n; i++)
        at = mempcpy(at, close, close_len);
    return slice_of(text, (size_t)(at - text));
}

static enum sql_status status_of(struct slice text, struct sql_facts *facts)
{
    (void)sql_parse(arena, text, facts);
    return facts->status;
}

START_TEST(deep_nesting_is_an_error_not_a_crash)
{
    struct sql_facts f;

    ck_assert_int_eq(status_of(repeat("SELECT ", "(", 3000, "1", ")"), &f), SQL_OK);
    ck_assert_int_eq(status_of(repeat("SELECT ", "(", 1000000, "1", ")"), &f), SQL_TOO_DEEP);
    ck_assert_ptr_nonnull(f.error);
    ck_assert_uint_eq(f.nstmts, 0);
    ck_assert_int_eq(status_of(repeat("SELECT ", "(SELECT ", 200000, "1", ")"), &f), SQL_TOO_DEEP);
    ck_assert_int_eq(status_of(repeat("SELECT ", "NOT ", 500000, "true", ""), &f), SQL_TOO_DEEP);
    ck_assert_int_eq(status_of(repeat("SELECT ", "/*", 300000, "", "*/"), &f), SQL_OK);
}
END_TEST

START_TEST(long_lists_need_no_depth)
{
    struct sql_facts f;

    ck_assert_int_eq(
        status_of(repeat("SELECT 1 WHERE a IN (1", ", 12345", 100000, ")", ""), &f), SQL_OK);
    ck_assert_uint_eq(f.stmts[0].nliterals, 100002);
    ck_assert_int_eq(status_of(repeat("SELECT 1", ", b.c", 300000, "", ""), &f), SQL_OK);
    ck_assert_int_eq(status_of(repeat("SELECT * FROM t", ", t", 200000, "", ""), &f), SQL_OK);
    ck_assert_uint_eq(f.stmts[0].ntables, 200001);
    ck_assert_int_eq(status_of(repeat("SELECT 1 WHERE a", " AND a", 300000, "", ""), &f), SQL_OK);
    ck_assert_int_eq(status_of(repeat("", "SELECT 1;", 100000, "", ""), &f), SQL_OK);
    ck_assert_uint_eq(f.nstmts, 100000);
    ck_assert_int_eq(
        status_of(repeat("INSERT INTO t VALUES (1)", ", ('a')", 200000, "", ""), &f), SQL_OK);
}
END_TEST

START_TEST(ten_megabytes)
{
    struct sql_facts f;

    ck_assert_int_eq(status_of(repeat("SELECT '", "0123456789", 1000000, "'", ""), &f), SQL_OK);
    ck_assert_int_eq(status_of(repeat("SELECT * FROM ", "abcdefghi", 1000000, "", ""), &f), SQL_OK);
    ck_assert_uint_eq(f.stmts[0].tables[0].name.n, 63);
    /* Signs are operators one by one; each must not look at all that follow. */
    ck_assert_int_ne(status_of(repeat("SELECT 1 ", "+", 10000000, "", ""), &f), SQL_OK);
    ck_assert_int_eq(status_of(repeat("WITH t AS (SELECT 1 FROM t)", ", t AS (SELECT 1 FROM t)",
                                   200000, " TABLE t", ""),
                         &f),
        SQL_OK);
    ck_assert_uint_eq(f.stmts[0].ntables, 1);
}
END_TEST

START_TEST(an_arena_with_a_limit_fails_cleanly)
{
    struct arena *small;
    struct sql_facts f;
    struct slice text =
        repeat("SELECT f(1), 'a' FROM x.t", ", t, (SELECT g(2) FROM y.u) v", 100, "", "");
    bool done = false;

    for (size_t limit = 16; !done && limit < 400000; limit += 997) {
        small = arena_new("small", limit);
        (void)sql_parse(small, text, &f);
        done = f.status == SQL_OK;
        if (!done) {
            ck_assert_int_eq(f.status, SQL_NO_MEMORY);
            ck_assert_uint_eq(f.nstmts, 0);
        }
        arena_free(&small);
    }
    ck_assert(done);
}
END_TEST

START_TEST(accepts_what_postgres_accepts)
{
    static const char *const good[] = {"SELECT a NOT /* c */ LIKE 'x'", "SELECT 'a' -- c\n'b'",
        "SELECT 1 ORDER BY 1 NULLS /* c */ FIRST", "SELECT * FROM (SELECT 1)", "SELECT 0x1F, 1_000",
        "CREATE TABLE system_user (a int)",
        "CREATE FUNCTION json_value(a int) RETURNS int LANGUAGE sql AS ''",
        "SELECT json_value(a, b, c)", "SELECT JSON_VALUE(a, '$' ERROR ON ERROR)",
        "SELECT 1 AS year", "SELECT N'x', U&'\\0041', E'\\u00e4'", "SELECT a.b.c[1].*",
        "MERGE INTO t USING s ON true WHEN NOT MATCHED BY SOURCE THEN DELETE RETURNING *",
        "UPDATE t SET a = 1 RETURNING WITH (OLD AS o) o.*",
        "CREATE TABLE t (a int GENERATED ALWAYS AS (1) VIRTUAL, b int NOT ENFORCED)",
        "((SELECT 1))", "SELECT"};
    static const char *const bad[] = {"SELECT FROM FROM", "SELECT 1a", "SELECT 'a' 'b'",
        "(SELECT 1 LIMIT 1) LIMIT 2", "SELECT 1 FETCH FIRST ROW WITH TIES", "PGPOOL SHOW x",
        "SELECT E'\\u00'", "SELECT U&'\\d800'", "SELECT * FROM a.b.c.d", "SELECT \"\"",
        "CREATE TABLE t (a int COLLATE b COLLATE c)", "COPY t TO STDOUT WHERE a", "SELECT 1 +",
        "SELECT sum(1) OVER (ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW)", "SELECT a.*.b",
        "SELECT f(1, ORDER BY 2)", "CREATE USER a nologging", "SELECT 0x", "SELECT 1__0",
        "SELECT float(54) '1'", "CREATE TRIGGER t AFTER INSERT OR INSERT ON t EXECUTE FUNCTION f()",
        "EXPLAIN VACUUM", "SELECT $1a", "SET TIME ZONE INTERVAL '1' DAY"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ck_assert_msg(parse(good[i]).status == SQL_OK, "rejected: %s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(parse(bad[i]).status == SQL_SYNTAX, "accepted: %s", bad[i]);
}
END_TEST

START_TEST(says_where_it_went_wrong)
{
    struct sql_facts f = parse("SELECT 1 FROM t WHER a");

    ck_assert_int_eq(f.status, SQL_SYNTAX);
    ck_assert_uint_eq(f.error_offset, 21);
    ck_assert_str_eq(f.error, "syntax error");
    (void)sql_parse(arena, slice_of("SELECT\0 1", 9), &f);
    ck_assert_int_eq(f.status, SQL_SYNTAX);
    ck_assert_uint_eq(f.error_offset, 6);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("parser_limits");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, deep_nesting_is_an_error_not_a_crash);
    tcase_add_test(tc, long_lists_need_no_depth);
    tcase_add_test(tc, ten_megabytes);
    tcase_add_test(tc, an_arena_with_a_limit_fails_cleanly);
    tcase_add_test(tc, accepts_what_postgres_accepts);
    tcase_add_test(tc, says_where_it_went_wrong);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
