/* SPDX-License-Identifier: PostgreSQL
 * test_parser_fingerprint.c: what a fingerprint forgets and what it does not; the cache of facts.
 */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "parser/parser.h"
#include "parser/sql_cache.h"
#include "parser/sqlcomment.h"

#include "run_suite.h"

static struct arena *arena;

static void set_up(void)
{
    arena = arena_new("test", 0);
}

static void tear_down(void)
{
    arena_free(&arena);
}

static bool same(const char *a, const char *b)
{
    struct sql_fingerprint x;
    struct sql_fingerprint y;

    ck_assert_int_eq(sql_fingerprint(arena, slice_of_str(a), &x), 0);
    ck_assert_int_eq(sql_fingerprint(arena, slice_of_str(b), &y), 0);
    return x.hi == y.hi && x.lo == y.lo;
}

START_TEST(forgets_literals_and_layout)
{
    ck_assert(same("SELECT a FROM t WHERE b = 1", "select  A\n from T where b=/*x*/22 -- c"));
    ck_assert(same("SELECT 'a'", "SELECT E'b\\n'"));
    ck_assert(same("SELECT 'a'", "SELECT $x$b$x$"));
    ck_assert(same("SELECT 1 WHERE a IN (1)", "SELECT 1 WHERE a IN (1, 2,3 , -4)"));
    ck_assert(same("SELECT 1 WHERE a IN ('x', 'y')", "SELECT 1 WHERE a IN ('z')"));
    ck_assert(same("SELECT a FROM t", "SELECT a FROM t;"));
    ck_assert(same("SELECT a FROM t", "SELECT a FROM t ; ; -- end"));
    ck_assert(same("SELECT $1 WHERE a IN (1)", "SELECT $1 WHERE a IN (1, 2);"));
    ck_assert(same("BEGIN; SELECT 1", "begin;select 2;"));
    ck_assert(same("SELECT E'a'", "SELECT E'b';")); /* by the scanner */
}
END_TEST

START_TEST(keeps_everything_else)
{
    ck_assert(!same("SELECT a", "SELECT b"));
    ck_assert(!same("SELECT \"a\"", "SELECT \"A\""));
    ck_assert(!same("SELECT f(1)", "SELECT f(1, 2)"));
    ck_assert(!same("SELECT $1", "SELECT $2"));
    ck_assert(!same("SELECT 1", "SELECT '1'"));
    ck_assert(!same("SELECT a < b", "SELECT a > b"));
    ck_assert(!same("SELECT a || b", "SELECT a && b"));
    ck_assert(!same("SELECT 1 WHERE a IN ($1)", "SELECT 1 WHERE a IN ($1, $2)"));
    ck_assert(!same("SELECT 1 WHERE a IN (1, b)", "SELECT 1 WHERE a IN (1)"));
    ck_assert(!same("SELECT \xc3\x84", "SELECT \xc3\xa4")); /* not ASCII: not folded */
    ck_assert(!same("SELECT abcdefghijklmnopqrstuvwxyz1", "SELECT abcdefghijklmnopqrstuvwxyz2"));
    ck_assert(!same("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1), (2)"));
    ck_assert(!same("BEGIN; SELECT 1", "BEGIN SELECT 1"));
    ck_assert(!same("; SELECT 1", "SELECT 1"));
    ck_assert(!same("SELECT 1 WHERE a IN (1, ;2)", "SELECT 1 WHERE a IN (1, 2)"));
}
END_TEST

/* The text without values; "-" where there is none. */
static const char *masked(const char *sql)
{
    static struct buf text;

    if (sql_mask(arena, slice_of_str(sql), 100, &text) != 0)
        return "-";
    buf_put_byte(&text, '\0');
    return text.data;
}

START_TEST(values_are_masked)
{
    ck_assert_str_eq(masked("select 1"), "select $1");
    ck_assert_str_eq(masked("  SELECT 'a''b' ,\n\tx\"Y\" -- 'c'\n/* 1 */ ;"), "SELECT $1 , x\"Y\"");
    ck_assert_str_eq(masked("select $2, 'v', $1, 7"), "select $2, $3, $1, $4");
    ck_assert_str_eq(
        masked("select $b$ secret $b$, E'\\'x', U&'y' uescape '!', b'1', x'F', 1e5, .5"),
        "select $1, $2, $3 uescape $4, $5, $6, $7, $8");
    ck_assert_str_eq(masked("alter role r password 'secret'"), "alter role r password $1");
    ck_assert_str_eq(
        masked("select a in (1, -2, 'x') and b in (1)"), "select a in ($1, ...) and b in ($2)");
    ck_assert_str_eq(masked("select a in (1, b, 2)"), "select a in ($1, b, $2)");
    ck_assert_str_eq(masked("select 'secret"), "-");
    ck_assert_str_eq(masked("select \"broken"), "-");
    ck_assert_str_eq(masked("begin; select 1;;"), "begin; select $1");
    ck_assert_str_eq(masked(";"), "");
    ck_assert_str_eq(masked(""), "");
}
END_TEST

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"
#define WHOLE "00-" TRACE "-" SPAN "-01"

START_TEST(comments_have_traces)
{
    static const struct {
        const char *sql;
        bool is_there;
    } table[] = {
        {"select 1 /*traceparent='" WHOLE "'*/", true},
        {"select 1 /*db_driver='x',route='%2Fa',traceparent='" WHOLE "',tracestate='a'*/;", true},
        {"/*traceparent='" WHOLE "'*/ select 1", true},
        {"select 1", false},
        {"", false},
        {"select 1 /*traceparent='" WHOLE, false},
        {"select 1 /*traceparent='" WHOLE "x'*/", false},
        {"select 1 /*traceparent='00_" TRACE "-" SPAN "-01'*/", false},
        {"select 1 /*traceparent='00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01'*/", false},
        {"select 1 /*traceparent='00-00000000000000000000000000000000-" SPAN "-01'*/", false},
        {"select 1 /*traceparent='00-" TRACE "-0000000000000000-01'*/", false},
        {"select 1 /*traceparent='", false},
    };
    struct sql_trace found;
    size_t i;

    for (i = 0; i < sizeof table / sizeof table[0]; i++) {
        bool is_there = sqlcomment_trace(slice_of_str(table[i].sql), &found);

        ck_assert_msg(is_there == table[i].is_there, "%s", table[i].sql);
        ck_assert_str_eq(found.trace_id, is_there ? TRACE : "");
        ck_assert_str_eq(found.span_id, is_there ? SPAN : "");
    }
}
END_TEST

/* What is cut is cut behind a token: there is never half a value. */
START_TEST(a_long_text_is_cut)
{
    static struct buf text;
    struct buf sql = {0};
    int i;

    buf_printf(&sql, "select ");
    for (i = 0; i < 1000; i++)
        buf_printf(&sql, "%s'secret'", i == 0 ? "" : " || ");
    ck_assert_int_eq(sql_mask(arena, buf_slice(&sql), 100, &text), 0);
    ck_assert_uint_ge(text.len, 100);
    ck_assert_uint_lt(text.len, 120);
    ck_assert_ptr_null(memmem(text.data, text.len, "secret", 6));
    buf_free(&sql);
}
END_TEST

/* Numbers are kept with what differs in values alone, and go with it. */
START_TEST(cache_keeps_notes)
{
    struct sql_cache *c = sql_cache_new(10, 100000);
    struct sql_fingerprint fp;
    struct arena *scratch = arena_new("test", 0);
    struct slice sql = slice_of_str("select abalance from accounts where aid = 17");
    struct slice like = slice_of_str("select abalance from accounts where aid = 4");
    struct slice other = slice_of_str("select abalance from accounts where bid = 17");
    bool same_layout;
    uint32_t *notes;

    ck_assert_ptr_null(sql_cache_notes(c, sql, 100));
    ck_assert_int_eq(sql_cache_fingerprint(c, sql, 100, &fp), 0);
    notes = sql_cache_notes(c, sql, 100);
    ck_assert_ptr_nonnull(notes);
    ck_assert_uint_eq(notes[0] + notes[SQL_CACHE_NOTES - 1], 0);
    notes[1] = 5;
    ck_assert_uint_eq(sql_cache_notes(c, like, 100)[1], 5);
    ck_assert_ptr_null(sql_cache_notes(c, like, 10));
    (void)sql_cache_get(c, scratch, like, &same_layout);
    ck_assert_uint_eq(sql_cache_notes(c, like, 10)[1], 5);
    (void)sql_cache_get(c, scratch, other, &same_layout);
    (void)sql_cache_get(c, scratch, other, &same_layout);
    ck_assert_uint_eq(sql_cache_notes(c, other, 10)[1], 0);
    arena_free(&scratch);
    sql_cache_free(&c);
}
END_TEST

/* The text asked about last costs nothing, and its fingerprint is that of any like it. */
START_TEST(cache_tells_fingerprints)
{
    struct sql_cache *c = sql_cache_new(10, 100000);
    struct sql_fingerprint a;
    struct sql_fingerprint b;
    struct arena *scratch = arena_new("test", 0);
    struct slice sql = slice_of_str("select a from t where b = 17 and c = 'x'");
    bool same_layout;

    (void)sql_cache_get(c, scratch, sql, &same_layout);
    ck_assert_int_eq(sql_cache_fingerprint(c, sql, 0, &a), 0);
    ck_assert_int_eq(
        sql_cache_fingerprint(c, slice_of_str("select a from t where b=1 and c=''"), 100, &b), 0);
    ck_assert(a.hi == b.hi && a.lo == b.lo);
    ck_assert_int_eq(sql_cache_fingerprint(c, slice_of_str("select 12345"), 11, &b), -1);
    ck_assert_int_eq(sql_cache_fingerprint(c, slice_of_str("select 'x"), 100, &b), -1);
    arena_free(&scratch);
    sql_cache_free(&c);
}
END_TEST

START_TEST(broken_tokens_have_none)
{
    struct sql_fingerprint fp;

    ck_assert_int_eq(sql_fingerprint(arena, slice_of_str("SELECT 'a"), &fp), -1);
    ck_assert_int_eq(sql_fingerprint(arena, slice_of_str("SELECT /* a"), &fp), -1);
    ck_assert_int_eq(sql_fingerprint(arena, slice_of("a\0b", 3), &fp), -1);
    ck_assert_uint_eq(arena_used(arena), 0);
}
END_TEST

static const struct sql_facts *get(struct sql_cache *c, const char *text, bool *layout)
{
    return sql_cache_get(c, arena, slice_of_str(text), layout);
}

START_TEST(cache_answers_by_fingerprint)
{
    struct sql_cache *c = sql_cache_new(10, 1 << 20);
    struct sql_cache_stats stats;
    const struct sql_facts *f;
    bool layout;

    f = get(c, "SELECT lower(x) FROM s.\"T\" WHERE a = 1", &layout);
    ck_assert(layout);
    f = get(c, "SELECT lower(x) FROM s.\"T\" WHERE a = 7", &layout);
    ck_assert(layout);
    arena_reset(arena); /* the facts do not live there */
    f = get(c, "select LOWER(x) from s.\"T\" where a = 12345", &layout);
    ck_assert(!layout);
    ck_assert_uint_eq(f->stmts[0].ntables, 1);
    ck_assert(slice_eq_str(f->stmts[0].tables[0].name, "T"));
    ck_assert(slice_eq_str(f->stmts[0].tables[0].schema, "s"));
    ck_assert(slice_eq_str(f->stmts[0].funcs[0].name, "lower"));
    sql_cache_stats(c, &stats);
    ck_assert_uint_eq(stats.hits, 2);
    ck_assert_uint_eq(stats.misses, 1);
    ck_assert_uint_eq(stats.entries, 1);
    sql_cache_free(&c);
    ck_assert_ptr_null(c);
}
END_TEST

/* What was copied stays when the cache has forgotten it. */
START_TEST(facts_are_copied)
{
    static const char sql[] = "DECLARE c CURSOR FOR SELECT lower(x), now(), 'y' FROM s.\"T\"";
    struct sql_cache *c = sql_cache_new(10, 1 << 20);
    struct arena *kept = arena_new("kept", 0);
    struct sql_facts copy;
    bool layout;

    (void)get(c, sql, &layout);
    ck_assert_ptr_nonnull(get(c, sql, &layout)->verdict);
    ck_assert_int_eq(sql_facts_copy(kept, get(c, sql, &layout), &copy), 0);
    sql_cache_free(&c);
    arena_reset(arena);
    ck_assert_ptr_null(copy.verdict);
    ck_assert_ptr_null(copy.traits);
    ck_assert_uint_eq(copy.nstmts, 1);
    ck_assert(copy.stmts[0].kind == SQL_DECLARE && slice_eq_str(copy.stmts[0].name, "c"));
    ck_assert(slice_eq_str(copy.stmts[0].tables[0].schema, "s"));
    ck_assert(slice_eq_str(copy.stmts[0].tables[0].name, "T"));
    ck_assert(slice_eq_str(copy.stmts[0].funcs[0].name, "lower"));
    ck_assert(copy.stmts[0].ntimes == 1 && copy.stmts[0].times[0].kind == SQL_TIME_NOW);
    ck_assert(copy.stmts[0].nliterals == 1 && copy.stmts[0].literals[0].kind == SQL_LIT_STRING);
    arena_free(&kept);
}
END_TEST

/* Texts that come again letter by letter, with others of the same fingerprint between them, and so
 * many that they drive each other out. */
START_TEST(cache_answers_by_text)
{
    struct sql_cache *c = sql_cache_new(10, 1 << 20);
    const struct sql_facts *f;
    bool layout;

    for (int i = 0; i < 20000; i++) {
        int n = i % 2000;
        const char *text = n % 2 ? arena_printf(arena, "select c from t%d where a = $1", n / 20)
                                 : arena_printf(arena, "delete from  t%d where b = %d", n / 20, n);

        f = get(c, text, &layout);
        ck_assert_uint_eq(f->stmts[0].kind, n % 2 ? SQL_SELECT : SQL_DELETE);
        ck_assert(slice_eq_str(f->stmts[0].tables[0].name, arena_printf(arena, "t%d", n / 20)));
        arena_reset(arena);
    }
    get(c, "select a from t where b = 1", &layout);
    for (int i = 0; i < 3; i++) {
        get(c, "select  a from t where b = 22", &layout);
        ck_assert(!layout);
        get(c, "select a from t where b = 1", &layout);
        ck_assert(layout);
    }
    sql_cache_free(&c);
}
END_TEST

START_TEST(what_depends_on_a_literal_is_parsed_each_time)
{
    static const char *const texts[] = {"SELECT set_config('a', 'b', false)", "SET a = 'b'",
        "EXPLAIN (ANALYZE 'off') DELETE FROM t", "PREPARE TRANSACTION 'x'", "SELECT 'a",
        "SELECT setval('s', 1)", "TABLE U&\"d!0061t\" UESCAPE '!'", "SELECT U&'\\0041'"};
    struct sql_cache *c = sql_cache_new(10, 1 << 20);
    struct sql_cache_stats stats;
    bool layout;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        get(c, texts[i], &layout);
        get(c, texts[i], &layout);
    }
    ck_assert(
        get(c, "EXPLAIN (ANALYZE 'off') DELETE FROM t", &layout)->stmts[0].flags & SQL_F_READ_ONLY);
    ck_assert(!(
        get(c, "EXPLAIN (ANALYZE 'on') DELETE FROM t", &layout)->stmts[0].flags & SQL_F_READ_ONLY));
    ck_assert_int_eq(get(c, "SELECT U&'\\0041'", &layout)->status, SQL_OK);
    ck_assert_int_eq(get(c, "SELECT U&'\\d800'", &layout)->status, SQL_SYNTAX);
    sql_cache_stats(c, &stats);
    ck_assert_uint_eq(stats.hits, 0);
    ck_assert_uint_eq(stats.entries, 0);
    ck_assert_uint_eq(stats.uncacheable, 20);
    sql_cache_free(&c);
}
END_TEST

START_TEST(cache_is_bounded)
{
    struct sql_cache *c = sql_cache_new(5, 1 << 20);
    struct sql_cache_stats stats;
    bool layout;

    for (int i = 0; i < 50; i++) {
        get(c, arena_printf(arena, "SELECT c%d FROM t", i), &layout);
        get(c, "SELECT favourite FROM t", &layout);
    }
    sql_cache_stats(c, &stats);
    ck_assert_uint_eq(stats.entries, 5);
    ck_assert_uint_eq(stats.hits, 49); /* the one in use stays */
    ck_assert_uint_eq(stats.evictions, 46);
    sql_cache_free(&c);

    c = sql_cache_new(1000, 20000);
    for (int i = 0; i < 200; i++)
        get(c, arena_printf(arena, "SELECT c%d FROM t", i), &layout);
    sql_cache_stats(c, &stats);
    ck_assert_uint_le(stats.bytes, 20000);
    ck_assert_uint_gt(stats.entries, 5);
    sql_cache_free(&c);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("parser_fingerprint");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, forgets_literals_and_layout);
    tcase_add_test(tc, keeps_everything_else);
    tcase_add_test(tc, values_are_masked);
    tcase_add_test(tc, comments_have_traces);
    tcase_add_test(tc, a_long_text_is_cut);
    tcase_add_test(tc, cache_tells_fingerprints);
    tcase_add_test(tc, cache_keeps_notes);
    tcase_add_test(tc, broken_tokens_have_none);
    tcase_add_test(tc, cache_answers_by_fingerprint);
    tcase_add_test(tc, facts_are_copied);
    tcase_add_test(tc, cache_answers_by_text);
    tcase_add_test(tc, what_depends_on_a_literal_is_parsed_each_time);
    tcase_add_test(tc, cache_is_bounded);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
