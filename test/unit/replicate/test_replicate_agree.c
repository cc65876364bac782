/* SPDX-License-Identifier: PostgreSQL
 * test_replicate_agree.c: answers of several nodes, and locks. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "replicate/agree.h"
#include "replicate/locks.h"
#include "replicate/reads.h"

#include "run_suite.h"

static const struct agree_rules stops = {.stop_on_mismatch = true, .compares_rows = true};
static const struct agree_rules refuses = {.stop_on_mismatch = false};
static const struct agree_rules counts = {.failover_if_tuples = true};

/* An answer in a word: its kind, "C" with a number of rows, and behind a point the rows. */
static const struct {
    const char *answers[4];
    unsigned main;
    const struct agree_rules *rules;
    enum agree_verdict verdict;
    unsigned stands;
    uint64_t minority;
    enum agree_action action;
} rows[] = {
    {{"C3", "C3"}, 0, &refuses, AGREE_SAME, 0, 0, AGREE_GO_ON},
    {{"E", "E", "E"}, 1, &stops, AGREE_SAME, 1, 0, AGREE_GO_ON},
    {{"C", "E"}, 0, &refuses, AGREE_KINDS, 0, 2, AGREE_END},
    {{"C", "E"}, 1, &stops, AGREE_KINDS, 1, 1, AGREE_DETACH},
    {{"C", "E", "C"}, 0, &stops, AGREE_KINDS, 0, 2, AGREE_DETACH},
    {{"C", "E", "E"}, 0, &stops, AGREE_KINDS, 1, 1, AGREE_DETACH},
    {{"C", "E", "T"}, 2, &stops, AGREE_KINDS, 2, 3, AGREE_DETACH},
    {{"C1", "C2"}, 0, &refuses, AGREE_TUPLES, 0, 2, AGREE_REFUSE},
    {{"C1", "C2", "C2"}, 0, &counts, AGREE_TUPLES, 1, 1, AGREE_DETACH},
    {{"C1", "C2", "C1"}, 2, &counts, AGREE_TUPLES, 2, 2, AGREE_DETACH},
    {{"C1.a", "C1.b", "C1.a"}, 0, &stops, AGREE_ROWS, 0, 2, AGREE_DETACH},
    {{"C1.a", "C1.b"}, 0, &refuses, AGREE_SAME, 0, 0, AGREE_GO_ON},
    {{"C1"}, 0, &stops, AGREE_SAME, 0, 0, AGREE_GO_ON},
};

static unsigned read_answers(const char *const *words, struct agree_answer *answers)
{
    static struct agree_rows told[4];
    unsigned n;

    for (n = 0; n < 4 && words[n] != NULL; n++) {
        const char *dot = strchr(words[n], '.');

        answers[n] = (struct agree_answer){.node = (int)n + 1, .kind = words[n][0]};
        answers[n].has_tuples = words[n][1] != '\0';
        answers[n].ntuples = words[n][1] == '\0' ? 0 : (uint64_t)(words[n][1] - '0');
        told[n] = (struct agree_rows){0};
        if (dot != NULL) {
            agree_rows_add(&told[n], dot + 1, 1);
            agree_rows_end(&told[n]);
        }
        answers[n].rows = &told[n];
        answers[n].text = slice_of_str("23505: twice");
    }
    return n;
}

START_TEST(judgements)
{
    struct agree_answer answers[4];
    struct agree_result result;
    unsigned n = read_answers(rows[_i].answers, answers);

    agree_judge(answers, n, rows[_i].main, rows[_i].rules, &result);
    ck_assert_int_eq(result.verdict, rows[_i].verdict);
    ck_assert_uint_eq(result.main, rows[_i].stands);
    ck_assert_uint_eq(result.minority, rows[_i].minority);
    ck_assert(result.main_differs == ((rows[_i].minority >> rows[_i].main & 1) != 0));
    ck_assert_int_eq(agree_what_to_do(&result, rows[_i].rules), rows[_i].action);
}
END_TEST

START_TEST(texts)
{
    static const char *const kinds[] = {"C", "E", "C", NULL};
    static const char *const tuples[] = {"C1", "C2", NULL};
    struct agree_answer answers[4];
    struct agree_result result;
    struct buf out = {0};
    unsigned n = read_answers(kinds, answers);

    agree_judge(answers, n, 0, &stops, &result);
    agree_put_log(answers, n, &result, 1, &out);
    ck_assert(slice_eq_str(buf_slice(&out), "packet kind of backend 2 ['E'] does not match with "
                                            "main/majority nodes packet kind ['C']"));
    buf_clear(&out);
    agree_put_error(answers, n, &result, slice_of_str("SELECT 1"), &out);
    ck_assert(slice_eq_str(buf_slice(&out),
        "kind mismatch among backends. Possible last query was: \"SELECT 1\" kind details are: "
        "1[C] 2[E: 23505: twice] 3[C]"));
    buf_clear(&out);
    n = read_answers(tuples, answers);
    agree_judge(answers, n, 0, &refuses, &result);
    agree_put_log(answers, n, &result, 1, &out);
    ck_assert(slice_eq_str(buf_slice(&out), "CommandComplete: Number of affected tuples are: 1 2"));
    buf_clear(&out);
    agree_put_error(answers, n, &result, slice_of_str("x"), &out);
    ck_assert(slice_eq_str(buf_slice(&out),
        "pgpool detected difference of the number of inserted, updated or deleted tuples. "
        "Possible last query was: \"x\""));
    buf_clear(&out);
    n = read_answers(rows[10].answers, answers);
    agree_judge(answers, n, 0, &stops, &result);
    agree_put_log(answers, n, &result, 1, &out);
    buf_put_byte(&out, '\0');
    ck_assert_ptr_nonnull(strstr(out.data, "rows of backend 2 (1 rows, digest "));
    ck_assert_ptr_nonnull(
        strstr(out.data, ", first b) are not those of main/majority nodes, as of backend 1 "));
    ck_assert_ptr_nonnull(strstr(out.data, ", first a)"));
    buf_free(&out);
}
END_TEST

/* Rows in another order and in other pieces are the same; twice a row is not none. */
START_TEST(digests)
{
    static const char *const pieces[][8] = {{"ab", "|", "c", "|"}, {"c", "|", "a", "b", "|"},
        {"a", "|", "bc", "|"}, {"ab", "|", "c", "|", "c", "|", "c", "|"}, {"|", "|"}};
    struct agree_rows got[5] = {{0}};

    for (unsigned i = 0; i < 5; i++) {
        for (unsigned k = 0; k < 8 && pieces[i][k] != NULL; k++) {
            if (pieces[i][k][0] == '|')
                agree_rows_end(&got[i]);
            else
                agree_rows_add(&got[i], pieces[i][k], strlen(pieces[i][k]));
        }
    }
    ck_assert_uint_eq(got[0].digest, got[1].digest);
    ck_assert_uint_ne(got[0].digest, got[2].digest);
    ck_assert_uint_ne(got[0].digest, got[3].digest);
    ck_assert_uint_ne(got[0].digest, got[4].digest);
    ck_assert_uint_eq(got[0].n, 2);
    ck_assert_uint_eq(got[0].nsample, 2);
}
END_TEST

START_TEST(tags)
{
    uint64_t n = 0;

    ck_assert(agree_tag_tuples(slice_of_str("INSERT 0 12"), &n) && n == 12);
    ck_assert(agree_tag_tuples(slice_of_str("UPDATE 0"), &n) && n == 0);
    ck_assert(!agree_tag_tuples(slice_of_str("BEGIN"), &n));
    ck_assert(!agree_tag_tuples(slice_of_str(""), &n));
}
END_TEST

static const struct {
    const char *sql;
    bool insert_lock;
    bool serial;
    bool locks;
} locking[] = {
    {"INSERT INTO t VALUES (1)", true, true, true},
    {"INSERT INTO t VALUES (1)", true, false, false},
    {"INSERT INTO t VALUES (1)", false, true, false},
    {"/*NO INSERT LOCK*/ INSERT INTO t VALUES (1)", true, true, false},
    {"/* insert lock */ INSERT INTO t VALUES (1)", false, false, true},
    {"WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * FROM x", true, true, true},
    {"/*INSERT LOCK*/ UPDATE t SET a = 1", true, true, false},
    {"/*INSERT LOCK*/ SELECT 1", true, true, false},
};

START_TEST(insert_locks)
{
    struct arena *arena = arena_new("test", 0);
    struct slice text = slice_of_str(locking[_i].sql);
    struct sql_facts facts;

    ck_assert_int_eq(sql_parse(arena, text, &facts), 0);
    ck_assert(repl_must_lock(text, &facts.stmts[0], locking[_i].insert_lock, locking[_i].serial) ==
              locking[_i].locks);
    arena_free(&arena);
}
END_TEST

/* What a write reads; with a star what it writes to, too. */
static const struct {
    const char *sql;
    const char *reads;
} reading[] = {
    {"UPDATE t SET a = 1 WHERE b = (SELECT min(b) FROM t)", "t* "},
    {"UPDATE t SET a = 1 WHERE b = (SELECT min(b) FROM x.t)", "x.t* "},
    {"UPDATE t SET a = 1 FROM u, u AS v, x.u WHERE t.b = u.b", "u x.u "},
    {"DELETE FROM t USING u WHERE t.b = u.b", "u "},
    {"INSERT INTO t SELECT * FROM u", "u "},
    {"INSERT INTO t VALUES ((SELECT b FROM u), 2)", "u "},
    {"MERGE INTO t USING u ON t.b = u.b WHEN MATCHED THEN DELETE", "u "},
    {"WITH j AS (SELECT b FROM u) UPDATE t SET a = 1 FROM j WHERE j.b = t.b", "u "},
    {"WITH d AS (DELETE FROM t RETURNING *) SELECT count(*) FROM d, u", "u "},
    {"CREATE TABLE n AS SELECT * FROM u", "u "},
    {"SELECT * INTO n FROM u", "u "},
    {"EXPLAIN ANALYZE DELETE FROM t WHERE a IN (SELECT a FROM u)", "u "},
    {"EXPLAIN DELETE FROM t WHERE a IN (SELECT a FROM u)", ""},
    {"EXPLAIN ANALYZE SELECT * FROM u", ""},
    {"DELETE FROM t WHERE a > 5", ""},
    {"DELETE FROM t WHERE a IN (SELECT oid FROM pg_catalog.pg_class)", ""},
    {"INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2", ""},
    {"SELECT * FROM u FOR UPDATE", ""},
    {"CREATE VIEW n AS SELECT * FROM u", ""},
};

START_TEST(tables_that_are_read)
{
    struct arena *arena = arena_new("test", 0);
    const struct sql_table *t;
    struct sql_facts facts;
    struct buf out = {0};
    uint32_t at = 0;

    ck_assert_int_eq(sql_parse(arena, slice_of_str(reading[_i].sql), &facts), 0);
    while ((t = repl_reads_next(&facts.stmts[0], &at)) != NULL)
        buf_printf(&out, "%.*s%s%.*s%s ", (int)t->schema.n, t->schema.p, t->schema.n > 0 ? "." : "",
            (int)t->name.n, t->name.p, repl_reads_target(&facts.stmts[0], t) ? "*" : "");
    buf_put_byte(&out, '\0');
    ck_assert_str_eq(out.data, reading[_i].reads);
    buf_free(&out);
    arena_free(&arena);
}
END_TEST

/* t, u: tables; v: a view; d: a table that the user may only read; p: one of his own; others are
 * not known. */
static const struct repl_table *find(void *ctx, const struct sql_table *t)
{
    static const struct repl_table table = {.can_lock = true, .is_shared = true};
    static const struct repl_table view = {.is_view = true, .can_lock = true, .is_shared = true};
    static const struct repl_table denied = {.is_shared = true};
    static const struct repl_table own = {.can_lock = false};

    (void)ctx;
    switch (t->name.p[0]) {
    case 't':
    case 'u':
        return &table;
    case 'v':
        return &view;
    case 'd':
        return &denied;
    case 'p':
        return &own;
    default:
        return NULL;
    }
}

static const struct {
    const char *sql;
    enum repl_reads_rule rule;
    bool skips;
    const char *locks;
    const char *differs;
} planned[] = {
    {"UPDATE t SET a = 1 FROM t AS x, u", REPL_READS_LOCKED, false,
        "LOCK TABLE \"t\" IN SHARE ROW EXCLUSIVE MODE;LOCK TABLE \"u\" IN SHARE MODE;", ""},
    {"UPDATE t SET a = 1 FROM t AS x, u", REPL_READS_TARGET, false,
        "LOCK TABLE \"t\" IN SHARE ROW EXCLUSIVE MODE;", "reading u"},
    {"UPDATE t SET a = 1 FROM t AS x, u", REPL_READS_NAMED, false, "", "reading t"},
    {"UPDATE t SET a = 1 FROM t AS x, u", REPL_READS_SAME, false, "", ""},
    {"UPDATE t SET a = 1 FROM t AS x, u", REPL_READS_SAME, true, "", "SKIP LOCKED"},
    {"UPDATE t SET a = 1 FROM t AS x, u", REPL_READS_LOCKED, true,
        "LOCK TABLE \"t\", \"u\" IN EXCLUSIVE MODE;", ""},
    {"DELETE FROM t USING v", REPL_READS_TARGET, false,
        "LOCK TABLE \"v\" IN SHARE ROW EXCLUSIVE MODE;", ""},
    {"INSERT INTO t SELECT * FROM d, u", REPL_READS_LOCKED, false,
        "LOCK TABLE \"u\" IN SHARE MODE;", "reading d"},
    {"INSERT INTO t SELECT * FROM p", REPL_READS_LOCKED, false, "", ""},
    {"INSERT INTO t SELECT * FROM u, x", REPL_READS_LOCKED, false, "", "?x"},
    {"SELECT * FROM x", REPL_READS_LOCKED, false, "", ""},
};

START_TEST(locks_of_what_is_read)
{
    struct arena *arena = arena_new("test", 0);
    struct repl_catalog catalog = {find, NULL};
    struct repl_plan plan = {.skips_locked = planned[_i].skips};
    struct sql_facts facts;
    struct buf out = {0};

    ck_assert_int_eq(sql_parse(arena, slice_of_str(planned[_i].sql), &facts), 0);
    if (repl_reads_plan(arena, &facts.stmts[0], &catalog, planned[_i].rule, &plan) == REPL_ASK)
        plan.differs =
            slice_of_str(arena_printf(arena, "?%.*s", (int)plan.table->name.n, plan.table->name.p));
    for (uint32_t i = 0; i < plan.nlocks; i++)
        buf_printf(&out, "%.*s;", (int)plan.locks[i].n, plan.locks[i].p);
    buf_put_byte(&out, '\0');
    ck_assert_str_eq(out.data, planned[_i].locks);
    ck_assert(slice_eq_str(plan.differs, planned[_i].differs));
    buf_free(&out);
    arena_free(&arena);
}
END_TEST

START_TEST(function_calls)
{
    static const char creat[] = "\0\0\3\275\0\1\0\1\0\1\0\0\0\4\377\377\377\377\0\1";
    static const char create_0[] = "\0\0\2\313\0\1\0\1\0\1\0\0\0\4\0\0\0\0\0\1";
    static const char create_9[] = "\0\0\2\313\0\1\0\1\0\1\0\0\0\4\0\0\0\11\0\1";
    static const char want[] = "\0\0\2\313\0\1\0\1\0\1\0\0\0\4\0\0N \0\1";
    struct buf out = {0};

    ck_assert(repl_lobj_function_call(slice_of(creat, sizeof creat - 1), 20000, &out));
    ck_assert(slice_eq(buf_slice(&out), slice_of(want, sizeof want - 1)));
    buf_clear(&out);
    ck_assert(repl_lobj_function_call(slice_of(create_0, sizeof create_0 - 1), 20000, &out));
    ck_assert(slice_eq(buf_slice(&out), slice_of(want, sizeof want - 1)));
    buf_clear(&out);
    ck_assert(!repl_lobj_function_call(slice_of(create_9, sizeof create_9 - 1), 20000, &out));
    for (size_t n = 0; n < sizeof creat - 1; n++)
        ck_assert(!repl_lobj_function_call(slice_of(creat, n), 20000, &out));
    ck_assert_uint_eq(out.len, 0);
    ck_assert(repl_is_lobj_function(slice_of(create_9, sizeof create_9 - 1)));
    ck_assert(!repl_is_lobj_function(slice_of("\0\0\0\1", 4)));
    ck_assert(!repl_is_lobj_function(slice_of("\0\0", 2)));
    buf_free(&out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replicate_agree");
    TCase *tc = tcase_create("agree");

    tcase_add_loop_test(tc, judgements, 0, sizeof rows / sizeof rows[0]);
    tcase_add_test(tc, texts);
    tcase_add_test(tc, digests);
    tcase_add_test(tc, tags);
    tcase_add_loop_test(tc, insert_locks, 0, sizeof locking / sizeof locking[0]);
    tcase_add_loop_test(tc, tables_that_are_read, 0, sizeof reading / sizeof reading[0]);
    tcase_add_loop_test(tc, locks_of_what_is_read, 0, sizeof planned / sizeof planned[0]);
    tcase_add_test(tc, function_calls);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
