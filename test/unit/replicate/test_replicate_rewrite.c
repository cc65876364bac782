/* SPDX-License-Identifier: PostgreSQL
 * test_replicate_rewrite.c: statements and what runs on every node in their place. That servers
 * agree with it is shown by test/cluster/test_native_rewrite.py. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "replicate/nature.h"
#include "replicate/rewrite.h"

#include "run_suite.h"

#define S(x)                                                                                       \
    {                                                                                              \
        x, sizeof(x) - 1                                                                           \
    }

static const struct repl_column t_columns[] = {
    {S("id"), S("integer"), {"", 0}, false, false},
    {S("at"), S("timestamp with time zone"), S("now()"), false, false},
    {S("day"), S("date"), S("CURRENT_DATE"), false, false},
    {S("note"), S("text"), S("'x'::text"), false, false},
    {S("u"), S("uuid"), S("gen_random_uuid()"), false, false},
};
static const struct repl_column s_columns[] = {
    {S("id"), S("integer"), S("nextval('s_id_seq'::regclass)"), false, true},
    {S("v"), S("integer"), {"", 0}, false, false},
};
static const struct repl_column plain_columns[] = {
    {S("a"), S("integer"), {"", 0}, false, false},
    {S("b"), S("integer"), S("7"), false, false},
    {S("w"), S("timestamp without time zone"), {"", 0}, false, false},
};
static const struct repl_table tables[] = {{t_columns, 5, 0, false, true, true},
    {s_columns, 2, 0, false, true, true}, {plain_columns, 3, 0, false, true, true}};
static const struct repl_column old_columns[] = {
    {S("at"), S("timestamp without time zone"), S("('now'::text)::timestamp"), false, false},
};
static const struct repl_table old = {old_columns, 1, 0, false, true, true};
static const struct repl_column identity_columns[] = {
    {S("i d"), S("integer"), {"", 0}, false, true},
};
static const struct repl_table identity = {identity_columns, 1, 0, false, true, true};
static const struct repl_table none = {NULL, 0, 0, false, true, true};
/* A view of the first three columns of t. */
static const struct repl_table view = {t_columns, 3, 2, true, true, true};

static const struct repl_table *find(void *ctx, const struct sql_table *table)
{
    (void)ctx;
    if (slice_eq_str(table->name, "t"))
        return &tables[0];
    if (slice_eq_str(table->name, "s"))
        return &tables[1];
    if (slice_eq_str(table->name, "plain"))
        return &tables[2];
    if (slice_eq_str(table->name, "only_id"))
        return &identity;
    if (slice_eq_str(table->name, "old"))
        return &old;
    if (slice_eq_str(table->name, "view"))
        return &view;
    return slice_eq_str(table->name, "unknown") ? NULL : &none;
}

static const struct repl_catalog catalog = {find, NULL};

static const struct {
    const char *sql;
    const char *want;
} rows[] = {
#define ROW(sql, want) {sql, want},
#include "rewrite_rows.def"
#undef ROW
};

static struct arena *arena;
static struct sql_facts facts;
static struct repl_plan plan;

static void setup(void)
{
    arena = arena_new("test", 0);
}

static void teardown(void)
{
    arena_free(&arena);
}

static void plan_for(const char *sql, bool is_parse)
{
    ck_assert_int_eq(sql_parse(arena, slice_of_str(sql), &facts), 0);
    (void)repl_rewrite_plan(
        arena, slice_of_str(sql), &facts.stmts[0], &catalog, is_parse, 0, &plan);
}

static char *text(const char *sql)
{
    struct slice values[16];
    struct buf out = {0};
    char *copy;

    for (unsigned i = 0; i < 16; i++)
        values[i] = slice_of_str(arena_printf(arena, "v%u", i));
    repl_rewrite_text(&plan, slice_of_str(sql), &facts.stmts[0], values, &out);
    copy = arena_strndup(arena, out.data, out.len);
    buf_free(&out);
    return copy;
}

START_TEST(statements)
{
    const char *sql = rows[_i].sql;

    plan_for(sql, false);
    if (rows[_i].want == NULL) {
        ck_assert_msg(plan.verdict == REPL_KEEP, "%s: %s", sql, text(sql));
        return;
    }
    ck_assert_msg(plan.verdict == REPL_REWRITE, "%s", sql);
    ck_assert_str_eq(text(sql), rows[_i].want);
    ck_assert_int_eq(sql_parse(arena, slice_of_str(text(sql)), &facts), 0);
}
END_TEST

static const struct {
    const char *sql;
    const char *differs;
} doubtful[] = {
    {"UPDATE plain SET a = random()", "random"},
    {"DELETE FROM plain WHERE a = pg_backend_pid()", "pg_backend_pid"},
    {"DELETE FROM plain WHERE a IN (SELECT id FROM t TABLESAMPLE bernoulli (50))", "TABLESAMPLE"},
    {"DELETE FROM plain WHERE pg_try_advisory_xact_lock(b)", "pg_try_advisory_xact_lock"},
    {"SELECT b FROM plain LIMIT 1 FOR UPDATE SKIP LOCKED", ""},
    {"SELECT pg_try_advisory_lock(1)", ""},
    {"UPDATE plain SET a = 1 WHERE b = (SELECT b FROM plain LIMIT 1 FOR UPDATE)", ""},
    {"INSERT INTO t (id, at, day) SELECT 1, NULL, NULL FROM plain", "gen_random_uuid()"},
    {"UPDATE t SET u = DEFAULT", "gen_random_uuid()"},
    {"INSERT INTO plain (a) VALUES ((SELECT random() FROM t LIMIT 1))", "random"},
    {"UPDATE plain SET a = nextval('x')", "nextval"},
    {"INSERT INTO s (v) VALUES (1)", ""},
    {"ALTER TABLE plain ADD x timestamptz DEFAULT now()", "now()"},
    {"ALTER TABLE plain ADD COLUMN x uuid DEFAULT gen_random_uuid()", "gen_random_uuid"},
    {"ALTER TABLE plain ALTER a TYPE timestamptz USING current_timestamp", "current_timestamp"},
    {"ALTER TABLE plain ADD id bigserial", "numbers of rows"},
    {"ALTER TABLE plain ADD id int GENERATED ALWAYS AS IDENTITY", "numbers of rows"},
    {"ALTER TABLE plain ALTER a ADD GENERATED BY DEFAULT AS IDENTITY (START WITH 1)", ""},
    {"ALTER TABLE plain ALTER a ADD GENERATED ALWAYS AS IDENTITY", ""},
    {"ALTER TABLE plain ALTER a SET DEFAULT now()", ""},
    {"ALTER TABLE plain ADD x int DEFAULT 5, ADD UNIQUE (x)", ""},
    {"CREATE MATERIALIZED VIEW x AS SELECT current_date", "current_date"},
    {"CREATE VIEW x AS SELECT now()", ""},
    {"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.at := Now (); RETURN "
     "NEW; "
     "END $$",
        "Now"},
    {"CREATE OR REPLACE FUNCTION f() RETURNS int AS 'BEGIN RETURN RANDOM() * 5; END' LANGUAGE "
     "plpgsql",
        "RANDOM"},
    {"CREATE PROCEDURE f() BEGIN ATOMIC INSERT INTO plain (w) VALUES (CURRENT_TIMESTAMP); END",
        "CURRENT_TIMESTAMP"},
    {"CREATE FUNCTION f(at timestamptz DEFAULT clock_timestamp()) RETURNS int RETURN 1",
        "clock_timestamp"},
    {"DO $x$ BEGIN PERFORM nextval('s'); END $x$", "nextval"},
    {"DO $x$ BEGIN PERFORM 1; -- now()\nEND $x$", ""},
    {"CREATE FUNCTION f() RETURNS text LANGUAGE sql AS $$ SELECT 'now()'::text AS now $$", ""},
    {"CREATE TRIGGER now BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f()", ""},
    {"SELECT nextval('x')", ""},
    {"INSERT INTO plain (a) VALUES (random())", ""},
    {"INSERT INTO t SELECT * FROM plain", "now()"},
    {"INSERT INTO t TABLE plain", "now()"},
    {"INSERT INTO t (id, at, day, u) SELECT * FROM plain", ""},
    {"INSERT INTO plain SELECT * FROM plain", ""},
    /* Constants that the server takes for times by itself. */
    {"INSERT INTO plain (w) SELECT 'now'", "'now'"},
    {"UPDATE plain SET w = coalesce('now', w)", "'now'"},
    {"DELETE FROM plain WHERE w < 'today'", "'today'"},
    {"INSERT INTO plain (w) VALUES (E'now')", "E'now'"},
    {"INSERT INTO plain (w) VALUES ($x$ now $x$)", "$x$ now $x$"},
    {"INSERT INTO plain (w) VALUES ($$now$$)", "$$now$$"},
    {"UPDATE plain SET w = lower('[now,)')", "'[now,)'"},
    {"DELETE FROM plain WHERE w = any ('{10:00 Today,2020-01-01 10:00 am}')",
        "'{10:00 Today,2020-01-01 10:00 am}'"},
    {"INSERT INTO plain (w) SELECT 'now'::text::timestamp", "'now'"},
    {"INSERT INTO old (at) VALUES (DEFAULT)", "('now'::text)::timestamp"},
    {"INSERT INTO plain (w) VALUES ('now')", ""},
    {"INSERT INTO plain (w) VALUES (timestamp 'now'), ('today'::date)", ""},
    {"INSERT INTO t (id, at, day, u, note) VALUES (1, NULL, NULL, NULL, 'today')", ""},
    {"UPDATE t SET note = 'now'", ""},
    {"DELETE FROM plain WHERE b = 'now you see me'", ""},
    {"DELETE FROM plain WHERE b = 'known'", ""},
    {"DELETE FROM plain WHERE b = '{\"when\": \"now\"}'", ""},
    {"DELETE FROM plain WHERE b = '' OR b = $$$$ OR b = $a$$a$ OR b = '$'", ""},
    {"CREATE TABLE p PARTITION OF t FOR VALUES FROM ('now') TO ('2030-01-01')", "'now'"},
    {"CREATE TABLE p (at timestamptz DEFAULT now(), x text DEFAULT 'now')", ""},
};

START_TEST(what_may_differ)
{
    plan_for(doubtful[_i].sql, false);
    ck_assert_str_eq(arena_strndup(arena, plan.differs.n > 0 ? plan.differs.p : "", plan.differs.n),
        doubtful[_i].differs);
}
END_TEST

/* What it is: s leaves state behind, n changes nothing, w what names mean, t takes no snapshot, x
 * hides an EXECUTE. */
static const struct {
    const char *sql;
    const char *is;
} natures[] = {
    {"SET search_path = a", "snwt"},
    {"SET LOCAL search_path = a", "nwt"},
    {"SELECT set_config('search_path', 'a', false)", "w"},
    {"SELECT 1", ""},
    {"INSERT INTO plain VALUES (1)", ""},
    {"CREATE TEMP TABLE x (a int)", "sn"},
    {"BEGIN", "nt"},
    {"ROLLBACK TO a", "nwt"},
    {"PREPARE p AS SELECT 1", "sn"},
    {"LISTEN a", "st"},
    {"LOCK plain", "t"},
    {"CALL p()", "s"},
    {"DO $$$$", "s"},
    {"DECLARE c CURSOR WITH HOLD FOR SELECT 1", "s"},
    {"EXECUTE p", ""},
    {"EXPLAIN ANALYZE EXECUTE p", "x"},
    {"EXPLAIN EXECUTE p", ""},
    {"CREATE TABLE x AS EXECUTE p", "x"},
};

START_TEST(what_it_is)
{
    char is[8] = "";
    const struct sql_stmt *s;

    ck_assert_int_eq(sql_parse(arena, slice_of_str(natures[_i].sql), &facts), 0);
    s = &facts.stmts[0];
    snprintf(is, sizeof is, "%s%s%s%s%s", repl_leaves_state(s) ? "s" : "",
        repl_changes_nothing(s) ? "n" : "", repl_changes_names(s) ? "w" : "",
        repl_takes_no_snapshot(s) ? "t" : "", repl_hides_execute(s) ? "x" : "");
    ck_assert_msg(strcmp(is, natures[_i].is) == 0, "%s: %s", natures[_i].sql, is);
}
END_TEST

/* By what a write chooses its rows: v by one value of a column that it does not change, f by
 * others,
 * - it is none. */
static const struct {
    const char *sql;
    char is;
} choices[] = {
    {"UPDATE t SET a = 1 WHERE id = 5", 'v'},
    {"update pgbench_accounts set abalance = abalance + -12 where aid = 77;", 'v'},
    {"UPDATE \"t\" SET \"a\" = $1, \"b\" = 'x -y' WHERE \"t\".\"id\" = $2", 'v'},
    {"UPDATE s.t SET a = $1 WHERE s.t.id = 'a' RETURNING id, a", 'v'},
    {"DELETE FROM t WHERE id = $1", 'v'},
    {"DELETE FROM t WHERE id=5", 'v'},
    {"UPDATE t SET a = (SELECT b FROM u WHERE c IS NULL) WHERE id = 5", 'v'},
    {"UPDATE t SET a = 1", 'f'},
    {"UPDATE t SET a = 1 WHERE a IS NULL", 'f'},
    {"UPDATE t SET a = 2 WHERE a = 1", 'f'},
    {"UPDATE t SET A = 2 WHERE \"a\" = 1", 'f'},
    {"UPDATE t SET a = 2 WHERE id = 5 AND v = 7", 'f'},
    {"UPDATE t SET a = 2 WHERE id = 5 OR true", 'f'},
    {"UPDATE t SET a = 2 WHERE id = -5", 'f'},
    {"UPDATE t SET a = 2 WHERE id = 5 + 1", 'f'},
    {"UPDATE t SET a = 2 WHERE id = b", 'f'},
    {"UPDATE t SET a = 2 WHERE id >= 5", 'f'},
    {"UPDATE t SET a = 2 WHERE (id = 5)", 'f'},
    {"UPDATE t SET a = 2 WHERE id = '5'::int", 'f'},
    {"UPDATE t SET a = 2 WHERE b = 'it''s'", 'f'},
    {"UPDATE t SET a = 2 WHERE b IS NULL AND c = 'where id = 5'", 'f'},
    {"UPDATE t SET a = 2 WHERE b IS NULL -- where id = 5", 'f'},
    {"UPDATE t SET a = 2 WHERE b IS NULL /* where id = 5 */", 'f'},
    {"UPDATE t SET a = 2 WHERE b = ';' AND a = 1", 'f'},
    {"UPDATE t SET a = u.a FROM u WHERE t.id = u.id", 'f'},
    {"DELETE FROM t USING u WHERE t.id = u.id", 'f'},
    {"DELETE FROM t", 'f'},
    {"MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE", 'f'},
    {"WITH d AS (DELETE FROM t WHERE a RETURNING id) SELECT * FROM d", 'f'},
    {"WITH d AS (DELETE FROM t WHERE a RETURNING id) INSERT INTO u SELECT id FROM d", 'f'},
    {"EXPLAIN ANALYZE UPDATE t SET a = 1 WHERE a IS NULL", 'f'},
    {"INSERT INTO t VALUES (1)", '-'},
    {"SELECT 1", '-'},
    {"COMMIT", '-'},
};

START_TEST(what_it_chooses_by)
{
    struct slice sql = slice_of_str(choices[_i].sql);

    ck_assert_int_eq(sql_parse(arena, sql, &facts), 0);
    ck_assert_msg(
        "-vf"[repl_choice_of(sql, &facts.stmts[0])] == choices[_i].is, "%s", choices[_i].sql);
}
END_TEST

START_TEST(numbers_of_transactions)
{
    ck_assert_uint_eq(repl_which_number(slice_of_str("3/1234")), 1234);
    ck_assert_uint_eq(repl_which_number(slice_of_str("12/0")), 0);
    ck_assert_uint_eq(repl_which_number(slice_of_str("12")), 0);
    ck_assert_uint_eq(repl_which_number(slice_of(NULL, 0)), 0);
}
END_TEST

START_TEST(tables_with_sequences_are_named)
{
    plan_for("INSERT INTO s (v) VALUES (1)", false);
    ck_assert_ptr_nonnull(plan.serial);
    plan_for("INSERT INTO t (id) VALUES (1)", false);
    ck_assert_ptr_null(plan.serial);
    plan_for("INSERT INTO t (id) VALUES (nextval('x'))", false);
    ck_assert_ptr_nonnull(plan.serial);
    plan_for("SELECT nextval('x')", false);
    ck_assert_ptr_null(plan.serial);
}
END_TEST

static const struct {
    const char *sql;
    const char *sequences; /* each behind a blank */
    const char *differs;
} numbered[] = {
    {"SELECT nextval('x')", " 'x'", ""},
    {"SELECT pg_catalog.nextval('a.x'::regclass), setval('\"Y\"', 3, true), "
     "nextval('a.x'::regclass)",
        " 'a.x'::regclass '\"Y\"'", ""},
    {"SELECT nextval($1)", "", "nextval"},
    {"SELECT nextval('x' || a) FROM plain", "", "nextval"},
    {"SELECT nextval(a) FROM plain", "", "nextval"},
    {"INSERT INTO s (v) VALUES (1)", " 's_id_seq'::regclass", ""},
    {"INSERT INTO plain (a) VALUES (nextval('x')), (nextval('y'))", " 'x' 'y'", ""},
    {"INSERT INTO only_id DEFAULT VALUES", " pg_catalog.pg_get_serial_sequence('only_id', 'i d')",
        ""},
    {"UPDATE plain SET a = nextval('x')", " 'x'", "nextval"},
    {"SELECT 1", "", ""},
};

START_TEST(sequences_are_named)
{
    struct buf all = {0};

    plan_for(numbered[_i].sql, false);
    for (uint32_t i = 0; i < plan.nsequences; i++)
        buf_printf(&all, " %.*s", (int)plan.sequences[i].n, plan.sequences[i].p);
    buf_put_byte(&all, '\0');
    ck_assert_str_eq(all.data, numbered[_i].sequences);
    buf_free(&all);
    ck_assert_str_eq(arena_strndup(arena, plan.differs.n > 0 ? plan.differs.p : "", plan.differs.n),
        numbered[_i].differs);
}
END_TEST

START_TEST(the_catalogue_is_asked)
{
    plan_for("INSERT INTO unknown (v) VALUES (now())", false);
    ck_assert_int_eq(plan.verdict, REPL_ASK);
    ck_assert(slice_eq_str(plan.table->name, "unknown"));
    plan_for("UPDATE unknown SET v = 1", false);
    ck_assert_int_eq(plan.verdict, REPL_KEEP);
    plan_for("INSERT INTO nowhere (v) VALUES (1)", false);
    ck_assert_int_eq(plan.verdict, REPL_KEEP);
}
END_TEST

START_TEST(parse_gets_parameters)
{
    static const char sql[] = "INSERT INTO t (id, u) VALUES ($1, $2)";

    plan_for(sql, true);
    ck_assert_str_eq(text(sql),
        "INSERT INTO t (id, u, \"at\", \"day\") VALUES ($1, $2, (CAST($3 AS timestamp with time "
        "zone)), (CAST(CAST($3 AS timestamp with time zone) AS date)))");
    ck_assert_uint_eq(plan.nasks, 1);
}
END_TEST

START_TEST(execute_gets_arguments)
{
    static const char *const sql[] = {"EXECUTE p", "EXECUTE p (1, (2))"};
    static const char *const want[] = {"EXECUTE p('it''s')", "EXECUTE p (1, (2), 'it''s')"};
    struct slice value = slice_of_str("it's");

    for (unsigned i = 0; i < 2; i++) {
        struct buf out = {0};
        struct repl_plan prepared;

        plan_for("PREPARE p AS UPDATE plain SET w = now()", false);
        prepared = plan;
        plan_for(sql[i], false);
        repl_rewrite_execute(&prepared, slice_of_str(sql[i]), &facts.stmts[0], &value, &out);
        ck_assert(slice_eq_str(buf_slice(&out), want[i]));
        buf_free(&out);
    }
}
END_TEST

static const char *const refused[] = {
    "INSERT INTO plain (w) VALUES (CURRENT_TIMESTAMP(/*\1"
    "4000\2*/3))",
    "INSERT INTO plain (w) VALUES (CURRENT_TIMESTAMP(/*\1*/3))",
    "INSERT INTO plain (w) VALUES (timestamp /*\1"
    "0\2*/ 'now')",
    "SELECT lo_creat(extract(epoch from now())::int)",
};

START_TEST(what_cannot_be_spliced)
{
    plan_for(refused[_i], false);
    ck_assert_msg(plan.verdict == REPL_FAILED, "%s", refused[_i]);
}
END_TEST

static void put_rows(struct buf *sql, const char *head, int n)
{
    buf_printf(sql, "%sINSERT INTO plain (a) VALUES (random())", head);
    for (int i = 1; i < n; i++)
        buf_printf(sql, ", (random())");
    buf_put_byte(sql, '\0');
}

/* What a view shows is filled in; what it does not show is named. */
START_TEST(views_hide_columns)
{
    plan_for("INSERT INTO view (id) VALUES (1)", false);
    ck_assert(plan.verdict == REPL_REWRITE);
    ck_assert_uint_eq(plan.nasks, 1);
    ck_assert(slice_eq_str(plan.differs, "gen_random_uuid()"));
    ck_assert_ptr_null(plan.serial);
    plan_for("INSERT INTO t (id) VALUES (1)", false);
    ck_assert_uint_eq(plan.differs.n, 0);
}
END_TEST

/* No server takes so many columns in one row. */
START_TEST(values_are_asked_for_in_rows)
{
    struct buf sql = {0};
    struct buf asks = {0};
    const char *at;
    unsigned nrows = 0;

    put_rows(&sql, "", 1500);
    plan_for(sql.data, false);
    ck_assert_uint_eq(plan.nasks, 1500);
    repl_rewrite_asks(&plan, 0, &asks);
    repl_rewrite_asks(&plan, 1500, &asks);
    buf_put_byte(&asks, '\0');
    for (at = asks.data; (at = strstr(at, "SELECT random(), ")) != NULL; at++)
        nrows++;
    ck_assert_uint_eq(nrows, 3);
    ck_assert_ptr_nonnull(strstr(asks.data, "random();SELECT random()"));
    ck_assert_ptr_null(strstr(asks.data, ",;"));
    buf_free(&asks);
    buf_free(&sql);
}
END_TEST

/* Two parameters as a Bind has them: formats, then values; and the types of their Parse. */
static const struct {
    const char *first;
    const char *second;
    uint16_t format; /* of both */
    uint32_t types[2];
    uint32_t moves;
} bound[] = {
    {"1", "now", 0, {0, 0}, 2},
    {"today", "now", 0, {0, 0}, 1},
    {"today", " Tomorrow 10:00", 0, {25, 1184}, 2},
    {"yesterday", "x", 0, {1082, 0}, 1},
    {"nowhere", "todays", 0, {0, 0}, 0},
    {"10:00 today", "{\"x\": \"now\"}", 0, {0, 0}, 1},
    {"x", "[now,)", 0, {25, 3910}, 2},
    {"x", "{now}", 0, {25, 1185}, 2},
    {"now", "today", 0, {25, 1043}, 0},
    {"now", "today", 1, {0, 0}, 0},
    {"", "", 0, {0, 0}, 0},
};

static void put_value(struct buf *out, const char *value)
{
    buf_put_u32(out, (uint32_t)strlen(value));
    buf_put(out, value, strlen(value));
}

START_TEST(bound_words_that_move)
{
    struct buf values = {0};
    struct buf types = {0};

    buf_put_u16(&values, 1);
    buf_put_u16(&values, bound[_i].format);
    buf_put_u16(&values, 2);
    put_value(&values, bound[_i].first);
    put_value(&values, bound[_i].second);
    buf_put_u16(&values, 0);
    buf_put_u16(&types, 2);
    buf_put_u32(&types, bound[_i].types[0]);
    buf_put_u32(&types, bound[_i].types[1]);
    ck_assert_uint_eq(repl_bind_moves(buf_slice(&values), buf_slice(&types)), bound[_i].moves);
    for (uint32_t n = 0; n < values.len; n++) /* cut anywhere */
        (void)repl_bind_moves(slice_of(values.data, n), buf_slice(&types));
    buf_free(&values);
    buf_free(&types);
}
END_TEST

/* One value too many is refused, and not given another one's. */
START_TEST(values_have_a_limit)
{
    struct buf sql = {0};

    put_rows(&sql, "PREPARE p AS ", 1600);
    plan_for(sql.data, false);
    ck_assert(plan.verdict == REPL_REWRITE);
    ck_assert_uint_eq(plan.nasks, 1600);
    sql.data[sql.len - 1] = ' ';
    buf_printf(&sql, ", (random())");
    buf_put_byte(&sql, '\0');
    plan_for(sql.data, false);
    ck_assert(plan.verdict == REPL_FAILED);
    buf_free(&sql);
}
END_TEST

/* What the main node may run as it was written, behind the question. */
START_TEST(what_is_of_the_transaction)
{
    static const struct {
        const char *sql;
        bool is;
    } row[] = {
        {"UPDATE plain SET w = now()", true},
        {"UPDATE plain SET w = localtimestamp(2), a = 1 WHERE b < extract(day from current_date)",
            true},
        {"INSERT INTO t (id, u) VALUES (1, NULL)",
            true},                              /* its defaults are now() and CURRENT_DATE */
        {"INSERT INTO s (v) VALUES (1)", true}, /* a lock alone */
        {"UPDATE plain SET w = clock_timestamp()", false},
        {"UPDATE plain SET w = statement_timestamp(), a = extract(day from now())", false},
        {"UPDATE plain SET w = 'now'", false},
        {"INSERT INTO t (id) VALUES (1)", false}, /* and gen_random_uuid() */
    };

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        plan_for(row[i].sql, false);
        ck_assert_msg(repl_asks_of_transaction(&plan) == row[i].is, "%s", row[i].sql);
    }
    plan_for("UPDATE plain SET w = now()", true);
    ck_assert(!repl_asks_of_transaction(&plan));
}
END_TEST

START_TEST(plain_statements)
{
    static const struct {
        const char *sql;
        bool is;
    } row[] = {
        {"SELECT a FROM plain WHERE a = -1.5 AND b IN (1, 2)", true},
        {"UPDATE plain SET a = a + 1 WHERE b = 2 RETURNING a;", true},
        {"SELECT a - b / 2 FROM plain WHERE a = - 1 AND b < -2", true},
        {"SELECT a FROM plain --", false},
        {"SELECT a FROM plain /**/", false},
        {"DELETE FROM plain", true},
        {"BEGIN ISOLATION LEVEL REPEATABLE READ", true},
        {"END;", true},
        {"UPDATE plain SET w = 'now'", false},
        {"UPDATE plain SET w = $$now$$", false},
        {"UPDATE plain SET w = $a1$now$a1$", false},
        {"SELECT a FROM plain WHERE b = $1 OR c = $$x$$", false},
        {"SELECT a FROM plain WHERE b = $1 AND w > $22::timestamptz", true},
        {"UPDATE plain SET a = $1, w = $2", true},
        {"UPDATE plain SET w = $1::timestamptz WHERE x$1 = 2", true},
        {"DELETE FROM plain WHERE w < CAST($1 AS timestamptz)", true},
        {"UPDATE plain SET w = timestamptz $$now$$", false},
        {"UPDATE plain SET w = now()", false},
        {"UPDATE plain SET w = localtimestamp", false},
        {"UPDATE plain SET w = DEFAULT", false},
        {"UPDATE plain SET a = nextval(1)", false},
        {"UPDATE plain SET a = (plain).f", false},
        {"UPDATE plain SET a = 1 /*INSERT LOCK*/", false},
        {"/*NO LOAD BALANCE*/ SELECT a FROM plain", false},
        {"SELECT a FROM plain -- x", false},
        {"SELECT a FROM plain FOR UPDATE SKIP LOCKED", false},
        {"SELECT a INTO b FROM plain", false},
        {"SELECT a FROM plain TABLESAMPLE system (1)", false},
        {"WITH x AS (DELETE FROM plain RETURNING a) SELECT a FROM x", false},
        {"INSERT INTO plain VALUES (1)", false},
        {"COMMIT AND CHAIN", false},
        {"SAVEPOINT a", false},
        {"LOCK TABLE plain", false},
    };

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct slice sql = slice_of_str(row[i].sql);

        ck_assert_int_eq(sql_parse(arena, sql, &facts), 0);
        ck_assert_msg(repl_is_plain(sql, &facts.stmts[0]) == row[i].is, "%s", row[i].sql);
        if (row[i].is) { /* it is never rewritten */
            plan_for(row[i].sql, false);
            ck_assert_msg(plan.verdict == REPL_KEEP && plan.nasks == 0 && plan.differs.n == 0 &&
                              plan.serial == NULL && plan.nsequences == 0,
                "%s", row[i].sql);
        }
    }
}
END_TEST

START_TEST(literals_are_quoted)
{
    struct buf out = {0};

    repl_put_literal(&out, slice_of_str("a'b\\c"));
    ck_assert(slice_eq_str(buf_slice(&out), " E'a''b\\\\c'"));
    buf_free(&out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replicate_rewrite");
    TCase *tc = tcase_create("rewrite");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, statements, 0, sizeof rows / sizeof rows[0]);
    tcase_add_loop_test(tc, what_may_differ, 0, sizeof doubtful / sizeof doubtful[0]);
    tcase_add_loop_test(tc, what_it_is, 0, sizeof natures / sizeof natures[0]);
    tcase_add_loop_test(tc, what_it_chooses_by, 0, sizeof choices / sizeof choices[0]);
    tcase_add_test(tc, numbers_of_transactions);
    tcase_add_loop_test(tc, sequences_are_named, 0, sizeof numbered / sizeof numbered[0]);
    tcase_add_test(tc, tables_with_sequences_are_named);
    tcase_add_test(tc, the_catalogue_is_asked);
    tcase_add_test(tc, parse_gets_parameters);
    tcase_add_test(tc, execute_gets_arguments);
    tcase_add_loop_test(tc, what_cannot_be_spliced, 0, sizeof refused / sizeof refused[0]);
    tcase_add_loop_test(tc, bound_words_that_move, 0, sizeof bound / sizeof bound[0]);
    tcase_add_test(tc, views_hide_columns);
    tcase_add_test(tc, values_are_asked_for_in_rows);
    tcase_add_test(tc, values_have_a_limit);
    tcase_add_test(tc, what_is_of_the_transaction);
    tcase_add_test(tc, plain_statements);
    tcase_add_test(tc, literals_are_quoted);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
